"""Dynamic quantization of activations, beside what compressed-tensors, torchao and papers make."""

import json

import numpy as np
import pytest
import torch as pytorch

import pellucid as torch
from pellucid.errors import ArgumentError, FormatError
from pellucid.nn.ao.quantization import float_inputs, quantize_input
from pellucid.quant.activations import DynamicQuantization, of_compressed_tensors, of_torchao

from paths import ROOT

pytestmark = pytest.mark.parametrize("device", ["cpu", "webgpu"])

WIDTH = 192


def tokens(zeros=True):
    """Some of zeros alone, some with a number far out."""
    x = np.random.default_rng(0).standard_normal((2, 7, WIDTH)).astype(np.float32)
    x[0, 0] = 0 if zeros else 1e-3
    x[1, 2, 5], x[0, 3, 9], x[0, 3, 10] = 20, -7, 8
    return x


def equal(how, wanted, device, x=None):
    x = tokens() if x is None else x
    made = how(torch.tensor(x, device=device)).numpy()
    # A quotient that is one rounding off may fall on the other side of a half.
    wrong = ~np.isclose(made, wanted, rtol=1e-6, atol=1e-7)
    assert wrong.mean() <= 2e-3, (np.abs(made - wanted).max(), wrong.sum())


GOLDEN = np.load(ROOT / "tests" / "golden" / "activations.npz")  # of scripts/golden_activations.py
RECORDED = list(enumerate(json.loads(str(GOLDEN["settings"]))))


@pytest.mark.parametrize(("number", "way"), RECORDED, ids=str)
def test_what_the_packages_made(number, way, device):
    method, settings = way
    how = {"compressed-tensors": of_compressed_tensors, "torchao": of_torchao}[method](settings)
    equal(how, GOLDEN[f"case_{number}"], device, GOLDEN["activations"])


def test_weights_alone(device):
    assert of_torchao({"quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}) is None


def test_bitnet(device):
    """Ma et al. 2024, section 2: 127 by the largest magnitude, which is at least 1e-5."""
    x = tokens()
    x[0, 1] *= 1e-7
    factor = np.float32(127) / np.maximum(np.abs(x).max(-1, keepdims=True), np.float32(1e-5))
    wanted = np.clip(np.round(x * factor), -128, 127) / factor
    equal(DynamicQuantization("int8", 127.0, least=1e-5 / 127), wanted, device, x)


@pytest.mark.parametrize("rows", [1, 14])
def test_llm_int8_keeps_columns_with_outliers(rows, device):
    """Dettmers et al. 2022, section 3.2: what is left of a token has its own scale."""
    x = tokens().reshape(-1, WIDTH)[-rows:] if rows > 1 else tokens()[1, 2:3]
    outliers = np.abs(x) >= 6
    columns = outliers.any(0)
    assert 0 < columns.sum() < WIDTH
    rest = np.where(outliers, 0, x)
    top = np.abs(rest).max(1, keepdims=True)
    scale = np.where(top == 0, 1, top) / np.float32(127)
    wanted = np.where(columns, x, np.round(rest / scale) * scale)
    equal(DynamicQuantization("int8", 127.0, threshold=6.0), wanted, device, x)


def test_scales_that_are_powers_of_two(device):
    x = tokens(zeros=False)
    how = DynamicQuantization("fp8_e4m3", 448.0, columns=128, powers_of_two=True)
    parts = []
    for part in (x[..., :128], x[..., 128:]):
        scale = np.exp2(np.ceil(np.log2(np.abs(part).max(-1, keepdims=True).astype(np.float64) / 448)))
        quants = pytorch.from_numpy((part / scale).astype(np.float32)).to(pytorch.float8_e4m3fn)
        parts.append(quants.float().numpy() * scale)
    equal(how, np.concatenate(parts, -1), device, x)
    exact = torch.tensor([[448.0, 1.0]], device=device)  # the scale is 1 and stays so
    assert how(exact).tolist() == [[448.0, 1.0]]


def test_a_bound_cuts_off(device):
    x = torch.tensor([[3000.0, 12.0]], device=device)
    assert DynamicQuantization("fp8_e4m3", 448.0, most=1200.0)(x).numpy()[0, 0] == pytest.approx(1200)


def test_nan_is_not_hidden(device):
    x = tokens()
    x[0, 1, 3], x[1, 1, 3] = np.nan, np.inf
    made = DynamicQuantization("int8", 127.0)(torch.tensor(x, device=device)).numpy()
    assert np.isnan(made[0, 1]).all()
    assert np.isnan(made[1, 1, 3])
    assert np.isfinite(made[0, 2:]).all()


def test_a_layer_rounds_its_input_and_says_so(device):
    x = torch.tensor(tokens(), device=device)
    layer = torch.nn.Linear(WIDTH, 5, device=device)
    plain, how = layer(x), DynamicQuantization("int8", 127.0)
    assert quantize_input(layer, how) is layer
    assert isinstance(layer, torch.nn.Linear)
    assert "input=int8 per token" in repr(layer)
    np.testing.assert_array_equal(
        layer(x).detach().numpy(),
        torch.nn.functional.linear(how(x), layer.weight, layer.bias).detach().numpy(),
    )
    assert 1e-4 < (layer(x) - plain).abs().max().item() < 0.5
    with pytest.raises(ArgumentError, match="rounds its input already"):
        quantize_input(layer, how)
    assert type(float_inputs(layer)) is torch.nn.Linear
    np.testing.assert_array_equal(layer(x).detach().numpy(), plain.detach().numpy())


def test_captured_calls_see_that_a_layer_ceased(device):
    x = torch.tensor(tokens(), device=device)
    layer = quantize_input(torch.nn.Linear(WIDTH, 5, device=device), DynamicQuantization("int4", 7.0))
    with torch.no_grad():
        plain = torch.nn.functional.linear(x, layer.weight, layer.bias).numpy()
        call = torch.compile(lambda x: layer(x))
        rounded = [call(x).numpy() for _ in range(4)]
        assert all(np.array_equal(r, rounded[0]) for r in rounded)
        float_inputs(layer)
        for _ in range(3):
            np.testing.assert_allclose(call(x).numpy(), plain, rtol=1e-5, atol=1e-5)
    assert np.abs(rounded[0] - plain).max() > 1e-2


def test_the_gradient_is_that_of_the_identity(device):
    x = torch.tensor(tokens(), device=device, requires_grad=True)
    layer = quantize_input(torch.nn.Linear(WIDTH, 5, device=device), DynamicQuantization("int8", 127.5))
    layer(x).sum().backward()
    wanted = np.broadcast_to(layer.weight.detach().numpy().sum(0), x.shape)
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"num_bits": 3},
        {"type": "float", "symmetric": False},
        {"strategy": "channel"},
        {"strategy": "group"},
        {"group_size": 0, "strategy": "group"},
        {"symmetric": "yes"},
        {"type": ["int"]},
    ],
    ids=str,
)
def test_others_are_refused(change, device):
    given = {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True, **change}
    with pytest.raises(FormatError, match=r"input_activations of .* are not read"):
        of_compressed_tensors({"input_activations": given})


@pytest.mark.parametrize("given", [None, 3, {}, {"dynamic": False, "num_bits": 8}, {"dynamic": "local"}])
def test_what_is_not_dynamic_stays(given, device):
    assert of_compressed_tensors({"input_activations": given}) is None
    for quant_type in (None, 3, {"default": 3}, {"default": {"_type": 3, "_data": 4}}):
        assert of_torchao({"quant_type": quant_type}) is None
