"""Adapters beside peft's: outputs, gradients, files both ways, merging, quantized bases."""

import json
from pathlib import Path

import numpy as np
import pytest

import pellucid as torch
from pellucid import nn
from pellucid.errors import ArgumentError, FormatError, RangeError, WeightError
from pellucid.train import (
    IA3Config,
    LoraConfig,
    PeftConfig,
    PromptTuningConfig,
    Trainer,
    TrainingArguments,
    get_peft_model,
    load_adapter,
)
from pellucid.train.checkpoints.complete import tensors_of

GOLDEN = Path(__file__).parents[1] / "golden" / "peft"
IDS = json.loads((GOLDEN / "ids.json").read_text())
CASES = {
    "lora": "llama", "rslora": "llama", "one_layer": "llama", "dora": "llama", "dora_embedding": "llama",
    "embedding_and_head": "llama", "gpt2": "gpt2", "gpt2_dora": "gpt2", "ia3": "llama", "prompt": "llama",
}  # fmt: skip


@pytest.fixture(autouse=True)
def on_cpu():
    with torch.device("cpu"):
        yield


def base(kind: str = "llama"):
    return torch.AutoModelForCausalLM.from_pretrained(str(GOLDEN / kind))


def loaded(name: str):
    return load_adapter(base(CASES[name]), GOLDEN / name, is_trainable=True)


def forward(model):
    ids = torch.tensor(IDS, device=model.device)
    return model(ids, attention_mask=torch.ones_like(ids), labels=ids)


def logits(model) -> np.ndarray:
    with torch.no_grad():
        return forward(model).logits.cpu().numpy()


def expected(name: str) -> dict[str, np.ndarray]:
    data = (GOLDEN / name / "expected.safetensors").read_bytes()
    return {k: v.numpy() for k, v in tensors_of(data).items()}


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_pefts(name):
    model, wanted = loaded(name), expected(name)
    out = forward(model)
    out.loss.backward()
    np.testing.assert_allclose(out.logits.detach().numpy(), wanted.pop("logits"), atol=3e-5)
    assert out.loss.item() == pytest.approx(wanted.pop("loss").item(), abs=1e-5)
    # peft keeps the prompt beside the model, Pellucid in its embedding.
    prompt = wanted.pop("prompt_encoder.default.embedding.weight", None)
    if prompt is not None:
        wanted["base_model.model.model.embed_tokens.prompts.default"] = prompt
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    assert set(trained) == set(wanted)
    for path, p in trained.items():
        np.testing.assert_allclose(p.grad.numpy(), wanted[path], atol=1e-5, err_msg=path)


@pytest.mark.parametrize("name", CASES)
def test_files_are_pefts(name, tmp_path):
    """The tensors of a file that is loaded and saved again, and settings that peft reads as its own."""
    loaded(name).save_pretrained(tmp_path)
    files = [tensors_of((f / "adapter_model.safetensors").read_bytes()) for f in (GOLDEN / name, tmp_path)]
    theirs, ours = ({k: v.numpy() for k, v in f.items()} for f in files)
    theirs.pop("base_model.model.model.embed_tokens.base_layer.weight", None)  # the frozen embedding
    assert set(ours) == set(theirs)
    assert all(np.array_equal(ours[k], theirs[k]) for k in ours)
    settings = [json.loads((f / "adapter_config.json").read_text()) for f in (GOLDEN / name, tmp_path)]
    changing = {"inference_mode", "prompt_tuning_init"}
    assert {k: v for k, v in settings[1].items() if k not in changing and settings[0][k] != v} == {}


@pytest.mark.parametrize("name", [n for n in CASES if n != "prompt"])
def test_merging(name, tmp_path):
    """P-092: merged and taken apart again."""
    model, wanted = loaded(name), expected(name)["logits"]
    plain = logits(base(CASES[name]))
    model.merge_adapter()
    np.testing.assert_allclose(logits(model), wanted, atol=5e-5)
    model.unmerge_adapter()
    if name != "gpt2":  # whose own biases are trained, too
        with model.disable_adapter():
            np.testing.assert_array_equal(logits(model), plain)
    np.testing.assert_allclose(logits(model), wanted, atol=3e-5)
    merged = model.merge_and_unload()
    assert not any(hasattr(m, "base_layer") for m in merged.modules())
    np.testing.assert_allclose(logits(merged), wanted, atol=5e-5)
    Trainer(merged, TrainingArguments(disable_tqdm=True)).save_model(tmp_path)
    again = torch.AutoModelForCausalLM.from_pretrained(str(tmp_path))
    np.testing.assert_array_equal(logits(again), logits(merged))


def test_two_adapters_of_one_model():
    model = loaded("lora")
    first = logits(model)
    model.add_adapter("other", LoraConfig(target_modules=["o_proj"], init_lora_weights=False))
    np.testing.assert_array_equal(logits(model), first)
    model.set_adapter("other")
    assert np.abs(logits(model) - first).max() > 1e-2
    assert all("other" in n for n, p in model.named_parameters() if p.requires_grad)
    load_adapter(model, GOLDEN / "one_layer", "third")
    assert not any(p.requires_grad for p in model.parameters())
    np.testing.assert_allclose(logits(model), expected("one_layer")["logits"], atol=3e-5)
    model.set_adapter("default")
    np.testing.assert_array_equal(logits(model), first)


