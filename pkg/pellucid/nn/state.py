"""The state of a module tree by path: saving it, and taking it over with every difference named at once."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from ..autograd import no_grad
from ..errors import ArgumentError, WeightError
from ..op.arguments import describe
from ..tensors.construct import as_tensor
from ..tensors.tensor import Tensor
from .parameter import Parameter
from .tree import Tree

# How many differences of one kind an error lists by name.
_LISTED = 20


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What did not match in `Module.load_state_dict`: ``missing_keys`` and ``unexpected_keys``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"


def _places(module: Tree, prefix: str):
    """(path, module, attribute, tensor) of all that is saved, shared ones under each of their names."""
    for path, m in module.named_modules(prefix=prefix, remove_duplicate=False):
        for kind in ("parameter", "buffer"):
            for name, t in m._own(kind).items():
                if t is not None and name not in m._transient:
                    yield (f"{path}.{name}" if path else name), m, name, t


def save(module: Tree, destination: OrderedDict, prefix: str) -> OrderedDict[str, Tensor]:
    """Add the state of a tree to a dictionary."""
    for path, _, _, t in _places(module, prefix.removesuffix(".")):
        destination[path] = t.detach()
    return destination


def load(module: Tree, given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Take over values by path; checks everything before it changes anything.

    Raises:
        WeightError: names or shapes differ.
    """
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"load_state_dict: takes a dictionary of tensors by name, not {type(given).__name__}."
        )
    for path, value in given.items():
        if not hasattr(value, "shape"):
            raise WeightError(f"load_state_dict: {path!r} must be a tensor, not {describe(value)}.")
    places = list(_places(module, ""))
    known = {path for path, *_ in places}
    missing = [path for path, *_ in places if path not in given]
    unexpected = [name for name in given if name not in known]
    misshapen = [
        f"{path}: {tuple(given[path].shape)} given, {tuple(t.shape)} in the module"
        for path, _, _, t in places
        if path in given and tuple(given[path].shape) != tuple(t.shape)
    ]
    problems = [("misshapen", misshapen)]
    if strict:
        problems = [("missing", missing), ("unexpected", unexpected), *problems]
    if any(found for _, found in problems):
        parts = [f"{len(found)} {what}: {_listed(found)}" for what, found in problems if found]
        raise WeightError(
            f"load_state_dict of {type(module).__name__}: {'. '.join(parts)}. "
            "Build the module with the sizes of the weights, or give strict=False to ignore missing "
            "and unexpected names."
        )
    for path, m, name, t in places:
        if path in given:
            _take(m, name, t, given[path], assign)
    return IncompatibleKeys(missing, unexpected)


def _listed(found: list[str]) -> str:
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more


@no_grad
def _take(m: Tree, name: str, t: Tensor, value: Any, assign: bool) -> None:
    if not isinstance(value, Tensor):
        value = as_tensor(value, device="cpu")
    quantized = value.dtype.is_quantized or t.dtype.is_quantized
    if not (assign or quantized or t.device.type == "meta"):
        # Converted where it is: its own dtype may not exist on the module's device.
        t.detach().copy_(value.to(t.dtype))
        return
    if not assign and t.device.type != "meta":
        value = value.to(t.device)
    if isinstance(t, Parameter):
        # The same object, so that weights that are tied stay tied and optimizers keep what they hold.
        if not value.dtype.is_floating_point:
            t.requires_grad_(False)
        t.data = value.detach()
    else:
        m.__dict__[name] = value.detach()


__all__ = ["IncompatibleKeys", "load", "save"]
