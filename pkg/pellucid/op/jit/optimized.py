"""`compile`, as PyTorch has it: of a function, or of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from ...errors import ArgumentError
from ...nn.modules.module import Module
from .compiled import Compiled, Explanation
from .compiler import check_backend


class OptimizedModule(Module):
    """A module whose calls are captured; what `compile` makes of a module.

    Everything else of the module is there as before, under its own names.

    Args:
        module: the module.
        dynamic: parameters of ``forward`` whose numbers may change.
        whole: raise what keeps it from being captured.
    """

    def __init__(self, module: Module, dynamic: Iterable[str] = (), whole: bool = False):
        super().__init__()
        self._orig_mod = module
        self._compiled = Compiled(module, dynamic, tree=module.modules, whole=whole)

    def forward(self, *args, **kwargs) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_orig_mod" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._orig_mod, name)

    def explain(self) -> Explanation:
        """What became of the calls so far; see `Compiled.explain`."""
        return self._compiled.explain()


# How PyTorch's Inductor may work; here there is one way.
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: Iterable[str] | str | bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Record what a function runs on webgpu, and replay that at later calls without running its Python.

    A call is replayed once calls like it have been recorded: arguments of the same shapes, types, strides and
    sharing of memory, other arguments equal, the same modes (gradients, default dtype and device, fusion), no
    attribute of a module assigned and no hook registered since, parameters, gradients and the state of
    optimizers where they were, and the same in all that the function finds in Python: globals and closures
    that its code names, default values, attributes of objects, classes and modules that code names, what is
    in lists, dictionaries, sets and arrays; also where functions and methods find it that are called on the
    way. The first calls, and all that differ in one of these, run eagerly and are recorded. Results are new
    tensors at every call. Random numbers, the steps of optimizers, their learning rates and other settings go
    on as they would.

    What Python does besides is not replayed: printing happens at recorded calls only, and where a function of
    one launch, given tensors alone, runs its own Python, which mostly is quicker than a replay. A function
    that changes what it finds or is given, such as a counter, a list, an attribute or where Python's random
    numbers stand, runs eagerly. So does one that finds more than 4096 items, an array of more than 64 KiB, or
    an iterator.
    Not seen are clocks, files, changes of code and variables of this package, of numpy and of Python's
    library, and attributes of classes and modules whose names are computed. Nor are checks of arguments
    repeated whose outcome depends on where in its memory a tensor begins, such as those of `as_strided`. A
    function whose result still needs its graph runs eagerly; so do calls while a module has hooks, and those
    that assign another value to an attribute of a module.

    Where a function reads a value, such as ``if (x > 0).all():`` or ``n.item()``, its program is split: a
    replay waits for the value and goes on with what followed the same value before. A call that reads
    another value runs eagerly and is recorded, for up to eight values of a read; a function that reads still
    others runs eagerly from then on, and so does one that writes memory from outside before it reads.
    ``explain()`` of what is returned tells all of this.

    Args:
        model: a function or a module. Without it the result is a decorator.
        fullgraph: raise what keeps a function from being captured, instead of running it eagerly.
        dynamic: names of parameters whose integers and floats may change from call to call. Launches follow
            them as ``a + b * value``, and floats as they are; so do bounds of slices, positions in ``x[n]``
            and integers that are returned. What Python asks of one is part of what must be equal: a
            comparison must give the same, and whatever needs the value itself (``n // 2``, ``range(n)``,
            ``float(n)``, a text, a key, a size) needs the same value. Numbers of other parameters are part
            of what must be equal altogether.
            True and False, which PyTorch takes, change nothing: calls with other shapes and numbers are
            recorded for themselves.
        backend: one of PyTorch's (`torch.compiler.list_backends`), which are one here.
        mode, options, name, recompile_limit, isolate_recompiles, shapes_spec: accepted for PyTorch's
            sake; as there, a mode is one of its own, and goes without options.
        disable: return the function as it is.

    Returns:
        A function, or a module, that is called like the given one.

    Raises:
        TypeError: no function, or one that pauses.
        ArgumentError: a mode or a backend that PyTorch has not, or a mode with options.
        MissingError: a backend that is a function of a graph.
        ValueError: ``dynamic`` names no parameter; at a call, that a number does not follow, as where an
            integer tensor is filled with a float.
        DeviceError: at a call, with ``fullgraph``, why it cannot be captured.

    Source: https://pytorch.org/docs/stable/generated/torch.compile.html

    Example:
        >>> import pellucid as torch
        >>> @torch.compile
        ... def f(x):
        ...     return x * 2 + 1
        >>> f(torch.ones(2, device="cpu")).tolist()
        [3.0, 3.0]
    """
    if mode is not None and mode not in _MODES:
        raise ArgumentError(f"compile: there is no mode {mode!r}. There are {', '.join(_MODES)}.")
    if mode is not None and options is not None:
        raise ArgumentError("compile: takes a mode or options, not both. Leave out one of them.")
    check_backend(backend)
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    names = () if isinstance(dynamic, bool) else (dynamic,) if isinstance(dynamic, str) else dynamic or ()
    if not isinstance(names, Iterable):
        raise ArgumentError("compile: dynamic= takes the names of parameters, such as dynamic=('position',).")
    names = tuple(names)
    if disable or isinstance(model, (Compiled, OptimizedModule)):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, names, fullgraph)
    if not callable(model):
        raise ArgumentError(f"compile: takes a function or a module, not {type(model).__name__}.")
    # A forward calls modules of its own alone, so hooks of others are no matter of its.
    owner = model.__self__ if isinstance(model, MethodType) and model.__name__ == "forward" else None
    tree = owner.modules if isinstance(owner, Module) else None
    return Compiled(model, names, tree=tree, whole=fullgraph)


def compile_forward(self: Module, **options: Any) -> None:
    """Capture the calls of ``forward`` in place, so that what holds the module finds it captured.

    Hooks run as before. A copy by ``copy.copy`` is not captured.

    Args:
        options: those of `pellucid.compile`.

    Raises:
        ValueError: ``dynamic`` names no parameter of ``forward``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile

    Example:
        >>> import pellucid as torch
        >>> model = torch.nn.ReLU()
        >>> model.compile()
        >>> model(torch.tensor([-1.0, 2.0], device="cpu")).tolist()
        [0.0, 2.0]
        >>> model.forward.explain().replays
        0
    """
    if isinstance(self.__dict__.get("forward"), Compiled):
        del self.forward
    self.forward = compile(self.forward, **options)


Module.compile = compile_forward

__all__ = ["OptimizedModule", "compile"]
