"""Views of a whole tensor: the same elements in another shape or order, by new strides, without a launch."""

from __future__ import annotations

from math import prod

from ...autograd.edges import labelled
from ...errors import ArgumentError, DTypeError, ShapeError
from ...op.arguments import by_name, element_type, integers
from ...op.declaration import Call, function, op
from ...tensors.dtypes import DType, bfloat16
from ...tensors.meta import meta
from ...tensors.shape import Size, axis, broadcast_shapes, broadcast_strides, infer, sizes, view_strides
from ...tensors.tensor import Tensor
from .movement import clone


def _view(call: Call):
    m = call["input"]
    shape = infer(call["size"], m.numel)
    strides = view_strides(m.shape, m.strides, shape)
    if strides is None:
        raise ShapeError(
            f"shape {tuple(shape)} cannot show a tensor of shape {tuple(m.shape)} and strides {m.strides} "
            "without a copy. Use reshape."
        )
    return shape, strides, 0


@op(public="view", view=_view, grad={"input": lambda g, input_meta: g.reshape(input_meta.shape)})
def view_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """The same elements in another shape, sharing storage (`Tensor.view` with a shape)."""


@function(exports=None, method=True, aten=("view.default", "view.dtype(self, dtype)"))
@by_name
def view(input: Tensor, *given, size=None, dtype: DType | None = None) -> Tensor:
    """The same elements in another shape, sharing storage.

    Args:
        input: any tensor whose strides allow the shape.
        size: lengths; one may be -1. Or a dtype, as which the bytes are read; where its size is another,
            the last axis, whose stride must be 1, becomes longer or shorter.
        dtype: the same dtype by its name.

    Raises:
        ShapeError: the shape needs a copy or has another number of elements, or bytes are no whole elements.
        DTypeError: bytes of bfloat16 on the cpu device, which holds it as float32.

    Example:
        >>> import pellucid as torch
        >>> torch.arange(6, device="cpu").view(2, 3).shape
        Size([2, 3])
    """
    if size is not None:
        given = (*given, size)
    if given and dtype is not None:
        raise ArgumentError("view: a shape and a dtype are given. Call it twice.")
    if len(given) == 1 and isinstance(given[0], DType):
        return _view_dtype(input, given[0])
    if not given and dtype is not None:
        return _view_dtype(input, element_type(dtype))
    return view_size(input, sizes(given))


