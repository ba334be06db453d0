"""Running extremes and logarithms of sums along an axis: cummax, cummin, logcumsumexp."""

from __future__ import annotations

from itertools import accumulate
from math import inf, prod

import numpy as np

from ...errors import DTypeError
from ...op.declaration import Call, elementwise, op
from ...op.public import function
from ...op.rules import float_or_complex, same
from ...tensors import dtypes as dt
from ...tensors.shape import axis
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.functions import log_sum
from ..index.gather import gather
from ..index.sort import ValuesAndIndices, values_and_indices
from ..shape.creation import arange
from .families import scan
from .logarithms import LOG_SUM, LOGARITHM, NO_EXPONENTIALS
from .reductions import no_complex
from .scan import cumsum, scan_launches

_MAX, _LEAST = {"vec2<u32>": "i64_max(a, b)"}, {"vec2<u32>": "vec2<u32>(0u, 0x80000000u)"}
_LOG_SUM = {"f32": LOG_SUM, "vec2<f32>": "complex_log_sum(a, b)"}
_NOTHING = {"f32": NO_EXPONENTIALS, "vec2<f32>": "vec2<f32>(-3.4028234e38, 0.0)"}


running_max = scan(
    "running_max", lambda call: scan_launches(call, _MAX, _LEAST),
    lambda input, dim: np.maximum.accumulate(input, -1), None, "Running maximum of int64 along an axis.",
    dtype=same, public="cummax",
)  # fmt: skip


def _ascending(input: Tensor) -> Tensor:
    """int64 keys in the order of the values: both zeros are one, NaN is above all."""
    d = input.dtype
    if not d.is_floating_point:
        return input.to(dt.int64)
    wide = input if d is dt.float64 else input.float()
    bits = (wide + 0.0).view(dt.int64 if d is dt.float64 else dt.int32).to(dt.int64)
    most = (1 << 63) - 1 if d is dt.float64 else (1 << 31) - 1
    return where(bits < 0, bits ^ most, bits).masked_fill(input.isnan(), most)


def _key(word: str) -> str:
    """The expression of a key: a word, and below it the place."""
    return f"vec2<u32>(index / inner % length, {word})"


def _float_key(call: Call) -> str:
    # both zeros have one word, and NaN is above all, whichever is looked for
    word, inverted = ("smallest_word", "~") if call["falls"] else ("largest_word", "")
    zero = "(bitcast<u32>(input) << 1u) == 0u"
    return _key(f"{inverted}select({word}(input), 0x80000000u, {zero}) ^ 0x80000000u")


def _numpy_keys(input: np.ndarray, inner: float, length: float, falls: bool) -> np.ndarray:
    word = input.astype(np.int64)
    if input.dtype.kind == "f":
        bits = (input + np.float32(0)).view(np.int32)
        word = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int64)
    word = np.where(np.isnan(input), 0x7FFFFFFF, ~word if falls else word)
    return (word << 32) | np.arange(input.size).reshape(input.shape) // int(inner) % int(length)


@op(
    public="cummax",
    dtype=lambda call: (dt.int64, call["input"].dtype),
    kernel=elementwise(
        _float_key, i32=lambda call: _key(f"{'~' * call['falls']}bitcast<u32>(input)"), u32=False,
        result="i64", own={"inner": "u32", "length": "u32"},
    ),
    reference=_numpy_keys,
    grad=None,
)  # fmt: skip
def running_keys(input: Tensor, inner: float, length: float, falls: bool) -> Tensor:
    """Keys of what has 32 bits, in the order of the values (``falls``: the other way round), of equal values
    in the order of their places along an axis of this length, whose neighbours lie ``inner`` apart."""


