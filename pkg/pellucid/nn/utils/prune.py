"""Pruning: parameters of a module with a mask, by magnitude, at random or as given. PyTorch's
``torch.nn.utils.prune``.

A pruned parameter ``weight`` becomes the parameter ``weight_orig`` and the buffer ``weight_mask``; ``weight``
is their product, made anew before each call of the module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import ArgumentError
from ...ops.shape.creation import ones_like
from ...ops.shape.joining import cat
from ...tensors.absent import refuse_others
from ...tensors.tensor import Tensor
from ..modules.module import Module
from .prune_methods import (
    BasePruningMethod,
    CustomFromMask,
    L1Unstructured,
    LnStructured,
    NothingPruned,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    hook_of,
)

Identity = NothingPruned


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask that prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune entries of a parameter at random; see `RandomUnstructured`."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the entries of a parameter whose magnitude is least.

    Args:
        module: whose.
        name: of the parameter.
        amount: a share between 0 and 1, or how many.
        importance_scores: whose magnitude counts; the parameter's own if None.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.l1_unstructured.html

    Example:
        >>> import pellucid as torch
        >>> from pellucid.nn.utils import prune
        >>> layer = prune.l1_unstructured(torch.nn.Linear(4, 2, device="cpu"), "weight", amount=3)
        >>> (layer.weight == 0).sum().item(), sorted(layer.state_dict())
        (3, ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune slices of a parameter along an axis at random; see `RandomStructured`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: int | float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a parameter along an axis whose norm is least; see `LnStructured`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune entries of several parameters together, as if they were one vector.

    Args:
        parameters: modules and names.
        pruning_method: of entries, such as `L1Unstructured`.
        importance_scores: by module and name, where it is not the parameter itself.
        kwargs: of the method.

    Raises:
        ArgumentError: the method is not one of entries.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.global_unstructured.html
    """
    pairs, scores = list(parameters), importance_scores or {}
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ArgumentError("global_unstructured: parameters must be pairs of a module and a name.")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    values: list[Tensor] = [(scores[pair] if pair in scores else getattr(*pair)).detach() for pair in pairs]
    masks = [getattr(m, f"{name}_mask", None) for m, name in pairs]
    before = [ones_like(v) if mask is None else mask for v, mask in zip(values, masks, strict=True)]
    method._tensor_name = "temp"
    container = PruningContainer(method)
    vector, known = (cat([t.reshape(-1) for t in parts]) for parts in (values, before))
    mask, start = container.compute_mask(vector, known), 0
    for (module, name), value in zip(pairs, values, strict=True):
        part = mask[start : start + value.numel()].reshape(tuple(value.shape))
        custom_from_mask(module, name, part)
        start += value.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what a mask says; see `CustomFromMask`."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make pruning permanent: the parameter has its name again, with zeros where it was pruned.

    Raises:
        ArgumentError: it is not pruned.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.prune.remove.html
    """
    found = hook_of(module, name)
    if found is None:
        raise ArgumentError(
            f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can be "
            "removed"
        )
    found[1].remove(module)
    del module._hooks[found[0]]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one within it, is pruned."""
    return any(
        isinstance(hook.function, BasePruningMethod)
        for _, child in module.named_modules()
        for hook in child._hooks.values()
    )


__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

refuse_others("torch.nn.utils.prune", globals())
