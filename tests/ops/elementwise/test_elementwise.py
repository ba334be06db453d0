"""Large results, of which an invocation makes four elements: where its workgroups end, in every layout."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.device.stream import stream
from pellucid.op import expression as mapping
from pellucid.op.kernel import frame

pytestmark = pytest.mark.gpu
SIZES = [mapping.MANY - 1, mapping.MANY, mapping.MANY + 1, mapping.MANY + 767, 3 * 41 * 1021]


def pair(*shape: int, seed: int = 0):
    """The same numbers in both libraries."""
    a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return pellucid.tensor(a, device="webgpu"), torch.tensor(a)


def equal(ours, theirs) -> None:
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def files(function) -> list[str]:
    """Kernels that a call takes."""
    with pellucid.debug.trace() as t:
        function()
        pellucid.webgpu.flush()
    return [d.kernel for d in t]


@pytest.mark.parametrize("count", SIZES)
def test_every_element_is_made_once(count):
    (a, b), (x, y) = zip(pair(count), pair(count, seed=1), strict=True)
    equal(a * b, x * y)
    a += b
    x += y
    equal(a, x)


@pytest.mark.parametrize("count", [frame.LARGE, frame.LARGE + 1, frame.LARGE + 1700])
def test_the_largest_results_begin_at_either_end(count):
    (a, b), (x, y) = zip(pair(count), pair(count, seed=1), strict=True)
    for _ in range(3):  # an odd number, so that the next ones begin at the other end
        equal(a * b, x * y)
    for _ in range(2):
        a += b
        x += y
        equal(a, x)
    for _ in range(4):
        held = a * 2
        c = (held + b).relu()
        stream().flush()
        equal(c, (x * 2 + y).relu())
        equal(held, x * 2)


def test_layouts():
    a, x = pair(300, 501)
    b, y = pair(501, 300, seed=1)
    equal(a + b.t(), x + y.t())
    equal(a[::2, 1:] * a[:1, 1:], x[::2, 1:] * x[:1, 1:])
    a[:, 1::2] += b.t()[:, ::2][:, :250]
    x[:, 1::2] += y.t()[:, ::2][:, :250]
    equal(a, x)
    deep = pellucid.arange(2 * 3 * 4 * 5 * 6 * 200, device="webgpu").reshape(2, 3, 4, 5, 6, 200)
    theirs = torch.arange(2 * 3 * 4 * 5 * 6 * 200).reshape(2, 3, 4, 5, 6, 200)
    equal(
        (deep.permute(5, 3, 1, 0, 2, 4) + 1).to(pellucid.int32), (theirs.permute(5, 3, 1, 0, 2, 4) + 1).int()
    )


def test_packed_results_and_long_integers():
    a, x = pair(2 * mapping.MANY + 5)
    equal(a > 0, x > 0)
    equal((a * 100).to(pellucid.int64) * 3, (x * 100).long() * 3)
    equal(a.half().float(), x.half().float())


def test_fused():
    """With a value that is held, and one written in place."""
    expected = None
    for _ in range(4):
        a, x = pair(mapping.MANY + 300)
        held = a * 2
        b = (held + 1).relu()
        b.add_(held)
        stream().flush()
        expected = (x * 2 + 1).relu() + x * 2
        equal(held, x * 2)
        equal(b, expected)


def test_small_results_take_an_invocation_each():
    a, _ = pair(1000)
    b, _ = pair(mapping.MANY)
    assert files(lambda: a * 2) == ["elementwise/map (mul)"]
    assert files(lambda: b * 2) == ["elementwise/map_many (mul)"]
    assert files(lambda: b > 0) == ["elementwise/map (gt)"]
