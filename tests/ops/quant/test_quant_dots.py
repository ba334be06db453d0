"""Products of one row with integer dot products: against the values of the weight in float64, and against the
kernel without them where numbers are not finite."""

from dataclasses import replace

import numpy as np
import pytest

import pellucid
from checked import unchecked
from ops.adapters import H200
from ops.quant.test_quant_vectors import compare, middle, weights
from pellucid.device.host import Info
from pellucid.device.stream import PARTIAL_WORDS, STATUS_BUFFER_BYTES, STATUS_BYTES, STATUS_SLOT, stream
from pellucid.nn.functional import linear
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.quant.lanes import FEATURE, Lanes, choose
from pellucid.quant.weight import dequantize, weight_from_blocks
from quant.samples import DOTS, any_blocks, tame_blocks, widths

pytestmark = pytest.mark.gpu
EVERY = pytest.mark.parametrize("name", DOTS)
# What rounding x costs, in parts of the largest magnitude among 32 columns, and a sum in float32, in parts of
# the magnitudes that are added.
OF_THE_LARGEST = 1.004 * 2.0**-23
OF_THE_SUM = 3e-7


@pytest.fixture(autouse=True)
def dots(monkeypatch):
    if FEATURE not in stream().open().info.features:
        pytest.skip("the device has no integer dot products")
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    monkeypatch.setenv("PELLUCID_DOTS", "integer")
    yield
    forget_plans()


def product(x, weight, bias=None):
    return linear(pellucid.tensor(x.reshape(1, -1), device="webgpu"), weight, bias).numpy()[0]


def check(x, weight):
    """A product is within the bound of rounding x by units of 32 columns, and that of the sum."""
    exact = dequantize(weight).numpy().astype(np.float64)
    ours = product(x, weight)
    x = x.astype(np.float64)
    largest = np.repeat(np.abs(x).reshape(-1, 32).max(1), 32)
    bound = (OF_THE_LARGEST * largest + 2.0**-127 + OF_THE_SUM * np.abs(x)) @ np.abs(exact).T
    error = np.abs(ours - x @ exact.T)
    assert (error <= bound + 2.0**-126).all(), (error / bound).max()
    return error


@pytest.mark.turns(4)
@EVERY
def test_products(name):
    rng = np.random.default_rng(1)
    for columns in (*widths(name), 2304, 4352):
        raw = tame_blocks(name, 133, columns, rng)
        weight = weight_from_blocks(raw, name, (133, columns), "webgpu")
        check(rng.standard_normal(columns).astype(np.float32), weight)


@pytest.mark.turns(4)
@EVERY
def test_numbers_of_every_size(name):
    """Magnitudes that differ by much within 32 columns and between them, zeros, subnormals, the largest."""
    rng = np.random.default_rng(2)
    columns = 2048
    weight = weight_from_blocks(tame_blocks(name, 40, columns, rng), name, (40, columns), "webgpu")
    for low, high in ((-3, 3), (-40, 30), (-149, -100), (-149, 110)):
        x = np.ldexp(rng.uniform(-1, 1, columns), rng.integers(low, high, columns)).astype(np.float32)
        x[rng.random(columns) < 0.2] = 0
        x[64:128] = 0
        check(x, weight)
    # Just below and above what three signed bytes hold, in units whose other numbers are as large.
    x = rng.choice(np.array([8355711.5, 8355712, 8355711, 8388607.5, 8388608], np.float32), columns)
    check(x * rng.choice(np.array([-1, 1], np.float32), columns), weight)
    x[:] = 0
    x[5] = 1e37
    check(x, weight)


@unchecked("inputs of 8 bits are that far off")
def test_the_bound_is_that_of_the_largest_magnitude():
    """The weight is zero where x is large: what the small numbers lose is all that is left."""
    raw = np.zeros((64, 18), np.uint8)
    raw[:, :2] = np.array([1.0], np.float16).view(np.uint8)
    raw[:, 2:] = 0x99
    raw[:, 2] = 0x98  # column 0 of every unit is 8 - 8
    weight = weight_from_blocks(raw.reshape(-1), "q4_0", (8, 256), "webgpu")
    rng = np.random.default_rng(3)
    x = rng.uniform(-1e-4, 1e-4, 256).astype(np.float32)
    assert check(x, weight).max() <= 2.0**-23 * np.abs(x).sum()
    x[::32] = 1.5
    error = check(x, weight)
    assert 2.0**-23 * np.abs(x[np.arange(256) % 32 > 0]).sum() < error.max()


@pytest.mark.turns(4)
@EVERY
def test_unit_vectors_show_the_weight(name):
    """Also where scales are subnormal, the largest or negative zero: nothing is rounded twice."""
    columns = widths(name)[0]
    raw = any_blocks(name, 40, columns, np.random.default_rng(4))
    weight = weight_from_blocks(raw, name, (40, columns), "webgpu")
    values = dequantize(weight).numpy()
    for k in (0, 17, 31, columns - 1):
        x = np.zeros(columns, np.float32)
        x[k] = 1
        assert np.array_equal(product(x, weight), values[:, k])


