"""Choosing the next token on the device: one small read per token is all that comes back."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import log

import numpy as np

from ...device.stream import stream
from ...errors import DTypeError, ShapeError
from ...op.declaration import Call, op
from ...op.kernel import Launch, flag, load, rows_of
from ...op.rules import as_input
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..index.sort import sort, topk
from ..norm.softmax import softmax
from ..shape.joining import flip

# Columns of a row that one workgroup takes on, as a part of a long row.
_BLOCK = 1024
# Columns from which a row to draw from is long, and the most parts of it: one for each lane that merges them.
_LONG, _PARTS = 4096, 256
# The logit of a token that does not take part; finite, as WGSL knows no infinity.
_NEVER = -1e30
# Columns up to which an adapter that runs on the CPU looks for a nucleus in the whole row: more take too many
# turns (see turns.py).
_WIDE = 152_000


def _penalty_types(call: Call):
    logits, ids = call["logits"], call["ids"]
    if not logits.dtype.is_floating_point or not ids.dtype.is_integer:
        raise DTypeError(
            f"logits are {logits.dtype} and ids {ids.dtype}; they must be floating point and integer."
        )
    if logits.rank != 2 or ids.rank != 2 or ids.shape[0] != logits.shape[0]:
        raise ShapeError(
            f"logits {tuple(logits.shape)} and ids {tuple(ids.shape)} must be (rows, vocabulary) and "
            "(rows, n)."
        )
    return logits.dtype, logits.dtype


def _penalty_reference(logits, ids, penalty):
    out = logits.copy()
    for row, seen in zip(out, ids, strict=True):
        seen = np.unique(seen[(seen >= 0) & (seen < row.size)])
        row[seen] = np.where(row[seen] > 0, row[seen] / penalty, row[seen] * penalty)
    return out


def _penalty_launch(call: Call) -> Launch:
    rows, columns = call["logits"].shape
    blocks = -(-columns // _BLOCK)
    params = {"rows": rows, "columns": columns, "blocks": blocks, "seen": call["ids"].shape[1]}
    file = rows_of(_BLOCK, rows * blocks, several=False).fill("random/penalty", {"BLOCK": f"{_BLOCK}u"})
    return Launch(file, rows * blocks, params)


@op(
    dtype=_penalty_types,
    shape=as_input,
    kernel=_penalty_launch,
    reference=_penalty_reference,
    grad=None,
    exports=None,
    ours="generation in PyTorch does it by gather, where and scatter",
)
def repetition_penalty(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Make tokens less likely that have been seen: their logit is divided by ``penalty`` where positive,
    else multiplied.

    Args:
        logits: (rows, vocabulary).
        ids: (rows, n) integers, the tokens so far; ids outside the vocabulary count for nothing.
        penalty: 1 changes nothing.

    Returns:
        Shape and dtype of the logits.

    Source: Keskar et al. 2019, "CTRL", section 4.1
    """


def _draw_types(call: Call):
    for name, m in call.tensors():
        if name != "ids" and m.dtype is not dt.float32:
            raise DTypeError(f"'{name}' is {m.dtype}; it must be float32. Convert it with .float().")
    return dt.int64, dt.float32


def _draw_shape(call: Call) -> Size:
    values, ids, uniforms = call["values"], call.args.get("ids"), call["uniforms"]
    fits = values.rank == 2 and values.shape[1] and tuple(uniforms.shape) == (values.shape[0],)
    if not fits or (ids is not None and ids.shape != values.shape):
        raise ShapeError(
            f"values {tuple(values.shape)} must be (rows, n), with n > 0, and uniforms "
            f"{tuple(uniforms.shape)} (rows,)."
        )
    return Size((values.shape[0],))


