"""Observers and fake quantization against PyTorch's; what trained, calibrated and converted networks lose."""

from copy import deepcopy

import numpy as np
import pytest
import torch as pytorch
from ml_dtypes import float8_e4m3fn, float8_e5m2
from torch.ao import quantization as theirs

import pellucid as torch
from pellucid.nn import functional as F
from pellucid.nn.ao import quantization as ours
from pellucid.quant.float8 import round_to_fp8

X = np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32) * 2 + 0.5
KINDS = {
    "tensor": (ours.MinMaxObserver, theirs.MinMaxObserver, {}),
    "moving": (ours.MovingAverageMinMaxObserver, theirs.MovingAverageMinMaxObserver, {}),
    "channel": (ours.PerChannelMinMaxObserver, theirs.PerChannelMinMaxObserver, {"ch_axis": 0}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", KINDS)
def test_scales_and_zero_points_are_pytorchs(kind, dtype, symmetric):
    mine, other, options = KINDS[kind]
    schemes = {
        ("channel", False): pytorch.per_channel_affine,
        ("channel", True): pytorch.per_channel_symmetric,
    }
    plain = pytorch.per_tensor_symmetric if symmetric else pytorch.per_tensor_affine
    scheme = schemes.get((kind, symmetric), plain)
    made = mine(dtype=dtype, symmetric=symmetric, **options)
    oracle = other(dtype={"int8": pytorch.qint8, "uint8": pytorch.quint8}[dtype], qscheme=scheme, **options)
    for x in X:
        made(torch.tensor(x, device="cpu"))
        oracle(pytorch.tensor(x))
    for a, b in zip(made.calculate_qparams(), oracle.calculate_qparams(), strict=True):
        np.testing.assert_allclose(a.numpy().reshape(-1), b.numpy().reshape(-1), rtol=1e-5)


def test_blocks_have_scales_of_their_own():
    """P-086: scales of rows and blocks."""
    fake = ours.FakeQuantize(ours.PerBlockMinMaxObserver, block_size=4, dtype="int4", symmetric=True)
    x = torch.tensor(X[0], device="cpu")
    made = fake(x)
    blocks = X[0].reshape(5, 2, 4)
    scale = np.maximum(np.abs(np.minimum(blocks, 0)).max(-1), np.maximum(blocks, 0).max(-1)) / np.float32(7.5)
    exact = np.clip(np.round(blocks * (np.float32(1) / scale[..., None])), -8, 7) * scale[..., None]
    np.testing.assert_allclose(made.numpy(), exact.reshape(5, 8), rtol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize(("dtype", "kind"), [("fp8_e4m3", float8_e4m3fn), ("fp8_e5m2", float8_e5m2)])
def test_fp8_rounds_as_ml_dtypes(dtype, kind, device):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(2000) * 2.0 ** rng.integers(-16, 9, 2000)).astype(np.float32)
    x = np.concatenate([x, np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)])
    x = x[np.isfinite(x)]
    largest = float(np.finfo(np.float32).max if kind is float8_e5m2 else 448)
    inside = np.clip(x, -min(largest, 57344), min(largest, 57344))
    made = round_to_fp8(torch.tensor(x, device=device), dtype).numpy()
    np.testing.assert_array_equal(made, inside.astype(kind).astype(np.float32))


@pytest.mark.parametrize("dtype", ["int8", "fp8_e4m3"])
def test_gradients_go_straight_through_where_nothing_is_clamped(dtype):
    fake = ours.FakeQuantize(dtype=dtype, symmetric=True)
    fake(torch.tensor([-1.0, 1.0], device="cpu"))
    fake.disable_observer()
    x = torch.tensor([0.3, -0.9, 5.0], device="cpu", requires_grad=True)
    (fake(x) * torch.tensor([1.0, 2.0, 3.0], device="cpu")).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 0.0]


