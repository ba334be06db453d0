"""Weights of a length and a direction, of a bounded spectrum, or orthogonal. PyTorch's
``nn.utils.parametrizations``, and the older forms that keep the parts beside the weight."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...errors import RangeError
from ...op.arguments import number
from ...ops.linalg.norms import norm
from ...ops.random.distributions import randn
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..functional import normalize
from ..modules.module import Module
from ..parameter import Parameter
from .orthogonal import orthogonal
from .parametrize import register_parametrization


def norm_except_dim(v: Tensor, pow: int = 2, dim: int | None = 0) -> Tensor:
    """The norms of the slices along an axis, which keep their axes; that of all if there is none."""
    if dim is None or dim == -1:
        return norm(v, pow)
    dim = dim % v.dim()
    return norm(v, pow, tuple(k for k in range(v.dim()) if k != dim) or None, True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


class _SpectralNorm(Module):
    """A weight over its largest singular value, which is followed by power iterations."""

    _u: Tensor
    _v: Tensor
    # The older form moves the other vector first.
    is_older = False

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float):
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise RangeError(f"spectral_norm: dim {dim} is no axis of a weight of {weight.dim()} axes.")
        self.n_power_iterations = index(n_power_iterations, "n_power_iterations")
        if self.n_power_iterations <= 0:
            raise RangeError(f"spectral_norm: n_power_iterations must be positive, not {n_power_iterations}.")
        self.dim, self.eps = dim % weight.dim(), number(eps, "eps")
        if weight.dim() > 1:
            with no_grad():
                matrix = self._matrix(weight.detach())
                for name, n in zip(("_u", "_v"), matrix.shape, strict=True):
                    begun = randn(n, device=weight.device).to(weight.dtype)
                    self.register_buffer(name, normalize(begun, dim=0, eps=self.eps))
            self.iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        order = [self.dim, *(k for k in range(weight.dim()) if k != self.dim)]
        return weight.permute(*order).flatten(1)

    @no_grad
    def iterate(self, matrix: Tensor, times: int) -> None:
        """Move both singular vectors towards those of the matrix."""
        for _ in range(times):
            for vector in "vu" if self.is_older else "uv":
                if vector == "u":
                    self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                else:
                    self._v.copy_(normalize(matrix.T.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self.iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / (u * matrix.mv(v)).sum()

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def _axis_of(module: Module, dim: int | None) -> int:
    """The axis of the outputs; behind that of the inputs in transposed convolutions."""
    return (1 if "ConvTranspose" in type(module).__name__ else 0) if dim is None else dim


def _weight(module: Module, name: str, of: str) -> Any:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise RangeError(f"{of}: {type(module).__name__} has no parameter {name!r}.")
    return found


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """A weight as a length (``original0``) times a direction (``original1``); returns the module.

    Args:
        module: whose weight.
        name: its name.
        dim: the axis along which lengths are apart; one length if None.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html;
        Salimans and Kingma 2016
    """
    _weight(module, name, "weight_norm")
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """A weight divided by its largest singular value; returns the module.

    Args:
        module: whose weight.
        name: its name.
        n_power_iterations: how many steps follow the singular vectors at each look in training.
        eps: the least length of a vector that is normalized.
        dim: the axis of outputs, which the module tells if None.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html;
        Miyato et al. 2018
    """
    weight = _weight(module, name, "spectral_norm")
    made = _SpectralNorm(weight, n_power_iterations, _axis_of(module, dim), eps)
    made.train(module.training)
    return register_parametrization(module, name, made)


class _Older:
    """A hook before calls that computes a weight from parameters beside it."""

    def __init__(self, name: str, made: Module, parts: tuple[str, ...]):
        self.name, self.made, self.parts = name, made, parts

    def compute(self, module: Module) -> Tensor:
        """The weight."""
        self.made.training = module.training
        for vector in ("_u", "_v"):  # the module's, which may have moved to a device
            if self.name + vector in module._kinds:
                self.made.__dict__[vector] = module.__dict__[self.name + vector]
        return self.made(*[getattr(module, part) for part in self.parts])

    def __call__(self, module: Module, args: tuple) -> None:
        object.__setattr__(module, self.name, self.compute(module))


def _begin(module: Module, hook: _Older, parts: list[Parameter]) -> Module:
    delattr(module, hook.name)
    for name, part in zip(hook.parts, parts, strict=True):
        module.register_parameter(name, part)
    object.__setattr__(module, hook.name, hook.compute(module).detach())
    module.register_forward_pre_hook(hook)
    return module


def _end(module: Module, name: str, kind: type, of: str) -> Module:
    for number_of, hook in list(module._hooks.items()):
        found = hook.function
        if isinstance(found, _Older) and found.name == name and isinstance(found.made, kind):
            training, module.training = module.training, False
            value = found.compute(module).detach()
            module.training = training
            del module._hooks[number_of]
            for part in (name, *found.parts):
                delattr(module, part)
            if isinstance(found.made, _SpectralNorm):
                for part in (f"{name}_u", f"{name}_v"):
                    delattr(module, part)
            module.register_parameter(name, Parameter(value))
            return module
    raise RangeError(f"{of}: {name!r} of {type(module).__name__} has none.")


def older_weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """`parametrizations.weight_norm` with parameters ``<name>_g`` and ``<name>_v`` of the module itself.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.weight_norm.html
    """
    weight, made = _weight(module, name, "weight_norm"), _WeightNorm(dim)
    g, v = made.right_inverse(weight.detach())
    hook = _Older(name, made, (f"{name}_g", f"{name}_v"))
    return _begin(module, hook, [Parameter(g), Parameter(v.clone())])


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`; the weight stays as it is.

    Raises:
        RangeError: there is none.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.remove_weight_norm.html
    """
    return _end(module, name, _WeightNorm, "remove_weight_norm")


def older_spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """`parametrizations.spectral_norm` with a parameter ``<name>_orig`` and buffers ``<name>_u`` and
    ``<name>_v`` of the module itself.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.spectral_norm.html
    """
    weight = _weight(module, name, "spectral_norm")
    made = _SpectralNorm(weight, n_power_iterations, _axis_of(module, dim), eps)
    made.is_older = True
    _begin(module, _Older(name, made, (f"{name}_orig",)), [weight])
    for part, vector in ((f"{name}_u", made._u), (f"{name}_v", made._v)):
        module.register_buffer(part, vector)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`; the weight stays as it is.

    Raises:
        RangeError: there is none.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.remove_spectral_norm.html
    """
    return _end(module, name, _SpectralNorm, "remove_spectral_norm")


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