def _draw_launches(call: Call) -> list[Launch]:
    rows, columns = call["values"].shape
    is_long = columns > _LONG
    chunk = max(_BLOCK, -(-columns // _PARTS))
    params = {"rows": rows, "columns": columns, "parts": -(-columns // chunk), "chunk": chunk}
    # a lane per part, or fewer for the few columns of a top-k
    lanes = _PARTS if columns > _PARTS else max(32, 1 << (columns - 1).bit_length())
    has_ids = call["ids"] is not None
    holes = {"WORKGROUP": f"{lanes}u", "HAS_IDS": flag(has_ids), "HAS_PARTS": flag(is_long)}
    draw = Launch(load("random/draw").fill(holes), rows, params)
    if not is_long:
        draw.bind["state"] = "values"
        return [draw]
    call.temporary("state", (rows, params["parts"], 2))
    groups = rows * -(-columns // chunk)
    masses = rows_of(chunk, groups, several=False).fill("random/masses", {})
    return [Launch(masses, groups, params), draw]


def _draw_reference(values, uniforms, temperature, top_p, ids):
    weights = np.exp((values - values.max(1, keepdims=True)).astype(np.float64) / temperature)
    cumulative = weights.cumsum(1)
    kept = cumulative - weights < top_p * cumulative[:, -1:]
    kept[:, 0] = True
    mass = np.where(kept & (weights > 0), cumulative, 0).max(1)
    reached = (cumulative > (np.minimum(uniforms, 1 - 2.0**-24) * mass)[:, None]) & (weights > 0)
    place = reached.argmax(1)
    return place if ids is None else np.take_along_axis(ids, place[:, None], 1)[:, 0]


@op(
    public="sample",
    dtype=_draw_types,
    shape=_draw_shape,
    kernel=_draw_launches,
    reference=_draw_reference,
    grad=None,
)
def draw(
    values: Tensor, uniforms: Tensor, temperature: float, top_p: float, ids: Tensor | None = None
) -> Tensor:
    """Draw a column, or the id that stands there, with probabilities ``softmax(values / temperature)`` cut
    to ``top_p``; see `sample`.
    """


def _nucleus_launch(call: Call) -> Launch:
    rows, columns = call["values"].shape
    file = rows_of(columns, rows, several=False).fill("random/nucleus", {})
    return Launch(file, rows, {"rows": rows, "columns": columns})


def _nucleus_reference(values, uniforms, temperature, top_p):
    weights = np.exp((values - values.max(1, keepdims=True)).astype(np.float64) / temperature)
    order = np.argsort(values, 1, kind="stable")[:, ::-1]
    downwards = np.take_along_axis(weights, order, 1)
    above = downwards.cumsum(1) - downwards
    is_kept = above < top_p * weights.sum(1, keepdims=True)
    is_kept[:, 0] = True
    kept = np.zeros_like(weights)
    np.put_along_axis(kept, order, np.where(is_kept, downwards, 0), 1)
    after = kept.cumsum(1)
    return ((after > (np.minimum(uniforms, 1 - 2.0**-24) * after[:, -1])[:, None]) & (kept > 0)).argmax(1)


@op(
    public="sample",
    dtype=_draw_types,
    shape=_draw_shape,
    kernel=_nucleus_launch,
    reference=_nucleus_reference,
    grad=None,
)
def draw_nucleus(values: Tensor, uniforms: Tensor, temperature: float, top_p: float) -> Tensor:
    """Draw a column from the fewest that together have ``top_p`` of ``softmax(values / temperature)``, of
    equal ones the last; the values are in no order, and ``top_p`` is below 1; see `sample`.
    """


def _ordered(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The logits downwards, of equal ones the last first, and where each stood."""
    values, places = sort(flip(logits, -1), -1, True)
    return values, logits.shape[-1] - 1 - places


def sample(
    logits: Tensor,
    uniforms: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    seen: Tensor | None = None,
    penalty: float = 1.0,
) -> Tensor:
    """Draw a token for every row of logits: repetition penalty, temperature, top-k, top-p, min-p, then the
    draw, in this order.

    Args:
        logits: (rows, vocabulary), float32.
        uniforms: (rows,) float32 in [0, 1), the chance of each row.
        temperature: divides the logits; above 0.
        top_k: only the k most likely tokens take part; 0 for all.
        top_p: only the most likely tokens that together reach this probability take part; 1 for all. Of
            equal tokens the last do, without ``top_k``.
        min_p: only tokens that are at least so many times as likely as the most likely one take part.
        seen: (rows, n) tokens that the penalty is for.
        penalty: repetition penalty; 1 for none.

    Returns:
        (rows,) int64.

    Raises:
        ValueError: temperature, top_k, top_p or min_p is out of range.

    Source: Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1; Nguyen et al.
        2024, "Turning up the heat: min-p sampling"
    """
    if not temperature > 0 or top_k < 0 or not 0 < top_p <= 1 or not 0 <= min_p <= 1:
        raise ValueError(
            f"sample: temperature {temperature} must be above 0, top_k {top_k} not negative, top_p {top_p} "
            f"above 0 and at most 1, min_p {min_p} from 0 to 1. Use argmax for greedy choice."
        )
    if seen is not None and penalty != 1.0:
        logits = repetition_penalty(logits, seen, penalty)
    top_k = min(top_k, logits.shape[-1])
    if min_p > 0 and top_p < 1:
        # In order both are lengths, of which the shorter one counts.
        values, ids = topk(logits, top_k) if top_k else _ordered(logits)
        p = softmax(values / temperature, -1)
        is_kept = (p.cumsum(-1) - p < top_p) & (p >= min_p * p[:, :1])
        return draw(where(is_kept, values, _NEVER), uniforms, temperature, 1.0, ids)
    if min_p > 0:
        least = logits.amax(-1, keepdim=True) + temperature * log(min_p)
        logits = where(logits < least, _NEVER, logits)
    is_wide = logits.shape[-1] > _WIDE and logits.device.type == "webgpu"
    if top_k or (top_p < 1 and is_wide and stream().open().info.is_software):
        values, ids = topk(logits, top_k) if top_k else _ordered(logits)
        return draw(values, uniforms, temperature, top_p, ids)
    if top_p < 1:
        return draw_nucleus(logits, uniforms, temperature, top_p)
    return draw(logits, uniforms, temperature, 1.0)
