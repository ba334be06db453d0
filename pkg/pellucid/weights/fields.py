"""What the fields of files from strangers may hold, as tables of kinds and ranges; and one way to refuse.

A table maps names to fields. `check` compares an object with it: ``config.json``, ``generation_config.json``,
``tokenizer_config.json`` and the metadata of a GGUF alike.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

from ..errors import FormatError

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_REPR.maxlevel = 3


def shown(value: Any) -> str:
    """A value for a message: as Python writes it, but short."""
    return _REPR.repr(value)


class Misfit(NamedTuple):
    """A value that is not what its field says: where it lies, what it is, what it must be."""

    path: str
    value: Any
    wanted: str


@dataclass(frozen=True)
class Field:
    """What one field may hold.

    Args:
        wanted: in words, behind "it must be".
        fits: whether a value is that.
    """

    wanted: str
    fits: Callable[[Any], bool]

    def misfit(self, path: str, value: Any) -> Misfit | None:
        """The first part of a value that does not fit, if there is one."""
        return None if self.fits(value) else Misfit(path, value, self.wanted)


def whole(least: int, most: int = (1 << 31) - 1) -> Field:
    """A whole number."""
    return Field(
        f"a whole number from {least:,} to {most:,}", lambda v: _is(v, Integral) and least <= v <= most
    )


def number(least: float, most: float, *, above: bool = False) -> Field:
    """A finite number; ``above``: ``least`` itself is none."""
    return Field(
        f"a number {'above' if above else 'from'} {least:g} {'and at most' if above else 'to'} {most:g}",
        lambda v: _is(v, Real) and least <= v <= most and not (above and v == least),
    )


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def text(longest: int = 1 << 16) -> Field:
    """A string without half characters, which no UTF-8 could hold."""
    return Field(
        f"a text of at most {longest:,} characters",
        lambda v: isinstance(v, str) and len(v) <= longest and _encodable(v),
    )


def _encodable(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def one_of(*values: str) -> Field:
    """One of some words."""
    return Field(f"one of {', '.join(map(repr, values))}", lambda v: isinstance(v, str) and v in values)


FLAG = Field("a bool", lambda v: isinstance(v, bool))


@dataclass(frozen=True)
class Listed(Field):
    """A list, each of whose elements fits ``inner``."""

    inner: Field

    def misfit(self, path: str, value: Any) -> Misfit | None:
        if not self.fits(value):
            return Misfit(path, value, self.wanted)
        misfits = (self.inner.misfit(f"{path}[{k}]", v) for k, v in enumerate(value))
        return next(filter(None, misfits), None)


def listed(inner: Field, most: int) -> Listed:
    """A list of at most ``most`` elements."""
    return Listed(
        f"a list of at most {most:,}", lambda v: isinstance(v, list | tuple) and len(v) <= most, inner
    )


@dataclass(frozen=True)
class Named(Field):
    """An object whose names and values fit ``key`` and ``inner``."""

    key: Field
    inner: Field

    def misfit(self, path: str, value: Any) -> Misfit | None:
        if not self.fits(value):
            return Misfit(path, value, self.wanted)
        for name, one in value.items():
            bad = self.key.misfit(f"a name in {path}", name)
            bad = bad or self.inner.misfit(f"{path}.{_REPR.repr(name)}", one)
            if bad:
                return bad
        return None


def named(key: Field, inner: Field, most: int) -> Named:
    """An object of at most ``most`` entries."""
    return Named(
        f"an object of at most {most:,} entries",
        lambda v: isinstance(v, Mapping) and len(v) <= most,
        key,
        inner,
    )


@dataclass(frozen=True)
class Record(Field):
    """An object with a table of its own; those in ``needed`` must be there, others may be null or absent."""

    table: Mapping[str, Field]
    needed: tuple[str, ...]

    def misfit(self, path: str, value: Any) -> Misfit | None:
        if not self.fits(value):
            return Misfit(path, value, self.wanted)
        return _first_misfit(path + ".", value, self.table, self.needed)


def record(table: Mapping[str, Field], *needed: str) -> Record:
    """An object with these fields; others in it do not matter."""
    return Record("an object (dict)", lambda v: isinstance(v, Mapping), table, needed)


@dataclass(frozen=True)
class Either(Field):
    """What one of several fields says. A value that is of none is said not to be of the last it resembles."""

    choices: tuple[Field, ...]

    def misfit(self, path: str, value: Any) -> Misfit | None:
        found = None
        for choice in self.choices:
            bad = choice.misfit(path, value)
            if bad is None:
                return None
            if bad.path != path:  # of this kind, but for a part of it
                found = bad
        return found or Misfit(path, value, self.wanted)


def either(*choices: Field) -> Either:
    """What one of several fields says."""
    return Either(" or ".join(c.wanted for c in choices), lambda v: True, choices)


def _first_misfit(
    prefix: str, values: Mapping[str, Any], table: Mapping[str, Field], needed: tuple[str, ...] = ()
) -> Misfit | None:
    for name, field in table.items():
        value = values.get(name)
        if value is None and name not in needed:
            continue
        bad = field.misfit(prefix + name, value)
        if bad:
            return bad
    return None


def check(
    where: str, values: Mapping[str, Any], table: Mapping[str, Field], *needed: str, prefix: str = ""
) -> None:
    """Compare an object with a table. Null is as good as absent; names that are not in the table pass.

    Args:
        where: the file's name, for messages.
        values: the object.
        table: its fields.
        needed: names that must be there.
        prefix: before the names, in messages and in ``values``.

    Raises:
        FormatError: a field does not fit; names it.
    """
    if prefix:
        values = {name: values.get(prefix + name) for name in table}
    bad = _first_misfit(prefix, values, table, needed)
    if bad is not None:
        state = "is missing" if bad.value is None else f"is {shown(bad.value)}"
        raise FormatError(
            f"{where}: {bad.path} {state}; it must be {bad.wanted}. The file is damaged, or made for another "
            "program."
        )
