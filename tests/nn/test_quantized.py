"""Quantized weights live in the same layers: loading puts them there, and nothing else changes."""

import numpy as np
import pytest

import pellucid
from nn.twins import floats
from pellucid.errors import DTypeError
from pellucid.quant.weight import weight_from_blocks


def quantized(rows, columns, device):
    """A Q8_0 weight, and its values as float32."""
    rng = np.random.default_rng(4)
    blocks = np.zeros((rows * columns // 32, 34), np.uint8)
    blocks[:, :2] = rng.uniform(0.01, 0.02, len(blocks)).astype(np.float16)[:, None].view(np.uint8)
    blocks[:, 2:] = rng.integers(0, 256, (len(blocks), 32))
    weight = weight_from_blocks(blocks.tobytes(), "q8_0", (rows, columns), device=device)
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    values = blocks[:, 2:].view(np.int8).astype(np.float32) * scales
    return weight, values.reshape(rows, columns)


@pytest.fixture
def linear(device):
    weight, values = quantized(6, 64, device)
    layer = pellucid.nn.Linear(64, 6, device=device)
    bias = floats(6)
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer, weight, values, bias


def test_linear(linear, device):
    layer, weight, values, bias = linear
    assert layer.weight.dtype is weight.dtype
    assert layer.weight.data_ptr() == weight.data_ptr()
    assert not layer.weight.requires_grad
    assert layer.bias.requires_grad
    x = floats(3, 64, seed=1)
    given = pellucid.tensor(x, device=device, requires_grad=True)
    out = layer(given)
    np.testing.assert_allclose(out.detach().numpy(), x @ values.T + bias, rtol=1e-3, atol=1e-3)
    out.sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), np.tile(values.sum(0), (3, 1)), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(layer.bias.grad.numpy(), np.full(6, 3.0))


def test_conversion_leaves_quantized_weights(linear):
    layer, weight, *_ = linear
    layer.half()
    assert layer.weight.dtype is weight.dtype
    assert layer.bias.dtype is pellucid.float16


def test_state_goes_over(linear, device):
    layer, weight, *_ = linear
    again = pellucid.nn.Linear(64, 6, device=device)
    again.load_state_dict(layer.state_dict())
    assert again.weight.dtype is weight.dtype
    # A float weight takes the place of a quantized one as well.
    again.load_state_dict({"weight": floats(6, 64), "bias": floats(6)})
    assert again.weight.dtype is pellucid.float32
    assert again.weight.device.type == device


def test_embedding(device):
    weight, values = quantized(6, 64, device)
    layer = pellucid.nn.Embedding(6, 64, device=device)
    layer.load_state_dict({"weight": weight})
    out = layer(pellucid.tensor([[1, 5], [0, 1]], device=device))
    np.testing.assert_allclose(out.numpy(), values[[[1, 5], [0, 1]]], rtol=1e-6)


def test_quantized_parameters_have_no_gradient(device):
    weight, _ = quantized(6, 64, device)
    with pytest.raises(TypeError, match=r"has no gradients\. Give requires_grad=False"):
        pellucid.nn.Parameter(weight)
    assert not pellucid.nn.Parameter(weight, requires_grad=False).requires_grad


def test_ops_that_know_no_planes_refuse_them(device):
    """A weight of a format has no elements that other ops could read: none may take its words for values."""
    weight, _ = quantized(6, 64, device)
    ids = pellucid.zeros(1, dtype=pellucid.int64, device=device)
    for use in (
        lambda: weight.sum(),
        lambda: weight.max(),
        lambda: weight + 1,
        lambda: weight[0],
        lambda: weight.t(),
        lambda: weight.clone(),
        lambda: weight.index_select(0, ids),
        lambda: weight.fill_(0),
        lambda: weight.copy_(pellucid.zeros(6, 64, device=device)),
        lambda: weight.any(),
    ):
        with pytest.raises(DTypeError, match=r"dequantize\(\)"):
            use()
