"""What every optimizer has: groups of parameters with their settings, and state per parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import wraps
from typing import Any, ClassVar

from ..autograd.grad_mode import under
from ..autograd.handle import Handle
from ..device.stream import stream
from ..errors import ArgumentError, GradientError, RangeError, WeightError, warn
from ..op.arguments import describe
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .replayed import counts, followed
from .settings import check, constructed

_HOOKS = ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_pre", "load_post")


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that calls what is registered for it; of steps that call each other, the outermost does."""

    @wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not stepped:
            return step(self, *args, **kwargs)
        name, capturing = type(self).__name__, stream().capturing
        if capturing is not None:
            if type(self)._numbers is Optimizer._numbers:
                capturing.refuse(f"{name} computes numbers of its step in Python")
            if self._listens():
                capturing.refuse(f"{name} has hooks that run at every step")
        args = (self, *args)
        for hook in list(self._hooks["step_pre"].values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise ArgumentError(
                        f"{name}: a hook before the step must return None or (args, kwargs), not "
                        f"{describe(changed)}."
                    )
                args, kwargs = changed
        if self._opt_called is False:
            self._opt_called = True
        result = step(*args, **kwargs)
        for hook in list(self._hooks["step_post"].values()):
            hook(self, args, kwargs)
        return result

    return stepped


class Optimizer:
    """Base of all optimizers.

    Args:
        params: parameters, or dictionaries with the key "params" and settings of their own.
        defaults: settings of the groups that do not say otherwise.

    Attributes:
        param_groups: dictionaries of settings; "params" lists the parameters. Changing a setting takes effect
            at the next step.
        state: what the optimizer keeps for each parameter.

    Raises:
        RangeError: there are no parameters, or one is in two groups.
        ArgumentError: something is not a tensor.

    Source: https://pytorch.org/docs/stable/optim.html#torch.optim.Optimizer
    """

    # Of the state, the numbers that a step counts. PyTorch keeps them as tensors, and so do state_dicts.
    _counted: ClassVar[tuple[str, ...]] = ()
    # Whether a step was taken since a schedule has asked; None before.
    _opt_called: bool | None = None

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.step)
        constructed(cls)

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise ArgumentError("optimizer: params must be several tensors or dictionaries, not one tensor.")
        groups = _listed(params)
        if not groups:
            raise RangeError("optimizer: there are no parameters to optimize.")
        check(type(self).__name__, defaults)
        self.defaults = defaults
        self._hooks: dict[str, dict[int, Callable]] = {name: {} for name in _HOOKS}
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters.

        Args:
            param_group: "params" and settings that differ from the defaults.

        Raises:
            RangeError: a parameter is there already, or is not a leaf.
            ArgumentError: something is not a tensor, or "params" is missing.
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            shown = list(param_group) if isinstance(param_group, dict) else describe(param_group)
            raise ArgumentError(
                f"optimizer: a group must be a dictionary with the key 'params', not {shown}."
            )
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise ArgumentError(
                "optimizer: the parameters of a group need an order, which a set has none of."
            )
        params = [params] if isinstance(params, Tensor) else _listed(params)
        if len({isinstance(p, tuple) for p in params}) > 1:
            raise RangeError("optimizer: some parameters come with names. Give all of them names, or none.")
        if params and isinstance(params[0], tuple) and len(params[0]) == 2:
            group["param_names"] = [p[0] for p in params]
        params = [p[1] if isinstance(p, tuple) and len(p) == 2 else p for p in params]
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise ArgumentError(f"optimizer: optimizes tensors, not {describe(p)}.")
            if not p.is_leaf:
                raise RangeError(
                    "optimizer: only leaf tensors can be optimized, not results of a computation."
                )
            if id(p) in known:
                raise RangeError(
                    "optimizer: a parameter appears in two groups. Give each parameter once, in one group."
                )
        if len({id(p) for p in params}) < len(params):
            warn("optimizer: a group has a parameter twice, which takes two steps at once.")
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = p.grad.detach().zero_()

    @_hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient, and hand everything recorded to the device.

        So a training loop makes the same windows at every step, whose launches are then fused.

        Args:
            closure: computes the loss and its gradients anew; called first.

        Returns:
            What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            if not callable(closure):
                raise ArgumentError(f"step: closure must be a function or None, not {describe(closure)}.")
            loss = under(True, closure)
        under(False, self._update_all)
        stream().flush()
        return loss

    def _update_all(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        """Change one parameter."""
        raise NotImplementedError(f"{type(self).__name__}: define _update() or step().")

    # What captures ask for

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        """Count a step in the state; returns the numbers of its launch. Steps of optimizers that define none
        are not captured."""
        raise NotImplementedError(f"{type(self).__name__}: define _numbers().")

    def _kernel(self, group: dict[str, Any]) -> Any:
        """What settings decide which kernels run: while it stays, a captured step holds."""
        return None

    def _numbers_of(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        """The numbers for a parameter; where a call is captured, what stands for those of every replay."""
        numbers, capturing = self._numbers(group, state), stream().capturing
        return numbers if capturing is None else followed(capturing, self, p, group, state, numbers)

    def _repeat(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[float, ...]:
        """Count a step of parameters whose updates are replayed; returns the numbers of their launches."""
        first = states[0] if states else {}
        numbers = self._numbers(group, first)
        for state in states[1:]:
            state.update(counts(first))
        return numbers

    def _listens(self) -> bool:
        return bool(self._hooks["step_pre"] or self._hooks["step_post"])

    def _operands(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """The parameter and its gradient as the kernels take them: contiguous float32 (float64 on cpu)."""
        d = _computed(p)
        grad: Any = p.grad
        if grad.shape != p.shape:
            raise GradientError(
                f"optimizer: the gradient has shape {tuple(grad.shape)}, the parameter {tuple(p.shape)}."
            )
        return p.detach().to(d).contiguous(), grad.detach().to(d).contiguous()

    def _write_back(self, p: Tensor, changed: Tensor) -> None:
        """Put the new values into a parameter that is not as the kernels take it."""
        if changed._storage is not p._storage:
            p.copy_(changed)

    # Hooks

    def register_step_pre_hook(self, hook: Callable) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return others. The first of args is
        the optimizer."""
        return Handle(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Callable) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return Handle(self._hooks["step_post"], hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return self._listen("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call ``hook(optimizer, state_dict)`` with what `state_dict` made; it may return another one."""
        return self._listen("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; it may return another one."""
        return self._listen("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return self._listen("load_post", hook, prepend)

    def _listen(self, when: str, hook: Callable, prepend: bool) -> Handle:
        handle = Handle(self._hooks[when], hook)
        if prepend:
            self._hooks[when] = table = {handle.id: hook, **self._hooks[when]}
            handle._hooks = table
        return handle

    def _passed(self, when: str, state: dict[str, Any]) -> dict[str, Any]:
        """A state after hooks that may replace it."""
        for hook in list(self._hooks[when].values()):
            given = hook(self, state)
            state = state if given is None else given
        return state

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Settings and state; parameters are numbers in the order of the groups, as in PyTorch's files."""
        for hook in list(self._hooks["state_dict_pre"].values()):
            hook(self)
        numbers = {id(p): k for k, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [numbers[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {
            numbers[id(p)]: {
                k: tensor(float(v), device="cpu") if k in self._counted else v for k, v in s.items()
            }
            for p, s in self.state.items()
            if s
        }
        return self._passed("state_dict_post", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over settings and state from `state_dict`.

        Settings that an older state does not have are those of the optimizer.

        Raises:
            ArgumentError: it is no such state.
            WeightError: groups or their sizes differ.
        """
        _groups_of(state_dict)
        state_dict = self._passed("load_pre", dict(state_dict))
        given = _groups_of(state_dict)
        have, want = [len(g["params"]) for g in given], [len(g["params"]) for g in self.param_groups]
        if have != want:
            raise WeightError(
                f"optimizer: the state has groups of {have} parameters, the optimizer of {want}. "
                "They must be equal."
            )
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [place for group in given for place in group["params"]]
        self.state = defaultdict(dict)
        for place, p in zip(numbers, params, strict=True):
            if place in state_dict["state"]:
                self.state[p] = {
                    k: float(v) if k in self._counted else _placed(v, p)
                    for k, v in state_dict["state"][place].items()
                }
        names = ("params", "param_names")
        self.param_groups = [
            {
                **{k: deepcopy(v) for k, v in {**self.defaults, **new}.items() if k != "params"},
                **{k: old[k] for k in names if k in old},
            }
            for new, old in zip(given, self.param_groups, strict=True)
        ]
        for hook in list(self._hooks["load_post"].values()):
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines += [*[""] * bool(k), f"Parameter Group {k}"]
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])


def _listed(params: Any) -> list[Any]:
    """Parameters or groups, in order."""
    if not isinstance(params, Iterable):
        raise ArgumentError(
            f"optimizer: params must be an iterable of tensors or of dictionaries, not {describe(params)}."
        )
    return list(params)


def _groups_of(state: Any) -> list[dict[str, Any]]:
    """The groups of a state that `Optimizer.state_dict` gave."""
    groups = state.get("param_groups") if isinstance(state, Mapping) and "state" in state else None
    if isinstance(groups, (list, tuple)) and all(isinstance(g, Mapping) and "params" in g for g in groups):
        return list(groups)
    raise ArgumentError(
        "load_state_dict(): takes what an optimizer's state_dict() gives: a dictionary with 'state', and "
        f"'param_groups' that list their 'params', not {describe(state)}."
    )


def _computed(p: Tensor) -> Any:
    """The dtype of a parameter's state, in which its step is computed."""
    return p.dtype if p.dtype is dt.float64 else dt.float32


def _placed(value: Any, p: Tensor) -> Any:
    if isinstance(value, Tensor):
        d = _computed(p) if value.dtype.is_floating_point else value.dtype
        return value.detach().clone().to(p.device, d)
    return [_placed(v, p) for v in value] if isinstance(value, list) else deepcopy(value)


def kept(state: Tensor) -> Tensor:
    """A new tensor, as one that stays: memory counts it with the parameters."""
    state._storage.set_kind("parameter")
    return state


class SparseAdam(Optimizer):
    """Refused: Adam for sparse gradients, which there are none of. `Adam` takes the dense ones.

    Raises:
        RangeError: always.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        raise RangeError("SparseAdam: there are no sparse tensors. Use Adam, which takes dense gradients.")


__all__ = ["Optimizer", "SparseAdam", "kept"]