def _view_dtype(input: Tensor, d: DType) -> Tensor:
    m, offset = input._meta, input._offset
    shape, strides = m.shape, m.strides
    old, new = m.dtype.itemsize, d.itemsize
    if m.device.type == "cpu" and d is not m.dtype and bfloat16 in (d, m.dtype):
        raise DTypeError(
            f"view: the cpu device holds bfloat16 as float32, so {m.dtype} cannot be read as {d}. "
            "Use a tensor of webgpu, or .to()."
        )
    if old != new:
        if not old or not new:
            raise DTypeError(f"view: {m.dtype} cannot be read as {d}. Use .to().")
        lengths = [old * n for n in (offset, *shape[-1:], *strides[:-1])]
        if not shape or strides[-1] != 1 or any(n % new for n in lengths):
            raise ShapeError(
                f"view: shape {tuple(shape)}, strides {strides} and offset {offset} of {m.dtype} are no "
                f"whole elements of {d} beside each other. Use .contiguous(), or .to()."
            )
        offset, length, *outer = (n // new for n in lengths)
        shape, strides = Size((*shape[:-1], length)), (*outer, 1)
    return type(input.detach())(input._storage, meta(shape, d, m.device, strides), offset)


@function(exports=None, method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.view(other.shape)``."""
    return view_size(input, other._meta.shape)


@function(method=True)
@by_name
def reshape(input: Tensor, *given, shape=None) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy.

    Args:
        input: any tensor.
        shape: lengths; one may be -1.

    Raises:
        ShapeError: the shape has another number of elements.

    Example:
        >>> import pellucid as torch
        >>> torch.arange(6, device="cpu").reshape(2, 3).t().reshape(-1).tolist()
        [0, 3, 1, 4, 2, 5]
    """
    wanted = sizes(given if shape is None else (*given, shape))
    m = input._meta
    if not m.is_contiguous:
        full = infer(wanted, m.numel)
        if view_strides(m.shape, m.strides, full) is None:
            return labelled("UnsafeViewBackward0", view_size(clone(input), wanted))
    return view_size(input, wanted)


@function(method=True, aten="flatten.using_ints")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes ``start_dim`` to ``end_dim`` as one."""
    shape = input._meta.shape
    if not shape:
        return input.reshape(1)
    first, last = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if first > last:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}. Exchange them.")
    return reshape(input, *shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])


@function(method=True, aten="unflatten.int")
def unflatten(input: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    """One axis as several."""
    shape = input._meta.shape
    k = axis(dim, len(shape))
    return reshape(input, *shape[:k], *infer(integers(sizes, "sizes"), shape[k]), *shape[k + 1 :])


def _permute(call: Call):
    m = call["input"]
    dims = tuple(axis(d, m.rank) for d in call["dims"])
    if sorted(dims) != list(range(m.rank)):
        raise ShapeError(
            f"dims {tuple(call['dims'])} are not a permutation of the {m.rank} axes. Name each once."
        )
    return tuple(m.shape[d] for d in dims), tuple(m.strides[d] for d in dims), 0


def _unpermute(g, dims):
    order = [axis(d, len(dims)) for d in dims]
    return g.permute(*[order.index(k) for k in range(len(order))])


@op(public="permute", view=_permute, grad={"input": _unpermute})
def permute_dims(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Axes in another order, sharing storage."""


@function(method=True)
@by_name
def permute(input: Tensor, *given, dims=None) -> Tensor:
    """Axes in another order, sharing storage.

    Args:
        input: any tensor.
        dims: each axis once.

    Raises:
        ShapeError: not a permutation.

    Example:
        >>> import pellucid as torch
        >>> torch.zeros(2, 3, 4, device="cpu").permute(2, 0, 1).shape
        Size([4, 2, 3])
    """
    return permute_dims(input, sizes(given if dims is None else (*given, dims)))


def _transpose(call: Call):
    m = call["input"]
    shape, strides = list(m.shape), list(m.strides)
    a, b = axis(call["dim0"], m.rank), axis(call["dim1"], m.rank)
    if m.rank:
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    return tuple(shape), tuple(strides), 0


@op(
    view=_transpose,
    grad={"input": lambda g, dim0, dim1: g.transpose(dim0, dim1)},
    method=True,
    aten=("transpose.int", "swapdims.default"),
)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged, sharing storage.

    Args:
        input: any tensor.
        dim0, dim1: the axes.

    Raises:
        DimensionError: an axis does not exist.

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1, 2], [3, 4]], device="cpu").transpose(0, 1).tolist()
        [[1, 3], [2, 4]]
    """


@function(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose`, by numpy's names."""
    return transpose(input, axis0, axis1)


