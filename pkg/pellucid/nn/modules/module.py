"""Module: parameters, buffers and submodules by attribute, and the one place where calls can be watched."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from itertools import takewhile
from typing import Any

from ...device import device as Device
from ...device.stream import stream
from ...errors import ArgumentError, DeviceError, DTypeError
from ...op.arguments import described
from ...ops.shape.creation import empty_like
from ...tensors.absent import public as known
from ...tensors.dtypes import DType, bfloat16, float16, float32, float64
from ...tensors.tensor import Tensor
from ..hooks import Hook, HookHandle, Listened, OwnHooks, Tap, call
from ..hooks_of_all import *  # noqa: F403
from ..hooks_of_all import changed, registered
from ..html import tree
from ..parameter import Buffer, Parameter, account
from ..state import IncompatibleKeys, Stateful

# Layers that PyTorch names without a page of their own.
_WITHOUT_PAGE = {"CrossMapLRN2d", "NLLLoss2d", "RNNCellBase"}

# Grows with every change that may alter what a call computes: an attribute, a hook, train or eval.
version = 0
# Grows when somebody begins or ceases to look through a tap, which alters nothing.
looks = 0


def _changed() -> None:
    global version
    version += 1


changed.append(_changed)


def _looked() -> None:
    global looks
    looks += 1


def _documented(cls: type) -> str:
    """The docstring of a layer, with the arguments that a private class explains, and PyTorch's page."""
    text, args = cleandoc(cls.__doc__ or ""), "\n\nArgs:"
    if args not in text and "__init__" not in vars(cls):
        kinds = takewhile(lambda c: c.__name__[0] == "_", cls.__mro__[1:])
        shared = next((doc for kind in kinds if args in (doc := cleandoc(kind.__doc__ or ""))), "")
        first, *rest = re.split(r"(?=\n\n(?:Source|Example):)", text, maxsplit=1)
        text = "".join([first, *shared.partition(args)[1:], *rest])
    has_page = cls.__name__ in known()["torch.nn"] and cls.__name__ not in _WITHOUT_PAGE
    return described(text, (), {}, f"generated/torch.nn.{cls.__name__}.html" if has_page else "")