def waves():
    """Places in a square, and how high two crossed waves are there."""
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (256, 2)).astype(np.float32)
    y = np.sin(2 * x[:, :1]) * np.cos(2 * x[:, 1:])
    return torch.tensor(x, device="cpu"), torch.tensor(y, device="cpu")


def train(model, steps, lr=0.02):
    x, y = waves()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss_of(model)


def loss_of(model):
    x, y = waves()
    with torch.no_grad():
        return F.mse_loss(model(x), y).item()


@pytest.fixture(scope="module")
def trained():
    """A network that knows the waves, whose variance is 0.25; its loss."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 32, device="cpu"),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 32, device="cpu"),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 1, device="cpu"),
    )
    loss = train(model, 150)
    assert loss < 4e-3
    return model, loss


# The most that the waves' mean squared error may grow by: calibrated afterwards, and trained with it.
BOUNDS = {"int8": (5e-4, 2e-4), "fp8_e4m3": (4e-3, 1e-3), "fp8_e5m2": (3e-3, 1e-3), "int4": (0.03, 6e-3)}


@pytest.mark.parametrize("block_size", [None, 2])
@pytest.mark.parametrize("dtype", BOUNDS)
def test_calibration_after_training_loses_little(trained, dtype, block_size):
    """P-086: observers and quantization after training, with a scale for a channel, and for a block."""
    model, before = trained
    config = ours.get_default_qconfig(dtype, "uint8", block_size=block_size)
    prepared = ours.prepare(model, config)
    assert loss_of(prepared) == pytest.approx(before, abs=1e-6)  # observers change nothing
    quantized = ours.convert(prepared)
    assert 1e-6 < loss_of(quantized) - before < BOUNDS[dtype][0]
    if dtype == "int8" and block_size is None:
        assert quantized[0].layer.weight.dtype.name == "int8_rows"
    assert loss_of(model) == pytest.approx(before, abs=1e-6)  # the model itself is as it was


@pytest.mark.parametrize("block_size", [None, 2])
@pytest.mark.parametrize("dtype", BOUNDS)
def test_training_with_fake_quantization_loses_less(trained, dtype, block_size):
    model, before = trained
    prepared = ours.prepare_qat(model, ours.get_default_qat_qconfig(dtype, "uint8", block_size=block_size))
    at_first = loss_of(prepared) - before
    train(prepared, 60, lr=0.002)
    lost = loss_of(ours.convert(prepared.eval())) - before
    assert lost < BOUNDS[dtype][1]
    assert dtype != "int4" or lost < 0.5 * at_first


@pytest.mark.gpu
def test_a_converted_model_on_webgpu_is_that_of_the_host(trained):
    model, _ = trained
    x, _ = waves()
    quantized = ours.convert(_run(ours.prepare(model, ours.get_default_qconfig("int8", None)), x))
    host = quantized(x[:8])
    prepared = ours.prepare(deepcopy(model).to("webgpu"), ours.get_default_qconfig("int8", None))
    moved = ours.convert(_run(prepared, x[:4].to("webgpu")))
    # A row's largest weight lies half-way between two integers: the division of a GPU may round it otherwise.
    rounded = 0
    for a, b in zip(moved.state_dict().values(), quantized.state_dict().values(), strict=True):
        if not b.dtype.is_quantized:
            continue
        here, there = a.dequantize().numpy(), b.dequantize().numpy()
        step = np.abs(there).max(1, keepdims=True) / 127.5
        away = np.abs(here - there) / step
        assert away.max() < 1.02
        assert (np.abs(there / step)[away > 0.5] > 126).all()
        rounded += (away > 0.5).sum()
    found = moved(x[:8].to("webgpu")).detach().numpy()
    np.testing.assert_allclose(found, host.detach().numpy(), atol=1e-2 if rounded else 1e-4)


def correlated(rows=200, columns=64):
    """Inputs with correlations and a few large columns, as transformers have."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 12)) @ rng.standard_normal((12, columns)) + 0.3 * rng.standard_normal(
        (rows, columns)
    )
    x[:, ::16] *= 20
    return torch.tensor(x.astype(np.float32), device="cpu")


