"""Folders whose layers round their input: compressed-tensors W8A8, torchao, LLM.int8(), BitNet, fp8."""

import numpy as np
import pytest
import torch

import pellucid
from models.quantized_folders import (
    BYTES,
    configure,
    fp8,
    int8,
    of_weights,
    quantized,
    ternary,
    tiles,
    torchao,
    vectors,
)
from models.tiny import loaded, ours, some_ids
from pellucid.errors import ArgumentError, FormatError
from pellucid.models.generate.step import step_of
from pellucid.nn.ao.quantization import float_inputs

TOKEN = {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True}
INT8 = {
    "quant_type": {"default": {"_type": "Int8DynamicActivationInt8WeightConfig", "_version": 2, "_data": {}}}
}


def groups(format, inputs, **weights):
    settings = of_weights(format, **weights)
    settings["config_groups"]["group_0"]["input_activations"] = inputs
    return settings


def by_token(steps, least=0.0):
    """Whole numbers of 8 bits, the largest magnitude of a token at ``steps``."""

    def rounded(x):
        scale = (x.abs().amax(-1, keepdim=True) / steps).clamp(min=max(least, 1e-30))
        return (x / scale).round().clamp(-128, 127) * scale

    return rounded


def with_outliers(x):
    """A column with a magnitude of 6 or more is not rounded; the rest of a token has its own scale."""
    outliers = x.abs() >= 6
    columns = outliers.flatten(0, -2).any(0)
    scale = (x.masked_fill(outliers, 0).abs().amax(-1, keepdim=True) / 127).clamp(min=1e-30)
    return torch.where(columns, x, (x / scale).round() * scale)


def float8(columns):
    """E4M3, the largest magnitude of so many columns at 448."""

    def rounded(x):
        parts = []
        for part in x.split(columns, -1):
            scale = (part.abs().amax(-1, keepdim=True) / 448).clamp(min=1e-30)
            parts.append((part / scale).to(torch.float8_e4m3fn).float() * scale)
        return torch.cat(parts, -1)

    return rounded


