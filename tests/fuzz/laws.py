"""How exact the values of a random program are, step by step, so that it can be compared closely and nothing
is asked of numbers that an ulp decides.

Values that are *same* are equal bit for bit wherever the program runs: what was given, what was moved, and
sums and products of small whole numbers. Of others an error is known. What depends on them by a jump (a
comparison, a rounding, an order) is *lost*: only its shape and dtype are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.3e38}
# Whole numbers (and halves) up to here are added without rounding.
WHOLE = {"float16": 512, "bfloat16": 64, "float32": 2**20}


@dataclass
class State:
    """What is known of the values of a tensor and of all that share its memory."""

    same: bool = True
    error: float = 0.0
    lost: bool = False

    def with_others(self, other: State) -> State:
        """Where some values are of the one and some of the other."""
        return State(self.same and other.same, max(self.error, other.error), self.lost or other.lost)


def peak(values: np.ndarray) -> float:
    """The largest finite magnitude."""
    if values.dtype == bool or not values.size:
        return 1.0
    magnitudes = np.abs(values.astype(np.float64))
    return float(np.max(magnitudes, initial=0.0, where=np.isfinite(magnitudes)))


def on_grid(values: np.ndarray, dtype: str) -> bool:
    """Whether all finite values are small multiples of a half."""
    if dtype not in WHOLE:
        return values.dtype == bool or peak(values) <= 2**20
    finite = values[np.isfinite(values)].astype(np.float64)
    return bool(np.all(finite * 2 == np.round(finite * 2)) and np.all(np.abs(finite) <= WHOLE[dtype]))


# What an operation does to errors: from the operands' errors and peaks and the number of elements added up.
def largest(errors, peaks, n):
    return max(errors, default=0.0)


def total(errors, peaks, n):
    return sum(errors)


def product(errors, peaks, n):
    (e, f), (p, q) = (errors * 2)[:2], (peaks * 2)[:2]
    return e * q + f * p + e * f


def sums(errors, peaks, n):
    return n * max(errors) + n * max(peaks) * 2.0**-22


def products(errors, peaks, n):
    return n * (product(errors, peaks, n) + max(peaks) ** 2 * 2.0**-22)


def rough(errors, peaks, n):
    """Functions that change no faster than their argument, to the accuracy of the kernels'."""
    return 2 * max(errors) + 2e-5 * (1 + max(peaks))


# The kinds of operations. "move" makes no new values, "exact" (sums and products) is exact on whole numbers,
# "smooth" is never, "jump" is a function with steps.
@dataclass(frozen=True)
class Law:
    kind: str
    spread: object = largest


MOVE = Law("move")
ADD = Law("exact", total)
MULTIPLY = Law("exact", product)
SUM = Law("exact", sums)
MATMUL = Law("exact", products)
SMOOTH = Law("smooth", rough)
JUMP = Law("jump")
CAST = Law("cast")


def outside(values: np.ndarray, dtype: str) -> bool:
    """Whether some float is none that the integers hold: what a cast makes of it is nobody's promise."""
    if values.dtype.kind != "f":
        return False
    limits = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        return not bool(np.all((values > limits.min - 1.0) & (values < limits.max + 1.0)))


def follow(
    law: Law, states: list[State], operands: list, made: np.ndarray, dtype: str, given: list[str]
) -> State:
    """The state of a result.

    Args:
        law: of the operation.
        states: of the operands.
        operands: their values, before.
        made: the result's values.
        dtype: of the result.
        given: dtypes of the operands.
    """
    if any(state.lost for state in states):
        return State(False, 0.0, True)
    same = all(state.same for state in states)
    if dtype not in EPSILON:
        if law.kind == "cast" and dtype != "bool" and any(outside(v, dtype) for v in operands):
            same = False
        return State(same, 0.0, not same)
    if law.kind == "cast":
        law = MOVE
    if law.kind == "jump":
        return State(same, 0.0, not same)
    if law.kind == "move" and same and all(d == dtype for d in given):
        return State(same=True)
    if law.kind in ("move", "exact") and same:
        grids = all(on_grid(v, d) for v, d in zip(operands, given, strict=True)) and on_grid(made, dtype)
        if grids:
            return State(same=True)
    errors, peaks = [state.error for state in states] or [0.0], [peak(v) for v in operands] or [0.0]
    n = max((v.size for v in operands), default=1)
    error = law.spread(errors, peaks, n) + 4 * EPSILON[dtype] * max(peak(made), 1e-3)
    fresh = not np.isfinite(made).all() and all(np.isfinite(v).all() for v in operands)
    # Sums and products that may overflow on the way: where they do depends on their order.
    power = 1 if law.spread in (total, sums) else 2
    reach = n * max([1.0, *peaks]) ** power if law.kind == "exact" or law.spread is sums else 0.0
    huge = max(peak(made) * 8, reach, error) > LARGEST[dtype] or not np.isfinite(error)
    return State(False, float(error), bool(fresh or huge))


def differs(ours: np.ndarray, theirs: np.ndarray, state: State) -> str | None:
    """Where two results are further apart than their state allows: index and both values."""
    if state.lost or not theirs.size:
        return None
    if theirs.dtype.kind != "f" or state.same:
        wrong = ~((ours == theirs) | ((ours != ours) & (theirs != theirs)))
    else:
        with np.errstate(all="ignore"):
            off = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        close = off <= state.error
        odd = ~np.isfinite(theirs)
        alike = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        wrong = np.where(odd, ~alike, ~close)
    if not wrong.any():
        return None
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    allowed = "" if state.same or theirs.dtype.kind != "f" else f", {state.error:.3g} is allowed"
    first = f"first {list(place)}: {ours[place]} instead of {theirs[place]}{allowed}"
    return f"{int(wrong.sum())} of {wrong.size} differ, {first}"
