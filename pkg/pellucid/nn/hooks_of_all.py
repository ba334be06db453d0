"""Hooks that all modules have, which `torch.nn.modules.module` names: of their calls, and of what becomes a
parameter, a buffer or a submodule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.handle import Handle
from .hooks import OF_ALL, Hook, HookHandle

# By kind, as of `Tree._kinds`.
_registration: dict[str, dict[int, Callable]] = {"parameter": {}, "buffer": {}, "module": {}}
# What notes that the calls of modules may compute something else; `modules.module` has it.
changed: list[Callable[[], None]] = []


def _changed() -> None:
    for note in changed:
        note()


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What becomes an attribute of a module: a value, or what hooks make of it."""
    if value is not None or kind != "parameter":
        for hook in list(_registration[kind].values()):
            made = hook(module, name, value)
            value = value if made is None else made
    return value


def register_module_forward_pre_hook(hook: Callable) -> HookHandle:
    """Call ``hook(module, args)`` before every call of any module; a result replaces the arguments.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_forward_pre_hook.html
    """
    return HookHandle(OF_ALL, Hook("pre", hook), False, _changed)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> HookHandle:
    """Call ``hook(module, args, output)`` after every call of any module; a result replaces the output.

    Args:
        hook: the function.
        with_kwargs: call ``hook(module, args, kwargs, output)``.
        always_call: also when the call raises, with None as output.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_forward_hook.html
    """
    return HookHandle(OF_ALL, Hook("post", hook, with_kwargs, always_call), False, _changed)


def register_module_full_backward_pre_hook(hook: Callable) -> HookHandle:
    """Call ``hook(module, grad_output)`` before the gradients of any module's inputs; a result replaces them.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_full_backward_pre_hook.html
    """
    return HookHandle(OF_ALL, Hook("backward_pre", hook), False, _changed)


def register_module_full_backward_hook(hook: Callable) -> HookHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of any module's inputs are known; a
    result replaces ``grad_input``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_full_backward_hook.html
    """
    return HookHandle(OF_ALL, Hook("backward", hook), False, _changed)


def register_module_backward_hook(hook: Callable) -> HookHandle:
    """`register_module_full_backward_hook`, under its older name."""
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Callable) -> Handle:
    """Call ``hook(module, name, param)`` when a parameter is registered; a result takes its place.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_parameter_registration_hook.html
    """
    return Handle(_registration["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable) -> Handle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; a result takes its place.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_buffer_registration_hook.html
    """
    return Handle(_registration["buffer"], hook)


def register_module_module_registration_hook(hook: Callable) -> Handle:
    """Call ``hook(module, name, submodule)`` when a submodule is registered; a result takes its place.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.modules.module.register_module_module_registration_hook.html
    """
    return Handle(_registration["module"], hook)


__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip
