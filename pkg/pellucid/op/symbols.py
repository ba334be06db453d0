"""Symbolic numbers of a call that is being recorded: integers that go on as ``a + b * x``, the words and
offsets that follow them, and what Python learns of them.

A captured function is replayed with other numbers than those it was recorded with, but its Python has seen
only these. So it is given symbols in their place. Ops take a symbol as a number that may change. Whatever
else happens to one, a comparison, a hash, a conversion, tells Python something about the number: it becomes a
condition, and only calls whose numbers meet all conditions are replayed.

A symbol is no subclass of int: C code takes the value of one without asking (`range`, ``list[n]``). It says
that its class is int, which is what ``isinstance`` asks, and C code that wants a number calls ``__index__``.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from .pytree import flatten, unflatten

# Slopes by number of the call, sorted: what an integer follows.
Form = tuple[tuple[int, int], ...]

# Up to here an integer is one float32, so that a parameter of that type follows it bit for bit.
_EXACT = 1 << 24


class Conditions:
    """What the numbers of a call must be for Python to do the same again.

    Args:
        numbers: the dynamic arguments of the recorded call.
        offsets: where its tensors begin.

    Attributes:
        given: what symbols stand for: the numbers, the offsets, then what replays bring besides.
        is_open: the call is still recorded; later nothing is noted any more.
        reason: why no replay could do the same.
    """

    def __init__(self, numbers: Sequence[int | float], offsets: Sequence[int] = ()):
        self.given: list[Any] = [*numbers, *offsets]
        self.is_open = True
        self.reason: str | None = None
        self._count = len(numbers)
        # Of what replays bring: why a call that settles it is not replayed.
        self._reasons: dict[int, str] = {}
        # Of forms: the least and the largest value, and values between them that none must have.
        self._ranges: dict[Form, tuple[float, float]] = {}
        self._others: dict[Form, set[int]] = {}
        # Of floats: what comparisons gave, and bits that must be these.
        self._answers: dict[tuple[int, Callable[[Any, Any], bool], Any], bool] = {}
        self._bits: dict[int, bytes] = {}

    def symbols(self) -> list[Any]:
        """What stands for the numbers while the call is recorded."""
        return [
            Integer(self, {k: 1}, value) if type(value) is int else Real(self, k, value)
            for k, value in enumerate(self.given[: self._count])
        ]

    def offset(self, k: int) -> Followed:
        """What stands for the offset of a tensor."""
        place = self._count + k
        value = self.given[place]
        return Followed(value, Integer(self, {place: 1}, value), "sum")

    def brought(self, value: float, reason: str) -> Real:
        """What stands for a number that every replay brings anew.

        Args:
            value: the number of this call.
            reason: why a call is not replayed whose Python takes its value.
        """
        self.given.append(value)
        self._reasons[len(self.given) - 1] = reason
        return Real(self, len(self.given) - 1, value)

    def holds(self, given: Sequence[int | float]) -> bool:
        """Whether Python would do the same with these numbers."""
        for form, (low, high) in self._ranges.items():
            # Most often a form is one of the numbers, and nothing else is asked of it.
            k, slope = form[0]
            value = slope * given[k] if len(form) == 1 else _value(form, given)
            if not low <= value <= high or (self._others and value in self._others.get(form, ())):
                return False
        if not (self._answers or self._bits):
            return True
        return all(
            ask(given[k], other) is answer for (k, ask, other), answer in self._answers.items()
        ) and all(_bits(given[k]) == bits for k, bits in self._bits.items())

    def join(self, other: Conditions) -> None:
        """Take on the conditions of another call, too."""
        for form, (low, high) in other._ranges.items():
            self.bound(form, low, high)
        for form, values in other._others.items():
            self._others.setdefault(form, set()).update(values)
        self._answers |= other._answers
        self._bits |= other._bits

    def bound(self, form: Form, low: float, high: float) -> None:
        """The form lies between these."""
        least, most = self._ranges.get(form, (-inf, inf))
        self._ranges[form] = max(least, low), min(most, high)

    def exclude(self, form: Form, value: int) -> None:
        """The form has another value."""
        self.bound(form, -inf, inf)
        self._others.setdefault(form, set()).add(value)

    def answer(self, k: int, ask: Callable[[Any, Any], bool], other: Any, answer: bool) -> None:
        """A comparison of a float gives this."""
        if k in self._reasons:
            self.pin(k)
        else:
            self._answers[k, ask, other] = answer

    def pin(self, k: int) -> None:
        """The number is this one, to the bit."""
        if k in self._reasons:
            self.reason = self.reason or self._reasons[k]
        else:
            self._bits[k] = _bits(self.given[k])


def _value(form: Form, given: Sequence[Any]) -> int:
    return sum([slope * given[k] for k, slope in form])


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


class Symbol:
    """What is common to both kinds: any use that is not known settles the number."""

    __slots__ = ("_conditions", "_plain")

    _conditions: Conditions
    _plain: Any

    def settle(self) -> Any:
        """The plain number, which every later call must then have, too."""
        raise NotImplementedError

    def word(self, word: int, kind: str) -> int:
        """A word that a launch takes of the number, as what it follows.

        Args:
            word: that of this call.
            kind: how it is made: "f32", "truth", or the "low" or "high" half of an integer.
        """
        raise NotImplementedError

    @property
    def source(self) -> tuple:
        """What a word is that follows the number: equal for calls that one replay serves."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        # Not of an instance: what the number does not have is no use of it.
        if name.startswith("__") or not hasattr(type(self._plain), name):
            raise AttributeError(f"{type(self._plain).__name__!r} object has no attribute {name!r}")
        return getattr(self.settle(), name)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.settle(), dtype)

    def __array_ufunc__(self, ufunc, method: str, *inputs, **settings):
        return getattr(ufunc, method)(*map(settled, inputs), **settings)

    def __reduce_ex__(self, protocol):
        return type(self._plain), (self.settle(),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __format__(self, spec: str) -> str:
        return format(self.settle(), spec)

    def __round__(self, digits=None):
        return round(self.settle(), digits)

    def __eq__(self, other):
        return _compare(operator.eq, self, other)

    def __ne__(self, other):
        return _compare(operator.ne, self, other)

    def __lt__(self, other):
        return _compare(operator.lt, self, other)

    def __le__(self, other):
        return _compare(operator.le, self, other)

    def __gt__(self, other):
        return _compare(operator.gt, self, other)

    def __ge__(self, other):
        return _compare(operator.ge, self, other)

    def __bool__(self) -> bool:
        return self != 0


class Integer(Symbol):
    """An integer of a recorded call.

    Args:
        conditions: of the call.
        slopes: number of the call -> how often the integer contains it.
        plain: its value in this call.
    """

    __slots__ = ("_slopes",)

    def __init__(self, conditions: Conditions, slopes: Mapping[int, int], plain: int):
        self._conditions, self._slopes, self._plain = conditions, slopes, plain

    @property
    def __class__(self):  # type: ignore[override]
        return int

    @property
    def _form(self) -> Form:
        return tuple(sorted(self._slopes.items()))

    @property
    def _base(self) -> int:
        """What it is beside its form."""
        return self._plain - _value(self._form, self._conditions.given)

    def _between(self, low: float, high: float) -> None:
        """Note that it lies between these."""
        if self._conditions.is_open:
            self._conditions.bound(self._form, low - self._base, high - self._base)

    def settle(self) -> int:
        self._between(self._plain, self._plain)
        return self._plain

    def word(self, word: int, kind: str) -> int:
        if not self._conditions.is_open:
            return word
        if kind == "low":
            return Followed(word, self, "sum")
        if kind == "f32":
            if abs(self._plain) <= _EXACT:
                self._between(-_EXACT, _EXACT)
                return Followed(word, self, "real")
            self.settle()
        elif kind == "truth":
            bool(self)
        else:
            begin = self._plain >> 32 << 32
            self._between(begin, begin + (1 << 32) - 1)
        return word

    @property
    def source(self) -> tuple:
        return self._base, self._form

    def _plus(self, other: Any, sign: int) -> Any:
        """The sum with, or without, another integer; plain where nothing is left that may change."""
        slopes, plain = dict(self._slopes), self._plain
        if type(other) is Integer:
            if other._conditions is not self._conditions:
                other = other.settle()
            else:
                for k, slope in other._slopes.items():
                    slopes[k] = slopes.get(k, 0) + sign * slope
                other = other._plain
        plain += sign * other
        slopes = {k: slope for k, slope in slopes.items() if slope}
        return Integer(self._conditions, slopes, plain) if slopes and self._conditions.is_open else plain

    def _times(self, factor: int) -> Any:
        if not factor or not self._conditions.is_open:
            return self._plain * factor
        slopes = {k: factor * slope for k, slope in self._slopes.items()}
        return Integer(self._conditions, slopes, self._plain * factor)

    def __add__(self, other):
        return self._plus(other, 1) if _is_integer(other) else _pair(operator.add, self, other)

    def __radd__(self, other):
        return self._plus(other, 1) if _is_integer(other) else _pair(operator.add, other, self)

    def __sub__(self, other):
        return self._plus(other, -1) if _is_integer(other) else _pair(operator.sub, self, other)

    def __rsub__(self, other):
        return (-self)._plus(other, 1) if _is_integer(other) else _pair(operator.sub, other, self)

    def __mul__(self, other):
        if type(other) is Integer:
            return self._times(other.settle())
        return self._times(other) if _is_integer(other) else _pair(operator.mul, self, other)

    def __rmul__(self, other):
        return self._times(other) if _is_integer(other) else _pair(operator.mul, other, self)

    def __neg__(self):
        slopes = {k: -slope for k, slope in self._slopes.items()}
        return Integer(self._conditions, slopes, -self._plain)

    def __pos__(self):
        return self

    def __abs__(self):
        return -self if self < 0 else self

    def _ask(self, ask: Callable[[Any, Any], bool], other: int) -> bool:
        """Compare with a plain integer, and note what that says."""
        answer = ask(self._plain, other)
        if ask in (operator.eq, operator.ne):
            if self._plain == other:
                self.settle()
            elif self._conditions.is_open:
                self._conditions.exclude(self._form, other - self._base)
        elif ask in (operator.lt, operator.ge):
            self._between(*((-inf, other - 1) if self._plain < other else (other, inf)))
        else:
            self._between(*((other + 1, inf) if self._plain > other else (-inf, other)))
        return answer


class Real(Symbol):
    """A number of a recorded call that goes on as it is: a float, or a random word.

    Args:
        conditions: of the call.
        number: which of its numbers.
        plain: its value.
    """

    __slots__ = ("_number",)

    def __init__(self, conditions: Conditions, number: int, plain: float):
        self._conditions, self._number, self._plain = conditions, number, plain

    @property
    def __class__(self):  # type: ignore[override]
        return type(self._plain)

    def settle(self) -> float:
        if self._conditions.is_open:
            self._conditions.pin(self._number)
        return self._plain

    def word(self, word: int, kind: str) -> int:
        if kind == "truth":
            bool(self)
        elif (kind == "f32") is (type(self._plain) is float):
            return Followed(word, self, "value")
        else:
            self.settle()
            if kind == "low":
                return Followed(word, self, "computed")
        return word

    @property
    def source(self) -> tuple:
        return (self._number,)

    def _ask(self, ask: Callable[[Any, Any], bool], other: int | float) -> bool:
        answer = ask(self._plain, other)
        if self._conditions.is_open:
            self._conditions.answer(self._number, ask, other, answer)
        return answer


class Followed(int):
    """An offset or a word of a recorded call, which says what it follows; for all else it is an integer.

    Args:
        value: that of this call.
        symbol: what it follows.
        kind: a "sum" of integers, such a sum as a float32 ("real"), the "value" itself, or what was
            "computed" of it.
    """

    def __new__(cls, value: int, symbol: Symbol, kind: str):
        made = super().__new__(cls, value)
        made.symbol, made._kind = symbol, kind
        return made

    symbol: Any
    _kind: str

    def source(self, conditions: Conditions) -> tuple | None:
        """What the word is at every call like this one; None for a number of another call."""
        symbol = self.symbol
        return (self._kind, *symbol.source) if symbol._conditions is conditions else None

    def __reduce_ex__(self, protocol):
        return int, (int(self),)

    # What becomes of offsets: they are added up, and counted in bytes.

    def __add__(self, other):
        if self._kind != "sum" or not isinstance(other, int):
            return int(self) + other
        return _offset(self.symbol + (other.symbol if type(other) is Followed else other))

    __radd__ = __add__

    def __sub__(self, other):
        return self + -1 * other

    def __mul__(self, other):
        return _offset(self.symbol * int(other)) if isinstance(other, int) else int(self) * other

    __rmul__ = __mul__


def _offset(value: Any) -> int:
    return Followed(value._plain, value, "sum") if type(value) is Integer else value


def moved(offset: int, by: Any) -> int:
    """An offset that also follows what is a part of it.

    Args:
        offset: where a tensor begins.
        by: the part, which may be a symbol.
    """
    if type(by) is not Integer:
        return offset
    return _offset((offset.symbol if type(offset) is Followed else offset) + (by - by._plain))


# What a number may be: `Integer` and `Real` ask of a value's type, never of its class.
SYMBOLS = frozenset({Integer, Real})


def _is_integer(value: Any) -> bool:
    return type(value) in (int, bool, Integer)


def settled(value: Any) -> Any:
    """A value with plain numbers for all symbols in it, which are settled."""
    kind = type(value)
    if kind in SYMBOLS:
        return value.settle()
    if kind is slice:
        return slice(settled(value.start), settled(value.stop), settled(value.step))
    if issubclass(kind, (list, tuple)) and any(_holds_symbols(v) for v in value):
        return kind([settled(v) for v in value]) if kind in (list, tuple) else tuple(map(settled, value))
    return value


def _holds_symbols(value: Any) -> bool:
    kind = type(value)
    return kind in SYMBOLS or (issubclass(kind, (list, tuple)) and any(map(_holds_symbols, value)))


def plain_of(value: Any) -> Any:
    """The number of a symbol, where something follows that."""
    return value._plain if type(value) in SYMBOLS else value


def returned(value: Any) -> Any:
    """A result with plain numbers for symbols and offsets that follow: integers may, floats are settled."""
    leaves: list[Any] = []
    structure = flatten(value, leaves)
    for leaf in leaves:
        if type(getattr(leaf, "_offset", None)) is Followed:
            leaf._offset = int(leaf._offset)
    if not any(type(leaf) in SYMBOLS for leaf in leaves):
        return value
    return unflatten(structure, (plain_of(v) if type(v) is Integer else settled(v) for v in leaves))


def _compare(ask: Callable[[Any, Any], bool], symbol: Any, other: Any) -> Any:
    if other is None or hasattr(other, "_meta"):
        return NotImplemented
    if type(other) in SYMBOLS:
        if type(symbol) is Integer and type(other) is Integer:
            rest = symbol - other
            return rest._ask(ask, 0) if type(rest) is Integer else ask(rest, 0)
        other = other.settle()
    kind = type(other)
    if kind in (int, bool) or (kind is float and type(symbol) is Real):
        return symbol._ask(ask, other)
    return ask(symbol.settle(), other)


def _pair(compute: Callable, left: Any, right: Any, *more: Any) -> Any:
    """Any other computation with two numbers; those with a tensor are the tensor's."""
    if hasattr(left, "_meta") or hasattr(right, "_meta"):
        return NotImplemented
    return compute(settled(left), settled(right), *map(settled, more))


def _alone(compute: Callable) -> Callable:
    return lambda self: compute(self.settle())


def _left(compute: Callable) -> Callable:
    return lambda self, other, *more: _pair(compute, self, other, *more)


def _right(compute: Callable) -> Callable:
    return lambda self, other: _pair(compute, other, self)


def _complete(kind: type, alone: Mapping[str, Callable], pairs: Mapping[str, Callable]) -> None:
    """Give a class the operators that settle the number."""
    for name, compute in alone.items():
        setattr(kind, f"__{name}__", _alone(compute))
    for name, compute in pairs.items():
        setattr(kind, f"__{name}__", _left(compute))
        setattr(kind, f"__r{name}__", _right(compute))


_ALONE = {
    "hash": hash, "repr": repr, "str": str, "int": int, "float": float, "complex": complex,
    "trunc": math.trunc, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_PAIRS = {
    "truediv": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod, "divmod": divmod,
    "pow": pow,
}  # fmt: skip
_BITS = ("and_", "or_", "xor", "lshift", "rshift")
_complete(
    Symbol,
    _ALONE | {"index": operator.index, "invert": operator.invert},
    _PAIRS | {name.strip("_"): getattr(operator, name) for name in _BITS},
)
_complete(
    Real,
    {"neg": operator.neg, "pos": operator.pos, "abs": abs},
    {"add": operator.add, "sub": operator.sub, "mul": operator.mul},
)


__all__ = ["SYMBOLS", "Conditions", "Followed", "Symbol", "moved", "plain_of", "returned", "settled"]
