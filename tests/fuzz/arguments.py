"""Random single calls against PyTorch: dtypes in pairs, numbers, tensors without axes, layouts, empty shapes.
What is compared is the value, the dtype, the shape, whether the result is contiguous where PyTorch's is, and
whether the call is refused."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import pellucid
from pellucid.errors import PellucidError

COUNT = 36
CALLS = 12

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
REAL = ("bool", *INTEGERS, *FLOATS)
# On the cpu device alone.
WIDE = ("float64", "complex64", "complex128")

SHAPES = ((), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 1, 3), (0,), (2, 0), (2, 3, 2))
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    100,
    127,
    128,
    -128,
    -129,
    255,
    256,
    300,
    -300,
    2**15,
    2**31,
    -(2**31) - 1,
    2**40,
)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 7.25, float("inf"), float("-inf"), float("nan"))
FLAGS = (True, False)

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-4, "complex64": 2e-4}

# Where ours is meant to differ: by op, or by op and dtype of the first tensor.
# What PyTorch takes and we refuse, by a typed error.
REFUSED = {
    **dict.fromkeys(
        ("fill_", "full", "full_like"), "what overflows a half, also where it is the one element"
    ),
    "matmul": "products of integers exist on the cpu device only",
    "softmax": "integers have none, also where there are no elements",
    "log_softmax": "integers have none, also where there are no elements",
    "amax": "complex numbers have no order, also where there are none",
    "amin": "complex numbers have no order, also where there are none",
    **dict.fromkeys(
        ("sigmoid", "sigmoid_", "silu", "norm", "std", "var", "logsumexp"), "not of complex numbers"
    ),
}
# What we take and PyTorch refuses.
TAKEN: dict[str, str] = {
    **dict.fromkeys(
        ("fill_", "full", "full_like", "masked_fill", "where", "clamp", "addcmul", "lerp"),
        "numbers past a float's range are infinite",
    ),
    **dict.fromkeys(
        ("floor_divide", "remainder", "remainder_", "fmod", "div"),
        "integers by zero give a value, as on GPUs",
    ),
}
# Reasons by which PyTorch refuses calls that we take.
MISSING = ("ComplexHalf",)  # it has few kernels of these; here halves meet complex numbers as complex64
# The largest numbers that do not round to infinity.
LARGEST = {"float16": 65519.0, "bfloat16": 3.39e38}


@dataclass
class Given:
    """A tensor of a call: its values, and how it lies."""

    values: np.ndarray
    dtype: str
    layout: str

    def on(self, p: Any) -> Any:
        where = {} if p is torch else {"device": _device[0]}
        d = getattr(p, self.dtype)
        values = self.values
        if self.layout == "transposed" and values.ndim > 1:
            return (
                p.tensor(np.ascontiguousarray(values.T), **where).to(d).permute(*reversed(range(values.ndim)))
            )
        if self.layout == "sliced" and values.ndim:
            return p.tensor(np.repeat(values, 2, -1), **where).to(d)[..., ::2]
        if self.layout == "expanded" and values.ndim:
            return p.tensor(np.ascontiguousarray(values[:1]), **where).to(d).expand(*values.shape)
        return p.tensor(values, **where).to(d)

    def __repr__(self) -> str:
        text = np.array2string(self.values, separator=", ", threshold=99).replace("\n", "")
        return f"<{self.dtype}{list(self.values.shape)} {self.layout} {text}>"


_device = ["webgpu"]


class Draw:
    """What calls are drawn from.

    Args:
        seed: of all choices.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.dtypes = REAL if _device[0] == "webgpu" else (*REAL, *WIDE)

    def values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Values that every conversion on the way keeps."""
        choose = self.random.choice
        count = int(np.prod(shape))
        if dtype == "bool":
            made = [choose(FLAGS) for _ in range(count)]
        elif dtype in INTEGERS:
            ends = np.iinfo(dtype)
            some = [0, 1, 2, 3, 5, 7, 11, int(ends.max), int(ends.min), int(ends.max) - 2]
            some += [] if dtype == "uint8" else [-1, -2, -7]
            made = [choose(some) for _ in range(count)]
        elif dtype.startswith("complex"):
            made = [
                complex(choose((0.5, 1.0, -2.0, 3.0)), choose((0.5, 1.0, -2.0, 0.0))) for _ in range(count)
            ]
        else:
            made = [choose(REALS) for _ in range(count)]
        kind = dtype if dtype not in FLOATS else "float32"
        return np.array(made, kind).reshape(shape)

    def tensor(self, shape: tuple[int, ...] | None = None, dtypes: tuple[str, ...] | None = None) -> Given:
        if shape is None:
            shape = self.random.choice(SHAPES)
        dtype = self.random.choice(dtypes or self.dtypes)
        layout = self.random.choice(("plain", "plain", "transposed", "sliced", "expanded"))
        values = self.values(shape, dtype)
        if layout == "expanded" and values.ndim:
            values = np.broadcast_to(values[:1], values.shape).copy()
        return Given(values, dtype, layout)

    def like(self, t: Given) -> Given:
        """Another one whose shape broadcasts with it."""
        shape = tuple(n if self.random.random() < 0.7 else 1 for n in t.values.shape)
        if self.random.random() < 0.3:
            shape = ()
        return self.tensor(shape)

    def number(self) -> bool | int | float:
        return self.random.choice((*NUMBERS, *REALS, *FLAGS))

    def operand(self, t: Given) -> Any:
        return self.number() if self.random.random() < 0.4 else self.like(t)

    def dim(self, t: Given) -> int:
        rank = max(t.values.ndim, 1)
        return self.random.randrange(-rank, rank)


Arguments = tuple[list[Any], dict[str, Any]]


def _unary(d: Draw) -> Arguments:
    return [d.tensor()], {}


def _binary(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.operand(t)], {}


def _reflected(d: Draw) -> Arguments:
    t = d.tensor()
    return [d.number(), t], {}


def _with_alpha(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.operand(t)], {"alpha": d.random.choice((1, 2, -3, 0.5, True, 300))}


def _pair(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.like(t)], {}


def _copied(d: Draw) -> Arguments:
    (target, source), named = _binary(d)
    if isinstance(source, Given) and target.dtype in INTEGERS and source.dtype not in ("bool", *INTEGERS):
        # What an integer becomes of a float that it does not hold is nobody's promise.
        source.values = np.abs(np.nan_to_num(source.values, nan=1.0, posinf=2.0, neginf=3.0))
    return [target, source], named


def _reduced(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.dim(t), d.random.choice(FLAGS)], {}


def _along(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.dim(t)], {}


def _topk(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.random.choice((0, 1, 2)), d.dim(t)], {}


def _clamp(d: Draw) -> Arguments:
    # What a bound that is NaN makes differs between PyTorch's own kernels.
    t = d.tensor()
    bounds = d.random.choice((None, d.number())), d.random.choice((None, d.number(), 5))
    return [t, *(1.5 if b != b else b for b in bounds)], {}


def _where(d: Draw) -> Arguments:
    t = d.tensor()
    condition = Given(d.values(t.values.shape, "bool"), "bool", "plain")
    return [condition, t, d.operand(t)], {}


def _masked(d: Draw) -> Arguments:
    t = d.tensor()
    value = d.number() if d.random.random() < 0.7 else d.tensor((), REAL)
    return [t, Given(d.values(t.values.shape, "bool"), "bool", "plain"), value], {}


def _filled(d: Draw) -> Arguments:
    return [d.tensor(), d.number()], {}


def _full(d: Draw) -> Arguments:
    return [(2,), d.number()], ({} if d.random.random() < 0.5 else {"dtype": d.random.choice(REAL)})


def _three(d: Draw) -> Arguments:
    t = d.tensor()
    return [t, d.like(t), d.like(t)], {"value": d.random.choice((1, 2, -1, 0.5))}


def _lerp(d: Draw) -> Arguments:
    t = d.tensor()
    other = d.tensor(t.values.shape, (t.dtype,)) if d.random.random() < 0.8 else d.like(t)
    return [t, other, d.random.choice((0.25, 0.5, 1))], {}


def _product(d: Draw) -> Arguments:
    t = d.tensor((2, 3))
    return [t, d.tensor((3, 2), (t.dtype,))], {}


def _range(d: Draw) -> Arguments:
    numbers = (0, 1, 3, 5, -2, 2.5, -1.5, True)
    given = [d.random.choice(numbers) for _ in range(d.random.randrange(1, 4))]
    return given, (
        {} if d.random.random() < 0.6 else {"dtype": d.random.choice(("int64", "float32", "uint8"))}
    )


def _listed(d: Draw) -> Arguments:
    made = [d.number() for _ in range(d.random.randrange(0, 3))]
    return [made], ({} if d.random.random() < 0.3 else {"dtype": d.random.choice(REAL)})


def _joined(d: Draw) -> Arguments:
    t = d.tensor((2, 3))
    return [[t, d.tensor((2, 3)), d.tensor((2, 3))]], {"dim": d.random.choice((0, 1, -1))}


def _indexed(d: Draw) -> Arguments:
    t = d.tensor((2, 3, 2))
    return [t, d.random.choice((0, 1, 2)), d.random.choice(((0, 1), (1,), (0, -1, 1), ()))], {}


def _repeated(d: Draw) -> Arguments:
    t = d.tensor((2, 3))
    repeats = d.random.choice(
        (0, 2, Given(np.array([1, 0, 2]), "int64", "plain"), Given(np.array(2), "int32", "plain"))
    )
    return [t, repeats, 1], {}


def _get(p: Any, t: Any, k: int, places: tuple[int, ...]) -> Any:
    where = {} if p is torch else {"device": _device[0]}
    return t[(slice(None),) * k + (p.tensor(list(places), dtype=p.int64, **where),)]


def _put(p: Any, t: Any, value: Any) -> Any:
    t = t.clone()
    t[...] = value
    return t


def _method(name: str) -> Callable:
    return lambda p, t, *more, **named: getattr(t.clone() if name.endswith("_") else t, name)(*more, **named)


def _functional(name: str) -> Callable:
    return lambda p, *more, **named: getattr(p.nn.functional, name)(*more, **named)


def _plain(name: str) -> Callable:
    return lambda p, *more, **named: getattr(p, name)(*more, **named)


Row = tuple[Callable, Callable[[Draw], Arguments]]
TABLE: dict[str, Row] = {}


def _rows(names: str, wrap: Callable, arguments: Callable, title: str = "{}") -> None:
    """A row for each of several names that are called alike."""
    for name in names.split():
        TABLE[title.format(name)] = (wrap(name), arguments)


_rows(
    "abs neg sign sqrt rsqrt reciprocal square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid logit floor ceil round trunc frac relu isnan "
    "isinf isfinite logical_not bitwise_not positive clone nonzero count_nonzero",
    _plain,
    _unary,
)
_rows("add sub mul div true_divide floor_divide remainder fmod pow eq ne lt le gt ge rsub", _plain, _binary)
_rows("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", _plain, _binary)
_rows(
    "add sub mul div floor_divide remainder pow eq lt maximum fmod rsub", _plain, _reflected, "{} of a number"
)
_rows("add sub", _plain, _with_alpha, "{} alpha")
_rows("maximum minimum atan2 logical_and logical_or logical_xor isclose equal", _plain, _pair)
_rows("sum mean prod any all amax amin argmax argmin logsumexp var std norm", _plain, _reduced)
_rows("cumsum cumprod softmax log_softmax sort argsort unbind flip", _method, _along)
_rows(
    "silu gelu leaky_relu elu softplus logsigmoid mish softsign hardtanh relu6 hardsigmoid hardswish",
    _functional,
    _unary,
)
_rows("add_ sub_ mul_ remainder_ pow_", _method, _binary)
_rows("copy_", _method, _copied)
_rows("abs_ neg_ square_ exp_ floor_ relu_ sigmoid_", _method, _unary)
TABLE |= {
    "topk": (_method("topk"), _topk),
    "clamp": (_plain("clamp"), _clamp),
    "where": (_plain("where"), _where),
    "masked_fill": (_method("masked_fill"), _masked),
    "fill_": (_method("fill_"), _filled),
    "full_like": (_plain("full_like"), _filled),
    "x[...] =": (_put, _filled),
    "full": (_plain("full"), _full),
    "addcmul": (_plain("addcmul"), _three),
    "addcdiv": (_plain("addcdiv"), _three),
    "lerp": (_plain("lerp"), _lerp),
    "matmul": (_plain("matmul"), _product),
    "arange": (_plain("arange"), _range),
    "tensor": (_plain("tensor"), _listed),
    "cat": (_plain("cat"), _joined),
    "stack": (_plain("stack"), _joined),
    "x[:, index]": (_get, _indexed),
    "repeat_interleave": (_plain("repeat_interleave"), _repeated),
}
# They make tensors where no argument says where.
MAKERS = {"full", "arange", "tensor"}


def run(seed: int) -> None:
    """A few calls of random ops.

    Raises:
        AssertionError: one differs from PyTorch's in what it gives, or in whether it is refused.
    """
    _device[0] = "cpu" if seed % 4 == 3 else "webgpu"
    draw = Draw(seed)
    names = sorted(TABLE)
    for _ in range(CALLS):
        name = draw.random.choice(names)
        call, arguments = TABLE[name]
        given, named = arguments(draw)
        _compare(name, call, given, named)


def _made(value: Any, p: Any) -> Any:
    if isinstance(value, Given):
        return value.on(p)
    return [_made(v, p) for v in value] if isinstance(value, list) else value


def _called(p: Any, name: str, call: Callable, given: list[Any], named: dict[str, Any]) -> Any:
    options = {k: getattr(p, v) if k == "dtype" else v for k, v in named.items()}
    if name in MAKERS and p is pellucid:
        options["device"] = _device[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(p, *[_made(v, p) for v in given], **options)


def _compare(name: str, call: Callable, given: list[Any], named: dict[str, Any]) -> None:
    words = [*map(repr, given), *(f"{k}={v}" for k, v in named.items())]
    what = f"{name}({', '.join(words)}) on {_device[0]}"
    op = name.split()[0]
    mine, refusal = _tried(pellucid, name, call, given, named)
    theirs, reason = _tried(torch, name, call, given, named)
    if reason is not None:
        assert refusal is not None or op in TAKEN or any(word in str(reason) for word in MISSING), (
            f"{what}: PyTorch refuses it: {_said(reason)}"
        )
    if refusal is not None:
        assert isinstance(refusal, PellucidError), f"{what}: a bare {_said(refusal)}"
        assert reason is not None or op in REFUSED, f"{what}: PyTorch takes it; here: {_said(refusal)}"
    if refusal is not None or reason is not None:
        return
    ours, expected = _all(mine), _all(theirs)
    assert len(ours) == len(expected), f"{what}: {len(ours)} results instead of {len(expected)}"
    for m, t in zip(ours, expected, strict=True):
        _same(what, name, m, t, given, named)


def _tried(p: Any, name: str, call: Callable, given: list[Any], named: dict[str, Any]) -> tuple:
    """What a call gives, or the error by which it is refused."""
    try:
        return _called(p, name, call, given, named), None
    except (TypeError, ValueError, RuntimeError, IndexError, OverflowError) as error:
        return None, error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _all(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (tuple, list)) else [made]


def _right(name: str, dtype: str, values: np.ndarray, given: list[Any], named: dict[str, Any]) -> np.ndarray:
    """PyTorch's result, but for places where it is not what the formula says."""
    if name == "gelu":
        # Vectors of some of its kernels multiply infinity by 0.
        return np.where(np.isnan(values) & np.isposinf(given[0].values), np.inf, values)
    if name in ("pow", "pow_") and dtype in FLOATS and type(given[1]) is int and abs(given[1]) > 2**24:
        # Numbers are float32 here: those are even.
        return np.abs(values)
    if name in ("add alpha", "sub alpha") and dtype in LARGEST:
        # It rounds alpha * other to a half in between, which may be infinite where the sum is not.
        a, b = (np.asarray(g.values if isinstance(g, Given) else g, np.float64) for g in given)
        with np.errstate(all="ignore"):
            whole = a + b * (named["alpha"] if name == "add alpha" else -named["alpha"])
        whole = np.where(np.abs(whole) > LARGEST[dtype], np.copysign(np.inf, whole), whole)
        return np.where(np.isfinite(values) | (np.abs(b) > LARGEST[dtype]), values, whole)
    return values


