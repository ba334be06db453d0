"""Whether elements differ from zero: any, all, and how many do."""

from __future__ import annotations

from ...op.declaration import Call, function
from ...tensors import dtypes as dt
from ...tensors.shape import axes
from ...tensors.tensor import Tensor
from .families import reduction
from .reductions import Through, fold, reduced_shape, sum

# Whether an element differs from zero, by its bits: 0 or 1.
_TRUTH = {
    "f32": Through("u32", "min(bitcast<u32>(value) << 1u, 1u)", out="u32"),
    "i32": Through("u32", "select(0u, 1u, value != 0)", out="u32"),
    "u32": Through("u32", "min(value, 1u)", out="u32"),
    "vec2<u32>": Through("u32", "select(0u, 1u, any(value != vec2<u32>()))", out="u32"),
    "vec2<f32>": Through(
        "u32", "select(0u, 1u, any(bitcast<vec2<u32>>(value) << vec2<u32>(1u) != vec2<u32>()))", out="u32"
    ),
}


def _truth_type(call: Call):
    own = call["input"].dtype
    return (own if own is dt.uint8 else dt.bool_), own


def _quantifier(name: str, sign: str, identity: str, asked: str):
    """Declare whether some or all elements differ from zero."""
    return reduction(
        name, fold(dict.fromkeys(_TRUTH, f"a {sign} b"), dict.fromkeys(_TRUTH, identity), through=_TRUTH),
        lambda input, dim, keepdim: getattr(input, name)(axes(dim, input.ndim), keepdims=keepdim), None,
        f"Whether {asked} from zero; bool (uint8 for uint8 input).", shape=reduced_shape, dtype=_truth_type,
        takes="any dtype.", at=[[0, 4], [3, 2]], aten=(f"{name}.default", f"{name}.dim", f"{name}.dims"),
    )  # fmt: skip


any = _quantifier("any", "|", "0u", "any element along axes differs")
all = _quantifier("all", "&", "1u", "all elements along axes differ")


@function(method=True, aten=("count_nonzero.default", "count_nonzero.dim_IntList"))
def count_nonzero(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Number of elements that differ from zero, int64."""
    return sum(input if input.dtype is dt.bool_ else input != 0, dim)
