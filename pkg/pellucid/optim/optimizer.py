"""What every optimizer has: groups of parameters with their settings, and state per parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from ..autograd.grad_mode import under
from ..device.stream import stream
from ..errors import ArgumentError, GradientError, RangeError, WeightError
from ..op.arguments import describe, number
from ..ops.shape.creation import zeros_like
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from .replayed import followed


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

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise ArgumentError(
                "optimizer: params must be an iterable of tensors or of dictionaries, not one "
                "tensor. Put it in a list."
            )
        groups = _listed(params)
        if not groups:
            raise RangeError("optimizer: there are no parameters to optimize.")
        self.defaults = defaults
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
            import warnings

            warnings.warn(
                "optimizer: a group has a parameter twice, which takes two steps at once.", stacklevel=3
            )
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
        capturing = stream().capturing
        if capturing is not None and type(self)._numbers is Optimizer._numbers:
            capturing.refuse(f"{type(self).__name__} computes numbers of its step in Python")
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

    def _numbers(self, group: dict[str, Any], step: int) -> tuple[float, ...]:
        """The numbers of the update's launch. Steps of optimizers that define none are not captured."""
        raise NotImplementedError(f"{type(self).__name__}: define _numbers().")

    def _kernel(self, group: dict[str, Any]) -> tuple:
        """Settings that decide which kernel runs: while they stay, a captured step holds."""
        return ()

    def _numbers_of(self, p: Tensor, group: dict[str, Any], step: int = 0) -> tuple[float, ...]:
        """The numbers for a parameter; where a call is captured, what stands for those of every replay."""
        numbers, capturing = self._numbers(group, step), stream().capturing
        return numbers if capturing is None else followed(capturing, self, p, group, numbers)

    def _repeat(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[float, ...]:
        """Count a step of parameters whose updates are replayed; returns the numbers of their launches."""
        step = states[0].get("step", 0) + 1 if states else 0
        for state in states:
            if "step" in state:
                state["step"] = step
        return self._numbers(group, step)

    def _moment(self, p: Tensor) -> Tensor:
        """State of the parameter's shape, zeros at first."""
        moment = zeros_like(p)
        moment._storage.set_kind("parameter")
        return moment

    def _operands(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """The parameter and its gradient as the kernels take them: contiguous float32 (float64 on cpu)."""
        d = p.dtype if p.dtype is dt.float64 else dt.float32
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

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Settings and state; parameters are numbers in the order of the groups."""
        numbers = {id(p): k for k, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [numbers[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        return {
            "state": {numbers[id(p)]: dict(s) for p, s in self.state.items() if s},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over settings and state from `state_dict`.

        Raises:
            ArgumentError: it is no such state.
            WeightError: groups or their sizes differ.
        """
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
                self.state[p] = {k: _placed(v, p) for k, v in state_dict["state"][place].items()}
        self.param_groups = [
            {**{k: deepcopy(v) for k, v in new.items() if k != "params"}, "params": old["params"]}
            for new, old in zip(given, self.param_groups, strict=True)
        ]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
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


def _placed(value: Any, p: Tensor) -> Any:
    return value.detach().clone().to(p.device) if isinstance(value, Tensor) else deepcopy(value)


def check_range(name: str, value: float, below: float | None = None) -> None:
    """Refuse a setting that is no number, is negative, or not below a bound."""
    value = number(value, f"optimizer: {name}")
    if not value >= 0 or (below is not None and value >= below):
        bound = "" if below is None else f" and below {below:g}"
        raise RangeError(f"optimizer: {name} must be at least 0{bound}, not {value}.")


__all__ = ["Optimizer", "check_range"]