def _running(input: Tensor, dim: int, falls: bool) -> ValuesAndIndices:
    """The latest largest or smallest element so far, and where it stands."""
    k, given = axis(dim, input._meta.rank), input.detach()
    result = values_and_indices("cummin" if falls else "cummax")
    if not input._meta.rank:
        return result(input.clone(), input.new_zeros((), dtype=dt.int64))
    given = given.float() if given.dtype in dt.LARGEST_HALF else given
    if given.dtype in (dt.float32, dt.int32):
        keys = running_keys(given, prod(input.shape[k + 1 :]), max(input.shape[k], 1), falls)
        found = running_max(keys, k) & 0xFFFFFFFF
        return result(gather(input, k, found), found)
    keys = _ascending(given)
    if falls:
        keys = ~keys
        if given.dtype.is_floating_point:
            keys = keys.masked_fill(given.isnan(), (1 << (31 if given.dtype is not dt.float64 else 63)) - 1)
    line = [-1 if j == k else 1 for j in range(input.dim())]
    places = arange(input.shape[k], device=input.device).reshape(line)
    if input.dtype.itemsize < 8 and input.dtype is not dt.uint32:
        # The key above the place: one scan finds both.
        found = running_max((keys << 32) + places, k) & 0xFFFFFFFF
    else:
        found = running_max(where(keys == running_max(keys, k), places, -1), k)
    return result(gather(input, k, found), found)


@function(method=True, node="Cummax")
def cummax(input: Tensor, dim: int) -> ValuesAndIndices:
    """Running maximum along an axis, and where it stands: ``values[i] = max(input[0], ..., input[i])``.

    Args:
        input: any real dtype; after a NaN all values are NaN.

    Returns:
        values, and int64 indices; of equal values the latest.

    Example:
        >>> import pellucid as torch
        >>> [t.tolist() for t in torch.tensor([1, 3, 2, 3], device="cpu").cummax(0)]
        [[1, 3, 3, 3], [0, 1, 1, 3]]
    """
    no_complex("cummax", input)
    return _running(input, dim, False)


@function(method=True, node="Cummin")
def cummin(input: Tensor, dim: int) -> ValuesAndIndices:
    """Running minimum along an axis, and where it stands; as `cummax`."""
    no_complex("cummin", input)
    return _running(input, dim, True)


def _log_scan(input, dim):
    if input.dtype.kind != "c":
        return np.logaddexp.accumulate(input, -1)
    lines = np.moveaxis(input, -1, 0)
    return np.stack([*accumulate(lines, log_sum)], -1) if len(lines) else input


def _log_scan_grad(g, input, out):
    """``sum of g_j * exp(input_i - out_j)`` for j >= i, by logarithms of both signs: nothing overflows."""
    if g.is_complex():
        logs = _finite(g.log() - out)
        return (log_scan(logs.flip(-1), -1).flip(-1) + input).exp()
    logs = [where(out == -inf, -inf, where(part > 0, part, 0.0).log() - out) for part in (g, -g)]
    above, below = [(log_scan(x.flip(-1), -1).flip(-1) + input).exp() for x in logs]
    return above - below


log_scan = scan(
    "log_scan", lambda call: scan_launches(call, _LOG_SUM, _NOTHING, {"f32": LOGARITHM}), _log_scan,
    _log_scan_grad,
    "`logcumsumexp` of real numbers, and of complex ones above -inf, of whose infinities nothing is known.",
    dtype=float_or_complex, public="logcumsumexp",
)  # fmt: skip


def _finite(logarithms: Tensor) -> Tensor:
    """The lowest number instead of -inf: beside any other number its exponential is nothing either."""
    return where(logarithms.real == -inf, -logarithms.dtype.to_real().largest, logarithms)


@function(method=True, node="Logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Logarithm of the running sum of exponentials: ``out[i] = log(exp(input[0]) + ... + exp(input[i]))``.

    Args:
        input: floating point or complex.
    """
    if input.dtype.kind not in "fc":
        d = input.dtype
        raise DTypeError(f"logcumsumexp: the input is {d}, not floating point. Convert it with .float().")
    if not input._meta.rank:
        return input.clone()
    if not input.is_complex():
        return log_scan(input, dim)
    nothing_yet = cumsum((input.detach().real != -inf).to(dt.int32), dim) == 0
    return log_scan(_finite(input), dim).masked_fill(nothing_yet, -inf)