@pytest.mark.turns(4)
@EVERY
def test_integers_are_exact(name):
    rng = np.random.default_rng(5)
    columns = widths(name)[1]
    blocks = tame_blocks(name, 33, columns, rng)
    weight = weight_from_blocks(blocks, name, (33, columns), "webgpu")
    x = np.zeros(columns, np.float32)
    x[:4] = [4194303, -4194303, 1, -1]
    exact = x.astype(np.float64) @ dequantize(weight).numpy().astype(np.float64).T
    # One rounding of the product, one of what a format adds for its least value.
    bound = 2.0**-23 * np.abs(x).astype(np.float64) @ np.abs(dequantize(weight).numpy()).T
    assert (np.abs(product(x, weight) - exact) <= bound).all()


@pytest.mark.turns(4)
@unchecked("inputs of 8 bits are not finite where floats are")
@EVERY
def test_what_is_not_finite(name, monkeypatch):
    """As the kernel without integers has it, and only where it is."""
    rng = np.random.default_rng(6)
    columns = widths(name)[0]
    weight = weight_from_blocks(tame_blocks(name, 70, columns, rng), name, (70, columns), "webgpu")
    for places, values in (
        ((3,), (np.inf,)),
        ((200,), (-np.inf,)),
        ((0, 1), (np.inf, -np.inf)),
        ((9,), (np.nan,)),
        ((40,), (3.4e38,)),
    ):
        x = rng.standard_normal(columns).astype(np.float32)
        x[list(places)] = values
        monkeypatch.setenv("PELLUCID_DOTS", "integer")
        forget_plans()
        ours = product(x, weight)
        monkeypatch.setenv("PELLUCID_DOTS", "float")
        forget_plans()
        np.testing.assert_allclose(ours, product(x, weight), rtol=1e-5, atol=1e-5)
        assert not np.isfinite(ours).all()


@pytest.mark.turns(4)
@EVERY
def test_workgroups_of_any_number_of_rows(name):
    """A device of few processors fills them with 32, 64 or 128 rows each."""
    rng = np.random.default_rng(7)
    info = stream().open().info
    found = set()
    for rows in (40, 500, 1000):
        weight = weight_from_blocks(tame_blocks(name, rows, 2304, rng), name, (rows, 2304), "webgpu")
        check(rng.standard_normal(2304).astype(np.float32), weight)
        found.add(choose(1, rows, 72, name, info).lanes)
    assert not info.is_software or found == ({16, 32} if name == "q4_1" else {8, 16, 32})