CASES = {
    "compressed-tensors, int8": (
        int8, groups("int-quantized", TOKEN, num_bits=8, strategy="channel", symmetric=True), by_token(127.5),
    ),
    "compressed-tensors, fp8": (
        fp8,
        groups("float-quantized", {**TOKEN, "type": "float"}, num_bits=8, type="float", strategy="channel"),
        float8(1 << 20),
    ),
    "torchao, int8": (torchao(int8), {"quant_method": "torchao", **INT8}, by_token(127.5, 2.0**-23)),
    "LLM.int8()": (vectors, {**BYTES, "load_in_8bit": True}, with_outliers),
    "BitNet": (ternary, {"quant_method": "bitnet"}, by_token(127, 1e-5 / 127)),
    "fbgemm": (fp8, {"quant_method": "fbgemm_fp8"}, float8(1 << 20)),
    "fp8": (tiles(128, 128), {"quant_method": "fp8", "weight_block_size": [128, 128]}, float8(128)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_layers_round_their_input(case, tmp_path, device):
    quantize, settings, rounded = CASES[case]
    theirs, folder = quantized(tmp_path, quantize, settings)
    mine, values = loaded(folder, device), dict(theirs.named_parameters())
    assert type(mine.lm_head) is pellucid.nn.Linear  # its weight is not quantized
    rng = np.random.default_rng(0)
    for path in ("self_attn.q_proj", "mlp.down_proj"):
        layer, weight = mine.model.layers[1].get_submodule(path), values[f"model.layers.1.{path}.weight"]
        x = torch.from_numpy(rng.standard_normal((2, 5, weight.shape[1])).astype(np.float32))
        with torch.no_grad(), pellucid.no_grad():
            wanted, plain = rounded(x) @ weight.T, x @ weight.T
            made = layer(pellucid.tensor(x.numpy(), device=device)).numpy()
        # A quotient that is one rounding off may fall on the other side of a half.
        assert np.abs(made - wanted.numpy()).mean() < 0.05 * (plain - wanted).abs().mean().item()
    with torch.no_grad(), pellucid.no_grad():
        ids = some_ids(2, 9)
        plain = theirs(torch.tensor(ids)).logits.numpy()
        for path, module in theirs.named_modules():
            if path.endswith("_proj"):
                module.register_forward_pre_hook(lambda module, args: (rounded(args[0]),))
        wanted = theirs(torch.tensor(ids)).logits.numpy()
        made = mine(ours(ids, device)).logits.numpy()
        # One number that rounds to the other side goes through all layers, so not all are alike.
        assert np.abs(made - wanted).mean() < 0.1 * np.abs(plain - wanted).mean()
        close = {"rtol": 0, "atol": 2e-4}
        np.testing.assert_allclose(float_inputs(mine)(ours(ids, device)).logits.numpy(), plain, **close)
        wide = loaded(folder, device, dtype=pellucid.float32)
        np.testing.assert_allclose(wide(ours(ids, device)).logits.numpy(), plain, **close)


def test_generating_is_captured_and_the_same(tmp_path):
    quantize, settings, _ = CASES["compressed-tensors, int8"]
    _, folder = quantized(tmp_path, quantize, settings)
    mine, prompt = loaded(folder, "webgpu"), some_ids(1, 6)
    wanted = prompt[0].tolist()
    with pellucid.no_grad():
        for _ in range(10):
            wanted.append(int(mine(ours([wanted], "webgpu")).logits[0, -1].argmax()))
    made = mine.generate(ours(prompt, "webgpu"), max_new_tokens=10, eos_token_id=())
    assert made[0].tolist() == wanted
    assert step_of(mine)._logits.explain().replays >= 6


def test_gradients_of_the_input_pass(tmp_path, device):
    quantize, settings, _ = CASES["torchao, int8"]
    theirs, folder = quantized(tmp_path, quantize, settings)
    layer = loaded(folder, device).model.layers[0].self_attn.q_proj
    x = pellucid.randn(3, 128, device=device, requires_grad=True)
    layer(x).sum().backward()
    weight = dict(theirs.named_parameters())["model.layers.0.self_attn.q_proj.weight"].detach()
    wanted = weight.sum(0).expand(3, -1).numpy()
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["LLM.int8()", "fp8"])
def test_saved_folders_say_it(case, tmp_path):
    quantize, settings, _ = CASES[case]
    _, folder = quantized(tmp_path / "theirs", quantize, settings)
    model = loaded(folder, "cpu")
    model.save_pretrained(tmp_path / "ours")
    again = loaded(tmp_path / "ours", "cpu")
    assert repr(again.model) == repr(model.model)
    with pellucid.no_grad():
        both = [m(ours(some_ids(2, 9), "cpu")).logits.numpy() for m in (model, again)]
    np.testing.assert_array_equal(*both)
    with pytest.raises(ArgumentError, match="round their input, which a GGUF cannot say"):
        model.save_gguf(tmp_path / "m.gguf")
    float_inputs(model).save_gguf(tmp_path / "m.gguf", format="q8_0")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "no list of objects"),
        ([3], "no list of objects"),
        ([{"dtype": "int8", "steps": 127}], "without a list of layers"),
        ([{"layers": ["model.layers.0.mlp.up_proj"]}], "without dtype and steps"),
        ([{"layers": ["model.layers.0.mlp.up_proj"], "dtype": "int8", "steps": 0}], "steps 0 is not read"),
        ([{"layers": ["model.layers.0.mlp.up_proj"], "dtype": "int8", "stapes": 0}], "stapes 0 is not read"),
    ],
)
def test_damaged_folders_of_ours(given, words, tmp_path):
    _, folder = quantized(tmp_path / "theirs", *CASES["fp8"][:2])
    loaded(folder, "cpu").save_pretrained(tmp_path / "ours")
    configure(tmp_path / "ours", quant_method="pellucid", input_activations=given)
    with pytest.raises(FormatError, match=words):
        loaded(tmp_path / "ours", "cpu")


@pytest.mark.parametrize(
    ("case", "change", "words"),
    [
        ("LLM.int8()", {"llm_int8_threshold": "six"}, "llm_int8_threshold 'six' is not read"),
        ("fbgemm", {"activation_scale_ub": -1}, "activation_scale_ub -1 is not read"),
        ("compressed-tensors, int8", {"num_bits": 5}, "input_activations of 5 bits"),
    ],
)
def test_settings_that_are_not_known(case, change, words, tmp_path):
    quantize, settings, _ = CASES[case]
    if "config_groups" in settings:
        settings = groups(
            "int-quantized", {**TOKEN, **change}, num_bits=8, strategy="channel", symmetric=True
        )
    else:
        settings = {**settings, **change}
    _, folder = quantized(tmp_path, quantize, settings)
    with pytest.raises(FormatError, match=words):
        loaded(folder, "cpu")


def test_scales_that_are_fixed_are_not_applied(tmp_path):
    """``activation_scheme`` static, and activations without ``dynamic``, stay float32."""
    quantize, settings, _ = CASES["fp8"]
    _, folder = quantized(tmp_path, quantize, {**settings, "activation_scheme": "static"})
    assert type(loaded(folder, "cpu").model.layers[0].mlp.up_proj) is pellucid.nn.Linear
    configure(folder, **{**settings, "activation_scheme": "dynamic"})
    assert "input=fp8_e4m3 per 128 columns" in repr(loaded(folder, "cpu").model.layers[0].mlp.up_proj)
