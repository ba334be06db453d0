"""Operators of Python with numbers on either side, division by zero, reversed operands."""

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import edges, equal, ours
from samples.sample import DTYPES, LOOSE


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_gives_zero_everywhere(name, dtype):
    for device in DEVICES:
        x = ours(edges(dtype), device)
        zero = pellucid.zeros_like(x)
        assert not getattr(pellucid, name)(x, zero).numpy().any()
        assert not pellucid.div(x, zero, rounding_mode="trunc").numpy().any()


def test_expanded_and_reversed_operands():
    check(
        lambda p, a, b: (a.expand(3, 4) * b, a.expand(3, 4) * a),
        normal(3, 1),
        normal(3, 4),
        layouts=("contiguous",),
    )
    check(
        lambda p, a, b: a[::-1, ::-2] * b[:, ::-1][:, 1:3],
        normal(3, 4),
        normal(3, 4),
        theirs=lambda p, a, b: a.flip(0)[:, [3, 1]] * b.flip(1)[:, 1:3],
        layouts=("contiguous", "strided"),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars(dtype):
    x = edges(dtype)
    if not x.is_floating_point():
        x = x[x != 0]
    forms = [
        lambda x: x + 1, lambda x: x + 1.5, lambda x: True + x, lambda x: 2 * x, lambda x: x * 0.5,
        lambda x: x / 2, lambda x: 3 / x, lambda x: x == 1, lambda x: x < 2.5, lambda x: x >= True,
        lambda x: 1 - x, lambda x: x - 1, lambda x: -x, lambda x: x // 2, lambda x: 7 // x,
        lambda x: x % 3, lambda x: 7 % x, lambda x: x % -3, lambda x: x**2, lambda x: abs(x),
        lambda x: x & 3, lambda x: x | True, lambda x: x ^ 5, lambda x: ~x, lambda x: x << 1,
        lambda x: x >> 1, lambda x: x + np.float32(2), lambda x: x * np.int64(3)
    ]  # fmt: skip
    for k, form in enumerate(forms):
        try:
            theirs = form(x)
        except (RuntimeError, TypeError, NotImplementedError):
            theirs = None
        for device in DEVICES:
            if theirs is None:
                with pytest.raises((TypeError, RuntimeError)):
                    form(ours(x, device))
            else:
                rtol = LOOSE.get(dtype, 1e-6) if theirs.is_floating_point() else 0
                equal(form(ours(x, device)), theirs, rtol, f"form {k} of {dtype} on {device}")


def test_scalar_types_are_different_plans():
    """1, 1.0 and True are equal as dictionary keys; the results differ."""
    for device in DEVICES:
        x = pellucid.tensor([1, 2], device=device)
        assert [(x + v).dtype.name for v in (1, 1.0, True, 1, 1.0)] == [
            "int64",
            "float32",
            "int64",
            "int64",
            "float32",
        ]
        b = pellucid.tensor([True, False], device=device)
        assert [(b + v).dtype.name for v in (True, 1, 1.0, True)] == ["bool", "int64", "float32", "bool"]


def test_scalars_on_both_sides_of_the_sign_of_zero():
    for device in DEVICES:
        x = pellucid.tensor([1.0, -1.0], device=device)
        assert np.signbit((x * 0.0).numpy()).tolist() == [False, True]
        assert np.signbit((x * -0.0).numpy()).tolist() == [True, False]
        assert (1 / (x * -0.0)).tolist() == [-np.inf, np.inf]


def test_a_tensor_equals_no_text():
    assert (pellucid.tensor([1, 2]) == "x") is False
    assert (pellucid.tensor([1, 2]) != "x") is True