def test_a_bias_and_strides():
    (weight,) = weights("q4_1", 96, 133)
    bias = middle(133)
    x = middle(1, 96)
    expected = x.numpy() @ dequantize(weight).numpy().T + bias.numpy()
    np.testing.assert_allclose(linear(x, weight, bias).numpy(), expected, rtol=1e-4, atol=1e-4)
    half = linear(x.half(), weight, bias.half())
    np.testing.assert_allclose(half.float().numpy(), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.turns(4)
@EVERY
def test_several_weights_with_their_norm(name):
    columns = 4352
    node = compare(middle(1, columns), weights(name, columns, 133, 32, 7), middle(columns), 1e-5)
    assert "dot4I8Packed(" in node.source.finish(False)
    columns = widths(name)[1]
    compare(middle(1, columns), weights(name, columns, 37, 37), middle(columns), 1e-6, paired=True)
    compare(middle(1, columns), weights(name, columns, 37, 5))


@pytest.mark.parametrize("biased", [False, True])
def test_one_weight_with_its_norm(biased):
    compare(middle(1, 96), weights("q5_1", 96, 70), middle(96), 1e-5, bias=middle(70) if biased else None)


def test_large_weights_take_them_where_the_device_has_them(monkeypatch):
    monkeypatch.delenv("PELLUCID_DOTS")
    nvidia = replace(H200, features=frozenset({FEATURE}))
    assert choose(1, 16384, 256, "q4_0", nvidia) == Lanes(256, 16, 1, 128, dots=True)
    assert choose(1, 16384, 256, "q4_1", nvidia) == Lanes(256, 16, 1, 32, dots=True)
    assert choose(1, 16384, 256, "q6_k", nvidia) == Lanes(256, 16, 1, 128, dots=True)
    assert choose(1, 28672, 128, "q4_k", nvidia) == Lanes(256, 8, 1, 128, dots=True)
    assert choose(1, 37888, 128, "q4_k", nvidia) == Lanes(256, 16, 1, 32, dots=True)
    assert choose(1, 28672, 128, "q4_1", nvidia) == Lanes(256, 16, 1, 32, dots=True)
    assert choose(1, 128256, 48, "q4_0", nvidia) == Lanes(256, 8, 1, 64, dots=True)
    assert choose(1, 128256, 18, "q4_0", nvidia) == Lanes(256, 8, 1, 32, dots=True)
    assert choose(1, 8192, 256, "q4_k", nvidia) == Lanes(256, 32, 1, 64, dots=True)
    assert choose(1, 28672, 128, "q4_k", replace(nvidia, limits={})) == Lanes(256, 8, 1, 64, dots=True)
    assert not choose(1, 4096, 128, "q4_0", nvidia).dots
    software = Info("browser", "", "", "SwiftShader", frozenset({FEATURE}))
    assert software.is_software
    assert not choose(1, 16384, 256, "q4_0", software).dots
    assert not choose(2, 16384, 256, "q4_0", nvidia).dots
    assert not choose(1, 16384, 256, "q8_0", nvidia).dots
    assert not choose(1, 16384, 256, "q4_0", Info("browser", "nvidia", "hopper", "")).dots
    assert not choose(1, 16384, 256, "q4_0", Info("browser", "apple", "", "", frozenset({FEATURE}))).dots
    monkeypatch.setenv("PELLUCID_DOTS", "float")
    assert not choose(1, 16384, 256, "q4_0", nvidia).dots
    monkeypatch.setenv("PELLUCID_DOTS", "other")
    with pytest.raises(ValueError, match="PELLUCID_DOTS is 'other'"):
        choose(1, 16384, 256, "q4_0", nvidia)


@pytest.mark.turns(4)
@pytest.mark.parametrize("biased", [False, True])
@EVERY
def test_long_rows_in_parts(name, biased):
    """Workgroups share rows; what they hand on leaves nothing behind, and every time gives the same bits."""
    rng = np.random.default_rng(8)
    device = stream().open()
    rows, columns = 133, 12544  # 392 units: the last part is shorter
    lanes = choose(1, rows, columns // 32, name, device.info, alone=True)
    assert not device.info.is_software or lanes.parts == 4
    weight = weight_from_blocks(tame_blocks(name, rows, columns, rng), name, (rows, columns), "webgpu")
    x = rng.standard_normal(columns).astype(np.float32)
    bias = pellucid.tensor(rng.standard_normal(rows).astype(np.float32), device="webgpu") if biased else None
    ours = product(x, weight, bias)
    for _ in range(2):
        assert ours.tobytes() == product(x, weight, bias).tobytes()
    if bias is None:
        check(x, weight)
    else:
        exact = x.astype(np.float64) @ dequantize(weight).numpy().astype(np.float64).T + bias.numpy()
        np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())
    data, _ = device.read(device.begin_read(STATUS_SLOT, STATUS_BYTES, STATUS_BUFFER_BYTES - STATUS_BYTES))
    assert not np.frombuffer(data, np.uint32).any()


def test_parts_join_the_norm_and_their_neighbours():
    """A joint has parts of its own: products whose columns are split are found all the same."""
    columns = 12544
    node = compare(middle(1, columns), weights("q4_1", columns, 133, 32), middle(columns), 1e-5)
    assert node.source.name == "matmul/quant/vectors"
    node = compare(middle(1, columns), weights("q4_1", columns, 133), middle(columns), 1e-5)
    assert node.source.name == "matmul/quant/vector"


def test_the_words_of_parts_have_room():
    for info in (
        replace(H200, features=frozenset({FEATURE})),
        Info("native", "nvidia", "", "", frozenset({FEATURE})),
    ):
        for rows in range(512, 1 << 15, 509):
            lanes = choose(1, rows, 3584, "q4_k", info, alone=True)
            blocks = -(-rows // lanes.rows)
            if lanes.parts > 1:
                assert 2 * blocks * lanes.rows * lanes.parts <= PARTIAL_WORDS
                assert blocks <= 1024
                assert lanes.split(3584)["chunk"] % 8 == 0
    nvidia = replace(H200, features=frozenset({FEATURE}))
    assert choose(1, 4096, 896, "q4_k", nvidia, alone=True).split(896) == {"parts": 8, "chunk": 112}
    assert choose(1, 8192, 896, "q4_k", nvidia, alone=True).split(896) == {"parts": 4, "chunk": 224}
    assert choose(1, 8192, 896, "q4_k", nvidia).parts == 1
    assert choose(1, 16384, 896, "q4_k", nvidia, alone=True).split(896) == {"parts": 2, "chunk": 448}
    assert choose(1, 16896, 896, "q4_k", nvidia, alone=True).parts == 2
    assert choose(1, 16897, 896, "q4_k", nvidia, alone=True).parts == 1
    assert choose(1, 4096, 128, "q4_k", nvidia, alone=True).parts == 1