class Module(Listened, Stateful["Module"]):
    """Base of all layers and models.

    Parameters, buffers and submodules lie among the other attributes, so that ``self.weight`` costs no more
    than any; ``_kinds`` says which attribute is what, in the order of registration.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html

    Example:
        >>> import pellucid as torch
        >>> class Twice(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x * 2
        >>> Twice()(torch.ones(2, device="cpu")).tolist()
        [2.0, 2.0]
    """

    training: bool
    # The captured calls of `op.jit`, which knows modules, set it.
    compile: Callable[..., None]

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("pellucid.nn.") and cls.__doc__ and cls.__name__[0] != "_":
            cls.__doc__ = _documented(cls)

    def __init__(self):
        self.__dict__["_kinds"] = {}
        self.__dict__["training"] = True

    def __call__(self, *args, **kwargs) -> Any:
        if self._hooks:
            return call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def forward(self, *args, **kwargs) -> Any:
        """What the module computes. Subclasses define it; users call the module."""
        raise NotImplementedError(f"{type(self).__name__}: define forward().")

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        global version
        version += 1
        capturing = stream().capturing
        if capturing is not None and self.__dict__.get(name, value) is not value:
            capturing.refuse(f"it assigns {name!r} of a module, which a replay would not", False)
        kinds = self.__dict__.get("_kinds")
        kind = None if kinds is None else kinds.get(name)
        if isinstance(value, Parameter):
            new = "parameter"
        elif isinstance(value, Module):
            new = "module"
        elif isinstance(value, Buffer) and kinds is not None:
            new = "buffer"
            names = self._transient - {name} if value.persistent else self._transient | {name}
            object.__setattr__(self, "_transient", names)
        elif kind is None:
            object.__setattr__(self, name, value)
            return
        elif value is None or (kind == "buffer" and isinstance(value, Tensor)):
            new = kind
        elif kind == "buffer":
            raise TypeError(
                f"cannot assign {type(value).__name__} as buffer {name!r} (a Tensor or None "
                "expected). Delete the attribute first."
            )
        else:
            wanted = "nn.Parameter" if kind == "parameter" else "nn.Module"
            raise TypeError(
                f"cannot assign {type(value).__name__} as {kind} {name!r} ({wanted} or None "
                "expected). Delete the attribute first."
            )
        if kinds is None:
            raise AttributeError(
                f"cannot assign {new}s before Module.__init__() call. Begin __init__ with super().__init__()."
            )
        if kind is not None and kind != new:
            del kinds[name]
        self._register(new, name, value)

    def __delattr__(self, name: str) -> None:
        _changed()
        self._kinds.pop(name, None)
        self._transient -= {name}
        object.__delattr__(self, name)

    def _new_name(self, name: str, what: str) -> None:
        if "_kinds" not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what}s before Module.__init__() call. Begin __init__ with "
                "super().__init__()."
            )
        if not isinstance(name, str):
            raise TypeError(f"a {what}'s name must be a string, not {type(name).__name__}.")
        if not name or "." in name:
            raise KeyError(f"a {what}'s name can neither be empty nor hold a dot: {name!r}.")
        if self._kinds.get(name) != what and hasattr(self, name):
            raise KeyError(f"attribute {name!r} exists already. Choose another name.")

    def _register(self, kind: str, name: str, value: Any) -> None:
        self.__dict__[name] = registered(kind, self, name, value)
        self._kinds[name] = kind
        _changed()

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make ``self.<name>`` a parameter; None keeps the name without a value.

        Raises:
            KeyError: the name is empty, holds a dot, or is an attribute already.
            TypeError: ``param`` is not a Parameter.
        """
        self._new_name(name, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign {type(param).__name__} as parameter {name!r} (nn.Parameter or None expected)."
            )
        self._register("parameter", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make ``self.<name>`` a tensor that moves and is saved with the module, but is no parameter.

        Args:
            name: the attribute.
            tensor: its value, or None.
            persistent: whether it is part of `state_dict`.

        Raises:
            KeyError: the name is empty, holds a dot, or is an attribute already.
            TypeError: ``tensor`` is not a tensor.
        """
        self._new_name(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign {type(tensor).__name__} as buffer {name!r} (a Tensor or None expected)."
            )
        self._register("buffer", name, tensor)
        names = self._transient - {name} if persistent else self._transient | {name}
        object.__setattr__(self, "_transient", names)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``self.<name>`` a submodule.

        Raises:
            KeyError: the name is empty, holds a dot, or is an attribute already.
            TypeError: ``module`` is not a module.
        """
        self._new_name(name, "module")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module.")
        self._register("module", name, module)

    register_module = add_module

    # Modes

    def train(self, mode: bool = True) -> Module:
        """Switch this module and all below it to training (or not)."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be True or False, not {mode!r}.")
        for m in self.modules():
            m.training = mode
        return self

    def eval(self) -> Module:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Switch the recording of gradients for every parameter."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad = p.grad.detach().zero_()

    # Where and as what

    def _apply(self, change: Callable[[Tensor], Tensor]) -> Module:
        """Change the values of every parameter (and its gradient) and buffer; the objects stay the same."""
        for p in self.parameters():
            p.data = change(p.detach())
            account(p)
            if p.grad is not None:
                p.grad = change(p.grad.detach())
        # A buffer that several modules share stays shared.
        changed: dict[Tensor, Tensor] = {}
        for m in self.modules():
            for name, b in m._own("buffer").items():
                if b is not None:
                    if b not in changed:
                        changed[b] = change(b)
                    m.__dict__[name] = changed[b]
        _changed()
        return self

    def to(
        self, *args, device=None, dtype: DType | None = None, non_blocking: bool = False, memory_format=None
    ) -> Module:
        """Move all parameters and buffers, and convert those that are floating point. Returns this module.

        Args:
            args: a device, a dtype, a tensor to be like, or a device and a dtype.
            device, dtype: the same by name.
            non_blocking, memory_format: accepted for PyTorch's sake.

        Raises:
            DTypeError: the dtype is not floating point.
        """
        for a in args:
            if isinstance(a, DType):
                dtype = a
            elif isinstance(a, Tensor):
                device, dtype = a.device, a.dtype
            elif isinstance(a, (str, Device)):
                device = a
            elif a is not None and not isinstance(a, bool):
                raise ArgumentError(f"to: takes a dtype, a device or a tensor, not {type(a).__name__} {a!r}")
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"to: a module's dtype must be floating point, not {dtype}.")

        def change(t: Tensor) -> Tensor:
            return t.to(device=device, dtype=dtype if t._meta.dtype.is_floating_point else None)

        return self._apply(change)

    def to_empty(self, *, device, recurse: bool = True) -> Module:
        """Give all parameters and buffers memory on a device, with whatever values it holds."""
        return self._apply(lambda t: empty_like(t, device=device))

    def cpu(self) -> Module:
        """To the cpu device."""
        return self.to("cpu")

    def cuda(self, device=None) -> Module:
        """Refused: the device is called "webgpu" here.

        Raises:
            DeviceError: always.
        """
        raise DeviceError("cuda: there is no CUDA here. Use .webgpu(), or .to(device).")

    def share_memory(self) -> Module:
        """Refused: processes share no memory here.

        Raises:
            DeviceError: always.
        """
        raise DeviceError("share_memory: memory of a device belongs to one process. Give it a state_dict().")

    def webgpu(self) -> Module:
        """To the webgpu device."""
        return self.to("webgpu")

    def float(self) -> Module:
        """Floating-point parameters and buffers as float32."""
        return self.to(float32)

    def double(self) -> Module:
        """Floating-point parameters and buffers as float64 (cpu only)."""
        return self.to(float64)

    def half(self) -> Module:
        """Floating-point parameters and buffers as float16."""
        return self.to(float16)

    def bfloat16(self) -> Module:
        """Floating-point parameters and buffers as bfloat16."""
        return self.to(bfloat16)

    def type(self, dst_type: DType) -> Module:
        """``to(dst_type)``."""
        return self.to(dst_type)

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        result = super().load_state_dict(state_dict, strict, assign)
        _changed()
        return result

    # Hooks

    def _listen(self, hook: Hook, prepend: bool) -> HookHandle:
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = OwnHooks()
        return HookHandle(self._hooks, hook, prepend, _looked if isinstance(hook.function, Tap) else _changed)

    # Copies and printing

    def __copy__(self) -> Module:
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.__dict__["_kinds"] = dict(self._kinds)
        for table in ("_hooks", "_state_hooks"):
            if table in self.__dict__:
                out.__dict__[table] = self.__dict__[table].copy()
        captured = getattr(out.__dict__.get("forward"), "__wrapped__", None)
        if getattr(captured, "__self__", None) is self:
            del out.forward
        return out

    def extra_repr(self) -> str:
        """What a subclass prints between its parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _repr_html_(self) -> str:
        return tree(self)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {m!r}" for name, m in self._own("module").items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        inner = "\n".join(lines + children).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {inner}\n)"


class Configured(Module):
    """A module with fixed settings: attributes, of which ``_settings`` has the names."""

    _settings: tuple[str, ...] = ()

    def _set(self, **settings: Any) -> None:
        if "_kinds" not in self.__dict__:
            super().__init__()
        for name, value in {"_settings": tuple(settings), **settings}.items():
            setattr(self, name, value)


__all__ = ["Configured", "Module"]
