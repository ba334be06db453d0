"""Integer algebra of shapes against numpy, on arbitrary shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.errors import DimensionError, ShapeError
from pellucid.tensors import shape as sh

shapes = st.lists(st.integers(0, 5), max_size=5).map(tuple)


def strided(a: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return a.shape, tuple(s // a.itemsize for s in a.strides)


@given(shapes)
def test_contiguous_strides(shape):
    strides = sh.contiguous_strides(shape)
    if 0 not in shape:
        assert strides == strided(np.zeros(shape, np.int32))[1]
    assert sh.is_contiguous(shape, strides)


@given(shapes, st.randoms(use_true_random=False))
def test_is_contiguous(shape, random):
    a = np.zeros(shape, np.int32)
    order = list(range(a.ndim))
    random.shuffle(order)
    b = a.transpose(order)
    if random.random() < 0.5 and b.ndim:
        b = b[::-1] if random.random() < 0.5 else b[..., ::2]
    if b.size:
        assert sh.is_contiguous(*strided(b)) == b.flags.c_contiguous


@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcast_shapes(several):
    try:
        expected = np.broadcast_shapes(*several)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            sh.broadcast_shapes(*several)
    else:
        assert sh.broadcast_shapes(*several) == expected


@given(shapes, st.lists(st.integers(1, 3), max_size=2))
def test_broadcast_strides(shape, lead):
    a = np.zeros(shape, np.int32)
    to = (*lead, *[n if n != 1 else 4 for n in shape])
    expected = np.broadcast_to(a, to)
    if 0 in to:
        return
    found = sh.broadcast_strides(*strided(a), to)
    assert [s for s, n in zip(found, to, strict=True) if n != 1] == [
        s for s, n in zip(strided(expected)[1], to, strict=True) if n != 1
    ]


@st.composite
def regroupings(draw):
    """Two shapes of equally many elements, and strides that are a permutation or a part of contiguous
    ones."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3]), min_size=1, max_size=6))

    def grouped():
        out, current = [], 1
        for f in factors:
            current *= f
            if draw(st.booleans()):
                out.append(current)
                current = 1
        return (*out, current)

    a = np.arange(int(np.prod(factors)) * 2, dtype=np.int32)[:: draw(st.sampled_from([1, 2]))][
        : int(np.prod(factors))
    ].reshape(grouped())
    if draw(st.booleans()):
        a = a.transpose(draw(st.permutations(range(a.ndim))))
    if a.ndim and draw(st.booleans()):
        a = np.broadcast_to(a, (2, *a.shape)) if draw(st.booleans()) else a[::-1]
    total = a.size
    divisors = [d for d in (1, 2, 3, 4, 6, 8, 12) if total % d == 0]
    first = draw(st.sampled_from(divisors))
    return a, draw(
        st.sampled_from(
            [
                (first, total // first),
                (total,),
                (1, total // first, first),
                grouped() if a.size == np.prod(factors) else (total,),
            ]
        )
    )


@given(regroupings())
def test_view_strides(case):
    """Where strides are found they show numpy's elements; where none are, numpy must copy too."""
    a, to = case
    found = sh.view_strides(*strided(a), to)
    expected = a.reshape(to)
    if found is None:
        assert not np.shares_memory(expected, a)
    else:
        shown = np.lib.stride_tricks.as_strided(a, to, [s * a.itemsize for s in found])
        np.testing.assert_array_equal(shown, expected)


@given(shapes, st.lists(st.randoms(use_true_random=False), min_size=1, max_size=3))
def test_merge_axes(shape, randoms):
    """Merged axes walk the same elements in the same order."""
    shape = tuple(n for n in shape if n) or (1,)
    strides = []
    for r in randoms:
        order = list(range(len(shape)))
        if r.random() < 0.6:
            r.shuffle(order)
        full = dict(zip(order, sh.contiguous_strides([shape[k] for k in order]), strict=True))
        strides.append(tuple(0 if r.random() < 0.2 else full[k] for k in range(len(shape))))
    lengths, merged = sh.merge_axes(shape, strides)
    assert 1 not in lengths
    for before, after in zip(strides, merged, strict=True):
        walk = sum(
            (np.arange(n) * s).reshape([-1 if j == k else 1 for j in range(len(shape))])
            for k, (n, s) in enumerate(zip(shape, before, strict=True))
        )
        again = sum(
            (
                (np.arange(n) * s).reshape([-1 if j == k else 1 for j in range(len(lengths))])
                for k, (n, s) in enumerate(zip(lengths, after, strict=True))
            ),
            np.zeros((1,) * len(lengths), int),
        )
        np.testing.assert_array_equal(
            np.broadcast_to(walk, shape).reshape(-1), np.broadcast_to(again, lengths).reshape(-1)
        )


def test_merge_axes_merges():
    assert sh.merge_axes((2, 3, 4), [(12, 4, 1), (12, 4, 1)]) == ((24,), [(1,), (1,)])
    assert sh.merge_axes((2, 3, 4), [(12, 4, 1), (0, 4, 1)]) == ((2, 12), [(12, 1), (0, 1)])
    assert sh.merge_axes((1, 1), [(5, 7)]) == ((), [()])


@given(
    st.integers(0, 9),
    st.none() | st.integers(-12, 12),
    st.none() | st.integers(-12, 12),
    st.sampled_from([None, 1, 2, 5, -1, -2, -5]),
)
def test_slice_axis(length, start, stop, step):
    a = np.arange(length)
    expected = a[start:stop:step]
    count, stride, offset = sh.slice_axis(length, 1, slice(start, stop, step))
    assert [offset + k * stride for k in range(count)] == expected.tolist()


@given(st.lists(st.integers(-1, 6), max_size=4), st.integers(0, 60))
def test_infer(shape, count):
    try:
        expected = np.zeros(count).reshape(shape).shape
    except ValueError:
        with pytest.raises(ShapeError):
            sh.infer(shape, count)
    else:
        assert sh.infer(shape, count) == expected


def test_axes():
    assert sh.axis(-1, 3) == 2
    assert sh.axis(0, 0) == sh.axis(-1, 0) == 0
    assert sh.axes(None, 3) == sh.axes((), 3) == (0, 1, 2)
    assert sh.axes((-1, 0), 3) == (0, 2)
    assert sh.axes(0, 0) == ()
    with pytest.raises(DimensionError, match="dimension 3 is out of range: a tensor of 3 axes takes -3 to 2"):
        sh.axis(3, 3)
    with pytest.raises(ShapeError, match="names an axis twice"):
        sh.axes((0, -3), 3)
    with pytest.raises(TypeError, match=r"dim must be an integer, not float \(1\.0\)"):
        sh.axis(1.0, 3)
    assert sh.sizes((2, 3)) == sh.sizes(((2, 3),)) == sh.sizes(([2, np.int64(3)],)) == (2, 3)


def test_size():
    s = sh.Size((2, 3, 4))
    assert (s.numel(), s[1:], s[0], s.__add__((5,)), repr(s)) == (
        24,
        sh.Size((3, 4)),
        2,
        (2, 3, 4, 5),
        "Size([2, 3, 4])",
    )
    assert isinstance(s[1:], sh.Size)
    assert isinstance(s + (1,), sh.Size)  # noqa: RUF005
    assert s == (2, 3, 4)
