"""How one case went: forms of outcome, and what counts as equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .translate import MissingName, array

# PyTorch's own test that compares devices takes 1e-3; halves have fewer bits.
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2}
# Where that is left, the default of `torch.testing.assert_close` for float32.
TIGHT = 1.3e-6, 1e-5


@dataclass
class Counts:
    """Cases of one name by outcome, and the first reason for each that did not pass."""

    passed: int = 0
    wrong: int = 0
    error: int = 0
    missing: int = 0
    loose: int = 0
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, reason: str = "") -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if reason:
            self.reasons.setdefault(kind, reason[:300])

    @property
    def total(self) -> int:
        return self.passed + self.wrong + self.error + self.missing


def flat(value: Any) -> Iterator[Any]:
    """Results one after the other."""
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from flat(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from flat(v)
    else:
        yield value


def difference(ours: Any, theirs: Any, values: bool = True) -> tuple[str, bool]:
    """What is not the same, empty if nothing; and whether all of it is within `TIGHT`.

    Args:
        values: whether elements are compared, besides shape and dtype.
    """
    a, b, tight = list(flat(ours)), list(flat(theirs)), True
    if len(a) != len(b):
        return f"{len(a)} results, PyTorch has {len(b)}", False
    for x, y in zip(a, b):
        if not isinstance(y, torch.Tensor):
            if hasattr(x, "_meta"):
                return f"a tensor where PyTorch has {y!r}", False
            if isinstance(y, (bool, int, float, complex)) and not np.isclose(x, y, rtol=1e-5, equal_nan=True):
                return f"{x!r}, PyTorch {y!r}", False
            continue
        if not hasattr(x, "_meta"):
            return f"{x!r} where PyTorch has a tensor", False
        mine, wanted = str(x.dtype).split(".")[-1], str(y.dtype).split(".")[-1]
        if tuple(x.shape) != tuple(y.shape) or mine != wanted:
            return f"{mine}{tuple(x.shape)}, PyTorch {wanted}{tuple(y.shape)}", False
        if not values:
            continue
        u, v = array(x), array(y)
        if u.dtype.kind in "fc":
            close = TOLERANCE.get(wanted, 1e-3)
            with np.errstate(all="ignore"):
                if not np.allclose(u, v, close, close, equal_nan=True):
                    worst = np.nanmax(np.where(np.isfinite(u) & np.isfinite(v), np.abs(u - v), 0), initial=0)
                    return f"values differ, finite ones by up to {worst:.3g}", False
                tight &= np.allclose(u, v, *TIGHT, equal_nan=True)
        elif not np.array_equal(u, v):
            return f"{np.count_nonzero(u != v)} of {u.size} values differ", False
    return "", tight


def compare(counts: Counts, ours: Callable, theirs: Any, values: bool = True, where: str = "") -> Any:
    """Count one call of ours beside PyTorch's result; ours is returned, None if it raised."""
    try:
        found = ours()
        text, tight = difference(found, theirs, values)
    except MissingName as error:
        return counts.add("missing", f"{error}")
    except AttributeError as error:
        if "has no attribute" in str(error) or "PyTorch has" in str(error):
            return counts.add("missing", str(error))
        return counts.add("error", f"{where}{type(error).__name__}: {error}")
    except NotImplementedError as error:
        return counts.add("missing", str(error))
    except Exception as error:
        return counts.add("error", f"{where}{type(error).__name__}: {error}")
    counts.add("wrong" if text else "passed", where + text if text else "")
    counts.loose += not text and not tight
    return None if text else found
