"""Completion behind the REPL page: names, attributes, modules, and the signature of the call that is open.

Nothing is imported and no function is called for it: what is looked at is what has a name already.
"""

import ast
import inspect
import keyword
import pkgutil
import re
import sys
from collections.abc import Iterable
from typing import Any

_IMPORT = re.compile(r"(?:^|[;\n])\s*(?:import|from)\s+(?:[\w.]+\s*,\s*)*([\w.]*)$")
_FROM = re.compile(r"(?:^|[;\n])\s*from\s+([\w.]+)\s+import\s+(?:[\w]+\s*,\s*)*(\w*)$")
_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*(?:\.\w+|\[[^\[\]]*\])*)\.(\w*)$")
_CALLED = re.compile(r"([A-Za-z_]\w*(?:\.\w+|\[[^\[\]]*\])*)$")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_LINES = 12  # of a docstring


def complete(before: str, names: dict[str, Any]) -> dict[str, Any]:
    """What a text may go on with.

    Returns:
        ``matches``, names for what is ``begun`` of one; ``owner``, what stands before the name where it
        belongs to something, with its dot; or ``help`` on the call that is open where no word begins.
    """

    def found(matches: list[str], begun: str, owner: str = "") -> dict[str, Any]:
        return {"matches": matches, "begun": begun, "owner": owner, "help": ""}

    if match := _FROM.search(before):
        module = sys.modules.get(_here(match[1]))
        return found(_matching(dir(module) if module else (), match[2]), match[2], f"{match[1]}.")
    if match := _IMPORT.search(before):
        package, dot, last = match[1].rpartition(".")
        return found(_modules(package, last), last, package + dot)
    if match := _ATTRIBUTE.search(before):
        return found(_matching(_attributes(look(match[1], names)), match[2]), match[2], f"{match[1]}.")
    if match := _NAME.search(before):
        known = {**vars(sys.modules["builtins"]), **names}
        words = [*(_called(name, value) for name, value in known.items()), *keyword.kwlist]
        return found(_matching(words, match[0]), match[0])
    return {**found([], ""), "help": open_call(before, names)}


def look(expression: str, names: dict[str, Any]) -> Any:
    """The value of names, attributes and constant subscripts; None where there is none."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return names[name] if name in names else getattr(sys.modules["builtins"], name)
            case ast.Attribute(value=of, attr=name):
                return getattr(value(of), name)
            case ast.Subscript(value=of, slice=index):
                return value(of)[ast.literal_eval(index)]
        raise ValueError(expression)

    try:
        return value(ast.parse(expression, mode="eval").body)
    except Exception:
        return None  # whatever an attribute raises, there is nothing to offer


def describe(name: str, value: Any, most: int = _LINES) -> str:
    """A signature and the beginning of the docstring, as text."""
    try:
        head = name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value)))
    except (TypeError, ValueError):
        head = f"{name}: {type(value).__name__}"
    lines = (inspect.getdoc(value) or "").split("\n")
    more = ["…"] if len(lines) > most > 1 else []
    return "\n".join([head, *lines[:most], *more]).rstrip()


def open_call(before: str, names: dict[str, Any], most: int = _LINES) -> str:
    """Signature and docs of the call that is open at the end of a text; empty where none is."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        depth += {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}.get(before[index], 0)
        if depth < 0:
            found = _CALLED.search(before[:index]) if before[index] == "(" else None
            value = look(found[1], names) if found else None
            return describe(found[1], value, most) if found and callable(value) else ""
    return ""


def _attributes(value: Any) -> list[str]:
    """Names of a value's attributes, with a parenthesis where they are called."""
    if value is None:
        return []
    return [_called(name, inspect.getattr_static(value, name, None)) for name in dir(value)]


def _called(name: str, value: Any) -> str:
    return f"{name}(" if callable(value) else name


def _matching(names: Iterable[str], begun: str) -> list[str]:
    """Those that go on with what is begun; private ones where an underscore is."""
    return sorted({name for name in names if name.startswith(begun) and (begun or not name.startswith("_"))})


def _here(name: str) -> str:
    """The module's name in this process: PyTorch's are Pellucid's."""
    return name if name in sys.modules else re.sub(r"^torch\b", "pellucid", name)


def _modules(package: str, begun: str) -> list[str]:
    if not package:
        found = {*sys.builtin_module_names, *(module.name for module in pkgutil.iter_modules()), "torch"}
        return _matching(
            (name for name in found if not name.startswith("pellucid_")), begun
        )  # the page's own
    paths = getattr(sys.modules.get(_here(package)), "__path__", [])
    return _matching((module.name for module in pkgutil.iter_modules(paths)), begun)
