"""Parameters computed from others whenever they are looked at. PyTorch's ``nn.utils.parametrize``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ArgumentError, DTypeError, RangeError
from ...tensors.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

# While `cached` is on: what was computed, by module and name.
_cache: dict[tuple[int, str], Tensor] | None = None


@contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrized tensor once within the block, however often it is looked at."""
    global _cache
    before, _cache = _cache, {} if _cache is None else _cache
    try:
        yield
    finally:
        _cache = before


def is_caching() -> bool:
    """Whether `cached` is on."""
    return _cache is not None


class ParametrizationList(ModuleList):
    """The chain of modules that makes a parametrized tensor, and what it is made from.

    Args:
        modules: the chain.
        original: the tensor that was there; each module's ``right_inverse``, the last first, turns it into
            what the chain begins with.
        unsafe: shape and dtype may change.

    Attributes:
        original: what the chain begins with; ``original0``, ``original1``, ... where it begins with several.
    """

    def __init__(self, modules: list[Any], original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        begin: Any = original
        for module in reversed(modules):
            if hasattr(module, "right_inverse"):
                try:
                    begin = module.right_inverse(begin)
                except DTypeError:  # a NotImplementedError, too
                    raise
                except NotImplementedError:  # a map without an inverse begins with what is there
                    pass
        self.is_tensor = isinstance(begin, Tensor)
        if self.is_tensor:
            if isinstance(original, Parameter):
                if begin is not original:
                    original.data = begin.detach()
                self.original = original
            else:
                self.register_buffer("original", begin)
        else:
            self.ntensors = len(begin)
            for k, part in enumerate(begin):
                if isinstance(original, Parameter):
                    setattr(self, f"original{k}", Parameter(part.detach(), original.requires_grad))
                else:
                    self.register_buffer(f"original{k}", part)

    def _begin(self) -> list[Tensor]:
        return (
            [self.original]
            if self.is_tensor
            else [getattr(self, f"original{k}") for k in range(self.ntensors)]
        )

    def right_inverse(self, value: Tensor) -> None:
        """Set what the chain begins with, so that it ends with a value."""
        begin: Any = value
        for module in reversed(list(self)):
            begin = module.right_inverse(begin)
        for place, part in zip(self._begin(), [begin] if self.is_tensor else begin, strict=True):
            place.data = part.detach()

    def forward(self) -> Tensor:
        """The tensor."""
        first, *others = list(self)
        out = first(*self._begin())
        for module in others:
            out = module(out)
        return out


def _computed(name: str) -> property:
    def look(self: Module) -> Tensor:
        chain = self.__dict__["parametrizations"][name]
        if _cache is None:
            return chain()
        key = id(self), name
        if key not in _cache:
            _cache[key] = chain()
        return _cache[key]

    def assign(self: Module, value: Tensor) -> None:
        self.__dict__["parametrizations"][name].right_inverse(value)

    return property(look, assign)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of a module what another module makes of it, and return the module.

    Args:
        module: whose tensor.
        tensor_name: its name.
        parametrization: called with the tensor; with a method ``right_inverse``, from that of a value.
        unsafe: shape and dtype may change.

    Raises:
        RangeError: the module has no such tensor, or its shape or dtype would change.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html
    """
    if not isinstance(parametrization, Module):
        raise ArgumentError(f"register_parametrization: {type(parametrization).__name__} is not a Module.")
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
        before = getattr(module, tensor_name)
        _same(before, parametrization(before), unsafe)
        if hasattr(parametrization, "right_inverse"):
            chain.append(parametrization)
            chain.right_inverse(before)
        else:
            chain.append(parametrization)
        return module
    if module._kinds.get(tensor_name) not in ("parameter", "buffer"):
        raise RangeError(
            f"register_parametrization: {type(module).__name__} has no parameter or buffer {tensor_name!r}."
        )
    original: Any = module.__dict__[tensor_name]
    shape, dtype = original.shape, original.dtype
    kept = original.detach().clone()
    chain = ParametrizationList([parametrization], original, unsafe)
    try:
        _same(kept, chain(), unsafe, shape, dtype)
    except RangeError:
        original.data = kept
        raise
    delattr(module, tensor_name)
    kind = type_before_parametrizations(module)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    known: Any = module.__dict__["parametrizations"]
    known[tensor_name] = chain
    _look_through(module, kind)
    return module


def _look_through(module: Module, kind: type) -> None:
    """Give a module a class with a property for each of its parametrized tensors, of its own: a copy of the
    module may lose them."""
    known: Any = module.__dict__["parametrizations"]
    properties: dict[str, Any] = {name: _computed(name) for name in known}
    made = type(f"Parametrized{kind.__name__}", (kind,), {"_before": kind, **properties})
    object.__setattr__(module, "__class__", made)


def _same(before: Tensor, after: Any, unsafe: bool, shape: Any = None, dtype: Any = None) -> None:
    shape, dtype = before.shape if shape is None else shape, before.dtype if dtype is None else dtype
    if not unsafe and (after.shape != shape or after.dtype is not dtype):
        raise RangeError(
            f"register_parametrization: a tensor of {dtype} and shape {tuple(shape)} would become one of "
            f"{after.dtype} and {tuple(after.shape)}. Give unsafe=True if that is meant."
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrized tensor, or one of that name."""
    known = module.__dict__.get("parametrizations")
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor a plain one again, and return the module.

    Args:
        module: whose tensor.
        tensor_name: its name.
        leave_parametrized: with the value that it has; else with what the chain begins with.

    Raises:
        RangeError: it is not parametrized, or the chain begins with several and their value is wanted.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.remove_parametrizations.html
    """
    if not is_parametrized(module, tensor_name):
        raise RangeError(f"remove_parametrizations: {tensor_name!r} is not parametrized.")
    known: Any = module.__dict__["parametrizations"]
    chain = known[tensor_name]
    if not (leave_parametrized or chain.is_tensor):
        raise RangeError("remove_parametrizations: the chain begins with several tensors, not with one.")
    begin = chain._begin()
    value: Any = begin[0]
    if leave_parametrized:
        made = getattr(module, tensor_name).detach()
        if not chain.is_tensor:
            wants = any(t.requires_grad for t in begin)
            value = Parameter(made, wants) if isinstance(value, Parameter) else made
        else:
            value.data = made
    kind = type_before_parametrizations(module)
    module.__class__ = kind
    del known[tensor_name]
    if isinstance(value, Parameter):
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    if known:
        _look_through(module, kind)
    else:
        delattr(module, "parametrizations")
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize tensors of a module as those of another one are, by the same modules and parameters.

    Args:
        from_module: the other one; without parametrized tensors nothing happens.
        to_module: gets them; a tensor that it has not is made first.
        tensor_name: one tensor; all that are parametrized if None.

    Returns:
        ``to_module``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.transfer_parametrizations_and_params.html
    """
    known = from_module.__dict__["parametrizations"] if is_parametrized(from_module) else {}
    for name in [*known] if tensor_name is None or not known else [tensor_name]:
        chain: Any = known[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for module in chain:
            register_parametrization(to_module, name, module)
        made: Any = to_module.__dict__["parametrizations"][name]
        places = ["original"] if chain.is_tensor else [f"original{k}" for k in range(len(chain._begin()))]
        for place in places:
            setattr(made, place, getattr(chain, place))
    return to_module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module)._before if is_parametrized(module) else type(module)  # type: ignore[attr-defined]


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip
