"""Forward-mode derivatives (dual numbers): tensors that carry a tangent, which operations change with them.

The graph that operations record for backward is walked twice at `unpack_dual`: the walk back is linear in its
vectors, and its own derivative by them is the product of the Jacobian with the tangents. So every op with a
second derivative has a forward one, and a tangent costs two walks where it is asked for.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any

from ..errors import DTypeError, GradientError, ShapeError
from ..tensors.tensor import Tensor
from .batching import enclose, full, levels
from .function import Function
from .grad_mode import grad_enabled, keep_recording
from .transforms import Pushed

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(namedtuple("UnpackedDualTensor", ["primal", "tangent"])):
    """What `unpack_dual` returns: ``primal``, and ``tangent``, which is None for what does not depend on a
    dual tensor."""

    __slots__ = ()


class _Level:
    """The dual tensors of a `dual_level`: leaves of the graph, and their tangents."""

    def __init__(self):
        self.levels, self.goes_on = levels(), grad_enabled.get()
        self.inputs: list[Tensor] = []
        self.tangents: list[Tensor] = []
        # While tangents are computed, primals of unpacked tensors end the walk: they carry none.
        self.is_pushing = False

    def push(self, root: Tensor) -> tuple[bool, Tensor | None]:
        """Whether something outside asks for derivatives of a tensor, and its tangent."""
        if root.grad_fn is None and not any(root is x for x in self.inputs):
            return False, None
        self.is_pushing = True
        try:
            at = Pushed("unpack_dual", self.levels, self.inputs, [root], self.goes_on)
            at.goes_on |= self.goes_on and any(t.requires_grad for t in self.tangents)
            return at.goes_on, at.push(self.tangents)[0] if at.is_reached() else None
        finally:
            self.is_pushing = False


_open: ContextVar[_Level | None] = ContextVar("dual_level", default=None)


def _level(where: str) -> _Level:
    at = _open.get()
    if at is None:
        raise GradientError(f"{where}: there is no level. Use it within `with forward_ad.dual_level():`.")
    if at.levels != levels():
        raise GradientError(
            f"{where}: a vmap began or ended since the level. Begin the level within the vmap."
        )
    return at


def enter_dual_level() -> int:
    """Begin what `dual_level` does; `exit_dual_level` ends it.

    Raises:
        GradientError: there is a level already.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.forward_ad.enter_dual_level.html
    """
    if _open.get() is not None:
        raise GradientError(
            "dual_level: levels do not nest, in PyTorch neither. For second derivatives nest func.jvp."
        )
    at = _Level()
    _open.set(at)
    keep_recording(True, True)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End a level: its tensors carry tangents no more.

    Args:
        level: 0, or None for the same.

    Raises:
        GradientError: there is no such level.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.forward_ad.exit_dual_level.html
    """
    at = _open.get()
    if at is None or level not in (None, 0):
        raise GradientError(f"exit_dual_level: there is no level {level or 0}. Enter one first.")
    _open.set(None)
    keep_recording(False, at.goes_on)


class dual_level(ContextDecorator):
    """Tensors of `make_dual` carry tangents within; also a decorator.

    Operations record within, also where it stands in `no_grad`. A `no_grad` inside is refused, because what
    is not recorded loses its tangent; `Tensor.detach` drops it, as in PyTorch.

    Raises:
        GradientError: there is a level already.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.forward_ad.dual_level.html

    Example:
        >>> import pellucid as torch
        >>> from pellucid.autograd import forward_ad
        >>> x = torch.tensor([1.0, 2.0], device="cpu")
        >>> with forward_ad.dual_level():
        ...     y = forward_ad.make_dual(x, torch.ones_like(x)) ** 2
        ...     forward_ad.unpack_dual(y).tangent.tolist()
        [2.0, 4.0]
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the same values that carries a tangent. It requires grad, unlike PyTorch's.

    Args:
        tensor: the primal, of floating-point or complex numbers.
        tangent: its change, of the same shape and dtype.
        level: 0, or None for the same.

    Raises:
        GradientError: outside of `dual_level`, or the tensor has a tangent already.
        DTypeError: of integers, or the tangent is of another dtype.
        ShapeError: the tangent has another shape.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.forward_ad.make_dual.html
    """
    at = _level("make_dual")
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(t, Tensor) or t.dtype.kind not in "fc":
            raise DTypeError(
                f"make_dual: Expected {name} to be floating point or complex, but got: "
                f"{getattr(t, 'dtype', type(t).__name__)}. Convert it with .float()."
            )
    if tensor.dtype is not tangent.dtype:
        raise DTypeError(
            f"make_dual: {tangent.dtype} is the tangent of {tensor.dtype}. Convert it with .to()."
        )
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise ShapeError(
            f"make_dual: a tangent of shape {tuple(tangent.shape)} for a tensor of {tuple(tensor.shape)}. "
            "They must be equal."
        )
    x = full(tensor, at.levels)
    if at.inputs and at.push(x)[1] is not None:
        raise GradientError("make_dual: the tensor has a tangent already. Take the primal of unpack_dual.")
    goes_on = at.goes_on and x.requires_grad
    at.inputs.append(x.view_as(x) if goes_on else x.detach().requires_grad_())
    at.tangents.append(full(tangent, at.levels))
    return enclose(at.inputs[-1], at.levels)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor: its values without, and how they change; by two walks of the graph.

    Args:
        tensor: any.
        level: 0, or None for the same.

    Returns:
        Both of the tensor's shape. ``tangent`` is None outside of `dual_level`, and for what does not depend
        on a tensor of `make_dual`.

    Raises:
        GradientError: an op on the way has no second derivative, or the graph was freed.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.forward_ad.unpack_dual.html
    """
    if _open.get() is None or tensor.dtype.kind not in "fc":
        return UnpackedDualTensor(tensor, None)
    at = _level("unpack_dual")
    goes_on, tangent = at.push(full(tensor, at.levels))
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    primal = _Primal.apply(tensor, at) if goes_on else tensor.detach()
    return UnpackedDualTensor(primal, enclose(tangent, at.levels))


class _Primal(Function):
    """The same tensor for backward, and one without a tangent for its level."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, at: _Level) -> Tensor:
        ctx.at = at
        return t.view_as(t)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None if ctx.at.is_pushing else grads[0], None
