"""Pruning methods: classes that choose what is pruned of a parameter, by magnitude, by norm, at random."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ...errors import ArgumentError, RangeError
from ...op.arguments import describe
from ...ops.linalg.norms import norm
from ...ops.random.distributions import rand, randperm
from ...ops.shape.creation import ones_like
from ...tensors.shape import axis
from ...tensors.tensor import Tensor
from ..modules.module import Module


def _count(amount: Any, size: int) -> int:
    """How many of ``size`` an amount stands for: a share between 0 and 1, or a number.

    Raises:
        RangeError: it is negative, a share above 1, or more than there are.
    """
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ArgumentError(f"amount: must be a share or a number, not {describe(amount)}.")
    if amount < 0 or (isinstance(amount, float) and amount > 1):
        raise RangeError(f"amount: {amount} is neither a share from 0 to 1 nor a number of entries.")
    if isinstance(amount, int) and amount > size:
        raise RangeError(f"amount: {amount} should be smaller than the number of entries to prune, {size}.")
    return amount if isinstance(amount, int) else round(amount * size)


def hook_of(module: Module, name: str) -> tuple[Any, BasePruningMethod] | None:
    """The method that prunes a parameter, with its key among the module's hooks."""
    for number, hook in module._hooks.items():
        method = hook.function
        if isinstance(method, BasePruningMethod) and method._tensor_name == name:
            return number, method
    return None


class BasePruningMethod(ABC):
    """A way to choose what is pruned: `compute_mask` says it; the rest is the same for all.

    Attributes:
        PRUNING_TYPE: "unstructured" (entries), "structured" (slices along an axis) or "global" (a mask
            for all entries, also of those that are pruned).

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.BasePruningMethod.html
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        object.__setattr__(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a parameter, within one that is there already: 0 where it is pruned.

        Args:
            t: the importance of its entries.
            default_mask: what was pruned before.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter times its mask."""
        mask = getattr(module, f"{self._tensor_name}_mask")
        orig = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module by this method, beyond what is pruned of it.

        Args:
            module: whose.
            name: of the parameter.
            args, kwargs: of the method.
            importance_scores: by which entries are chosen; the parameter itself if None.

        Raises:
            ArgumentError: the scores have another shape.
        """
        old = hook_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        current = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != current.shape:
            raise ArgumentError(
                f"importance_scores: should have the same shape as the parameter {name!r}, "
                f"{tuple(current.shape)}, not {tuple(importance_scores.shape)}."
            )
        scores = (current if importance_scores is None else importance_scores).detach()
        if old is None:
            orig = module._parameters[name]
            mask = method.compute_mask(scores, ones_like(scores))
            delattr(module, name)
            module.register_parameter(f"{name}_orig", orig)
        else:
            number, before = old
            del module._hooks[number]
            container = PruningContainer(before)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, getattr(module, f"{name}_mask"))
            method = container
        module.register_buffer(f"{name}_mask", mask)
        object.__setattr__(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A pruned copy of a tensor.

        Args:
            t: the tensor.
            default_mask: what was pruned before.
            importance_scores: by which entries are chosen; the tensor itself if None.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ArgumentError(
                f"importance_scores: should have the same shape as the tensor, {tuple(t.shape)}, not "
                f"{tuple(scores.shape)}."
            )
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Give the pruned parameter its name again, with zeros where it was pruned. The hook stays."""
        name = self._tensor_name
        weight, orig = self.apply_mask(module), module.get_parameter(f"{name}_orig")
        orig.data = weight.detach()
        for part in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, part)
        module.register_parameter(name, orig)


class PruningContainer(BasePruningMethod):
    """Several methods one after the other: each prunes of what those before it left.

    Args:
        args: the methods, all of one parameter.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.PruningContainer.html
    """

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            # What is pruned a third time brings its container.
            for each in method if isinstance(method, PruningContainer) else (method,):
                self._tensor_name = each._tensor_name
                self.add_pruning_method(each)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """One more.

        Raises:
            ArgumentError: it is none, or of another parameter.
        """
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{describe(method)} is not a BasePruningMethod subclass.")
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to this PruningContainer. Found '{method._tensor_name}'."
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that the last method makes of what ``default_mask`` leaves."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "global":
            kept: Any = slice(None)
        elif method.PRUNING_TYPE == "unstructured":
            kept = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = axis(getattr(method, "dim", 0), t.dim())
            others = [k for k in range(t.dim()) if k != dim]
            left = (mask.sum(others) if others else mask) != 0
            kept = (slice(None),) * dim + (left,)
        else:
            raise ArgumentError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        made = mask.clone()
        made[kept] = method.compute_mask(t[kept], mask[kept])
        return made


class NothingPruned(BasePruningMethod):
    """Prunes nothing, and gives the parameter its mask.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.identity.html
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it is."""
        return default_mask.clone()


class _ByAmount(BasePruningMethod):
    """A method that prunes a number of entries, or of slices along an axis.

    Args:
        amount: a share between 0 and 1, or how many.
        dim: the axis of the slices; entries if None.
    """

    def __init__(self, amount: int | float, dim: int | None = None):
        if isinstance(amount, float):
            _count(amount, 0)
        self.amount = amount
        if dim is not None:
            self.dim = dim

    @abstractmethod
    def chosen(self, t: Tensor, count: int) -> Tensor:
        """The places of what goes: of entries in the flat tensor, or of slices."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with zeros at what was chosen too."""
        mask = default_mask.clone()
        dim = getattr(self, "dim", None)
        if dim is None:
            count = _count(self.amount, t.numel())
            flat = mask.reshape(-1)
            return flat.index_fill(0, self.chosen(t, count), 0).reshape(t.shape) if count else mask
        if t.dim() < 2:
            raise ArgumentError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{tuple(t.shape)} with {t.dim()} dims."
            )
        count = _count(self.amount, t.shape[axis(dim, t.dim())])
        return mask.index_fill(dim, self.chosen(t, count), 0) if count else mask


class RandomUnstructured(_ByAmount):
    """Prunes entries at random.

    Args:
        amount: a share between 0 and 1, or how many.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.RandomUnstructured.html
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float):
        super().__init__(amount)

    def chosen(self, t: Tensor, count: int) -> Tensor:
        return rand(t.numel(), device=t.device).topk(count).indices


class L1Unstructured(_ByAmount):
    """Prunes the entries of the least magnitude.

    Args:
        amount: a share between 0 and 1, or how many.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.L1Unstructured.html
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float):
        super().__init__(amount)

    def chosen(self, t: Tensor, count: int) -> Tensor:
        return t.abs().reshape(-1).topk(count, largest=False).indices


class RandomStructured(_ByAmount):
    """Prunes slices along an axis at random.

    Args:
        amount: a share between 0 and 1, or how many.
        dim: the axis.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.RandomStructured.html
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount, dim)

    def chosen(self, t: Tensor, count: int) -> Tensor:
        return randperm(t.shape[self.dim], device=t.device)[:count]


class LnStructured(_ByAmount):
    """Prunes the slices along an axis whose norm is least.

    Args:
        amount: a share between 0 and 1, or how many.
        n: the order of the norm, as `norm` has it.
        dim: the axis.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.LnStructured.html
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, n: Any, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def chosen(self, t: Tensor, count: int) -> Tensor:
        dim = axis(self.dim, t.dim())
        sizes = norm(t, self.n, tuple(k for k in range(t.dim()) if k != dim))
        return sizes.topk(count, largest=False).indices


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask says.

    Args:
        mask: 0 where it is pruned.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.CustomFromMask.html
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks together."""
        return default_mask * self.mask.to(default_mask.dtype)
