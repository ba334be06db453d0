"""Compare a model with recorded values, layer by layer: where it first departs, and the likely cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from ..autograd.grad_mode import under
from ..errors import WeightError
from ..tensors.construct import tensor
from .capture import capture


@dataclass
class Comparison:
    """One tap beside its recorded value.

    Args:
        path: the module.
        error: largest absolute difference over the largest recorded magnitude; infinite where shapes or NaNs
            differ.
        cause: what would explain the difference; empty where there is none.
    """

    path: str
    error: float
    cause: str = ""


@dataclass
class Match:
    """The result of `match`: rows in the order in which the model ran; ``first`` departs, or is None."""

    tolerance: float
    rows: list[Comparison] = field(default_factory=list)

    @property
    def first(self) -> Comparison | None:
        return next((r for r in self.rows if r.error > self.tolerance), None)

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        width = max((len(r.path) for r in self.rows), default=4)
        lines = [
            f"{r.path:{width}}  {r.error:9.2e}  {'ok' if r.error <= self.tolerance else 'DEPARTS ' + r.cause}"
            for r in self.rows
        ]
        first = self.first
        lines.append(
            "all within tolerance"
            if first is None
            else f"first departs: {first.path}: {first.cause or 'no simple cause found'}"
        )
        return "\n".join(lines)


def match(
    model: Any,
    reference: str | PathLike | Mapping[str, Any],
    *inputs: Any,
    tolerance: float = 1e-3,
    **forward: Any,
) -> Match:
    """Run a model and compare what its modules return with recorded values.

    Args:
        model: a module.
        reference: path of an ``.npz`` or a mapping: module path -> array of its output. The entry
            ``input_ids`` or ``input`` is what the model is run on where no inputs are given.
        inputs, forward: arguments of the model's call instead.
        tolerance: largest relative error that counts as equal.

    Returns:
        A `Match`; print it, or look at ``first``.

    Raises:
        WeightError: the reference names a module that the model does not have, or has no input.

    Example:
        >>> import numpy as np, pellucid as torch
        >>> from pellucid import nn
        >>> with torch.device("cpu"):
        ...     model = nn.Sequential(nn.ReLU(), nn.Tanh())
        ...     ones = np.ones((1, 2), "float32")
        ...     result = torch.match(model, {"input": ones, "0": ones, "1": ones * 2})
        >>> result.first.path
        '1'
    """
    comparing = _Comparing(model, reference, inputs, forward, tolerance)
    for path, value in comparing.seen.items():
        comparing.add(path, value.numpy())
    return comparing.result


async def match_async(
    model: Any,
    reference: str | PathLike | Mapping[str, Any],
    *inputs: Any,
    tolerance: float = 1e-3,
    **forward: Any,
) -> Match:
    """The awaitable twin of `match`."""
    comparing = _Comparing(model, reference, inputs, forward, tolerance)
    for path, value in comparing.seen.items():
        comparing.add(path, await value.numpy_async())
    return comparing.result


class _Comparing:
    """The run of a model, and the comparison of what it returned as values arrive."""

    def __init__(self, model: Any, reference: Any, inputs: tuple, forward: dict[str, Any], tolerance: float):
        recorded = _recorded(reference)
        given = next((recorded.pop(k) for k in ("input_ids", "input") if k in recorded), None)
        if not recorded:
            raise WeightError("match: the reference has no values to compare. Record outputs by module path.")
        if not inputs and not forward:
            if given is None:
                raise WeightError(
                    "match: the reference has no entry 'input_ids' or 'input'. Record one, or give the "
                    "model's inputs."
                )
            parameter = next(iter(model.parameters()), None)
            inputs = (tensor(given, device=None if parameter is None else parameter.device),)
        with capture(model, sorted(recorded)) as seen:
            under(False, model, *inputs, **forward)
        if idle := sorted(set(recorded) - set(seen)):
            raise WeightError(f"match: these modules did not run: {', '.join(idle)}. Leave them out.")
        self.seen = {path: value.detach().float() for path, value in seen.items()}
        self.result = Match(tolerance)
        self._recorded = recorded
        self._departed = False

    def add(self, path: str, value: np.ndarray) -> None:
        """Compare the next value, in the order in which the model ran."""
        got, wanted = value.astype(np.float64), self._recorded[path].astype(np.float64)
        tolerance = self.result.tolerance
        error = _error(got, wanted)
        cause = ""
        if error > tolerance:
            cause = "follows from the first" if self._departed else _cause(got, wanted, tolerance)
            self._departed = True
        self.result.rows.append(Comparison(path, error, cause))


def _recorded(reference: Any) -> dict[str, np.ndarray]:
    if isinstance(reference, (str, PathLike)):
        with np.load(reference) as file:
            return dict(file)
    return {path: np.asarray(value) for path, value in reference.items()}


def _error(got: np.ndarray, wanted: np.ndarray) -> float:
    if got.shape != wanted.shape:
        return float("inf")
    difference = np.abs(got - wanted)
    if not np.all(np.isfinite(difference)):
        return 0.0 if np.array_equal(got, wanted, equal_nan=True) else float("inf")
    return float(difference.max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-12))


def _cause(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> str:
    """Try the usual mistakes in turn."""
    if got.shape != wanted.shape:
        if got.size == wanted.size and got.ndim == wanted.ndim and sorted(got.shape) == sorted(wanted.shape):
            return f"(axes exchanged: {got.shape}, recorded {wanted.shape})"
        return f"(shape {got.shape}, recorded {wanted.shape})"
    if not np.all(np.isfinite(got)):
        return f"({np.count_nonzero(~np.isfinite(got))} values are NaN or infinite)"
    scale = float((got * wanted).sum() / max((got * got).sum(), 1e-300))
    if _error(got * scale, wanted) <= tolerance:
        return f"(off by the factor {scale:.6g}: a scale or norm weight)"
    if got.ndim and got.shape[-1] > 1:
        offset = (wanted - got).reshape(-1, got.shape[-1])
        if _error(got + offset.mean(0), wanted) <= tolerance:
            return "(off by the same vector at every position: a bias)"
        if any(_error(turned, wanted) <= tolerance for turned in _other_pairs(got)):
            return "(columns of heads interleaved instead of in halves, or the reverse: the rotary layout)"
    if got.ndim > 1 and got.shape[-2] > 1:
        rows = np.abs(got - wanted).reshape(-1, *got.shape[-2:]).max((0, 2))
        limit = tolerance * max(np.abs(wanted).max(), 1e-12)
        wrong = np.nonzero(rows > limit)[0]
        if 0 < len(wrong) < len(rows):
            which = f"positions {wrong.min()} to {wrong.max()} of {len(rows)} only"
            if wrong.min() == 1 and len(wrong) == len(rows) - 1:
                return f"({which}, all but the first: the rotary base or scaling, positions, or a mask)"
            return f"({which}: a mask or positions)"
    return "(its own weights or arithmetic: what it was given agrees)"


def _other_pairs(x: np.ndarray) -> Iterator[np.ndarray]:
    """The columns with neighbours put in halves, and the reverse, for heads of every possible size."""
    columns = x.shape[-1]
    for size in range(4, columns + 1, 2):
        if columns % size == 0:
            heads = x.reshape(*x.shape[:-1], -1, size)
            yield np.concatenate([heads[..., 0::2], heads[..., 1::2]], -1).reshape(x.shape)
            yield np.stack([heads[..., : size // 2], heads[..., size // 2 :]], -1).reshape(x.shape)
