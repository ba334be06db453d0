"""Largest and smallest elements along axes, and where they are. A NaN is taken before any number; ties go
to the first place."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from math import prod as product
from typing import Any

import numpy as np

from ...autograd.composed import composed
from ...errors import DimensionError, ShapeError
from ...op.arguments import boolean
from ...op.call import results
from ...op.declaration import Call, docstring, function, op
from ...op.families import formed
from ...op.kernel import NATIVE, Launch, flag, is_direct, load, register_type, rows_of
from ...op.kernel.variants import Rows
from ...op.rules import refusing, same
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.reading import ListRead
from ...tensors.shape import Size, axes, index
from ...tensors.tensor import Tensor
from ..elementwise import clamp
from ..elementwise.comparison import where
from ..shape.joining import stack
from ..shape.movement import contiguous
from .families import over_axis, reduction
from .passes import stages
from .reductions import Through, by_type, fold, reduced_shape, restore, sum

# So many rows fill a GPU with a subgroup or two each.
_MANY = 1024


def order_holes(d: DType, descending: bool) -> dict[str, str]:
    """Holes by which a kernel orders elements of a dtype (wgsl/parts/number/order.wgsl)."""
    kind = register_type(d)
    key = "value.yx" if kind == "vec2<u32>" else "vec2<u32>(bitcast<u32>(value), 0u)"
    return {
        "T": kind,
        "apply": key,
        "FLOAT": flag(kind == "f32"),
        "SIGNED": flag(kind in ("i32", "vec2<u32>")),
        "DESCENDING": flag(descending),
    }


def _launches(call: Call, largest: bool, values: str, indices: str) -> list[Launch]:
    """One dispatch, or for long axes several: each takes the best of the parts that the one before found.

    ``indices`` names the output for the places, which one run of neighbouring axes must have made.
    """
    m = call["input"]
    steps = stages(m.shape, axes(call["dim"], m.rank))
    holes = order_holes(m.dtype, largest)
    made: list[Launch] = []
    source, known = "input", "input"
    for k, step in enumerate(steps):
        last = k == len(steps) - 1
        best = values if last else f"values{k}"
        if best not in call.op.outputs:
            call.temporary(best, (step.outputs,), NATIVE[holes["T"]])
        place = indices if last else f"places{k}"
        if place != indices:
            call.temporary(place, (step.outputs,), dt.int64)
        # After the first pass a place counts parts, and its place in the input is looked up.
        holes["HAS_PLACES"] = flag(k > 0)
        if step.form == "rows":
            # To compare what lanes found takes as long as some entries of each: many rows have few lanes.
            many = step.outputs >= _MANY and not is_direct()
            lanes = Rows(64, 64, 0) if many else rows_of(step.chunk, step.outputs, several=False)
            file = lanes.fill("reduce/extremum_rows", holes)
        else:
            file = load(f"reduce/extremum_{step.form}").fill(holes)
        bind = {"x": source, "places": known, "values": best, "indices": place}
        made.append(Launch(file, step.grid, step.params, bind=bind))
        source, known = best, place
    return made


# The largest and the smallest: what they are called, and what changes nothing.
_BEST = {
    True: ("largest", "max", by_type("0u", "i32(-2147483648)", "0u", "vec2<u32>(0u, 0x80000000u)")),
    False: (
        "smallest", "min",
        by_type("0xffffffffu", "2147483647", "0xffffffffu", "vec2<u32>(0xffffffffu, 0x7fffffffu)"),
    ),
}  # fmt: skip

# Complex numbers have no order.
_ordered = refusing(same, "c")


def _not_empty(call: Call) -> Size:
    m = call["input"]
    if product(m.shape[d] for d in axes(call["dim"], m.rank)) == 0:
        if call["dim"] is None:
            # As in PyTorch, whose argmax raises IndexError and whose max RuntimeError.
            error = DimensionError if call.op.name.startswith("arg") else ShapeError
            raise error("an empty tensor has no extreme element. Give a dim whose length is not 0.")
        raise DimensionError(
            f"dim {call['dim']} has length 0 in shape {tuple(m.shape)}: there is no extreme element."
        )
    return reduced_shape(call)


def _shared(g, input, out, dim, keepdim):
    """Equal elements share the gradient equally."""
    chosen = (input == restore(out, input._meta, dim, keepdim)).to(g.dtype)
    return chosen * (restore(g, input._meta, dim, keepdim) / sum(chosen, dim, True))


_TAKES: Any = {
    "takes": "any real dtype.",
    "raises": {"DimensionError": "an axis is out of range or has no elements."},
}


def _extreme(name: str, largest: bool):
    """Declare the values of extreme elements."""
    word, best, identity = _BEST[largest]
    one = f"{best}(a, b)"
    return reduction(
        name,
        fold(
            by_type(one, one, one, f"i64_{one}"), identity,
            through={"f32": Through("u32", f"{word}_word(value)", "extreme_float(value)")},
        ),
        lambda input, dim, keepdim: getattr(input, best)(axes(dim, input.ndim), keepdims=keepdim),
        _shared, f"{word.capitalize()} element over axes; equal ones share the gradient.",
        shape=_not_empty, dtype=_ordered, **_TAKES,
    )  # fmt: skip


amax, amin = _extreme("amax", True), _extreme("amin", False)


def _numpy_place(x: np.ndarray, dim, keepdim: bool, largest: bool) -> np.ndarray:
    best = np.argmax if largest else np.argmin
    return np.asarray(best(x, dim if x.ndim else None, keepdims=keepdim))


def _extreme_place(name: str, largest: bool):
    """Declare the places of extreme elements."""
    return reduction(
        name, lambda call: _launches(call, largest, "best", "out"),
        lambda input, dim, keepdim: _numpy_place(input, dim, keepdim, largest), None,
        f"Where the {_BEST[largest][0]} element along an axis is, int64; the first of equal ones.",
        shape=_not_empty, dtype=lambda call: (dt.int64, refusing(same, "bc")(call)[1]), form=over_axis,
        whole="None counts through the flattened tensor", **_TAKES,
    )  # fmt: skip


argmax, argmin = _extreme_place("argmax", True), _extreme_place("argmin", False)


def pair_types(call: Call):
    """Of values, and of places as int64."""
    d, _ = _ordered(call)
    return (d, dt.int64), d


def _pair_shapes(call: Call):
    index(call["dim"], "dim")
    return (_not_empty(call),) * 2


def _numpy_pair(x: np.ndarray, dim: int, keepdim: bool, largest: bool):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    place = _numpy_place(x, dim, True, largest)
    value = np.take_along_axis(x, place, dim)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _at_places(g, indices, input_meta, dim, keepdim):
    if not input_meta.rank:
        return g
    places, g = (restore(t, input_meta, dim, keepdim) for t in (indices, g))
    return g.new_zeros(input_meta.shape).scatter(dim, places, g)


def whole_grad(g, input, out):
    """As that of `amax`, but NaN share it, too."""
    chosen = (input == out) | (input.isnan() & out.isnan())
    return where(chosen, g / sum(chosen).to(g.dtype), 0.0)


_largest = composed(name="max", input=whole_grad)(lambda input: amax(input))
_smallest = composed(name="min", input=whole_grad)(lambda input: amin(input))


def _both(
    input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
): ...


def _extremes(name: str, largest: bool, whole: Callable, pairwise: Callable, words: tuple[str, str]):
    """Declare the extreme elements along an axis with their places, whose name has two meanings besides:
    ``whole`` of all elements and ``pairwise`` of two tensors, with words for one of all and one of two."""

    def prepare(input, dim, keepdim, other):
        boolean(keepdim, "keepdim")
        if other is None and hasattr(dim, "_meta") and not keepdim:
            other = dim
        if other is not None:
            return pairwise(input, other)
        if dim is None:
            return whole(input)
        # Keys hold plain numbers, never a tensor that is an axis.
        return None if isinstance(dim, int) else made(input, index(dim, "dim"), keepdim)

    best, better = words
    sections: dict[str, dict[str, str] | str] = {
        "Args": {
            "input": "any real dtype.",
            "dim": f"an axis, or a second tensor (as `{pairwise.__name__}`).",
            "keepdim": "keep the axis, with length 1.",
        },
        "Returns": "A tensor, or the named tuple (values, indices) where ``dim`` is an axis; indices are "
        "int64, the first of equal ones.",
    }
    sentence = (
        f"{best.capitalize()} element of all; with ``dim`` {best} along it as (values, indices); with a "
        f"tensor\n    the {better} of two, element by element."
    )
    made = op(
        dtype=pair_types,
        shape=_pair_shapes,
        kernel=lambda call: _launches(call, largest, "values", "indices"),
        reference=lambda input, dim, keepdim, other: _numpy_pair(input, dim, keepdim, largest),
        grad={"input": _at_places},
        outputs=("values", "indices"),
        method=True,
        aten=(f"{name}.default", f"{name}.dim", f"{name}.other(self, other)"),
        prepare=prepare,
    )(formed(_both, name, docstring(sentence, sections)))
    return made


max = _extremes("max", True, _largest, clamp.maximum, ("largest", "larger"))
min = _extremes("min", False, _smallest, clamp.minimum, ("smallest", "smaller"))


# Both extremes in one word of twice the size, by the type of the elements.
_PAIRED = {dt.float32: dt.complex64, dt.int32: dt.int64}
_OF_PAIR = "vec2<u32>(min(a.x, b.x), max(a.y, b.y))"
_EXTREMES = fold(
    {"f32": _OF_PAIR, "i32": _OF_PAIR}, dict.fromkeys(("f32", "i32"), "vec2<u32>(0xffffffffu, 0u)"),
    through={
        "f32": Through(
            "vec2<u32>", "vec2<u32>(smallest_word(value), largest_word(value))",
            "vec2<f32>(extreme_float(value.x), extreme_float(value.y))", "vec2<f32>",
        ),
        "i32": Through(
            "vec2<u32>", "vec2<u32>(bitcast<u32>(value) ^ 0x80000000u)", "value ^ vec2<u32>(0x80000000u)",
            "vec2<u32>",
        ),
    },
)  # fmt: skip


def _numpy_extremes(input: np.ndarray, dim, keepdim: bool) -> np.ndarray:
    found = [best(input, axes(dim, input.ndim), keepdims=keepdim) for best in (np.amin, np.amax)]
    return np.stack(found, -1).view(np.complex64 if input.dtype.kind == "f" else np.int64)[..., 0]


@op(
    public="aminmax",
    dtype=lambda call: (_PAIRED[call["input"].dtype], call["input"].dtype),
    shape=_not_empty,
    kernel=_EXTREMES,
    reference=_numpy_extremes,
    grad=None,
)
def extremes_of(input: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """The smallest and the largest element over axes, as the two halves of a word."""


MinAndMax = results("aminmax")(namedtuple("aminmax", ("min", "max")))


@function(method=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """``(amin(input, dim), amax(input, dim))``, as ``min`` and ``max`` of a named tuple."""
    if (both := _halves(input, dim, keepdim)) is None:
        return MinAndMax(amin(input, dim, keepdim), amax(input, dim, keepdim))
    least, most = both.unbind(-1)
    return MinAndMax(contiguous(least), contiguous(most))


def extremes(input: Tensor) -> tuple[Any, Any]:
    """The smallest and the largest element, as numbers. Waits for the device, once."""
    least, most = _least_and_most(input).tolist()
    return least, most


def extremes_later(input: Tensor) -> ListRead:
    """Begin to read what `extremes` gives; work that is asked for from here on does not delay it."""
    return _least_and_most(input).tolist_later()


def _least_and_most(input: Tensor) -> Tensor:
    input = input.detach()
    both = _halves(input, None, False)
    return stack([amin(input), amax(input)]) if both is None else both


def _halves(input: Tensor, dim: int | None, keepdim: bool) -> Tensor | None:
    """Smallest and largest elements along a last axis; None where one kernel does not make both."""
    m = input._meta
    if m.dtype not in _PAIRED or m.device.type != "webgpu" or input._node is not None:
        return None
    if getattr(input, "is_batched", False):
        return None
    return extremes_of(input, dim, keepdim).unsqueeze(-1).view(dtype=m.dtype)
