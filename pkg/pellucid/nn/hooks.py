"""What watches a module's calls: forward hooks before and after, backward hooks on what flows through."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol
from weakref import WeakValueDictionary

from ..autograd.edges import edge
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.handle import Handle
from ..autograd.nodes import Node
from ..errors import ArgumentError, GradientError, warn
from ..tensors.meta import differences
from ..tensors.tensor import Tensor
from .kept import Kept


class Hook(NamedTuple):
    """A registered function and how it wants to be called."""

    when: str  # pre, post, backward_pre, backward
    function: Callable
    with_kwargs: bool = False
    always: bool = False


class HookTable(OrderedDict[int, Hook]):
    """The hooks of one module, by number. All tables are known, for who replays calls and must find them."""

    _living: ClassVar[WeakValueDictionary[int, HookTable]] = WeakValueDictionary()

    def __init__(self, *hooks: Any):
        super().__init__(*hooks)
        HookTable._living[id(self)] = self

    @classmethod
    def all(cls) -> list[HookTable]:
        """The tables of all modules that are or were listened to."""
        return [table for known in cls._living.valuerefs() if (table := known()) is not None]


# Those of all modules.
OF_ALL = HookTable()


class OwnHooks(HookTable):
    """Those of one module, which also listens, having none of its own any more, while all are listened to."""

    def __bool__(self) -> bool:
        return len(self) > 0 or len(OF_ALL) > 0


def for_recording(hook: Callable) -> Callable:
    """Mark a hook that matters only to which ops are recorded: a replay has these and need not run it."""
    hook.is_for_recording = True  # type: ignore[attr-defined]
    return hook


class Watched(Protocol):
    """What hooks need of a module."""

    _hooks: HookTable

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""


class Tap:
    """A forward hook that keeps what a module gets or returns, and does nothing else.

    So a captured call need not run it: the value comes along as a result.

    Args:
        seen: where values are kept, in the order in which modules ran.
        path: under which name.
        inputs: the first input is kept instead of the output.
    """

    turns = 0  # of all taps together
    # Modules run once more for somebody who looks: that is no part of what is looked at.
    is_quiet = False

    def __init__(self, seen: Kept, path: str, inputs: bool = False):
        self.seen, self.path, self.inputs = seen, path, inputs
        # Equal for taps that keep the same of a module.
        self.kind: Any = inputs
        self.turn = 0

    def begin(self) -> None:
        """The value counts, and other work is about to be handed to the device."""

    def __call__(self, module: Watched, args: tuple, output: Any) -> None:
        if Tap.is_quiet:
            return
        value = args if self.inputs else output
        while isinstance(value, (tuple, list)):
            if not value:
                return  # a call by keywords alone has no first input
            value = value[0]
        self.keep(value)

    def keep(self, value: Any) -> None:
        """Let go of the value before and keep this one, which ran last."""
        self.seen.pop(self.path, None)
        self.seen[self.path] = value
        Tap.turns += 1
        self.turn = Tap.turns

    def end(self) -> None:
        """Keep nothing any more; what was kept belongs to whoever looked."""
        self.seen = Kept()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tap:
        # Like a function: a copied module is looked at through the same tap.
        return self


class HookHandle(Handle):
    """What registering a hook on a module returns: ``remove()`` takes it out.

    Args:
        hooks: the module's table.
        hook: the function with its options.
        prepend: before the hooks that are there.
        changed: called when the table changes.
    """

    def __init__(self, hooks: HookTable, hook: Hook, prepend: bool, changed: Callable[[], None]):
        super().__init__(hooks, hook)
        self._changed = changed
        if prepend:
            hooks.move_to_end(self.id, last=False)
        changed()

    def remove(self) -> None:
        """Take the hook out; a second time does nothing."""
        super().remove()
        self._changed()


def _of(module: Watched) -> dict[int, Hook]:
    """The hooks of a module, those of all modules first."""
    own = module._hooks
    return dict(own) if own is OF_ALL else {**OF_ALL, **own}


def call(module: Watched, args: tuple, kwargs: dict) -> Any:
    """`Module.__call__` where somebody listens."""
    done: set[int] = set()
    try:
        for hook in _of(module).values():
            if hook.when == "pre":
                args, kwargs = _before(module, hook, args, kwargs)
        backward = [h for h in _of(module).values() if h.when.startswith("backward")]
        gates = _Gates(module, backward) if backward and is_grad_enabled() else None
        if gates is not None:
            args = gates.enter(args)
        out = module.forward(*args, **kwargs)
        for number, hook in _of(module).items():
            if hook.when == "post":
                done.add(number)
                changed = (
                    hook.function(module, args, kwargs, out)
                    if hook.with_kwargs
                    else hook.function(module, args, out)
                )
                out = out if changed is None else changed
        return out if gates is None else gates.leave(out)
    except Exception:
        # Hooks that were registered to run always see the call end, with None for its result.
        for number, hook in _of(module).items():
            if hook.when == "post" and hook.always and number not in done:
                hook.function(module, args, kwargs, None) if hook.with_kwargs else hook.function(
                    module, args, None
                )
        raise


def _before(module: Watched, hook: Hook, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is None:
            return args, kwargs
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise ArgumentError(
        f"forward pre hook of {type(module).__name__}: with_kwargs=True returns None or (args, kwargs), "
        f"not {type(changed).__name__}."
    )


class _GateOp:
    """What the graph needs to know of a gate's node."""

    name = "module_gate"
    arguments = ()
    outputs = ("out",)
    grad: dict = {}


