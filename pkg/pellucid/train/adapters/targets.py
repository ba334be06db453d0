"""Which modules adapters of an architecture change, where nobody names them."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ...nn.modules.linear import Linear
from .config import IA3Config
from .layers import is_transposed


def usual_targets(model: Any, config: Any) -> list[str]:
    """What adapters of an architecture usually change: queries and values; with IA3 keys, values and the last
    product of feed-forwards.

    Raises:
        ArgumentError: it is no model that is known.
    """
    names = getattr(getattr(model, "config", None), "module_names", None)
    if names is None:
        raise ArgumentError(
            f"{type(config).__name__}: target_modules must be given for {type(model).__name__}: ends of "
            "paths of linear layers, or 'all-linear'."
        )
    if isinstance(config, IA3Config):
        wanted = [names.joined or names.key, names.joined or names.value, names.down]
    else:
        wanted = [names.joined or names.query, names.joined or names.value]
    return sorted({*wanted})


def usual_feedforwards(model: Any) -> tuple[str, ...]:
    """The last products of an architecture's feed-forwards."""
    names = getattr(getattr(model, "config", None), "module_names", None)
    return () if names is None else (names.down,)


def all_linear(model: Any) -> list[str]:
    """The ends of the paths of all linear layers but the head."""
    head = getattr(getattr(getattr(model, "config", None), "module_names", None), "head", None)
    ends = {
        path if "." not in path else path.rpartition(".")[2]
        for path, m in model.named_modules()
        if isinstance(m, Linear) or is_transposed(m)
    }
    return sorted(ends - {head})


__all__ = ["all_linear", "usual_feedforwards", "usual_targets"]
