"""Frozen weights: packed bits that layers unpack inside their kernels, without a master."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ...errors import ArgumentError
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.parametrize import remove_parametrizations
from .planes import PLANES
from .polymorphic import MASTER, polymorphic, polymorphic_names, seen_master
from .readers import unpacks

_LAYERS = "Linear, Embedding, convolutions or recurrent layers"


def freeze(module: Module, pattern: str = "*weight*") -> list[str]:
    """Let layers keep nothing but the packed bits of their weights, for inference, and tell which do.

    Weights of `Linear`, `Embedding`, convolutions and recurrent layers that were morphed become weights whose
    kernels unpack them: all kinds but float32, with a scale for the tensor, a channel, or a group of 32
    columns (float8: 128) or a multiple of them, and NVFP4. The masters go, so these weights learn no more;
    inputs still have gradients. Other weights stay as they are.

    Args:
        module: morphed before.
        pattern: of the names of weights.

    Returns:
        Names of the weights that are frozen now.

    Raises:
        ArgumentError: there is nothing to freeze.

    Example:
        >>> import pellucid
        >>> layer = pellucid.grid.morph(pellucid.nn.Linear(64, 2, device="cpu"), "ternary", "weight")
        >>> y = layer(pellucid.ones(1, 64, device="cpu"))
        >>> pellucid.grid.freeze(layer)
        ['weight']
        >>> bool((layer(pellucid.ones(1, 64, device="cpu")) - y).abs().max() < 1e-4)
        True
    """
    frozen = []
    for path, owner in list(module.named_modules()):
        for last in polymorphic_names(owner) if unpacks(owner) else ():
            name = f"{path}.{last}" if path else last
            if not fnmatchcase(name, pattern):
                continue
            seen, master = polymorphic(owner, last), seen_master(owner, last)
            weight = None if seen is None or seen.active is MASTER else seen.weight(master)
            if weight is not None:
                remove_parametrizations(owner, last, leave_parametrized=False)
                setattr(owner, last, Parameter(weight.detach(), requires_grad=False))
                frozen.append(name)
    if not frozen:
        raise ArgumentError(
            f"freeze: {type(module).__name__} has no weights of {_LAYERS} in a kind that kernels "
            f"unpack ({', '.join(PLANES)}). Call morph first; see the docs for the groups of scales."
        )
    return frozen
