"""Reads files of ``wgsl/parts``: the functions of each, its other declarations, what they call.

The build of a wheel runs this file by itself and writes what it finds into the wheel, as a module: reading
all files takes 12 ms in a page, that module 1 ms. So nothing of the package is imported here.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

# No name is gone back over where no bracket follows.
CALLED = re.compile(r"\b(\w++)\(")
LOOP = re.compile(r"\b(?:for|while|loop)\b")
_USES = re.compile(r"^// +uses +(.+)$", re.M)
_DEFINED = re.compile(r"\nfn (\w+)\(")
# In one line, or up to the brace at a line's beginning.
_FUNCTION = re.compile(r"^fn (\w+)(?:.*\} *$|.*\n[\s\S]*?^\})", re.M)
_COMMENT = re.compile(r"//[^\n]*")
_TURNS = re.compile(r"^// +turns +\d+$", re.M)


class ShaderPart(NamedTuple):
    """One file, without comments.

    Args:
        functions: the texts of its functions by name, in order.
        others: its other declarations.
        uses: the parts that its header says it uses.
        counts: whether its functions count as loops if they have one.
        calls: what a function calls, and itself, by name; of "" what the other declarations call.
    """

    functions: dict[str, str]
    others: str
    uses: tuple[str, ...]
    counts: bool
    calls: dict[str, tuple[str, ...]]


def used_by(text: str) -> tuple[str, ...]:
    """The parts that a text names."""
    if "uses" not in text:  # takes a tenth of the search
        return ()
    return tuple([name.strip() for m in _USES.finditer(text) for name in m[1].split(",")])


def defined_in(text: str) -> set[str]:
    """The functions that a text defines, each at the beginning of a line."""
    # A pattern that begins with ^ looks at every letter, this one at newlines.
    return set(_DEFINED.findall(f"\n{text}"))


def called_in(text: str) -> tuple[str, ...]:
    """What a text calls, each name once."""
    return tuple(dict.fromkeys(CALLED.findall(text)))


def read_part(text: str) -> ShaderPart:
    """A file's text, read."""
    plain = _COMMENT.sub("", text)
    others = "\n".join(filter(str.strip, _FUNCTION.sub("", plain).split("\n")))
    functions = {m[1]: m[0] for m in _FUNCTION.finditer(plain)}
    calls = {name: called_in(written) for name, written in functions.items()} | {"": called_in(others)}
    # Few turns that are known do not count.
    return ShaderPart(functions, others, used_by(text), not _TURNS.search(text), calls)


def read_parts(root: str) -> dict[str, ShaderPart]:
    """All files below a folder by their names, by which headers say what they use."""
    # Walked by os, which takes a third of pathlib's time in a page.
    found: dict[str, ShaderPart] = {}
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if name.endswith(".wgsl"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found[name.removesuffix(".wgsl")] = read_part(file.read())
    return found


def module_of(root: str) -> str:
    """The text of a module with all that `read_parts` finds, as plain tuples."""
    parts = {name: tuple(part) for name, part in read_parts(root).items()}
    return f'"""What `part_file.read_parts` finds in ``wgsl/parts``."""\n\nPARTS = {parts!r}\n'
