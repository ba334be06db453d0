"""The updates of optimizers as ops: one dispatch changes a parameter and its state, element by element.

Each optimizer is a rule: lines of assignments that WGSL and Python read alike. The kernel `optim/update` is
made of them, and the numpy reference runs them. Rates and decays are parameters of the launch: a changing
learning rate plans nothing anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any, ClassVar

import numpy as np

from ..errors import DTypeError, ShapeError
from ..op.call import Call
from ..op.declaration import op
from ..op.kernel.launch import Launch
from ..op.kernel.source import KernelSource, load
from ..ops.shape.creation import full_like
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, kept

_WORKGROUP = 256
# What a rule may call, in numpy; WGSL has functions of these names.
_FUNCTIONS: dict[str, Any] = {
    "abs": np.abs,
    "clamp": np.clip,
    "max": np.maximum,
    "select": lambda no, yes, on: np.where(on, yes, no),
    "sign": np.sign,
    "sqrt": np.sqrt,
}
# Before every rule: the parameter shrinks, or a share of it joins the gradient. A decay of 0 leaves it out,
# for 0 times an infinite parameter is NaN.
_FIRST = """
p = shrink * p
g = direction * g
g = select(g, g + decay * p, decay != 0.0)
"""
_COMMON = ("direction", "shrink", "decay")


def _lines(rule: str) -> list[str]:
    return [line.strip() for line in (_FIRST + rule).splitlines() if line.strip()]


def _source(rule: str, states: list[str], numbers: tuple[str, ...]) -> KernelSource:
    """The kernel of a rule over those states that it is given."""
    places = {"p": "param", **{name: f"state_{k}" for k, name in enumerate(states)}}
    text = [f"var {name} = {at}[params.{at}_offset + i];" for name, at in places.items()]
    text += ["var g = load_grad(i);", *(f"let {name} = params.{name};" for name in numbers)]
    known = {*places, "g"}
    for line in _lines(rule):
        name = line.split(" = ")[0]
        text.append(f"{'' if name in known else 'var '}{line};")
        known.add(name)
    text += [f"{at}[params.{at}_offset + i] = {name};" for name, at in places.items()]
    fields = [f"{at}_offset: u32" for at in (*places.values(), "grad")]
    base = load("optim/update")
    unused = [b.name for b in base.bindings if b.name.startswith("state") and b.name not in places.values()]
    source = base.with_params([*fields, "count: u32", *(f"{name}: f32" for name in numbers)])
    return source.without(*unused).fill({"update": " ".join(text)})


@cache
def _program(rule: str) -> Any:
    """A rule as Python."""
    return compile("\n".join(_lines(rule)), "<rule of an optimizer>", "exec")


def update(public: str, states: tuple[str, ...], numbers: tuple[str, ...]) -> Callable[..., Any]:
    """Declare the op of an optimizer's step.

    Args:
        public: the optimizer.
        states: names of what is kept for each parameter; those that a call leaves out are None.
        numbers: names of the numbers of a step, after ``direction``, ``shrink`` and ``decay``.

    Returns:
        A function of parameter, gradient, states, rule and numbers, which changes tensors in place. The rule
        calls parameter and gradient ``p`` and ``g``.
    """
    numbers = (*_COMMON, *numbers)

    def launches(call: Call) -> Launch:
        param = call["param"]
        for name, m in call.tensors():
            if m.dtype is not dt.float32 or not m.is_contiguous:
                raise DTypeError(
                    f"'{name}' must be contiguous float32, not {m.dtype} with strides {m.strides}."
                )
            if m.shape != param.shape:
                raise ShapeError(f"'{name}' has shape {tuple(m.shape)}, the parameter {tuple(param.shape)}.")
        used = [name for name in states if call[name] is not None]
        return Launch(
            _source(call["rule"], used, numbers),
            -(-param.numel // _WORKGROUP),
            {"count": param.numel},
            bind={f"state_{k}": name for k, name in enumerate(used)},
        )

    def reference(*arguments: Any) -> None:
        param, grad, *kept = arguments[: 2 + len(states)]
        rule, *values = arguments[2 + len(states) :]
        targets = {"p": param, **{k: s for k, s in zip(states, kept, strict=True) if s is not None}}
        names = {**_FUNCTIONS, **targets, "g": grad, **dict(zip(numbers, values, strict=True))}
        with np.errstate(all="ignore"):
            exec(_program(rule), names)
        for name, target in targets.items():
            target[...] = names[name]

    def declared(): ...

    kinds = {"param": "Tensor", "grad": "Tensor", **dict.fromkeys(states, "Tensor | None"), "rule": "str"}
    kinds |= dict.fromkeys(numbers, "float")
    form: Any = declared
    form.__name__ = form.__qualname__ = f"_{public.lower()}_update"
    form.__doc__ = f"One step of {public}, in place."
    form.__annotations__ = kinds
    form.__signature__ = Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in kinds.items()]
    )
    return op(
        public=public,
        kernel=launches,
        reference=reference,
        grad=None,
        outputs=(),
        mutates=("param", *states),
    )(form)


class ElementwiseOptimizer(Optimizer):
    """Base of the optimizers whose step is a rule: one dispatch per parameter.

    Attributes:
        _op: what `update` declared.
    """

    _op: ClassVar[Callable[..., Any]]
    _names: ClassVar[tuple[str, ...]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Which of the states the settings need."""
        return self._names

    def _begin(self, name: str, group: dict[str, Any]) -> float:
        """The first value of a state."""
        return 0.0

    def _counts(self, group: dict[str, Any]) -> dict[str, float]:
        """The first values of what a step counts."""
        return {"step": 0.0}

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        """The lines of the step, for a parameter whose state so far is given."""
        raise NotImplementedError(f"{type(self).__name__}: define _rule().")

    def _kernel(self, group: dict[str, Any]) -> Any:
        return self._rule(group, {})

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        """The numbers of a step, which was counted."""
        raise NotImplementedError(f"{type(self).__name__}: define _settings().")

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        if "step" in state:
            state["step"] += 1.0
        decay = float(group.get("weight_decay", 0.0))
        own = map(float, self._settings(group, state))
        if group.get("decoupled_weight_decay"):
            common = 1.0 - float(group["lr"]) * decay, 0.0
        else:
            common = 1.0, decay
        return (-1.0 if group["maximize"] else 1.0, *common, *own)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, grad = self._operands(p)
        used, counted = self._states(group), self._counts(group)
        state = self.state[p] if used or counted else {}
        rule = self._rule(group, state)
        for name in counted.keys() - state.keys():
            state[name] = counted[name]
        for name in used:
            if name not in state:
                state[name] = kept(full_like(value, self._begin(name, group)))
        states = [state[name] if name in used else None for name in self._names]
        type(self)._op(value, grad, *states, rule, *self._numbers_of(p, group, state))
        self._write_back(p, value)


__all__ = ["ElementwiseOptimizer", "update"]
