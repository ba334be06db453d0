"""Reductions of long rows in one dispatch: the parts of an output come together in the status buffer, which
is zero again afterwards."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pellucid
from checked import leave_out_checked, unchecked
from ops.each_variant import device, dispatches
from pellucid.device.host import STATUS_SLOT
from pellucid.device.stream import PARTIAL_WORDS, STATUS_BUFFER_BYTES, STATUS_BYTES, stream
from pellucid.errors import DeviceError
from pellucid.op.kernel.source import KernelSource, load
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.reduce import passes
from pellucid.ops.reduce import reductions as reduce

# (outputs, reduced) with 2 to 1024 parts, at and beside the sizes at which their number or chunk changes.
SHAPES = [
    (1, 1025), (1, 2048), (1, 2049), (1, 65537), (1, 300_001), (1, 523_265), (1, 1_048_577),
    (2, 1025), (3, 30_011), (7, 8191), (16, 4097), (33, 3333), (64, 2050), (69, 1027), (70, 20_003),
    (600, 1030), (1023, 1025)
]  # fmt: skip


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Plans are made anew for the kernels of GPUs; what lies behind the status is zero before and after."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    assert not rest().any()
    yield
    assert not rest().any()
    forget_plans()


@pytest.fixture
def two_passes(monkeypatch):
    """A function that calls another one with the parts folded by a dispatch of their own."""
    leave_out_checked("dispatches are counted")

    def call(function):
        def unsplit(*shape):
            form, parts = choose(*shape)
            return form.removeprefix("split_"), parts

        choose = passes._shared
        with monkeypatch.context() as patched:
            patched.setattr(passes, "_shared", unsplit)
            forget_plans()
            assert dispatches(function) > 1
            found = function()
        forget_plans()
        assert dispatches(function) == 1
        return found

    return call


def rest() -> np.ndarray:
    """The words behind the status."""
    host = stream().open()
    stream().flush()
    data, _ = host.read(host.begin_read(STATUS_SLOT, STATUS_BYTES, STATUS_BUFFER_BYTES - STATUS_BYTES))
    return np.frombuffer(bytes(data), np.uint32)


def overwrite(words: np.ndarray) -> None:
    """Write the words behind the status."""
    stream().flush()
    stream().open().write(STATUS_SLOT, STATUS_BUFFER_BYTES, STATUS_BYTES, words.tobytes())


def bits(tensor) -> list[int]:
    return tensor.reshape(-1).numpy().view(np.uint32).tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_sizes(shape):
    x = np.random.randint(-9, 10, shape).astype(np.float32)
    ours = device(x)
    for _ in range(2):
        assert dispatches(lambda: ours.sum(-1)) == dispatches(lambda: ours.amax(-1)) == 1
        assert ours.sum(-1).tolist() == x.sum(-1).tolist()
        assert ours.argmin(-1).tolist() == x.argmin(-1).tolist()
        assert ours.amax(-1).tolist() == x.max(-1).tolist()
        values, indices = ours.max(-1)
        assert (values.tolist(), indices.tolist()) == (x.max(-1).tolist(), x.argmax(-1).tolist())
        np.testing.assert_allclose(ours.mean(-1).numpy(), x.mean(-1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("inner", [2, 5, 31])
def test_rows_that_lie_across(inner):
    x = np.random.randint(-9, 10, (3, 3001, inner)).astype(np.float32)
    ours = device(x)
    assert np.array_equal(ours.sum(1).numpy(), x.sum(1))
    assert np.array_equal(ours.argmax(1).numpy(), x.argmax(1))
    assert np.array_equal(ours.sum((0, 1)).numpy(), x.sum((0, 1)))
    assert ours.amin((0, 2)).tolist() == x.min((0, 2)).tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.int16, np.uint8, np.bool_, np.float16])
def test_types(dtype):
    x = np.random.randint(0, 2 if dtype is np.bool_ else 100, (3, 5001)).astype(dtype)
    ours = device(x)
    if dtype is np.float16:  # whose sums have 11 bits
        x %= 2
        ours = device(x * 0.25)
        assert ours.sum(-1).tolist() == (x.sum(-1, dtype=np.float64) / 4).astype(np.float16).tolist()
        ours = device(x)
    else:
        assert ours.sum(-1).tolist() == x.sum(-1, dtype=np.int64).tolist()
    if dtype is not np.bool_:
        assert ours.argmax(-1).tolist() == x.argmax(-1).tolist()
        assert ours.amin(-1).tolist() == x.min(-1).tolist()
    one = np.ones((3, 5001), dtype)
    one[1, 4000] = 0
    ours = device(one)
    assert ours.prod(-1).tolist() == [1, 0, 1]
    assert (ours != 0).all(-1).tolist() == [True, False, True]
    assert (ours == 0).any(-1).tolist() == [False, True, False]


def test_int64_sums_and_products_pass_every_word():
    x = np.random.randint(-(2**62), 2**62, (3, 9001))
    ours = device(x)
    with np.errstate(over="ignore"):
        assert ours.sum(-1).tolist() == x.sum(-1).tolist()
        assert ours.prod(-1).tolist() == x.prod(-1).tolist()
    assert ours.argmax(-1).tolist() == x.argmax(-1).tolist()
    assert device(np.full(100_000, 2**31 - 1, np.int32)).sum().item() == 100_000 * (2**31 - 1)


@pytest.mark.parametrize("count", [1030, 300_001])
def test_special_values_bit_for_bit(two_passes, count):
    rows = []
    for value in (np.nan, np.inf, -np.inf, 3e38, -0.0, 1e-40, -1e-45, 0xFFFF, 1 << 24):
        row = np.zeros(count, np.float32)
        row[count // 2] = value
        rows.append(row)
        rows.append(np.full(count, value, np.float32))
    rows[1][0], rows[3][-1] = np.inf, -np.inf
    for row in rows:
        x = device(row)
        for f in (x.sum, x.mean, x.amax, x.amin):
            assert bits(f()) == bits(two_passes(f))
        assert x.argmax().item() == row.argmax()


@pytest.mark.parametrize("count", [2_100_001, 4_000_003])
def test_parts_are_folded_in_the_order_of_the_second_pass(two_passes, count):
    """Where both passes have 256 lanes for a row: the bits of random numbers are the same."""
    x = pellucid.randn(count)
    for f in (x.sum, x.mean):
        assert bits(f()) == bits(two_passes(f))


def test_repeated_and_interleaved():
    """200 rounds without a wait, on the same words: all give the same bits."""
    inputs = [pellucid.randn(*shape) for shape in ((60_001,), (70, 3000), (5, 5000), (2_000,))]
    strips = [pellucid.randn(*shape) for shape in ((1025, 64), (300, 70))]
    whole = pellucid.tensor(np.random.randint(-(2**40), 2**40, (3, 4001)), device="webgpu")

    def round_():
        found = [x.sum(-1) for x in inputs] + [x.argmax(-1) for x in inputs]
        found += [whole.sum(-1), *[x.sum(0) for x in strips]]
        return pellucid.cat([f.reshape(-1).float() for f in found])

    first = round_()
    total = pellucid.zeros(len(first), dtype=pellucid.int64)
    for _ in range(200):
        total += round_() == first
    assert total.tolist() == [200] * len(first)


def test_captured_and_replayed():
    @pellucid.compile
    def function(x, y):
        return (x * y).sum() * 2, x.amax(-1), (x - y).mean(-1)

    for _ in range(6):
        a, b = np.random.randint(-9, 10, (2, 3, 9001)).astype(np.float32)
        total, largest, means = function(pellucid.tensor(a), pellucid.tensor(b))
        assert total.item() == 2 * (a * b).sum()
        assert largest.tolist() == a.max(-1).tolist()
        np.testing.assert_allclose(means.numpy(), (a - b).mean(-1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("fused", [False, True])
def test_neighbours_join_the_dispatch(fused):
    a, b = np.random.randint(-9, 10, (2, 70_001)).astype(np.float32)
    x, y = pellucid.tensor(a), pellucid.tensor(b)
    cases = [
        (lambda: (x * y).sum(), (a * b).sum(), 2),
        (lambda: ((x - y) ** 2).mean(), np.square(a - b).mean(dtype=np.float64), 3),
        (lambda: x.sum() * 2, a.sum() * 2, 2),
        (lambda: (x * y).sum() * 2 + 1, (a * b).sum() * 2 + 1, 4),
    ]
    with pellucid.webgpu.fusion(fused):
        for function, expected, unfused in cases:
            counts = [dispatches(function) for _ in range(4)]
            assert counts[-1] == (1 if fused else unfused)
            np.testing.assert_allclose(function().item(), expected, rtol=1e-6)


def test_two_reductions_side_by_side_never_share_a_dispatch():
    a, b = np.random.randint(-9, 10, (2, 70_001)).astype(np.float32)
    x, y = pellucid.tensor(a), pellucid.tensor(b)

    def both():
        product = x * y
        return product.sum(), product.mean(), (x + y).sum() + product.sum()

    with pellucid.webgpu.fusion(True):
        for _ in range(4):
            assert dispatches(both) >= 3
            first, mean, sums = both()
            assert first.item() == (a * b).sum()
            assert sums.item() == (a + b).sum() + (a * b).sum()
            np.testing.assert_allclose(mean.item(), (a * b).mean(dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("outputs", [1, 2, 3, 31, 263, 264, 512, 513, 527])
@pytest.mark.parametrize("reduced", [1025, 4097, 1 << 20, 1 << 26])
def test_the_status_buffer_has_room(outputs, reduced):
    (step,) = passes.passes(outputs, reduced, 1, strips=True)
    assert step.form == "split_rows"
    assert step.outputs <= 1024
    assert 4 * step.pieces <= PARTIAL_WORDS
    assert (step.parts - 1) * step.chunk < reduced <= step.parts * step.chunk  # no part is empty


@pytest.mark.parametrize("outer", [1, 3, 100])
@pytest.mark.parametrize("inner", [32, 33, 255, 256, 1024, 20_000])
@pytest.mark.parametrize("reduced", [65, 129, 1025, 8192, 131_072, 131_073, 1 << 20])
def test_the_status_buffer_has_room_for_strips(outer, reduced, inner):
    for step in passes.passes(outer, reduced, inner, strips=True):
        assert (step.parts - 1) * step.chunk < step.reduced <= step.parts * step.chunk
        if step.is_split:
            assert step.parts <= 128
            assert step.grid <= 1024
            assert 4 * 32 * step.grid <= PARTIAL_WORDS


# 2 to 128 parts of strips that are full and not, of one matrix and of several.
STRIPS = [
    (1, 65, 32), (1, 130, 33), (1, 512, 64), (1, 1025, 100), (1, 3001, 1024), (1, 8192, 40), (1, 9001, 63),
    (1, 20_000, 32), (3, 700, 65), (7, 300, 32), (2, 100, 3000), (70, 66, 50)
]  # fmt: skip


@pytest.mark.parametrize("shape", STRIPS)
def test_strips(shape, two_passes):
    x = np.random.randint(-9, 10, shape).astype(np.float32)
    ours = device(x)
    for _ in range(2):
        assert dispatches(lambda: ours.sum(1)) == 1
        assert np.array_equal(ours.sum(1).numpy(), x.sum(1))
        np.testing.assert_allclose(ours.mean(1).numpy(), x.mean(1), rtol=1e-6, atol=1e-6)
    x[:, 5] = np.resize(np.float32([np.nan, np.inf, -np.inf, 3e38, -0.0, 1e-40]), shape[2])
    x[:, 40, ::2] = x[:, 5, ::2]
    ours = device(x)
    for f in (lambda: ours.sum(1), lambda: ours.mean(1)):
        assert bits(f()) == bits(two_passes(f))


def test_strips_of_other_types():
    wide = np.random.randint(-(2**62), 2**62, (3001, 70))
    with np.errstate(over="ignore"):
        assert np.array_equal(device(wide).sum(0).numpy(), wide.sum(0))
        assert np.array_equal(device(wide).prod(0).numpy(), wide.prod(0))
    bools = np.random.random((3001, 70)) < 0.999
    assert np.array_equal(device(bools).all(0).numpy(), bools.all(0))
    assert np.array_equal(device(~bools).any(0).numpy(), (~bools).any(0))
    assert np.array_equal(device(bools).sum(0).numpy(), bools.sum(0))
    small = np.random.randint(-100, 100, (3001, 70)).astype(np.int8)
    assert np.array_equal(device(small).sum(0).numpy(), small.sum(0, dtype=np.int64))


def test_the_largest_parts_fill_the_buffer():
    (step,) = passes.passes(1, 8192, 256, strips=True)
    assert 4 * 32 * step.grid == PARTIAL_WORDS
    x = np.random.randint(-(2**62), 2**62, (8192, 256))
    ours = device(x)
    for _ in range(2):
        with np.errstate(over="ignore"):
            assert np.array_equal(ours.sum(0).numpy(), x.sum(0))


def test_a_bias_gradient_takes_its_neighbours_along():
    a, b = np.random.randint(-9, 10, (2, 1000, 96)).astype(np.float32)
    x, y = pellucid.tensor(a), pellucid.tensor(b)
    with pellucid.webgpu.fusion(True):
        for _ in range(4):
            count = dispatches(lambda: (x * y).sum(0) * 2)
            assert np.array_equal(((x * y).sum(0) * 2).numpy(), (a * b).sum(0) * 2)
    assert count == 1


NEW_DEVICES = """
import numpy as np
import pellucid
for _ in range(3):
    used = pellucid.tensor(np.full(1 << 18, 0x7FFFFFFF, np.int32))  # the first memory
    del used
    x = pellucid.ones(3, 9000)
    assert x.sum(-1).tolist() == [9000] * 3
    assert pellucid.ones(300, 40).sum(0).tolist() == [300] * 40
    pellucid.webgpu.reset()
