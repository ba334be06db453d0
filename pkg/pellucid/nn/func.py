"""PyTorch's ``torch.func``: transforms of functions, and modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.mapped import vmap
from ..autograd.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..errors import ArgumentError, WeightError
from ..ops.shape.joining import stack
from ..tensors.absent import refuse_others
from ..tensors.tensor import Tensor
from .modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .modules.module import Module


def _places(module: Module) -> dict[str, tuple[dict, str]]:
    """By name, also where one tensor has several: the table and the key of each parameter and buffer."""
    found = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for key, value in {**owner._parameters, **owner._buffers}.items():
            if value is not None:
                found[f"{path}.{key}" if path else key] = owner.__dict__, key
    return found


@contextmanager
def _replaced(module: Module, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors for its parameters and buffers."""
    places = _places(module)
    if strict and places.keys() != given.keys():
        missing, unexpected = sorted(places.keys() - given.keys()), sorted(given.keys() - places.keys())
        raise WeightError(f"functional_call: missing {missing} and unexpected {unexpected} names of tensors.")
    before = {name: table[key] for name, (table, key) in places.items()}
    new = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        values = {id(before[name]): value for name, value in new.items()}
        new = {n: values[id(t)] for n, t in before.items() if id(t) in values} | new
    try:
        for name, value in new.items():
            table, key = places[name]
            table[key] = value
        yield
    finally:
        for name in new:
            table, key = places[name]
            table[key] = before[name]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module returns with these tensors in the place of its parameters and buffers.

    Args:
        module: is left as it is.
        parameter_and_buffer_dicts: a dictionary by name, or several.
        args, kwargs: of the call; what is no tuple is the one argument.
        tie_weights: a tensor with two names is replaced at both.
        strict: refuse names that are missing or unknown.

    Raises:
        ArgumentError: it is no module, or something else is given for a dictionary.
        WeightError: with ``strict``: the names differ.

    Source: https://pytorch.org/docs/stable/generated/torch.func.functional_call.html

    Example:
        >>> import pellucid as torch
        >>> layer = torch.nn.Linear(2, 1, device="cpu")
        >>> weights = {"weight": torch.ones(1, 2, device="cpu"), "bias": torch.zeros(1, device="cpu")}
        >>> torch.func.functional_call(layer, weights, torch.ones(2, device="cpu")).tolist()
        [2.0]
    """
    if not isinstance(module, Module):
        raise ArgumentError(f"functional_call: module must be a Module, not {type(module).__name__}.")
    dicts = parameter_and_buffer_dicts
    dicts = [dicts] if isinstance(dicts, Mapping) else dicts
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ArgumentError(f"functional_call: takes dictionaries of Tensors by name, not {dicts!r}.")
    given: dict[str, Any] = {}
    for d in dicts:
        for name, value in d.items():
            if name in given:
                raise ArgumentError(f"functional_call: {name!r} appears in several dictionaries.")
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"functional_call: {name!r} must be a Tensor, not {type(value).__name__}."
                )
            given[name] = value
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one class, by name, stacked along a first axis.

    Args:
        models: of one class, all training or none.

    Source: https://pytorch.org/docs/stable/generated/torch.func.stack_module_state.html
    """
    models = list(models)
    if not models or not all(isinstance(m, Module) for m in models):
        raise ArgumentError("stack_module_state: takes a list of modules, at least one.")
    if len({type(m) for m in models}) > 1 or len({m.training for m in models}) > 1:
        raise ArgumentError("stack_module_state: models must be of one class, all training or none.")
    found: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for table, names in zip(found, ("named_parameters", "named_buffers"), strict=True):
        rows = [dict(getattr(m, names)()) for m in models]
        for name, first in rows[0].items():
            table[name] = stack([row[name].detach() for row in rows]).requires_grad_(first.requires_grad)
    return found


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function itself: nothing here records views or writes in place apart from their results.

    Source: https://pytorch.org/docs/stable/generated/torch.func.functionalize.html
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(
            f"functionalize: remove is {remove!r}, neither mutations nor mutations_and_views."
        )
    return func


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch norms of a module normalize by the batch alone, without running statistics, as `vmap`
    needs it; returns the module.

    Source: https://pytorch.org/docs/stable/generated/torch.func.replace_all_batch_norm_modules_.html
    """
    for m in root.modules():
        if isinstance(m, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            m.track_running_stats = False
            m.running_mean = m.running_var = m.num_batches_tracked = None
    return root


__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

refuse_others("torch.func", globals())
