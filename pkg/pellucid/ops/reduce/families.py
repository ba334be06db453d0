"""Families of reductions and of scans along an axis: each is a row of what is its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...op.declaration import docstring, example_of, op
from ...op.families import Declared, formed
from ...op.kernel import is_direct
from ...op.rules import as_input
from ...tensors.dtypes import DType
from ...tensors.shape import axis
from ...tensors.tensor import Tensor
from ..shape.movement import contiguous
from .passes import column_parts


def over_axes(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor: ...
def over_axis(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
def over_axis_as(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor: ...
def over_axes_as(
    input: Tensor,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor: ...


def reduction(
    name: str,
    kernel: Callable,
    reference: Callable,
    grad: Callable | None,
    sentence: str,
    *,
    shape: Callable,
    dtype: Callable,
    takes: str,
    form: Callable = over_axes,
    raises: dict[str, str] | None = None,
    at: Sequence = ([1, 4], [3, 2]),
    converted: str = "",
    whole: str = "all if None",
    aten: tuple[str, ...] | None = None,
    prepare: Callable | None = None,
) -> Declared:
    """Declare a reduction over axes, which is also a method.

    Args:
        name, kernel, reference, shape, dtype: as `op` has them.
        grad: formula of ``input``, or None.
        sentence: what it computes.
        takes: which inputs.
        form: the signature: `over_axes`, `over_axis`, `over_axes_as` or `over_axis_as`.
        raises: error -> reason.
        at: the values of the example.
        converted: what is done after the conversion to ``dtype``.
        whole: what happens without axes.
        aten, prepare: as `op` has them.
    """
    one, converts = form in (over_axis, over_axis_as), form in (over_axes_as, over_axis_as)
    known = {
        "input": takes,
        "dim": f"{'the axis' if one else 'axis or axes'}; {whole}.",
        "keepdim": f"keep the {'axis' if one else 'axes'}, with length 1.",
    }
    if converts:
        known["dtype"] = f"type to convert to before {converted}."
    sections: dict[str, dict[str, str] | str] = {
        "Args": known,
        "Raises": raises or {"DimensionError": "an axis is out of range."},
    }
    rest = (None,) if converts else ()
    example = example_of(name, lambda x: reference(x, None, False, *rest), (list(at),))
    return op(
        dtype=dtype,
        shape=shape,
        kernel=kernel,
        reference=reference,
        grad=grad and {"input": grad},
        method=True,
        aten=aten,
        prepare=prepare,
    )(formed(form, name, docstring(sentence, sections, example)))


def along(input: Tensor, dim: int) -> Tensor: ...
def along_as(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor: ...


def _is_of_columns(input: Tensor, k: int) -> bool:
    """Whether the kernels of a GPU scan an axis where it is: what has a derivative is transposed."""
    m = input._meta
    if m.device.type != "webgpu" or input._node is not None or getattr(input, "is_batched", False):
        return False
    return m.is_contiguous and not is_direct() and column_parts(m.shape, k) > 0


def scan(
    name: str,
    kernel: Callable,
    reference: Callable,
    grad: Callable | None,
    doc: str,
    *,
    dtype: Callable,
    form: Callable = along,
    public: str | None = None,
    of_columns: bool = True,
) -> Declared:
    """Declare a scan, whose kernel and reference go along the last axis: another one is transposed to it.

    Args:
        name, kernel, reference, dtype: as `op` has them.
        of_columns: whether on a GPU the kernel also goes along another axis, as `column_parts` of it says, of
            what has no derivative.
        grad: formula of ``input``, or None.
        doc: its docstring.
        form: the signature: `along` or `along_as`.
        public: what users know it as, if not by its name; else it is a method.
    """

    def prepare(input, dim, *dtype):
        rank, given = input.dim(), {"dtype": dtype[0]} if dtype else {}
        k = axis(dim, rank)
        if rank == 0:
            return made(input.reshape(1), 0, **given).reshape(())
        if k == rank - 1:
            return None
        if columns is not None and _is_of_columns(input, k):
            return columns(input, k, **given)
        return contiguous(made(input.transpose(k, -1), -1, **given).transpose(k, -1))

    def of_dim(input, dim, *dtype):
        return np.moveaxis(reference(np.moveaxis(input, dim, -1), -1, *dtype), -1, dim)

    def of_dim_as(input, dim, dtype):
        return of_dim(input, dim, dtype)

    columns = None
    if of_columns:
        columns = op(
            dtype=dtype,
            shape=as_input,
            kernel=kernel,
            reference=of_dim_as if form is along_as else lambda input, dim: of_dim(input, dim),
            grad=None,
            public=public or name,
        )(formed(form, f"_{name}_columns", f"`{name}` along an axis that is not the last one."))
    made = op(
        dtype=dtype,
        shape=as_input,
        kernel=kernel,
        reference=reference,
        grad=grad and {"input": grad},
        public=public,
        method=public is None,
        in_place=public is None,
        prepare=prepare,
        node=(public or name).capitalize(),
    )(formed(form, name, doc))
    return made
