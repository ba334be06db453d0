"""Which numbers of a program follow which values of its calls: found by comparing calls, one value at a time.

A value is an offset of an argument, or a dynamic argument. A number follows an integer if it is
``base + slope * value``, in words modulo 2^32 or as a float32, and a float if it is its bits.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence

from ..op.plan import float_bits

_WORD = 1 << 32


def real(word: int) -> float:
    """The float32 of a word."""
    return struct.unpack("<f", struct.pack("<I", word))[0]


class Unlawful(Exception):
    """A number follows a value in another way than words can be patched.

    Args:
        how: what it does instead.
        value: which value.
        number: which number.
    """

    def __init__(self, how: str, value: int, number: int):
        super().__init__(how)
        self.value, self.number = value, number


class Law:
    """What is known of the numbers of one program.

    Args:
        values: of the first call.
        numbers: of the first call; the first ``words`` of them are words, the others plain integers.
        words: see above.
        offsets: how many of the values are offsets, which always add up; the dynamic arguments follow.
        floats: values that are bits of a float.
        reals: numbers that are bits of a float.
    """

    def __init__(
        self,
        values: list[int],
        numbers: list[int],
        words: int,
        offsets: int,
        floats: Collection[int],
        reals: Collection[int],
    ):
        # One attribute: an interrupt must not leave the values of one call with the numbers of another.
        self._first = values, numbers
        self._words, self._offsets, self._floats = words, offsets, floats
        self.reals = reals
        # Value -> number -> slope; 1 stands for the bits themselves where the value is a float.
        self.slopes: dict[int, dict[int, float]] = {}
        # Value -> the two that taught the slopes, until a third one has confirmed them.
        self._doubted: dict[int, set[int]] = {}
        # Value -> lengths in bits that were met: decisions of Python fall at powers of two, if at all.
        self._met: dict[int, set[int]] = {}

    @property
    def values(self) -> list[int]:
        """Those of the first call."""
        return self._first[0]

    @property
    def numbers(self) -> list[int]:
        """Those of the first call."""
        return self._first[1]

    def holds(self, values: list[int]) -> bool:
        """Whether the numbers of a call with these values are known."""
        first = self._first[0]
        if values == first:
            return True
        # Most often no offset is another one.
        begin = self._offsets if values[: self._offsets] == first[: self._offsets] else 0
        slopes, doubted, met = self.slopes, self._doubted, self._met
        for k in range(begin, len(values)):
            value = values[k]
            if value == first[k]:
                continue
            if k not in slopes or (k in doubted and value not in doubted[k]):
                return False
            if k >= self._offsets and k not in self._floats and _length(value) not in met[k]:
                return False
        return True

    def predict(self, values: Sequence[int]) -> list[int]:
        """The numbers of a call."""
        found: list[float] = list(self.numbers)
        grown: set[int] = set()
        for k, slopes in self.slopes.items():
            step = values[k] - self.values[k]
            for n, slope in slopes.items() if step else ():
                if k in self._floats:
                    found[n] = values[k]
                    continue
                if n in self.reals and n not in grown:
                    grown.add(n)
                    found[n] = real(self.numbers[n])
                found[n] += slope * step
        made = [float_bits(x) if n in grown else int(x) for n, x in enumerate(found)]
        return [x % _WORD if n < self._words else x for n, x in enumerate(made)]

    def plain(self, values: Sequence[int]) -> list[int]:
        """The numbers of a call that are no words."""
        first, numbers = self._first
        found = numbers[self._words :]
        if not found or values == first:
            return found
        for k, slopes in self.slopes.items():
            step = values[k] - self.values[k]
            for n, slope in slopes.items() if step else ():
                if n >= self._words:
                    found[n - self._words] += int(slope) * step
        return found

    @property
    def varying(self) -> dict[int, dict[int, float]]:
        """Number -> value that it follows -> slope."""
        found: dict[int, dict[int, float]] = {}
        for k, slopes in self.slopes.items():
            for n, slope in slopes.items():
                found.setdefault(n, {})[k] = slope
        return found

    def is_float(self, value: int) -> bool:
        """Whether a value is the bits of a float."""
        return value in self._floats

    def learn(self, values: list[int], numbers: list[int]) -> bool:
        """Compare a call whose program was the same.

        Returns:
            Whether something new is known: slopes, or another first call.

        Raises:
            Unlawful: a number does not follow.
        """
        new = [
            k
            for k, (value, first) in enumerate(zip(values, self.values, strict=True))
            if value != first and k not in self.slopes
        ]
        if len(new) > 1:
            # Several changed for the first time: which number follows which cannot be told.
            self._first = values, numbers
            return True
        predicted = self.predict(values)
        differing = [n for n, (a, b) in enumerate(zip(predicted, numbers, strict=True)) if a != b]
        if new:
            self._teach(new[0], values, numbers, predicted, differing)
            return True
        changed = [k for k, value in enumerate(values) if value != self.values[k]]
        if differing:
            raise Unlawful("does not grow evenly with", changed[-1] if changed else 0, differing[0])
        for k in changed:
            if values[k] not in self._doubted.get(k, ()):
                self._doubted.pop(k, None)
            self._met[k].add(_length(values[k]))
        return False

    def _teach(
        self, k: int, values: list[int], numbers: list[int], predicted: list[int], differing: list[int]
    ) -> None:
        value, first = values[k], self.values[k]
        slopes: dict[int, float] = {}
        for n in differing:
            if k in self._floats:
                if numbers[n] != value or self.numbers[n] != first:
                    raise Unlawful("is computed in Python from", k, n)
                slopes[n] = 1
                continue
            if n in self.reals:
                slopes[n] = (real(numbers[n]) - real(predicted[n])) / (value - first)
                continue
            change = numbers[n] - predicted[n]
            if n < self._words:
                change = (change + _WORD // 2) % _WORD - _WORD // 2
            if change % (value - first):
                raise Unlawful("does not grow evenly with", k, n)
            slopes[n] = change // (value - first)
        # The slopes come last: with them the value is known.
        self._met[k] = {_length(value), _length(first)}
        if k >= self._offsets and k not in self._floats:
            self._doubted[k] = {value, first}
        self.slopes[k] = slopes


def _length(value: int) -> int:
    """Bits of a number, with its sign."""
    return -value.bit_length() if value < 0 else value.bit_length()


__all__ = ["Law", "Unlawful"]
