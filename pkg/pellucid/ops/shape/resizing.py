"""Resizing a tensor in place: ``resize_``, ``resize_as_``, and ``set_``, which gives it other memory."""

from __future__ import annotations

from ...autograd.edges import LEAF, note_change
from ...autograd.grad_mode import is_grad_enabled
from ...errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError
from ...op.arguments import by_name, describe, integers
from ...op.public import function
from ...tensors.formats import packed, preserve_format
from ...tensors.meta import Meta, meta
from ...tensors.portable import UntypedStorage
from ...tensors.shape import Size, contiguous_strides, index, sizes
from ...tensors.tensor import Tensor


def _take(where: str, input: Tensor) -> None:
    """Refuse what keeps its layout."""
    if getattr(input, "is_batched", False):
        raise ArgumentError(f"{where}: an example of a batch keeps its memory.")
    if input._meta.dtype.is_quantized:
        raise DTypeError(f"{where}: a quantized weight keeps its memory. Use .dequantize() first.")


def _bytes_up_to(m: Meta, offset: int) -> int:
    """Bytes of a storage up to the last element of a layout without negative strides."""
    if not m.numel:
        return 0
    last = offset + sum((n - 1) * s for n, s in zip(m.shape, m.strides, strict=True))
    return (last + 1) * (m.nbytes // m.numel)


@function(exports=None, method=True)
@by_name
def resize_(input: Tensor, *given, size=None, memory_format=None) -> Tensor:
    """Give the tensor itself another shape over its storage, which grows where it is too short.

    Elements stay, new ones have any value. Tensors that share the storage see it grow, numpy's arrays do not.

    Args:
        input: a tensor that requires no grad.
        size: lengths; any number of elements.
        memory_format: the order of axes in memory, such as `channels_last`.

    Raises:
        GradientError: it requires grad.
        ShapeError: a length is negative.

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([1, 2, 3, 4], device="cpu").resize_(1, 2).tolist()
        [[1, 2]]
    """
    _take("resize_", input)
    if input.requires_grad:
        raise GradientError(
            "resize_: cannot resize variables that require grad. Use .detach() or .reshape()."
        )
    shape = Size(sizes(given if size is None else (*given, size)))
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize_: size {tuple(shape)} has a negative length.")
    plain = memory_format is None or memory_format is preserve_format
    if plain and shape == input._meta.shape:
        return input
    strides = contiguous_strides(tuple(shape)) if plain else packed(memory_format, shape)
    m = meta(shape, input._meta.dtype, input._meta.device, tuple(strides))
    needed = _bytes_up_to(m, input._offset)
    note_change()
    if needed > input._storage.nbytes:
        input._storage.grow(needed)
    input._meta = m
    return input


@function(exports=None, method=True)
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format=None) -> Tensor:
    """``input.resize_(the_template.shape)``."""
    return resize_(input, tuple(the_template.shape), memory_format=memory_format)


@function(exports=None, method=True, aten=("set_.source_Tensor", "set_.default"))
def set_(input: Tensor, source=None, storage_offset: int = 0, size=None, stride=None) -> Tensor:
    """Let the tensor itself be a view of other memory, which it shares from then on.

    Args:
        input: the tensor.
        source: a tensor of the same dtype and device; the memory of one (`untyped_storage`) with what
            follows; no memory if None.
        storage_offset, size, stride: where and how the elements lie in that memory.

    Raises:
        DTypeError, DeviceError: the source is of another dtype or device.
        GradientError: a leaf that requires grad, outside of `no_grad`.
        ShapeError: the elements would lie outside the memory.
    """
    _take("set_", input)
    if input._node is LEAF and is_grad_enabled():
        raise GradientError("set_: a leaf that requires grad cannot be given other memory. Use no_grad().")
    own = input._meta
    if source is None:
        source = input.detach().new_empty(0)
    if isinstance(source, UntypedStorage):
        storage, where = source._storage, source.device
        shape = integers(size, "set_: size")
        steps = contiguous_strides(shape) if stride is None else integers(stride, "set_: stride")
        offset = index(storage_offset, "set_: storage_offset")
        m = meta(shape, own.dtype, own.device, steps)
        if len(shape) != len(steps) or min((offset, *shape, *steps)) < 0:
            raise ShapeError(f"set_: size {shape}, stride {steps} and offset {offset} are no layout.")
        needed = _bytes_up_to(m, offset)
        if needed > storage.nbytes and where.type != "meta":
            raise ShapeError(
                f"set_: size {shape}, stride {steps} and offset {offset} reach byte {needed} of "
                f"{storage.nbytes}. Choose smaller ones."
            )
    elif isinstance(source, Tensor):
        storage, where, m, offset = source._storage, source.device, source._meta, source._offset
        if m.dtype is not own.dtype:
            raise DTypeError(f"set_: the source is {m.dtype} and the tensor {own.dtype}. Give the same.")
    else:
        raise ArgumentError(f"set_: source must be a Tensor or the memory of one, not {describe(source)}.")
    if where is not own.device:
        raise DeviceError(f"set_: the source is on {where} and the tensor on {own.device}.")
    note_change()
    input._storage, input._meta, input._offset = storage, m, offset
    return input