class _Gate(Node):
    """A node that hands tensors through and shows all their gradients at once to a function."""

    __slots__ = ("seen",)

    def __init__(self, tensors: list[Tensor], seen: Callable[[list], list]):
        edges = {"tensors": [(edge(t), t._meta) for t in tensors]}
        super().__init__(_GateOp, edges, {})
        self.outputs = tuple(t._meta for t in tensors)
        self.seen = seen

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        return {"tensors": self.seen(grads)}


class _Gates:
    """The gates around one call: gradients of outputs come in at one, those of inputs go out at the other."""

    def __init__(self, module: Watched, hooks: list[Hook]):
        self.module = module
        self.hooks = hooks
        self.grad_output: tuple = ()
        self.has_inputs = False
        self.count = 0  # of inputs

    def enter(self, args: tuple) -> tuple:
        self.count = count = len(args)

        # The functions of gates must hold no gated tensor, or the graph would hold itself.
        def seen(grads: list) -> list:
            return self._replace([None] * count, places, grads)

        places, args = _gated(args, seen)
        self.has_inputs = bool(places)
        return args

    def leave(self, out: Any) -> Any:
        outputs = out if isinstance(out, tuple) else (out,)
        count = len(outputs)

        def seen(grads: list) -> list:
            whole: list = [None] * count
            for k, g in zip(places, grads, strict=True):
                whole[k] = g
            for hook in self.hooks:
                if hook.when == "backward_pre":
                    whole = _changed(hook.function(self.module, tuple(whole)), whole, self.module)
            self.grad_output = tuple(whole)
            if not self.has_inputs:
                # Nothing flows out of the inputs: this is the only moment.
                warn(
                    f"{type(self.module).__name__}: no input requires grad, so backward hooks get None as "
                    "gradients of the inputs, once those of the results are there."
                )
                self._replace([None] * self.count, [], [])
            return [whole[k] for k in places]

        places, gated = _gated(outputs, seen)
        if not places:
            return out
        return gated if isinstance(out, tuple) else gated[0]

    def _replace(self, whole: list, places: list[int], grads: list) -> list:
        for k, g in zip(places, grads, strict=True):
            whole[k] = g
        for hook in self.hooks:
            if hook.when == "backward":
                whole = _changed(
                    hook.function(self.module, tuple(whole), self.grad_output), whole, self.module
                )
        self.grad_output = ()
        return [whole[k] for k in places]


def _gated(values: tuple, seen: Callable[[list], list]) -> tuple[list[int], tuple]:
    """The same values with a gate before the tensors that require grad, and their places."""
    places = [k for k, v in enumerate(values) if isinstance(v, Tensor) and v._node is not None]
    if not places:
        return places, values
    gate = _Gate([values[k] for k in places], seen)
    made = list(values)
    for index, k in enumerate(places):
        made[k] = t = values[k].detach()
        t._node, t._index = gate, index
    return places, tuple(made)


def _changed(returned: Any, before: list, module: Watched) -> list:
    if returned is None:
        return before
    returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(returned) != len(before):
        raise RuntimeError(
            f"backward hook of {type(module).__name__}: returned {len(returned)} gradients for "
            f"{len(before)}. "
            "Return one for each, or None to change nothing."
        )
    for k, (g, old) in enumerate(zip(returned, before, strict=True)):
        if g is not None and not isinstance(g, Tensor):
            raise ArgumentError(
                f"backward hook of {type(module).__name__}: gradient {k} must be None or a Tensor, not "
                f"{type(g).__name__}"
            )
        if g is not None and old is not None and (different := differences(g._meta, old._meta)):
            raise GradientError(
                f"backward hook of {type(module).__name__}: gradient {k} is of {different}. Return one like "
                "that which was given."
            )
    return returned


class Listened:
    """What every module knows of those who listen to its calls."""

    # In the place of a table of its own: a call asks one attribute.
    _hooks = OF_ALL

    def _listen(self, hook: Hook, prepend: bool) -> HookHandle:
        raise NotImplementedError

    # Snapshots by number: to change one, register or remove a hook.

    def _functions(self, when: str) -> OrderedDict[int, Callable]:
        own = vars(self).get("_hooks", {})
        return OrderedDict((k, h.function) for k, h in own.items() if h.when == when)

    @property
    def _forward_hooks(self) -> OrderedDict[int, Callable]:
        return self._functions("post")

    @property
    def _forward_pre_hooks(self) -> OrderedDict[int, Callable]:
        return self._functions("pre")

    @property
    def _backward_hooks(self) -> OrderedDict[int, Callable]:
        return self._functions("backward")

    @property
    def _backward_pre_hooks(self) -> OrderedDict[int, Callable]:
        return self._functions("backward_pre")

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """Call ``hook(module, args, output)`` after every call; a result replaces the output.

        Args:
            hook: the function.
            prepend: before the hooks that are registered already.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: also when the call raises, with None as output.

        Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
        """
        return self._listen(Hook("post", hook, with_kwargs, always_call), prepend)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(module, args)`` before every call; a result replaces the arguments.

        Args:
            hook: the function.
            prepend: before the hooks that are registered already.
            with_kwargs: call ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        """
        return self._listen(Hook("pre", hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> HookHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        Both are tuples with None where there is no gradient. What it returns, unless None, replaces
        ``grad_input``.
        """
        return self._listen(Hook("backward", hook), prepend)

    def register_backward_hook(self, hook: Callable) -> HookHandle:
        """`register_full_backward_hook`, under its older name."""
        return self.register_full_backward_hook(hook)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> HookHandle:
        """Call ``hook(module, grad_output)`` before the gradients of inputs; a result replaces them."""
        return self._listen(Hook("backward_pre", hook), prepend)


__all__ = ["Hook", "HookHandle", "call"]
