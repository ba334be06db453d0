"""Header of a kernel's file: what it says of fusion, rules 15 and 16 of wgsl/README.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import KernelError


class KernelHeader(NamedTuple):
    """What the header of a kernel's file says of fusion.

    Args:
        input: the binding that it reads through ``load_<input>(i)`` alone; None if there is none.
        outputs: bindings that it writes through functions ``store_<name>(i, ...)`` alone.
        joins: the kernels whose launches it takes the place of, in order.
        joint: kernels of several launches of this one, and of two that make their results together.
        norms: kernels whose work it does with NORM.
        compact: whether it has a form that compiles sooner, by a ``const COMPACT``. Kernels of users have
            none, whatever they declare.
    """

    input: str | None = None
    outputs: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    norms: tuple[str, ...] = ()
    compact: bool = False


NO_HEADER = KernelHeader()
# The line of a text in its full form, and in its compact one.
FULL, COMPACT = "const COMPACT = false;", "const COMPACT = true;"
_FACTS = re.compile(r"^// +(fuses|joins|joint|norms)\b *(.*)$", re.M)
_FUSES = re.compile(r"(\w+)? *-> *(\w+(?:, *\w+)*)?")
_KERNELS = re.compile(r"\w+(?:/\w+)+(?:, *\w+(?:/\w+)+)*")


def header_of(name: str, text: str, access: Mapping[str, str]) -> KernelHeader:
    """What the header of a file says of fusion.

    Args:
        name: the file's, for messages.
        text: the WGSL.
        access: "read" or "written", by the names of bindings.

    Raises:
        KernelError: a line has another form, comes twice, or names a binding that there is not.
    """
    header = KernelHeader(compact=FULL in text)
    seen: set[str] = set()
    for fact, value in _FACTS.findall(text):
        says = f"{name}: the header says '{fact} {value}'"
        found = (_FUSES if fact == "fuses" else _KERNELS).fullmatch(value.strip())
        if fact in seen or found is None or value.strip() == "->":
            form = (
                "input -> outputs, where one side may be empty" if fact == "fuses" else "folder/kernel, ..."
            )
            raise KernelError(f"{says}. Write one line: {fact} {form}.")
        seen.add(fact)
        if fact != "fuses":
            header = header._replace(**{fact: _names(value)})
            continue
        header = header._replace(input=found[1], outputs=_names(found[2] or ""))
        for binding, wanted in [(header.input, "read"), *[(output, "written") for output in header.outputs]]:
            if binding is not None and access.get(binding) != wanted:
                raise KernelError(f"{says}, but {binding} is no binding that is {wanted}.")
    return header


def _names(listed: str) -> tuple[str, ...]:
    return tuple([name.strip() for name in listed.split(",") if name.strip()])
