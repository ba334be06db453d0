"""Parameter: a tensor that a module owns and an optimizer changes; Buffer; and those without a shape yet."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..autograd.edges import LEAF
from ..errors import ArgumentError, DTypeError
from ..ops.shape.creation import empty
from ..tensors.construct import tensor
from ..tensors.dispatch import disabled
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor


class Parameter(Tensor):
    """A tensor that counts as a parameter of the module whose attribute it becomes.

    Args:
        data: its values, shared and not copied; an empty tensor if None.
        requires_grad: whether derivatives with respect to it are recorded. Quantized weights cannot.

    Raises:
        DTypeError: gradients are wanted of a dtype that has none.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html

    Example:
        >>> import pellucid as torch
        >>> torch.nn.Parameter(torch.zeros(2, device="cpu")).requires_grad
        True
    """

    __torch_function__ = staticmethod(disabled)  # pyright: ignore[reportAssignmentType]

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = tensor([])
        if not isinstance(data, Tensor):
            raise ArgumentError(f"Parameter: data must be a Tensor, not {type(data).__name__} {data!r}.")
        super().__init__(data._storage, data._meta, data._offset)
        if type(requires_grad) is not bool:
            raise ArgumentError(f"Parameter: requires_grad must be True or False, not {requires_grad!r}.")
        if requires_grad:
            if not data._meta.dtype.is_floating_point:
                raise DTypeError(
                    f"Parameter: {data._meta.dtype} has no gradients. Give requires_grad=False, or "
                    "floating-point data."
                )
            self._node = LEAF
        account(self)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo) -> Parameter:
        """As in PyTorch its elements, in their order, without its gradient."""
        data = self.detach()
        if data._meta.dtype.is_quantized:
            data = deepcopy(data, memo)
        else:
            strides = data.stride()
            packed = data.permute(sorted(range(data.ndim), key=lambda k: -strides[k]))
            data = packed.clone().as_strided(data.shape, strides) if packed.is_contiguous() else data.clone()
        out = memo[id(self)] = type(self)(data, self.requires_grad)
        return out


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module whose attribute it becomes; see `Module.register_buffer`.

    Args:
        data: its values, shared and not copied; an empty tensor if None.
        persistent: whether it is part of the module's `state_dict`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.parameter.Buffer.html
    """

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        data = tensor([]) if data is None else data
        if not isinstance(data, Tensor):
            raise ArgumentError(f"Buffer: data must be a Tensor, not {type(data).__name__} {data!r}.")
        super().__init__(data._storage, data._meta, data._offset)
        self.persistent = persistent


class _Uninitialized(Tensor):
    """What has no shape yet, and no elements."""

    cls_to_become: type[Tensor]

    def materialize(self, shape: tuple[int, ...], device=None, dtype: DType | None = None) -> None:
        """Become a tensor of a shape, whose elements are anything.

        Args:
            shape: of the tensor.
            device, dtype: its own if None.
        """
        self.data = empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        kind: Any = type(self).cls_to_become
        self.__class__ = kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet: it has no elements.

    Args:
        requires_grad: as of `Parameter`.
        device, dtype: of the parameter; the defaults if None.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.parameter.UninitializedParameter.html

    Example:
        >>> import pellucid as torch
        >>> p = torch.nn.parameter.UninitializedParameter(device="cpu")
        >>> p.materialize((2, 3))
        >>> type(p).__name__, tuple(p.shape)
        ('Parameter', (2, 3))
    """

    cls_to_become = Parameter

    def __init__(self, requires_grad: bool = True, device=None, dtype: DType | None = None):
        Parameter.__init__(self, empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo) -> UninitializedParameter:
        out = memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return out


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape is not known yet: it has no elements.

    Args:
        requires_grad: whether to record what is computed from it.
        device, dtype: of the buffer; the defaults if None.
        persistent: as of `Buffer`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.parameter.UninitializedBuffer.html
    """

    cls_to_become = Buffer

    def __init__(
        self, requires_grad: bool = False, device=None, dtype: DType | None = None, persistent: bool = True
    ):
        Buffer.__init__(self, empty(0, device=device, dtype=dtype), persistent=persistent)
        self.requires_grad_(requires_grad)


def is_lazy(param: object) -> bool:
    """Whether something is a parameter or a buffer without a shape yet."""
    return isinstance(param, _Uninitialized)


def account(t: Tensor) -> None:
    """Count a tensor's memory under "parameter" in `pellucid.webgpu.memory_stats`, if it has no kind yet."""
    if t._storage.kind == "activation":
        t._storage.set_kind("parameter")


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]
