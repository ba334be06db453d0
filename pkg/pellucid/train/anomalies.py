"""A loss or gradient that is NaN or infinite: which op made it, and at which line of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd.anomaly import _site, detect_anomaly
from ..errors import GradientError, PellucidError
from ..op.call_path import call_path
from ..op.schema import OPS
from ..op.slow_path import call_slowly
from ..tensors.tensor import Tensor


class NonFiniteError(GradientError):
    """An op of the forward made NaN or infinity of finite numbers."""


def _bad(value: Any) -> bool:
    """Whether a tensor, or one of several, has an element that is not finite."""
    if isinstance(value, (list, tuple)):
        return any(map(_bad, value))
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point or value.dtype.is_quantized:
        return False
    return not bool(value.detach().isfinite().all())


@contextmanager
def watched() -> Iterator[None]:
    """Within it, an op that makes NaN or infinity of finite inputs is an error with its line.

    Masks of attention are infinite on purpose, so infinity alone counts where the result is a single number.

    Raises:
        NonFiniteError: from the op.
    """
    plain: dict[str, Callable] = {}
    usual: list[tuple[dict[str, Any], Any, Any]] = []
    quiet = False

    def call(o: Any, values: tuple) -> Any:
        nonlocal quiet
        if o.name not in plain:
            plain[o.name] = call_path(o, call_slowly, None)
        named = {a.name: v for a, v in zip(o.arguments, values, strict=True) if a.keyword}
        out = plain[o.name](*values[: len(values) - len(named)], **named)
        if quiet or _site() == "a line inside the package":
            return out
        quiet = True
        try:
            results = out if isinstance(out, (list, tuple)) else (out,)
            for t in results:
                if not isinstance(t, Tensor) or not t.dtype.is_floating_point or t.dtype.is_quantized:
                    continue
                flat = t.detach()
                is_bad = _bad(flat) if t.numel() == 1 else bool(flat.isnan().any())
                if is_bad and not any(map(_bad, values)):
                    what = "nan" if bool(flat.isnan().any()) else "infinity"
                    raise NonFiniteError(
                        f"'{o.public}' made {what} of finite inputs. It was called in {_site()}"
                    )
        finally:
            quiet = False
        return out

    for o in OPS.values():
        scope = o.call.__globals__
        if scope.get("plans") is o.plans and "slow" in scope:
            usual.append((scope, scope["plans"], scope["slow"]))
            scope["plans"], scope["slow"] = {}, call
    try:
        yield
    finally:
        for scope, plans, slow in usual:
            scope["plans"], scope["slow"] = plans, slow


def diagnosis(loss_of: Callable[[], Tensor]) -> str:
    """What went wrong in a step, by taking it again without its update.

    Args:
        loss_of: computes the loss of the step's batches.

    Returns:
        A sentence with op and line, or that it did not happen again.
    """
    try:
        with watched():
            loss_of()
        with detect_anomaly():
            loss_of().backward()
    except PellucidError as error:
        return str(error)
    return (
        "It did not happen again when the step was repeated with the parameters of now. Set torch_compile="
        "False and run within torch.autograd.detect_anomaly() to see it happen."
    )


__all__ = ["NonFiniteError", "diagnosis", "watched"]
