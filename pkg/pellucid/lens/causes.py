"""What explains that two values differ: axes, a norm's epsilon, an activation, rounding, weights, rotary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from .pairs import relative_error


class Departure(NamedTuple):
    """Two values that should be equal, and what is known of their places.

    Attributes:
        got, wanted: the values.
        tolerance: largest relative error of equal values.
        modules: of both sides, or None.
        inputs: what both modules got, or None.
    """

    got: np.ndarray
    wanted: np.ndarray
    tolerance: float
    modules: tuple[Any, Any] = (None, None)
    inputs: tuple[np.ndarray | None, np.ndarray | None] = (None, None)

    def close(self, got: np.ndarray, part: float = 1.0) -> bool:
        """Whether a value explains what is wanted."""
        return relative_error(got, self.wanted) <= part * self.tolerance


def _shape(d: Departure) -> str | None:
    if np.squeeze(d.got).shape == np.squeeze(d.wanted).shape:
        return None
    if d.got.ndim == d.wanted.ndim <= 5 and sorted(d.got.shape) == sorted(d.wanted.shape):
        for order in permutations(range(d.got.ndim)):
            if d.close(d.got.transpose(order)):
                known = " (channels last)" if order in ((0, 3, 1, 2), (0, 2, 3, 1)) else ""
                return f"layout: the same values with axes in the order {order}{known}"
        return f"axes exchanged: {d.got.shape}, recorded {d.wanted.shape}"
    if d.got.size == d.wanted.size and d.close(d.got.reshape(d.wanted.shape)):
        return f"layout: the same values in the shape {d.got.shape}, recorded {d.wanted.shape}"
    return f"shape {d.got.shape}, recorded {d.wanted.shape}"


def _not_finite(d: Departure) -> str | None:
    if not np.all(np.isfinite(d.got)):
        return f"{np.count_nonzero(~np.isfinite(d.got))} values are NaN or infinite"
    return None if np.all(np.isfinite(d.wanted)) else "recorded values are NaN or infinite"


def _weights(d: Departure) -> str | None:
    """Parameters of both that differ by more than rounding of float32."""
    mine, theirs = ({} if m is None else dict(m.named_parameters(recurse=False)) for m in d.modules)
    told = []
    for name in mine.keys() & theirs.keys():
        a, b = mine[name], theirs[name]
        x, y = _plain(a), _plain(b)
        if x.shape != y.shape:
            told.append(f"{name} has the shapes {x.shape} and {y.shape}")
        elif (error := float(np.linalg.norm(x - y) / max(np.linalg.norm(y), 1e-12))) > 1e-6:
            kinds = [t.dtype.name for t in (a, b)]
            what = _kind(kinds) if kinds[0] != kinds[1] else "weights"
            told.append(f"{what}: {name} is {kinds[0]} and {kinds[1]}, {100 * error:.2g} % apart")
    if told:
        return "; ".join(sorted(told))
    packed = [t.dtype.name for t in mine.values() if t.dtype.is_quantized]
    if packed and d.modules[1] is None and relative_error(d.got, d.wanted) < 0.5:
        return f"{_kind(packed)}: the weight is {packed[0]}"
    return None


def _kind(names: list[str]) -> str:
    return (
        "dtype"
        if set(names) <= {"f16", "bf16", "float16", "bfloat16", "float32", "float64"}
        else "quantization"
    )


def _plain(t: Any) -> np.ndarray:
    t = t.detach()
    return (t.dequantize() if t.dtype.is_quantized else t.float()).cpu().numpy().astype(np.float64)


def _rounded(d: Departure) -> str | None:
    """Values of one side that half precision holds exactly."""
    for name, steps, holds in (("bfloat16", 2.0**-7, _in_bfloat16), ("float16", 2.0**-9, _in_float16)):
        mine, theirs = holds(d.got), holds(d.wanted)
        if mine != theirs and relative_error(d.got, d.wanted) <= steps:
            return f"dtype: {'these' if mine else 'the recorded'} values are {name}"
    return None


def _in_bfloat16(x: np.ndarray) -> bool:
    return not (np.ascontiguousarray(x, np.float32).view(np.uint32) & 0xFFFF).any()


def _in_float16(x: np.ndarray) -> bool:
    return np.array_equal(x.astype(np.float16).astype(np.float64), x)


def _factor(d: Departure) -> str | None:
    scale = float((d.got * d.wanted).sum() / max((d.got * d.got).sum(), 1e-300))
    return f"off by the factor {scale:.6g}: a scale or norm weight" if d.close(d.got * scale) else None


def _epsilon(d: Departure) -> str | None:
    """A factor for each row, as of a norm whose epsilon is another."""
    got, wanted = d.got, d.wanted
    bias = next((m.bias for m in d.modules if getattr(m, "bias", None) is not None), None)
    if bias is not None and bias.shape == got.shape[-1:]:
        got, wanted = got - _plain(bias), wanted - _plain(bias)
    factors = (got * wanted).sum(-1, keepdims=True) / np.maximum((got * got).sum(-1, keepdims=True), 1e-300)
    if got.ndim < 2 or got[..., 0].size < 2 or got.shape[-1] < 2:
        return None
    if not 0.5 < factors.min() <= factors.max() < 2:
        return None
    if relative_error(got * factors, wanted) > max(0.05 * relative_error(got, wanted), 1e-7):
        return None
    return (
        f"epsilon: every position is off by a factor of its own, {factors.min():.6g} to {factors.max():.6g}, "
        "as of a norm's epsilon"
    )


def _bias(d: Departure) -> str | None:
    columns = d.got.shape[-1] if d.got.ndim else 0
    if columns > 1 and d.got.size > columns:
        offset = (d.wanted - d.got).reshape(-1, columns)
        if d.close(d.got + offset.mean(0)):
            return "off by the same vector at every position: a bias"
    return None


_GRID = np.linspace(0, 12, 24_001)
_erf = np.vectorize(math.erf)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu(approximate='tanh')": lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)),
    "quick gelu": lambda x: x * _sigmoid(1.702 * x),
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: x,
}  # fmt: skip


def _activation(d: Departure) -> str | None:
    """Positive values that one activation gives where another gives the recorded ones."""
    where = (d.wanted > 0.02) & (d.wanted < 11)
    got, wanted = d.got[where], d.wanted[where]
    if got.size < 8 or (off := np.abs(got - wanted).max()) < 1e-6:
        return None
    tables = {name: function(_GRID) for name, function in ACTIVATIONS.items()}
    best, told = 0.1 * off, None
    for theirs, table in tables.items():
        # On the grid all of them grow, so that values tell arguments.
        x = np.interp(wanted, table, _GRID)
        for mine in ACTIVATIONS:
            if mine != theirs and (left := np.abs(np.interp(x, _GRID, tables[mine]) - got).max()) < best:
                best, told = left, f"activation: {mine}, recorded {theirs}"
    return told


def _rotary(d: Departure) -> str | None:
    if d.got.ndim and any(d.close(turned) for turned in _other_pairs(d.got)):
        return "columns of heads interleaved instead of in halves, or the reverse: the rotary layout"
    return None


def _other_pairs(x: np.ndarray) -> Iterator[np.ndarray]:
    """The columns with neighbours put in halves, and the reverse, for heads of every possible size."""
    columns = x.shape[-1]
    for size in range(4, columns + 1, 2):
        if columns % size == 0:
            heads = x.reshape(*x.shape[:-1], -1, size)
            yield np.concatenate([heads[..., 0::2], heads[..., 1::2]], -1).reshape(x.shape)
            yield np.stack([heads[..., : size // 2], heads[..., size // 2 :]], -1).reshape(x.shape)


def _positions(d: Departure) -> str | None:
    if d.got.ndim < 2 or d.got.shape[-2] < 2:
        return None
    rows = np.abs(d.got - d.wanted).reshape(-1, *d.got.shape[-2:]).max((0, 2))
    wrong = np.nonzero(rows > d.tolerance * max(np.abs(d.wanted).max(), 1e-12))[0]
    if not 0 < len(wrong) < len(rows):
        return None
    which = f"positions {wrong.min()} to {wrong.max()} of {len(rows)} only"
    if wrong.min() == 1 and len(wrong) == len(rows) - 1:
        return f"{which}, all but the first: the rotary base or scaling, positions, or a mask"
    return f"{which}: a mask or positions"


# In the order in which they are tried: what is certain first.
_CHECKS = (
    _shape,
    _not_finite,
    _rotary,
    _weights,
    _factor,
    _epsilon,
    _rounded,
    _activation,
    _bias,
    _positions,
)


def cause(d: Departure) -> str:
    """What would explain a difference, by the usual mistakes in turn."""
    for check in _CHECKS:
        if check is not _shape and d.got.shape != d.wanted.shape:
            d = d._replace(got=d.got.reshape(d.wanted.shape))
        if told := check(d):
            return f"({told})"
    given = " and what it was given" if d.inputs[0] is not None else ""
    if d.modules[0] is not None and d.modules[1] is not None:
        return f"(its own arithmetic: its weights{given} agree)"
    return "(its own weights or arithmetic: what it was given agrees)"