"""


@pytest.mark.parametrize("fusion", ["always", "0"])
def test_every_new_device_begins_with_zeros(fusion):
    chosen = {**os.environ, "PELLUCID_KERNELS": "shared", "PELLUCID_FUSION": fusion}
    done = subprocess.run([sys.executable, "-c", NEW_DEVICES], capture_output=True, text=True, env=chosen)
    assert done.returncode == 0, done.stdout + done.stderr


@unchecked("it breaks a kernel")
def test_a_part_that_never_arrives_is_an_error(monkeypatch):
    """No read gives a wrong result in silence: neither of this dispatch nor of those after it."""
    whole = load("reduce/split_rows")
    text = whole.text.replace(
        "partial_leave_value(first + part, own);",
        "if (output != 1u || part != 2u) { partial_leave_value(first + part, own); }",
    )
    assert text != whole.text
    x, y = pellucid.ones(3, 9000), pellucid.ones(300, 40)
    with monkeypatch.context() as patched:
        patched.setattr(
            reduce,
            "load",
            lambda file: KernelSource(file, text) if file == "reduce/split_rows" else load(file),
        )
        with pytest.raises(DeviceError, match="parts of a reduction did not arrive"):
            x.sum(-1).tolist()
    forget_plans()
    assert np.count_nonzero(rest()) == 1  # the mark alone
    for later in (lambda: x.sum(-1), lambda: y.sum(0), lambda: x.argmax()):
        with pytest.raises(DeviceError, match="parts of a reduction did not arrive"):
            later().tolist()
    overwrite(np.zeros_like(rest()))
    assert x.sum(-1).tolist() == [9000] * 3
