"""A module called with other parameters, by the name from before `torch.func`: ``nn.utils.stateless``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .. import func
from ..modules.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`torch.func.functional_call` by its older name: a call of a module with other parameters and buffers.

    Args:
        module: the module.
        parameters_and_buffers: values by name; what is not named stays.
        args: of the call: a tuple, or one argument.
        kwargs: of the call, by name.
        tie_weights: a value also stands for those that are tied to it.
        strict: names must be all of the module's.

    Returns:
        What the module returns.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.stateless.functional_call.html

    Example:
        >>> import warnings
        >>> import pellucid as torch
        >>> from pellucid.nn.utils.stateless import functional_call
        >>> layer = torch.nn.Linear(1, 1, bias=False, device="cpu")
        >>> weights = {"weight": torch.full((1, 1), 3.0, device="cpu")}
        >>> with warnings.catch_warnings(action="ignore"):
        ...     functional_call(layer, weights, torch.ones(1, device="cpu")).tolist()
        [3.0]
    """
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated. Use torch.func.functional_call.",
        FutureWarning,
        stacklevel=2,
    )
    values, named = dict(parameters_and_buffers), dict(kwargs or {})
    return func.functional_call(module, values, args, named, tie_weights=tie_weights, strict=strict)


__all__ = ["functional_call"]
