"""A loss or gradient that is NaN or infinite: which op made it, and at which line of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.anomaly import PACKAGE, _site, set_detect_anomaly
from ..errors import GradientError, PellucidError
from ..nn.modules.module import Module
from ..op.call_path import call_path
from ..op.schema import OPS
from ..op.slow_path import call_slowly
from ..tensors.tensor import Tensor


class NonFiniteError(GradientError):
    """An op of the forward made NaN or infinity of finite numbers, or a batch has some."""


def _kinds(value: Any) -> set[str]:
    """What a tensor, or several, has beside finite numbers."""
    if isinstance(value, (list, tuple)):
        return set().union(*map(_kinds, value))
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point or value.dtype.is_quantized:
        return set()
    value = value.detach()
    return {what for what, look in (("nan", Tensor.isnan), ("infinity", Tensor.isinf)) if look(value).any()}


def _caller() -> str:
    """The line of the model's program that calls an op now, or the package's module in whose forward that
    is."""
    frame, module = sys._getframe(1), "the loss"
    while frame is not None and frame.f_code is not diagnosis.__code__:
        owner = frame.f_locals.get("self")
        if module == "the loss" and frame.f_code.co_name == "forward" and isinstance(owner, Module):
            module = f"{type(owner).__name__}.forward"
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return _site()
        frame = frame.f_back
    return module


@contextmanager
def watched() -> Iterator[None]:
    """Within it, an op that makes NaN of inputs without one, or infinity of finite ones, is an error with its
    line.

    Masks of attention are infinite on purpose, so infinity alone counts where the result is a single number.
    What made the last infinity is told of where one becomes NaN.

    Raises:
        NonFiniteError: from the op.
    """
    plain: dict[str, Callable] = {}
    usual: list[tuple[dict[str, Any], Any, Any]] = []
    quiet, grew = False, ""

    def call(o: Any, values: tuple) -> Any:
        nonlocal quiet, grew
        if o.name not in plain:
            plain[o.name] = call_path(o, call_slowly, None)
        named = {a.name: v for a, v in zip(o.arguments, values, strict=True) if a.keyword}
        out = plain[o.name](*values[: len(values) - len(named)], **named)
        if quiet:
            return out
        quiet = True
        try:
            results = out if isinstance(out, (list, tuple)) else (out,)
            for t in results:
                made = _kinds(t)
                new = made - _kinds(values) if made else made
                if "nan" in new:
                    given = "infinite" if "infinity" in _kinds(values) else "finite"
                    before = grew if given == "infinite" else ""
                    raise NonFiniteError(
                        f"'{o.public}' made nan of {given} inputs. It was called in {_caller()}{before}"
                    )
                if new and "nan" not in made:
                    if t.numel() == 1:
                        raise NonFiniteError(
                            f"'{o.public}' made infinity of finite inputs. It was called in {_caller()}{grew}"
                        )
                    grew = f"; '{o.public}' made infinity of finite inputs before, called in {_caller()}"
        finally:
            quiet = False
        return out

    # Operators of Python have scopes of their own, with the same plans.
    tables = {id(o.plans) for o in OPS.values()}
    for function in {*[o.call for o in OPS.values()], *filter(callable, vars(Tensor).values())}:
        scope = getattr(function, "__globals__", {})
        if "slow" in scope and id(scope.get("plans")) in tables:
            usual.append((scope, scope["plans"], scope["slow"]))
            scope["plans"], scope["slow"] = {}, call
    try:
        yield
    finally:
        for scope, plans, slow in usual:
            scope["plans"], scope["slow"] = plans, slow


def diagnosis(loss_of: Callable[[], Tensor], batches: Sequence[Any]) -> str:
    """What went wrong in a step, by taking it again without its update.

    Args:
        loss_of: computes the loss of the step's batches.
        batches: these.

    Returns:
        A sentence with the place in a batch, with op and line, or that it did not happen again.
    """
    for batch in batches:
        parts = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
        for name, value in parts:
            if found := _kinds(value):
                return f"Its batch has {' and '.join(sorted(found))} in {name!r}"
    try:
        with watched():
            loss_of()
        with set_detect_anomaly(True):
            loss_of().backward()
    except PellucidError as error:
        return str(error)
    return (
        "It did not happen again when the step was repeated with the parameters of now. Set torch_compile="
        "False and run within torch.autograd.detect_anomaly() to see it happen."
    )


__all__ = ["NonFiniteError", "diagnosis", "watched"]