@function(method=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer axes as they are.

    Raises:
        ShapeError: more than two axes.
    """
    if input._meta.rank > 2:
        raise ShapeError(f"t: takes at most two axes, not {input._meta.rank}. Use transpose(dim0, dim1).")
    return labelled("TBackward0", transpose(input, 0, 1)) if input._meta.rank == 2 else input


@function(method=True, aten=("movedim.int", "movedim.intlist"))
def movedim(input: Tensor, source, destination) -> Tensor:
    """Axes moved to new places, the others keeping their order."""
    rank = input._meta.rank
    given = [v if isinstance(v, (tuple, list)) else (v,) for v in (source, destination)]
    origin, target = [[axis(v, rank) for v in axes] for axes in given]
    if len(origin) != len(target) or len(set(origin)) != len(origin) or len(set(target)) != len(target):
        raise ShapeError(
            f"movedim: source {source} and destination {destination} must name as many axes each, and none "
            "twice."
        )
    order: list[int | None] = [None] * rank
    for s, d in zip(origin, target, strict=True):
        order[d] = s
    rest = iter(k for k in range(rank) if k not in origin)
    return permute_dims(input, tuple(next(rest) if o is None else o for o in order))


def _expand(call: Call):
    m, size = call["input"], call["size"]
    lead = len(size) - m.rank
    if lead < 0:
        raise ShapeError(
            f"size {tuple(size)} has fewer axes than the tensor of shape {tuple(m.shape)}. Give at least "
            f"{m.rank}."
        )
    shape = []
    for k, wanted in enumerate(size):
        have = m.shape[k - lead] if k >= lead else 1
        if wanted < -1:
            raise ShapeError(f"size {tuple(size)}: a length must not be negative; only -1 keeps one.")
        if wanted == -1 and k < lead:
            raise ShapeError(
                f"size {tuple(size)}: -1 stands for an axis that the tensor of shape {tuple(m.shape)} does "
                "not have. Give its length."
            )
        shape.append(have if wanted == -1 else wanted)
        if shape[k] != have and have != 1:
            raise ShapeError(
                f"size {tuple(size)}: axis {k} of length {have} cannot become {wanted}; only axes of "
                f"length 1 expand. Shape is {tuple(m.shape)}."
            )
    return tuple(shape), broadcast_strides(m.shape, m.strides, shape), 0


@op(public="expand", view=_expand, grad={"input": lambda g: g})
def expand_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Axes of length 1 repeated without a copy."""


@function(exports=None, method=True, aten="expand.default(self, size, *, implicit=False)")
@by_name
def expand(input: Tensor, *given, size=None) -> Tensor:
    """Axes of length 1 repeated without a copy (their stride becomes 0).

    Args:
        input: any tensor.
        size: lengths; -1 keeps one.

    Raises:
        ShapeError: an axis of another length would have to change.

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1], [2]], device="cpu").expand(-1, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
    """
    return expand_size(input, sizes(given if size is None else (*given, size)))


@function(exports=None, method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.shape)``."""
    return expand_size(input, other._meta.shape)


@function(method=True)
@by_name
def broadcast_to(input: Tensor, *given, size=None) -> Tensor:
    """``input.expand(size)``."""
    lengths = size if size is not None else given[0] if len(given) == 1 else given
    return expand_size(input, integers(lengths, "size"))


@function()
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[x._meta.shape for x in tensors])
    return tuple(expand_size(x, shape) for x in tensors)


def _squeeze(call: Call):
    m, dim = call["input"], call["dim"]
    dims = range(m.rank) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    drop = {k for k in [axis(d, m.rank) for d in dims] if m.rank and m.shape[k] == 1}
    keep = [k for k in range(m.rank) if k not in drop]
    return tuple(m.shape[k] for k in keep), tuple(m.strides[k] for k in keep), 0


@op(
    view=_squeeze,
    # The node's name says how axes were given.
    grad={"input": lambda g, input_meta, dim: g.reshape(input_meta.shape)},
    method=True,
    aten=("squeeze.default", "squeeze.dim", "squeeze.dims"),
)
def squeeze(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Without axes of length 1 (all, or those of ``dim``), sharing storage."""


def _unsqueeze(call: Call):
    m = call["input"]
    k = axis(call["dim"], m.rank + 1)
    stride = m.shape[k] * m.strides[k] if k < m.rank else 1
    return (*m.shape[:k], 1, *m.shape[k:]), (*m.strides[:k], stride, *m.strides[k:]), 0


@op(view=_unsqueeze, grad={"input": lambda g, dim: g.squeeze(dim)}, method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new axis of length 1 at ``dim``, sharing storage."""
