"""Compare a model with recorded values, layer by layer, and say where it first departs and what the cause may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from ..autograd import no_grad
from ..errors import WeightError
from ..tensor import tensor
from .capture import capture


@dataclass
class Comparison:
    """One tap beside its recorded value.

    Args:
        path: the module.
        error: largest absolute difference over the largest recorded magnitude; infinite where shapes or NaNs differ.
        cause: what would explain the difference; empty where there is none.
    """

    path: str
    error: float
    cause: str = ""


@dataclass
class Match:
    """The result of `match`: rows in the order in which the model ran; ``first`` is the first that departs, or None."""

    tolerance: float
    rows: list[Comparison] = field(default_factory=list)

    @property
    def first(self) -> Comparison | None:
        return next((r for r in self.rows if r.error > self.tolerance), None)

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        width = max((len(r.path) for r in self.rows), default=4)
        lines = [f"{r.path:{width}}  {r.error:9.2e}  {'ok' if r.error <= self.tolerance else 'DEPARTS ' + r.cause}" for r in self.rows]
        first = self.first
        lines.append("all within tolerance" if first is None else f"first departs: {first.path}: {first.cause or 'no simple cause found'}")
        return "\n".join(lines)


def match(model: Any, reference: str | PathLike | Mapping[str, Any], *inputs: Any, tolerance: float = 1e-3, **forward: Any) -> Match:
    """Run a model and compare what its modules return with recorded values.

    Args:
        model: a module.
        reference: path of an ``.npz`` or a mapping: module path -> array of its output. The entry ``input_ids`` or ``input`` is what the model is run
            on where no inputs are given.
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
        ...     result = torch.match(model, {"input": np.ones((1, 2), "float32"), "0": np.ones((1, 2)), "1": np.ones((1, 2)) * 2})
        >>> result.first.path
        '1'
    """
    recorded = dict(np.load(reference)) if isinstance(reference, (str, PathLike)) else {k: np.asarray(v) for k, v in reference.items()}
    given = next((recorded.pop(k) for k in ("input_ids", "input") if k in recorded), None)
    if not inputs and not forward:
        if given is None:
            raise WeightError("match: the reference has no entry 'input_ids' or 'input'. Record one, or give the model's inputs.")
        parameter = next(iter(model.parameters()), None)
        inputs = (tensor(given, device=None if parameter is None else parameter.device),)
    with no_grad(), capture(model, sorted(recorded)) as seen:
        model(*inputs, **forward)
    result = Match(tolerance)
    departed = False
    for path, value in seen.items():
        wanted = recorded[path].astype(np.float64)
        got = value.detach().float().numpy().astype(np.float64)
        error = _error(got, wanted)
        cause = "" if error <= tolerance else ("follows from the first" if departed else _cause(got, wanted, tolerance))
        departed = departed or error > tolerance
        result.rows.append(Comparison(path, error, cause))
    return result


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
        if got.shape[-1] % 2 == 0:
            halves = np.concatenate([got[..., 0::2], got[..., 1::2]], -1)
            if _error(halves, wanted) <= tolerance or _error(got, np.concatenate([wanted[..., 0::2], wanted[..., 1::2]], -1)) <= tolerance:
                return "(columns interleaved instead of in halves: the rotary layout)"
    if got.ndim > 1 and got.shape[-2] > 1:
        rows = np.abs(got - wanted).reshape(-1, *got.shape[-2:]).max((0, 2))
        limit = tolerance * max(np.abs(wanted).max(), 1e-12)
        wrong = np.nonzero(rows > limit)[0]
        if 0 < len(wrong) < len(rows):
            return f"(positions {wrong.min()} to {wrong.max()} of {len(rows)} only: a mask or positions)"
    return "(its own weights or arithmetic: what it was given agrees)"
