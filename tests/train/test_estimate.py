"""Memory that is told before it is taken, beside tensors that are there then."""

import gc

import pytest

import pellucid as torch
from pellucid import webgpu
from pellucid.models import LlamaConfig, LlamaForCausalLM, MambaConfig, MambaForCausalLM
from pellucid.train import LoraConfig, TrainingArguments, estimate_memory, get_peft_model

SIZES = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2}
LENGTH, BATCH = 128, 2


def mamba():
    return MambaForCausalLM(MambaConfig(**SIZES))


def llama():
    return LlamaForCausalLM(LlamaConfig(intermediate_size=24, num_attention_heads=2, **SIZES))


def adapted():
    return get_peft_model(mamba(), LoraConfig(r=2, target_modules=["in_proj"]))


def nbytes(tensors) -> int:
    return sum(t.nbytes for t in tensors)


@pytest.mark.parametrize("make", [mamba, llama, adapted])
@pytest.mark.parametrize("optim", ["adamw", "sgd", "adafactor"])
def test_what_stays_is_what_a_step_makes(make, optim):
    """Weights, caches, gradients and optimizers to the byte, of a model that stays as it is."""
    with torch.device("cpu"):
        model = make()
        args = TrainingArguments(optim=optim, per_device_train_batch_size=BATCH)
        found = estimate_memory(model, args, length=LENGTH)
        assert {p.device.type for p in model.parameters()} == {"cpu"}
        assert all(p.grad is None for p in model.parameters())
        base = model.get_base_model() if make is adapted else model
        assert found.cache == nbytes(base.new_cache(BATCH, LENGTH).memory)
        ids = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
        model(ids, labels=ids).loss.backward()
        trained = [p for p in model.parameters() if p.requires_grad]
        kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD, "adafactor": torch.optim.Adafactor}
        optimizer = kinds[optim](trained)
        optimizer.step()
    state = (x for s in optimizer.state.values() for x in s.values() if isinstance(x, torch.Tensor))
    assert (found.weights, found.gradients) == (nbytes(model.parameters()), nbytes(p.grad for p in trained))
    assert found.optimizer == nbytes(state)
    assert found.decoding == found.weights + found.cache
    assert f"{found.training:,}" in str(found)


@pytest.mark.gpu
@pytest.mark.turns(4)
def test_activations_are_what_a_forward_leaves_on_the_device():
    def alive() -> int:
        gc.collect()
        webgpu.synchronize()
        return webgpu.memory_allocated()

    with webgpu.fusion(False):
        model = mamba()
        found = estimate_memory(model.config, length=LENGTH, batch_size=BATCH)
        ids = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
        before = alive()
        loss = model.train()(ids, labels=ids).loss
        assert 0.8 < found.activations / (alive() - before) < 1.1
        loss.item()
    less = TrainingArguments(gradient_checkpointing=True)
    assert estimate_memory(model, less, length=LENGTH, batch_size=BATCH).activations < found.activations / 4


def test_a_model_of_many_billions_is_told_of():
    """27 GB of weights, which no test could hold."""
    config = LlamaConfig(
        vocab_size=32_000, hidden_size=4096, intermediate_size=11_008, num_hidden_layers=32,
        num_attention_heads=32,
    )  # fmt: skip
    found = estimate_memory(config, length=512, batch_size=1)
    assert found.weights == 6_738_415_616 * 4
    assert found.cache == 2 * 32 * 512 * 4096 * 4
    assert found.optimizer == 2 * found.gradients == 2 * found.weights


REFUSED = [
    (lambda: estimate_memory(torch.nn.Linear(2, 2, device="cpu"), length=8), "takes a language model"),
    (lambda: estimate_memory(3, length=8), "takes a Module or a Config"),
    (lambda: estimate_memory(MambaConfig(**SIZES), length=0), "length must be a whole number"),
    (lambda: estimate_memory(MambaConfig(**SIZES), length=8, batch_size=0.5), "batch_size must be a whole"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_is_refused(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call()
