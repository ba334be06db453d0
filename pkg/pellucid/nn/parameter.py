"""Parameter: a tensor that a module owns and an optimizer changes."""

from __future__ import annotations

from copy import deepcopy

from ..autograd.edges import LEAF
from ..errors import ArgumentError, DTypeError
from ..tensors.construct import tensor
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


def account(t: Tensor) -> None:
    """Count a tensor's memory under "parameter" in `pellucid.webgpu.memory_stats`, if it has no kind yet."""
    if t._storage.kind == "activation":
        t._storage.set_kind("parameter")


__all__ = ["Buffer", "Parameter"]
