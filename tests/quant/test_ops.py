"""Ops on quantized weights: against gguf bit for bit, against PyTorch within rounding."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.device.stream import stream
from pellucid.errors import DeviceError, DTypeError, FormatError, GradientError, ShapeError
from pellucid.nn.functional import embedding, linear
from pellucid.ops.quant.products import quant_linear
from pellucid.quant import FORMATS
from pellucid.quant.rows import RowStorage, moved, row_chunks
from pellucid.quant.weight import dequantize, weight_from_blocks, weight_from_planes
from quant.samples import ALIKE, OCTETS, PLANES, THOROUGH, any_blocks, widths
from quant.test_formats import made, reference, same_bits
from turns import in_turn

DEVICES = pytest.mark.parametrize("device", ["webgpu", "cpu"])
EVERY = pytest.mark.parametrize("name", FORMATS)
# Those of which products have a kernel of their own: of formats that differ in a const, one.
PRODUCTS = pytest.mark.parametrize("name", [name for name in FORMATS if name not in ALIKE])
# Around each step of the vector kernel (1, 2, 4, 8 rows of input) and of the tiles (16, 32, 64).
BATCHES = (1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 70)


def in_turns(choices, name):
    """One in three of the choices, others for the next format: a kernel takes a second to compile."""
    first = list(FORMATS).index(name)
    return [choice for k, choice in enumerate(choices, first) if in_turn(k, 3)]


def close(ours, theirs, bound):
    """Equal within rounding: a small part of the sum of magnitudes, as float32 addition promises."""
    error = np.abs(ours.detach().numpy() - theirs.detach().numpy())
    assert error.shape == theirs.shape
    assert (error <= 1e-6 * bound.detach().numpy() + 1e-30).all(), (error / bound.detach().numpy()).max()


@DEVICES
@EVERY
def test_values_are_bit_exact(name, device):
    for columns in widths(name):
        for rows in (1, 2, 37):
            weight, expected = made(name, rows, columns, device, rows, True)
            values = dequantize(weight)
            assert values.dtype is pellucid.float32
            assert same_bits(values.numpy(), expected), (rows, columns)


@DEVICES
def test_every_half_precision_number(device):
    bits = np.arange(1 << 16, dtype=np.uint16)
    for name in ("f16", "bf16"):
        weight = weight_from_blocks(bits.view(np.uint8), name, (64, 1024), device)
        expected = reference(bits.view(np.uint8), name, 64, 1024)
        values = dequantize(weight).numpy()
        assert np.array_equal(np.isnan(values), np.isnan(expected))
        numbers = ~np.isnan(expected)
        assert same_bits(values[numbers], expected[numbers])


@DEVICES
@EVERY
def test_rows_are_bit_exact(name, device):
    columns = widths(name)[1]
    weight, expected = made(name, 37, columns, device, odd=True)
    ids = np.array([[3, 0], [36, 3]])
    for kind in (np.int64, np.int32):
        out = embedding(pellucid.tensor(ids.astype(kind), device=device), weight)
        assert tuple(out.shape) == (2, 2, columns)
        assert same_bits(out.numpy(), expected[ids])
    assert same_bits(embedding(pellucid.tensor(5, device=device), weight).numpy(), expected[5])
    none = pellucid.zeros(0, 2, dtype=pellucid.int64, device=device)
    assert embedding(none, weight).numpy().shape == (0, 2, columns)


@DEVICES
@pytest.mark.parametrize("bad", [37, -1, 1 << 33])
def test_an_index_out_of_range_is_raised(device, bad):
    weight, _ = made("q4_0", 37, 64, device)
    with pytest.raises(IndexError, match=str(bad)):
        embedding(pellucid.tensor([1, bad], device=device), weight).numpy()
    # The status is cleared: what follows is good.
    assert embedding(pellucid.tensor([1], device=device), weight).numpy().shape == (1, 64)


@pytest.mark.turns(3)
@DEVICES
@PRODUCTS
def test_linear(name, device):
    rng = np.random.default_rng(1)
    for columns in widths(name)[: 1 if name in OCTETS else 3]:
        weight, values = made(name, 133, columns, device)
        w = torch.from_numpy(values)
        bias = rng.standard_normal(133).astype(np.float32)
        is_first = columns == widths(name)[0] and name not in OCTETS
        for batch in in_turns(BATCHES, name) if is_first else (1, 9):
            x = rng.standard_normal((batch, columns)).astype(np.float32)
            ours = linear(pellucid.tensor(x, device=device), weight, pellucid.tensor(bias, device=device))
            theirs = torch.nn.functional.linear(
                torch.from_numpy(x).double(), w.double(), torch.from_numpy(bias).double()
            )
            close(ours, theirs, torch.from_numpy(np.abs(x)) @ w.abs().T + torch.from_numpy(np.abs(bias)))


@DEVICES
@PRODUCTS
def test_the_gradient_of_the_input(name, device):
    rng = np.random.default_rng(2)
    weight, values = made(name, 75, widths(name)[1], device)
    w = torch.from_numpy(values).double()
    for shape in ((40,),) if name in OCTETS else in_turns(((1,), (2, 3), (40,)), name):
        x = rng.standard_normal((*shape, values.shape[1])).astype(np.float32)
        g = rng.standard_normal((*shape, 75)).astype(np.float32)
        ours = pellucid.tensor(x, device=device, requires_grad=True)
        bias = pellucid.zeros(75, device=device).requires_grad_()
        linear(ours, weight, bias).backward(pellucid.tensor(g, device=device))
        bound = torch.from_numpy(np.abs(g)) @ w.abs().float()
        close(ours.grad, torch.from_numpy(g).double() @ w, bound)
        np.testing.assert_allclose(bias.grad.numpy(), g.reshape(-1, 75).sum(0), rtol=1e-5, atol=1e-5)


@DEVICES
def test_the_gradient_of_the_gradient(device):
    weight, values = made("q8_0", 40, 64, device)
    w = torch.from_numpy(values)
    g = np.random.default_rng(3).standard_normal((3, 40)).astype(np.float32)
    ours, theirs = pellucid.tensor(g, device=device, requires_grad=True), torch.tensor(g, requires_grad=True)
    (ours @ weight).pow(2).sum().backward()
    (theirs @ w).pow(2).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_inputs_with_strides_offsets_and_other_types():
    weight, values = made("q4_1", 70, 96, "webgpu")
    rng = np.random.default_rng(4)
    x = rng.standard_normal((96, 12)).astype(np.float32)
    expected = x.T @ values.T
    given = pellucid.tensor(x, device="webgpu")
    np.testing.assert_allclose(linear(given.t(), weight).numpy(), expected, rtol=1e-4, atol=1e-4)
    lines = pellucid.tensor(np.ascontiguousarray(x.T), device="webgpu")
    np.testing.assert_allclose(linear(lines[3:], weight).numpy(), expected[3:], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(linear(lines[11], weight).numpy(), expected[11], rtol=1e-4, atol=1e-4)
    half = linear(lines.half(), weight)
    assert half.dtype is pellucid.float16
    np.testing.assert_allclose(half.float().numpy(), expected, rtol=2e-3, atol=2e-2)


def test_many_rows_take_wide_workgroups():
    weight, values = made("q4_0", 33800, 64, "webgpu")
    x = np.random.default_rng(7).standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_allclose(linear(pellucid.tensor(x), weight).numpy(), x @ values.T, rtol=1e-4, atol=1e-4)


def test_a_tied_head_shares_the_buffer():
    weight, values = made("q8_0", 300, 64, "webgpu")
    before = stream().allocated
    rows = embedding(pellucid.tensor([7, 299], device="webgpu"), weight)
    logits = linear(rows, weight)
    np.testing.assert_allclose(logits.numpy(), values[[7, 299]] @ values.T, rtol=1e-4, atol=1e-4)
    assert stream().allocated - before == rows.nbytes + logits.nbytes


@pytest.fixture
def small_limit(monkeypatch, request):
    """Weights as on a device that binds 8 KiB at most, beside a codebook."""
    called = getattr(request.node, "callspec", None)
    limit = 8192 * (2 if called and called.params["name"] == "iq2_s" else 1)
    monkeypatch.setattr("pellucid.quant.weight.largest_buffer", lambda: limit)
    return limit


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", THOROUGH)
def test_large_weights_lie_in_row_chunks(name, small_limit):
    rows, columns = 83, 512 if name == "iq2_s" else 256
    weight, values = made(name, rows, columns, "webgpu")
    chunks = row_chunks(weight)
    assert isinstance(weight._storage, RowStorage)
    assert len(chunks) > 1
    assert all(chunk._storage.nbytes <= small_limit for chunk in chunks)
    assert same_bits(dequantize(weight).numpy(), values)
    ids = np.array([0, 82, 16, 15, 47])
    assert same_bits(embedding(pellucid.tensor(ids), weight).numpy(), values[ids])
    with pytest.raises(IndexError, match="83"):
        embedding(pellucid.tensor([0, 83]), weight).numpy()
    w = torch.from_numpy(values).double()
    rng = np.random.default_rng(5)
    bias = torch.from_numpy(rng.standard_normal(rows).astype(np.float32))
    for batch in (1, 9):
        x = torch.from_numpy(rng.standard_normal((batch, columns)).astype(np.float32))
        ours = pellucid.tensor(x.numpy(), requires_grad=True)
        out = linear(ours, weight, pellucid.tensor(bias.numpy()))
        close(out, x.double() @ w.T + bias, x.abs() @ w.abs().T.float() + bias.abs())
        g = torch.from_numpy(rng.standard_normal((batch, rows)).astype(np.float32))
        out.backward(pellucid.tensor(g.numpy()))
        close(ours.grad, g.double() @ w, g.abs() @ w.abs().float())
    assert same_bits(dequantize(moved(weight, "cpu")).numpy(), values)


def test_a_kept_product_knows_gradients_and_row_chunks(monkeypatch):
    """Later calls of the same layouts run the plan of the first one; what that cannot do, they still do."""
    x, bias = pellucid.rand(2, 256), pellucid.rand(83)
    weight, values = made("q4_0", 83, 256, "webgpu")
    wanted = x.numpy() @ values.T + bias.numpy()
    monkeypatch.setattr("pellucid.quant.weight.largest_buffer", lambda: 8192)
    chunked, _ = made("q4_0", 83, 256, "webgpu")
    assert isinstance(chunked._storage, RowStorage)
    assert chunked._meta is weight._meta
    for w in (weight, weight, chunked, weight):
        np.testing.assert_allclose(linear(x, w, bias).numpy(), wanted, rtol=1e-4, atol=1e-4)
    a, b = x.clone().requires_grad_(), bias.clone().requires_grad_()
    linear(a, weight, bias).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), np.tile(values.sum(0), (2, 1)), rtol=1e-4, atol=1e-4)
    linear(x, weight, b).sum().backward()
    assert b.grad.tolist() == [2] * 83


def test_a_weight_whose_rows_fit_nowhere_is_refused(small_limit):
    with pytest.raises(ShapeError, match="16 rows of 2048 columns are over the device's limit of 8192 bytes"):
        made("q4_0", 32, 2048, "webgpu")


@pytest.mark.parametrize("name", PLANES)
def test_planes_have_one_buffer(name, small_limit):
    with pytest.raises(DeviceError, match="a buffer of this device may have 8192"):
        made(name, 200, 512, "webgpu")


@DEVICES
def test_every_float_of_a_byte(device):
    """Also NaN; and scales for a row, a weight or a tile are those for 128 columns."""
    bits = np.arange(256, dtype=np.uint8)
    expected = torch.from_numpy(bits).view(torch.float8_e4m3fn).float().numpy()
    scale = pellucid.tensor([[0.5, 2.0]], device=device)
    weight = weight_from_planes([pellucid.tensor(bits, device=device), scale], "fp8_e4m3", (1, 256))
    values = dequantize(weight).numpy()[0]
    expected[:128] *= 0.5
    expected[128:] *= 2
    assert np.array_equal(np.isnan(values), np.isnan(expected))
    assert same_bits(values[~np.isnan(values)], expected[~np.isnan(values)])


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "f16"])
def test_raw_blocks_may_begin_anywhere_in_a_tensor(name):
    columns = widths(name)[1]
    raw = any_blocks(name, 6, columns, np.random.default_rng(6))
    held = pellucid.tensor(np.concatenate([np.arange(20, dtype=np.uint8), raw, np.zeros(8, np.uint8)]))
    weight = weight_from_blocks(held[20:], name, (6, columns))
    assert same_bits(dequantize(weight).numpy(), reference(raw, name, 6, columns))


@EVERY
def test_moving_between_devices(name):
    weight, values = made(name, 5, widths(name)[0], "cpu", odd=True)
    there = moved(weight, "webgpu")
    assert there.device.type == "webgpu"
    assert moved(there, "webgpu") is there
    assert same_bits(dequantize(there).numpy(), values)
    back = moved(there, "cpu")
    assert np.array_equal(back._storage.data, weight._storage.data)


def test_memory_is_the_planes_and_nothing_else():
    stream().flush()
    before = stream().allocated, stream().by_kind["weight"]
    weight, _ = made("q6_k", 37, 512, "webgpu")
    stream().flush()
    size = FORMATS["q6_k"].layout(37, 512).nbytes
    assert (stream().allocated - before[0], stream().by_kind["weight"] - before[1]) == (size, size)
    del weight
    stream().flush()
    assert (stream().allocated, stream().by_kind["weight"]) == before


@DEVICES
def test_errors(device):
    weight, _ = made("q4_1", 8, 64, device)
    x = pellucid.zeros(2, 32, device=device)
    with pytest.raises(ShapeError, match=r"linear: input of shape \(2, 32\) must end in 64"):
        linear(x, weight)
    with pytest.raises(ShapeError, match="weight makes 8 features"):
        linear(pellucid.zeros(2, 64, device=device), weight, pellucid.zeros(7, device=device))
    with pytest.raises(DTypeError, match="must be a quantized matrix"):
        quant_linear(x, [x])
    with pytest.raises(DTypeError, match="multiplies floating-point tensors"):
        linear(pellucid.zeros(2, 64, device=device, dtype=pellucid.int32), weight)
    with pytest.raises(DTypeError, match="an index must be int64 or int32"):
        embedding(x, weight)
    with pytest.raises(FormatError, match="takes 320 bytes, and 40 are given"):
        weight_from_blocks(bytes(40), "q4_1", (8, 64), device)
    with pytest.raises(DTypeError, match="there is no weight format 'q9_9'"):
        weight_from_blocks(bytes(40), "q9_9", (8, 64), device)
    with pytest.raises(ShapeError, match="40 columns is not whole blocks"):
        weight_from_blocks(bytes(40), "q4_1", (1, 40), device)
    with pytest.raises(DTypeError, match="is no format of GGUF blocks"):
        weight_from_blocks(bytes(40), "int4_groups", (1, 32), device)
    with pytest.raises(FormatError, match=r"take \[64, 8\] bytes, and those given have \[64\]"):
        weight_from_planes([pellucid.zeros(2, 8, device=device)], "int8_rows", (2, 32))
    weight._node = pellucid.zeros(1, device=device).requires_grad_()._node
    with pytest.raises(GradientError, match="has no gradient"):
        linear(pellucid.zeros(2, 64, device=device), weight)
