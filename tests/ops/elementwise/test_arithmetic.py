"""Sums, products, quotients, remainders, powers and bits against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, LOOSE, edges, equal, ours, pairs

BINARY = (
    "add",
    "sub",
    "mul",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
)
# Where one rounding is all that happens, the result is PyTorch's bit for bit.
EXACT = ("add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "minimum")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_every_pair_of_edge_values(name, dtype):
    a, b = pairs(dtype)
    if name in ("floor_divide", "remainder", "fmod") and not dtype.startswith(("float", "bfloat")):
        a, b = a[b != 0], b[b != 0]
    if "shift" in name and dtype != "bool":
        a, b = a[b >= 0], b[b >= 0]
    try:
        theirs = getattr(torch, name)(a, b)
    except (RuntimeError, NotImplementedError):
        for device in DEVICES:
            with pytest.raises((TypeError, RuntimeError)):
                getattr(pellucid, name)(ours(a, device), ours(b, device))
        return
    rtol = 0 if name in EXACT or not theirs.is_floating_point() else LOOSE.get(dtype, 3e-6)
    if dtype == "float16" and name == "true_divide":
        rtol = 1e-3
    for device in DEVICES:
        equal(getattr(pellucid, name)(ours(a, device), ours(b, device)), theirs, rtol, f"{name} on {device}")


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_gives_zero_everywhere(name, dtype):
    for device in DEVICES:
        x = ours(edges(dtype), device)
        zero = pellucid.zeros_like(x)
        assert not getattr(pellucid, name)(x, zero).numpy().any()
        assert not pellucid.div(x, zero, rounding_mode="trunc").numpy().any()


def test_rounding_modes():
    for dtype in ("float32", "int32", "int64", "uint8"):
        a, b = pairs(dtype)
        a, b = a[b != 0], b[b != 0]
        if dtype.startswith("int"):
            # The least integer over -1 overflows, and ends the process in PyTorch.
            fits = (a != torch.iinfo(a.dtype).min) | (b != -1)
            a, b = a[fits], b[fits]
        for mode in ("floor", "trunc", None):
            for device in DEVICES:
                mine = pellucid.div(ours(a, device), ours(b, device), rounding_mode=mode)
                equal(mine, torch.div(a, b, rounding_mode=mode), 3e-7, f"{mode} {dtype} on {device}")
    with pytest.raises(ValueError, match="rounding_mode must be"):
        pellucid.div(pellucid.ones(1, device="cpu"), 2, rounding_mode="up")


SMOOTH = {
    "add": lambda p, a, b: p.add(a, b),
    "add with alpha": lambda p, a, b: p.add(a, b, alpha=2.5),
    "sub with alpha": lambda p, a, b: p.sub(a, b, alpha=-0.5),
    "rsub": lambda p, a, b: p.rsub(a, b, alpha=2),
    "mul": lambda p, a, b: p.mul(a, b),
    "div": lambda p, a, b: p.div(a, b),
    "remainder": lambda p, a, b: p.remainder(a, b),
    "fmod": lambda p, a, b: p.fmod(a, b),
    "pow": lambda p, a, b: p.pow(a.abs(), b),
    "pow of scalar": lambda p, a, b: (2**a, 0.5**b, a**2, b**3, a.abs() ** 0.5, b.abs() ** -1.5, a**0, b**1),
    "maximum": lambda p, a, b: p.maximum(a, b),
    "minimum": lambda p, a, b: p.minimum(a, b),
    "maximum of equals": lambda p, a, b: (p.maximum(a, a * 1), p.minimum(b, b * 1)),
    "neg": lambda p, a, b: (-a, +b),
    "lerp": lambda p, a, b: (p.lerp(a, b, 0.3), p.lerp(a, b, a.sigmoid())),
    "addcmul": lambda p, a, b: p.addcmul(a, a, b, value=0.7),
    "addcdiv": lambda p, a, b: p.addcdiv(a, a, b, value=-0.7),
    "clamp": lambda p, a, b: (a.clamp(-0.5, 0.5), a.clamp(min=0), b.clamp(max=0.25)),
    "clamp by tensors": lambda p, a, b: p.clamp(a, min=b, max=b + 1),
    "operators": lambda p, a, b: ((a + b) * a - b / (a * a + 1)) % 3 + a.floor() * b - (1 - a) / (2 + b * b),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    check(SMOOTH[name], normal(3, 5), normal(3, 5))


@pytest.mark.parametrize("weight", [-0.75, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5])
def test_lerp_goes_from_the_nearer_end(weight):
    """So both ends are met exactly, and what is infinite at the nearer one stays so."""
    a = np.array([np.inf, 1.0, -np.inf, np.inf, np.nan, 1e8, 3.0], np.float32)
    b = np.array([1.0, np.inf, 2.0, np.inf, 1.0, 1.0, 7.0], np.float32)
    check(
        lambda p, a, b: (p.lerp(a, b, weight), p.lerp(a, b, p.full_like(a, weight))),
        a,
        b,
        layouts=("contiguous",),
        grad=False,
    )


@pytest.mark.parametrize(
    "shapes",
    [((3, 1, 4), (2, 1)), ((), (2, 3)), ((1,), (5,)), ((0, 3), (1, 3)), ((2, 0), ()), ((4, 1), (1, 4))],
)
def test_broadcasting(shapes):
    check(
        lambda p, a, b: (a + b, a * b),
        normal(*shapes[0]),
        normal(*shapes[1]),
        layouts=("contiguous", "strided"),
    )


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


def test_more_axes_than_four():
    a, b = normal(2, 3, 2, 2, 3, 2), normal(2, 1, 2, 1, 3, 1)
    check(
        lambda p, a, b: a.permute(5, 0, 3, 1, 4, 2) * b.permute(1, 0, 3, 5, 4, 2),
        a,
        b,
        layouts=("contiguous",),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars(dtype):
    x = edges(dtype)
    if not x.is_floating_point():
        x = x[x != 0]
    forms = [
        lambda x: x + 1,
        lambda x: x + 1.5,
        lambda x: True + x,
        lambda x: 2 * x,
        lambda x: x * 0.5,
        lambda x: x / 2,
        lambda x: 3 / x,
        lambda x: x == 1,
        lambda x: x < 2.5,
        lambda x: x >= True,
        lambda x: 1 - x,
        lambda x: x - 1,
        lambda x: -x,
        lambda x: x // 2,
        lambda x: 7 // x,
        lambda x: x % 3,
        lambda x: 7 % x,
        lambda x: x % -3,
        lambda x: x**2,
        lambda x: abs(x),
        lambda x: x & 3,
        lambda x: x | True,
        lambda x: x ^ 5,
        lambda x: ~x,
        lambda x: x << 1,
        lambda x: x >> 1,
        lambda x: x.clamp(0, 5),
        lambda x: x + np.float32(2),
        lambda x: x * np.int64(3),
    ]
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


def test_int_scalars_reach_all_64_bits():
    x = torch.tensor([1, -1, 5])
    for value in (2**40, -(2**40) - 1, 2**63 - 1, -(2**63)):
        for device in DEVICES:
            equal(ours(x, device) + value, x + value)
            equal(ours(x, device) * value, x * value)


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


def test_refused():
    for device in DEVICES:
        x, i = pellucid.ones(2, device=device), pellucid.ones(2, dtype=pellucid.int64, device=device)
        with pytest.raises(RuntimeError, match="negative integer"):
            i**-1
        with pytest.raises(RuntimeError, match="alpha"):
            pellucid.add(i, i, alpha=1.5)
        with pytest.raises(RuntimeError, match="alpha"):
            i.sub(1, alpha=0.5)
        with pytest.raises(
            TypeError, match=r"add\(\): argument 'other' must be Tensor or number, not str 'a'"
        ):
            x + "a"
        with pytest.raises(TypeError, match="argument 'other'"):
            x * None
        with pytest.raises(ValueError, match="at least one of min and max"):
            x.clamp()
