"""Promotion against PyTorch's table: every pair of types, with axes and without, and Python's numbers."""

import itertools
import pickle

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import DTypeError, RangeError
from pellucid.tensors import dtypes as dt

# PyTorch's own uint16 and uint32 have few kernels; their promotion with other integers is refused there too.
KNOWN = {n: d for n, d in dt.NAMES.items() if not d.is_quantized}
NAMES = [n for n in KNOWN if n not in ("uint16", "uint32")]
NUMBERS = {bool: True, int: 1, float: 1.5, complex: 1j}


def theirs(name: str) -> torch.dtype:
    return getattr(torch, name)


def name_of(d: torch.dtype) -> str:
    # There is no complex number of two halves here.
    return str(d).removeprefix("torch.").replace("complex32", "complex64")


@pytest.mark.parametrize(("a", "b"), itertools.product(NAMES, NAMES))
def test_promote_types(a, b):
    assert dt.promote_types(dt.NAMES[a], dt.NAMES[b]).name == name_of(
        torch.promote_types(theirs(a), theirs(b))
    )


@pytest.mark.parametrize(("a", "b"), itertools.product(NAMES, NAMES))
def test_tensors_with_and_without_axes(a, b):
    x, y = torch.ones(2, dtype=theirs(a)), torch.ones((), dtype=theirs(b))
    assert dt.result_type([dt.NAMES[a]], [dt.NAMES[b]], []).name == name_of(torch.result_type(x, y))
    assert dt.result_type([], [dt.NAMES[a], dt.NAMES[b]], []).name == name_of(
        torch.result_type(torch.ones((), dtype=theirs(a)), y)
    )


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(a, number):
    for shape in ((2,), ()):
        expected = name_of(torch.result_type(torch.ones(shape, dtype=theirs(a)), NUMBERS[number]))
        groups = ([dt.NAMES[a]], []) if shape else ([], [dt.NAMES[a]])
        assert dt.result_type(*groups, [number]).name == expected


def test_default_dtype():
    try:
        for d in (dt.float64, dt.float16, dt.bfloat16):
            dt.set_default_dtype(d)
            torch.set_default_dtype(theirs(d.name))
            for number in (int, float, complex):
                expected = torch.result_type(torch.ones(2, dtype=torch.int64), NUMBERS[number])
                if number is not complex or d is dt.float64:
                    assert dt.result_type([dt.int64], [], [number]).name == name_of(expected)
        with pytest.raises(DTypeError, match="is not a floating-point type"):
            dt.set_default_dtype(dt.int64)
    finally:
        dt.set_default_dtype(dt.float32)
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("a", "b"), itertools.product(NAMES, NAMES))
def test_can_cast(a, b):
    assert dt.can_cast(dt.NAMES[a], dt.NAMES[b]) == torch.can_cast(theirs(a), theirs(b))


def test_types_without_a_common_one():
    for a, b in itertools.product((dt.uint16, dt.uint32), (dt.int8, dt.int32, dt.uint8)):
        if a.kind == b.kind:
            continue
        with pytest.raises(DTypeError, match="have no common type"):
            dt.promote_types(a, b)


def test_properties():
    for name, d in KNOWN.items():
        t = theirs(name)
        assert (d.is_floating_point, d.is_complex, d.itemsize) == (
            t.is_floating_point,
            t.is_complex,
            t.itemsize,
        )
        assert pickle.loads(pickle.dumps(d)) is d
        assert repr(d) == f"pellucid.{name}"
        if name != "bfloat16":
            assert dt.from_numpy_dtype(d.numpy) is d
    with pytest.raises(TypeError, match=r"numpy dtype >f4 has no counterpart.*astype\('float32'\)"):
        dt.from_numpy_dtype(np.dtype(">f4"))
    assert pellucid.half is dt.float16
    assert pellucid.long is dt.int64
    assert pellucid.dtype is dt.DType


def test_rounding_to_bfloat16():
    rng = np.random.default_rng(0)
    bits = np.concatenate(
        [
            rng.integers(0, 2**32, 100_000, dtype=np.uint32),
            np.array([0x7F7FFFFF, 0x3F808000, 0x3F818000, 1, 0x80000001], np.uint32),
        ]
    )
    x = bits.view(np.float32)
    expected = torch.tensor(x).bfloat16().float().numpy()
    np.testing.assert_array_equal(dt.round_bfloat16(x), expected)
    assert dt.round_bfloat16(np.float32(1.01)).shape == ()


@pytest.mark.parametrize(
    ("source", "target"), [("bfloat16", "uint8"), ("uint8", "bfloat16"), ("bfloat16", "int16")]
)
def test_bytes_of_bfloat16(source, target):
    """The cpu device does not have them: the float32 that it holds instead would be read."""
    x = torch.tensor([0, 64, 128, 63]).to(getattr(torch, source))
    ours = pellucid.tensor([0, 64, 128, 63]).to(getattr(pellucid, source))
    assert ours.view(getattr(pellucid, target)).tolist() == x.view(getattr(torch, target)).tolist()
    with pytest.raises(DTypeError, match="cpu device holds bfloat16 as float32"):
        ours.cpu().view(getattr(pellucid, target))
    assert ours.cpu().view(ours.dtype).tolist() == x.tolist()


MIXED = [
    [-128, 0.0], [-129, 1.0], [-128.0, 0], [256, 0.0], [2**53 + 1, 0.0], [[2**62 + 1, 0.5], [True, -3.7]],
    [2**63, 0.5], [2**70, 0.5], [2**70, True], [float("nan"), 1], [1.5, float("inf")],
]  # fmt: skip


@pytest.mark.parametrize("name", ["uint8", "int8", "int64", "float32", "bool"])
@pytest.mark.parametrize("data", MIXED, ids=str)
def test_lists_of_integers_and_floats(data, name):
    """Each is taken for what it is: an array of floats would round 2**53 + 1."""
    try:
        wanted = torch.tensor(data, dtype=getattr(torch, name))
    except (RuntimeError, ValueError):
        with pytest.raises(RangeError, match="does not fit"):
            pellucid.tensor(data, dtype=getattr(pellucid, name))
    else:
        found = pellucid.tensor(data, dtype=getattr(pellucid, name))
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