def _same(what: str, name: str, mine: Any, theirs: Any, given: list[Any], named: dict[str, Any]) -> None:
    if isinstance(theirs, bool):
        assert mine is theirs, f"{what}: {mine} instead of {theirs}"
        return
    got, dtype = mine.numpy(), str(mine.dtype).split(".")[1]
    wanted = str(theirs.dtype).split(".")[1]
    if wanted == "complex32":
        return  # there is none here: halves meet complex numbers as complex64
    assert dtype == wanted, f"{what}: {dtype} instead of {wanted}"
    assert got.shape == tuple(theirs.shape), f"{what}: shape {got.shape} instead of {tuple(theirs.shape)}"
    assert mine.is_contiguous() or not theirs.is_contiguous(), (
        f"{what}: strides {mine.stride()}, {theirs.stride()}"
    )
    if name in ("sort", "argsort", "topk") and dtype == "int64":
        return  # equal elements may have any order there
    values = (theirs.float() if wanted == "bfloat16" else theirs).resolve_conj().numpy()
    values = _right(name, wanted, values, given, named)
    exact = values.dtype.kind in "biu"
    tolerance = 0.0 if exact else TOLERANCE.get(wanted, 1e-9)
    with np.errstate(all="ignore"):
        near = np.isclose(got, values, rtol=tolerance, atol=tolerance, equal_nan=True)
    if values.dtype.kind == "c":
        near |= ~np.isfinite(values)  # which part of an infinite one is NaN depends on the order of products
    assert near.all(), f"{what}: {got.tolist()} instead of {values.tolist()}"