@pytest.mark.parametrize("bits", [3, 4])
def test_gptq_and_awq_beat_rounding(bits):
    w = torch.tensor(np.random.default_rng(1).standard_normal((24, 64)).astype(np.float32), device="cpu")
    x = correlated()
    plain = ours.round_to_nearest(w, x, bits)
    for method, share in ((ours.gptq, 0.5), (ours.awq, 0.7)):
        found = method(w, x, bits)
        assert found.error < share * plain.error
        exact = ((x @ (found.weight - w).T) ** 2).mean() / ((x @ w.T) ** 2).mean()
        assert found.error == pytest.approx(exact.item(), rel=1e-3)
        for group in found.weight.numpy()[0].reshape(2, 32) if method is ours.gptq else ():
            assert len(np.unique(group)) <= 2**bits
    ordered = ours.gptq(w, x, bits, act_order=True)
    assert ordered.error < 0.5 * plain.error


def test_gptq_of_independent_inputs_is_rounding():
    """Nothing to make up for: X'X is diagonal."""
    w = torch.tensor(np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32), device="cpu")
    x = torch.eye(8, device="cpu")
    a, b = ours.gptq(w, x, 4, 8), ours.round_to_nearest(w, x, 4, 8)
    np.testing.assert_allclose(a.weight.numpy(), b.weight.numpy(), atol=1e-6)


def test_calibrating_a_model_loses_less_than_rounding_it(trained):
    model, before = trained
    x, _ = waves()
    lost = {}
    for method, bits in (("nearest", 3), ("gptq", 3), ("awq", 4)):
        copy = deepcopy(model)
        errors = ours.calibrate(copy, [x], method, bits=bits, group_size=32)
        assert set(errors) == {"0", "2", "4"}
        lost[method] = loss_of(copy) - before
    assert lost["gptq"] < min(0.01, 0.7 * lost["nearest"])
    assert lost["awq"] < 5e-3


REFUSED = [
    (lambda: ours.MinMaxObserver(dtype="int3"), "'int3' is none of"),
    (lambda: ours.MinMaxObserver(dtype="int4", quant_min=-9), "no range within int4's"),
    (lambda: ours.MinMaxObserver().calculate_qparams(), "nothing was observed"),
    (
        lambda: ours.PerBlockMinMaxObserver(block_size=3)(torch.ones(2, 4, device="cpu")),
        "no multiple of block_size",
    ),
    (lambda: ours.prepare(torch.nn.Sequential(torch.nn.ReLU())), "no Linear and no Conv2d"),
    (lambda: ours.convert(torch.nn.Linear(2, 2, device="cpu")), "has no prepared layer"),
    (
        lambda: ours.gptq(torch.ones(2, 4, device="cpu"), torch.ones(3, 5, device="cpu")),
        r"\(rows, columns\) and",
    ),
    (
        lambda: ours.awq(torch.ones(2, 4, device="cpu"), torch.ones(3, 4, device="cpu"), 1),
        "bits must be from 2 to 8",
    ),
    (lambda: ours.calibrate(torch.nn.Linear(2, 2, device="cpu"), [], "gptq"), "0 batches"),
    (lambda: ours.calibrate(torch.nn.Linear(2, 2, device="cpu"), [1], "best"), "'best' is none of"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_is_refused(call, text):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=text):
        call()


def test_a_convolution_is_prepared_and_converted():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, device="cpu"),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 2, device="cpu"),
    )
    x = torch.randn(4, 1, 6, 6, device="cpu")
    before = model(x).detach()
    quantized = ours.convert(_run(ours.prepare(model), x))
    assert (quantized(x) - before).abs().max().item() < 0.05


def _run(prepared, x):
    prepared(x)
    return prepared
