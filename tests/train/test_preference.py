"""DPO and GRPO on tiny models: losses by their formulas in PyTorch, models that learn."""

from pathlib import Path

import numpy as np
import pytest
import torch as pytorch

import pellucid as torch
from pellucid.errors import ArgumentError, RangeError
from pellucid.train import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, LoraConfig, get_peft_model
from pellucid.train.preference import dpo_loss, grpo_loss
from pellucid.train.preference.grpo import advantages_of

LLAMA = str(Path(__file__).parents[1] / "golden" / "peft" / "llama")


@pytest.fixture(autouse=True)
def on_cpu():
    with torch.device("cpu"):
        yield


def model():
    return torch.AutoModelForCausalLM.from_pretrained(LLAMA)


def likelihoods(network, prompt, answer) -> float:
    """The log-likelihood of an answer, id by id."""
    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        each = network(ids).logits.log_softmax(-1)[0].numpy()
    return sum(each[len(prompt) - 1 + k, i] for k, i in enumerate(answer))


PAIRS = [
    {"prompt": [5, 6, 7], "chosen": [8, 9], "rejected": [10, 11, 12]},
    {"prompt": [13], "chosen": [8, 8, 8], "rejected": [9]},
    {"prompt": [20, 21], "chosen": [30], "rejected": [31, 31]},
]


@pytest.mark.parametrize(
    ("kind", "smoothing"), [("sigmoid", 0.0), ("sigmoid", 0.1), ("hinge", 0.0), ("ipo", 0.0)]
)
def test_the_loss_of_dpo(kind, smoothing):
    rng = np.random.default_rng(4)
    values = rng.normal(size=(4, 6)).astype(np.float32)
    args = DPOConfig(loss_type=kind, beta=0.3, label_smoothing=smoothing)
    own = [torch.tensor(v, requires_grad=True) for v in values]
    loss = dpo_loss(*own, args)
    loss.backward()
    theirs = [pytorch.tensor(v, requires_grad=True) for v in values]
    gain = (theirs[0] - theirs[1]) - (theirs[2] - theirs[3])
    wanted = {
        "sigmoid": -(1 - smoothing) * pytorch.nn.functional.logsigmoid(0.3 * gain)
        - smoothing * pytorch.nn.functional.logsigmoid(-0.3 * gain),
        "hinge": (1 - 0.3 * gain).relu(),
        "ipo": (gain - 1 / 0.6) ** 2,
    }[kind].mean()
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    np.testing.assert_allclose(own[0].grad.numpy(), theirs[0].grad.numpy(), atol=1e-6)


@pytest.mark.parametrize("adapted", [False, True])
def test_dpo_prefers_what_is_chosen(adapted):
    network, reference = model(), model()
    if adapted:
        network, reference = get_peft_model(network, LoraConfig(r=4, target_modules="all-linear")), None
    args = DPOConfig(max_steps=12, learning_rate=0.01, logging_steps=1, disable_tqdm=True, beta=0.5)
    trainer = DPOTrainer(network, reference, args, PAIRS)
    batch = trainer.data_collator(PAIRS)
    loss, rewards = trainer.compute_loss(network, batch, return_outputs=True)
    assert loss.item() == pytest.approx(np.log(2), abs=1e-5)
    own = [likelihoods(network, p["prompt"], p["chosen"]) for p in PAIRS]
    np.testing.assert_allclose(trainer._sums(network, batch).detach().numpy()[:3], own, atol=1e-4)
    trainer.train()
    _, rewards = trainer.compute_loss(network, batch, return_outputs=True)
    assert (rewards["rewards_chosen"] > rewards["rewards_rejected"]).all()
    assert trainer.state.log_history[-2]["loss"] < 0.4


def test_the_loss_of_grpo():
    rng = np.random.default_rng(5)
    each, old, reference = (rng.normal(size=(4, 5)).astype(np.float32) * 0.5 for _ in range(3))
    there = (rng.random((4, 5)) < 0.7).astype(np.float32)
    gain = advantages_of(np.array([1.0, 0, 2, 2]), 2, True)
    np.testing.assert_allclose(gain, [0.70701, -0.70701, 0, 0], atol=1e-4)
    args = GRPOConfig(beta=0.2, epsilon=0.1)
    own = torch.tensor(each, requires_grad=True)
    loss = grpo_loss(
        own, torch.tensor(old), torch.tensor(there), torch.tensor(gain), torch.tensor(reference), args
    )
    loss.backward()
    x = pytorch.tensor(each, requires_grad=True)
    ratio = (x - pytorch.tensor(old)).exp()
    a = pytorch.tensor(gain)[:, None]
    wanted = -pytorch.minimum(ratio * a, ratio.clamp(0.9, 1.1) * a)
    away = pytorch.tensor(reference) - x
    wanted = ((wanted + 0.2 * (away.exp() - away - 1)) * pytorch.tensor(there)).sum() / there.sum()
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    np.testing.assert_allclose(own.grad.numpy(), x.grad.numpy(), atol=1e-6)


def test_grpo_raises_the_reward():
    """The reward is 1 for ids below 24; how likely these are is computed, not drawn."""
    seen = []

    def small(prompts, completions, completion_ids, name, **columns):
        seen.append((len(prompts), name[0]))
        return [float(ids[0] < 24) for ids in completion_ids]

    def likely(network) -> float:
        with torch.no_grad():
            return network(torch.tensor([[3, 4]])).logits[0, -1].softmax(-1)[:24].sum().item()

    args = GRPOConfig(
        max_steps=10, learning_rate=0.02, lr_scheduler_type="constant", logging_steps=1, disable_tqdm=True,
        num_generations=24, max_completion_length=1, per_device_train_batch_size=1, num_iterations=2,
        beta=0.01,
    )  # fmt: skip
    network = model()
    before = likely(network)
    trainer = GRPOTrainer(network, small, args, [{"prompt": [3, 4], "name": "a"}] * 5, ref_model=model())
    trainer.train()
    assert seen == [(24, "a")] * 5
    assert likely(network) > before + 0.2
    assert all(0 <= e["reward"] <= 1 for e in trainer.state.log_history if "reward" in e)


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="needs ref_model"):
        DPOTrainer(model(), None, DPOConfig(), PAIRS)
    with pytest.raises(RangeError, match="loss_type must be one of sigmoid"):
        DPOConfig(loss_type="best")
    with pytest.raises(RangeError, match="num_generations must be at least 2"):
        GRPOConfig(num_generations=1)
    with pytest.raises(ArgumentError, match="beta needs ref_model"):
        GRPOTrainer(model(), lambda **_: [], GRPOConfig(beta=0.1))
    args = GRPOConfig(max_steps=1, num_generations=2, max_completion_length=1, disable_tqdm=True)
    for reward, words in (
        (lambda **_: [1.0], "must give 4 numbers"),
        (lambda **_: [np.nan] * 4, "not finite"),
    ):
        with pytest.raises(ArgumentError, match=words):
            GRPOTrainer(model(), reward, args, [{"prompt": [1]}, {"prompt": [2]}]).train()
    with pytest.raises(ArgumentError, match="has prompt and no chosen"):
        DPOTrainer(model(), model(), DPOConfig(max_steps=1), [{"prompt": [1]}]).train()
    with pytest.raises(ArgumentError, match="needs processing_class"):
        DPOTrainer(
            model(), model(), DPOConfig(max_steps=1), [{"prompt": "a", "chosen": "b", "rejected": "c"}]
        ).train()
