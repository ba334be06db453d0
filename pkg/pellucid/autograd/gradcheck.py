"""Derivatives compared with differences of values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, GradientError
from ..tensors.tensor import Tensor
from .derivatives import grad
from .grad_mode import under


class GradcheckError(GradientError):
    """What `gradcheck` raises where derivatives differ."""


def _unsupported(where: str, **flags: bool) -> None:
    for name, on in flags.items():
        if on:
            raise ArgumentError(f"{where}: {name}=True is not there. Leave it out.")


def _results(func: Callable, inputs: Sequence[Any], where: str) -> list[Tensor]:
    out = func(*inputs)
    several = list(out) if isinstance(out, (tuple, list)) else [out]
    found = [t for t in several if isinstance(t, Tensor) and t.is_floating_point()]
    if any(isinstance(t, Tensor) and t.dtype.is_complex for t in [*several, *inputs]):
        raise ArgumentError(f"{where}: takes no complex tensors. Give real and imaginary parts.")
    return found


def _numerical(func: Callable, inputs: Sequence[Any], t: Tensor, eps: float, where: str) -> list[list]:
    """By outputs: for each element of an input, the difference quotient of all elements of the output."""
    values, count = t.detach(), t.numel()
    found: list[list] = []

    def at(place: tuple, value: Any) -> list:
        values[place] = value
        return [o.detach().reshape(-1).numpy().astype("float64") for o in _results(func, inputs, where)]

    for k in range(count):
        place, rest = [], k
        for n in reversed(t.shape):
            rest, here = divmod(rest, n)
            place.insert(0, here)
        old = values[tuple(place)].item()
        high, low = at(tuple(place), old + eps), at(tuple(place), old - eps)
        values[tuple(place)] = old
        found.append([(h - v) / (2 * eps) for h, v in zip(high, low, strict=True)])
    return [[column[k] for column in found] for k in range(len(found[0]))] if found else []


def _analytical(output: Tensor, inputs: list[Tensor]) -> list[list]:
    """By inputs: for each element of the output, the gradient."""
    rows: list[list] = [[] for _ in inputs]
    for k in range(output.numel()):
        one = output.new_zeros(output.numel())
        one[k] = 1
        found: Any = [None] * len(inputs)
        if output.requires_grad:
            found = grad(
                output, inputs, one.reshape(tuple(output.shape)), retain_graph=True, allow_unused=True
            )
        for row, g, t in zip(rows, found, inputs, strict=True):
            g = t.new_zeros(tuple(t.shape)) if g is None else g
            row.append(g.detach().reshape(-1).numpy().astype("float64"))
    return rows


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients are those that differences of values give: ``|a - n| <= atol + rtol * |n|``.

    Args:
        func: of tensors; returns a tensor or several.
        inputs: a tensor or several; those that require grad are looked at. With these defaults they must be
            float64, which the cpu device has.
        eps: the step of the differences.
        atol, rtol: how far they may be apart.
        raise_exception: raise instead of returning False.
        nondet_tol: how far two walks may be apart.
        check_undefined_grad, check_grad_dtypes, check_backward_ad, masked: accepted.
        check_batched_grad, check_batched_forward_grad, check_forward_ad: not there.
        fast_mode: accepted: whole Jacobians are compared in either mode.

    Raises:
        GradcheckError: they differ.
        ArgumentError: no input requires grad.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.linspace(1, 2, 3, dtype=torch.float64, device="cpu", requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sqrt, x)
        True
    """
    _unsupported(
        "gradcheck", check_batched_grad=check_batched_grad, check_forward_ad=check_forward_ad,
        check_batched_forward_grad=check_batched_forward_grad,
    )  # fmt: skip
    try:
        _compare(func, inputs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(func: Callable, given: Any, eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    inputs = list(given) if isinstance(given, (tuple, list)) else [given]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ArgumentError(
            "gradcheck: at least one input must be a Tensor that requires grad. Make it with "
            "requires_grad=True."
        )
    for k, t in enumerate(inputs):
        if isinstance(t, Tensor) and t.requires_grad and t.dtype.itemsize < 8:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point. This check will "
                "likely fail.",
                stacklevel=3,
            )
    numerical = [under(False, _numerical, func, inputs, t, eps, "gradcheck") for t in wanted]
    outputs = under(True, _results, func, inputs, "gradcheck")
    for k, output in enumerate(outputs):
        rows, again = _analytical(output, wanted), _analytical(output, wanted)
        for j, (mine, other) in enumerate(zip(rows, again, strict=True)):
            if any(abs(a - b).max(initial=0) > nondet_tol for a, b in zip(mine, other, strict=True)):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output "
                    f"multiple times gives different values, for output {k} and input {j}."
                )
            columns = numerical[j][k] if numerical[j] else []
            for column, number in enumerate(columns):
                for row, value in enumerate(mine):
                    a, n = float(value[column]), float(number[row])
                    if not (abs(a - n) <= atol + rtol * abs(n)):
                        raise GradcheckError(
                            f"Jacobian mismatch for output {k} with respect to input {j}, numerical: {n} "
                            f"analytical: {a} at element ({column}, {row})."
                        )


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradients, with respect to inputs and incoming gradients.

    Args:
        func, inputs: as there.
        grad_outputs: like the outputs; random if None.
        gen_non_contig_grad_outputs: accepted.
        check_fwd_over_rev: not there.
        check_rev_over_rev: accepted.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes,
            check_batched_grad, fast_mode, masked: as there.

    Raises:
        GradcheckError: they differ.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html
    """
    _unsupported("gradgradcheck", check_fwd_over_rev=check_fwd_over_rev)
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = under(True, _results, func, given, "gradgradcheck")
    if grad_outputs is None:
        vectors = [o.new_zeros(tuple(o.shape)).uniform_(-1, 1).requires_grad_() for o in outputs]
    else:
        vectors = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]

    def slopes(*values: Any) -> tuple[Tensor, ...]:
        args, incoming = values[: len(given)], values[len(given) :]
        found = under(True, _results, func, args, "gradgradcheck")
        pairs = [(o, v) for o, v in zip(found, incoming, strict=True) if o.requires_grad]
        inner = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
        result = grad(
            [o for o, _ in pairs], inner, [v for _, v in pairs], create_graph=True, allow_unused=True
        )
        return tuple(g for g in result if g is not None)

    return gradcheck(
        lambda *values: under(True, slopes, *values), (*given, *vectors), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol, check_batched_grad=check_batched_grad,
    )  # fmt: skip


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