def test_generation_with_a_prompt_equals_the_forward():
    model = loaded("prompt")
    ids = torch.tensor(IDS[:1])
    out = model.generate(ids, max_new_tokens=4, do_sample=False)
    for _ in range(4):
        following = model(ids).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, following], 1)
    assert out.tolist() == ids.tolist()


def test_a_new_adapter_changes_nothing_and_trains_little():
    """P-092, P-094: LoRA begins at the model, and trains its own matrices only."""
    for config in (LoraConfig(), LoraConfig(use_dora=True, target_modules="all-linear"), IA3Config()):
        model = get_peft_model(base(), config)
        np.testing.assert_allclose(logits(model), logits(base()), atol=2e-5)
        trained, total = model.get_nb_trainable_parameters()
        assert 0 < trained < total / 2
        forward(model).loss.backward()
        assert all((p.grad is not None) == p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("config", [LoraConfig(r=4), LoraConfig(r=4, use_dora=True), IA3Config()])
def test_a_quantized_base_is_trained(config, tmp_path):
    """QLoRA: the frozen weights stay as they are stored; a checkpoint holds the adapter alone."""
    from pellucid import weights

    (tmp_path / "base").mkdir()
    model = torch.models.LlamaForCausalLM(
        torch.models.LlamaConfig(
            vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=32,
        )
    )  # fmt: skip
    Trainer(model, TrainingArguments(disable_tqdm=True)).save_model(tmp_path / "base")
    weights.quantize(tmp_path / "base", tmp_path / "small", "q4_0")
    small = torch.AutoModelForCausalLM.from_pretrained(str(tmp_path / "small"))
    assert small.model.layers[0].self_attn.q_proj.weight.dtype.is_quantized
    tuned = get_peft_model(small, config)
    data = [{"input_ids": row, "labels": row} for row in IDS * 2]
    args = TrainingArguments(
        tmp_path / "run", max_steps=8, learning_rate=0.05, logging_steps=1, disable_tqdm=True
    )
    trainer = Trainer(tuned, args, train_dataset=data)
    trainer.train()
    losses = [e["loss"] for e in trainer.state.log_history if "loss" in e]
    assert losses[-1] < losses[0] - 0.05
    assert small.model.layers[0].self_attn.q_proj.weight.dtype.is_quantized
    names = {p.name for p in (tmp_path / "run" / "checkpoint-8").iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json"} <= names
    assert "model.safetensors" not in names
    trained = logits(tuned)
    again = load_adapter(
        torch.AutoModelForCausalLM.from_pretrained(str(tmp_path / "small")), tmp_path / "run" / "checkpoint-8"
    )
    np.testing.assert_array_equal(logits(again), trained)
    merged = tuned.merge_and_unload()
    assert not merged.model.layers[0].self_attn.v_proj.weight.dtype.is_quantized
    np.testing.assert_allclose(logits(merged), trained, atol=1e-4)


@pytest.mark.gpu
def test_a_captured_call_sees_an_adapter_come_and_go():
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to("webgpu")
    x = torch.randn(4, 6).to("webgpu")
    plain = network(x).detach().cpu().numpy()
    config = LoraConfig(r=2, target_modules=["0", "2"], init_lora_weights=False)
    model = get_peft_model(network, config)
    wanted = model(x).detach().cpu().numpy()
    call = torch.compile(model)
    with torch.no_grad():
        for _ in range(4):
            np.testing.assert_allclose(call(x).cpu().numpy(), wanted, atol=1e-6)
        with model.disable_adapter():
            np.testing.assert_allclose(call(x).cpu().numpy(), plain, atol=1e-6)
        np.testing.assert_allclose(call(x).cpu().numpy(), wanted, atol=1e-6)
    assert np.abs(wanted - plain).max() > 1e-2


def test_what_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"names no module .* are called down_proj, gate_proj"):
        get_peft_model(base(), LoraConfig(target_modules=["query"]))
    with pytest.raises(ArgumentError, match="target_modules must be given for Sequential"):
        get_peft_model(nn.Sequential(nn.Linear(2, 2)), LoraConfig())
    with pytest.raises(ArgumentError, match="input_layernorm is a"):
        get_peft_model(base(), LoraConfig(target_modules=["input_layernorm"]))
    with pytest.raises(RangeError, match="r must be a positive integer"):
        LoraConfig(r=0)
    with pytest.raises(ArgumentError, match="needs prompt_tuning_init_text"):
        PromptTuningConfig(prompt_tuning_init="TEXT")
    with pytest.raises(ArgumentError, match="for causal language models"):
        get_peft_model(nn.Linear(2, 2), PromptTuningConfig())
    with pytest.raises(ArgumentError, match="no change of weights"):
        loaded("prompt").merge_and_unload()
    with pytest.raises(WeightError, match="of another model or adapter"):
        load_adapter(base("gpt2"), _renamed(tmp_path))
    with pytest.raises(FormatError, match="peft_type 'VERA' is not known"):
        PeftConfig.from_json('{"peft_type": "VERA"}')
    with pytest.raises(FormatError, match="use_qalora=True"):
        PeftConfig.from_json('{"peft_type": "LORA", "use_qalora": true}')
    with pytest.raises(FormatError, match="an object was expected"):
        PeftConfig.from_json("[]")


def _renamed(folder: Path) -> Path:
    """The adapter of one model under settings that fit another."""
    settings = json.loads((GOLDEN / "lora" / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(settings | {"target_modules": ["c_attn"]}))
    (folder / "adapter_model.safetensors").write_bytes(
        (GOLDEN / "lora" / "adapter_model.safetensors").read_bytes()
    )
    return folder
