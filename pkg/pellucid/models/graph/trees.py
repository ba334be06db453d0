"""Pytrees as an exported program describes them: nested arguments and results, by the names of their types.

No class of the file is imported: what is no container of Python becomes a dataclass of the same fields.
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import make_dataclass
from keyword import iskeyword
from typing import Any

from ...errors import ArgumentError, FormatError
from ...op.arguments import describe
from ...weights.document import as_bytes, parse_object, parse_value
from ...weights.fields import check, shown, text
from ..output import ModelOutput

_VERSION = 1
_SEQUENCES: dict[str, type] = {"builtins.tuple": tuple, "builtins.list": list}
_MAPPINGS: dict[str, type] = {"builtins.dict": dict, "collections.OrderedDict": OrderedDict}
_NODE = {"type": text(1 << 10), "context": text(1 << 16)}


class ArgumentTree:
    """A structure of leaves.

    Args:
        kind: the name of the container's type; None for a leaf.
        keys: of a mapping or a class, the names of what it holds.
        children: structures of what it holds.
        make: makes the container of a list of values.
    """

    def __init__(
        self, kind: str | None, keys: list, children: list[ArgumentTree], make: Callable[[list], Any]
    ):
        self.kind, self.keys, self.children, self.make = kind, keys, children, make
        self.leaves: int = sum(c.leaves for c in children) if kind is not None else 1

    def flatten(self, value: Any, path: str) -> list[Any]:
        """The leaves of a value of this structure.

        Args:
            value: what is taken apart.
            path: names it in messages.

        Raises:
            ArgumentError: it has another structure.
        """
        if self.kind is None:
            return [value]
        if self.kind in _SEQUENCES or not self.keys:
            if not isinstance(value, (tuple, list)) or len(value) != len(self.children):
                raise ArgumentError(
                    f"{path} must be a sequence of {len(self.children)} values, not {describe(value)}."
                )
            parts = list(enumerate(value))
        elif isinstance(value, Mapping):
            if set(value) != set(self.keys):
                raise ArgumentError(f"{path} must have the keys {self.keys}, not {list(value)}.")
            parts = [(key, value[key]) for key in self.keys]
        elif self.kind in _MAPPINGS or not all(hasattr(value, str(key)) for key in self.keys):
            raise ArgumentError(f"{path} must be a mapping with the keys {self.keys}, not {describe(value)}.")
        else:
            parts = [(key, getattr(value, str(key))) for key in self.keys]
        return [
            leaf
            for child, (key, part) in zip(self.children, parts, strict=True)
            for leaf in child.flatten(part, f"{path}[{key!r}]")
        ]

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """The value of this structure with these leaves."""
        if self.kind is None:
            return next(leaves)
        return self.make([child.unflatten(leaves) for child in self.children])


def read_spec(where: str, spec: str, tuples: Mapping[str, Any]) -> ArgumentTree:
    """The structure that a text describes.

    Args:
        where: the file and the field, for messages.
        spec: as PyTorch's ``treespec_dumps`` writes it.
        tuples: named tuples by name, with their ``field_names``.

    Raises:
        FormatError: the text is no description.
    """
    found = parse_object(where, b'{"spec": ' + as_bytes(spec) + b"}").get("spec")
    if not isinstance(found, list) or len(found) != 2 or found[0] != _VERSION:
        raise FormatError(f"{where} is {shown(found)}; a structure of version {_VERSION} was expected.")
    return _spec(where, found[1], tuples)


def _spec(where: str, node: Any, tuples: Mapping[str, Any]) -> ArgumentTree:
    if not isinstance(node, dict) or not isinstance(node.get("children_spec"), list):
        raise FormatError(f"{where} holds {shown(node)}; a record with children_spec was expected.")
    check(where, node, _NODE)
    kind, context = node.get("type"), node.get("context")
    children = [_spec(where, child, tuples) for child in node["children_spec"]]
    if kind is None:
        return ArgumentTree(None, [], [], _nothing)
    if kind in _SEQUENCES:
        return ArgumentTree(kind, [], children, _SEQUENCES[kind])
    if kind == "collections.namedtuple":
        name = context or ""
        fields = _field_names(where, name, tuples.get(name, {}).get("field_names"), children)
        return ArgumentTree(kind, fields, children, namedtuple(name.rpartition(".")[2], fields)._make)
    keys = _context(where, context)
    if kind in _MAPPINGS:
        if not isinstance(keys, list) or len(keys) != len(children) or not all(_is_key(k) for k in keys):
            raise FormatError(
                f"{where}: the keys of a {kind} are {shown(keys)}; {len(children)} were expected."
            )
        build = _MAPPINGS[kind]
        return ArgumentTree(kind, keys, children, lambda values: build(zip(keys, values, strict=True)))
    if not children:
        return ArgumentTree(kind, [], [], tuple)
    names = _field_names(where, kind, keys, children)
    made = make_dataclass(kind.rpartition(".")[2], names, bases=(ModelOutput,))
    return ArgumentTree(kind, names, children, lambda values: made(*values))


def _nothing(values: list) -> Any:
    raise AssertionError("a leaf has no children")


def _context(where: str, context: Any) -> Any:
    return None if context is None else parse_value(f"{where}: a context", as_bytes(context))


def _is_key(key: Any) -> bool:
    return isinstance(key, (str, int))


def _field_names(where: str, kind: str, names: Any, children: list) -> list[str]:
    """The fields of a class, which have to be names of Python."""
    last = kind.rpartition(".")[2]
    if not isinstance(names, list) or len(names) != len(children) or len(set(map(str, names))) != len(names):
        raise FormatError(f"{where}: the fields of {kind} are {shown(names)}; {len(children)} were expected.")
    for name in (last, *names):
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name) or name.startswith("_"):
            raise FormatError(f"{where}: {shown(name)} of {shown(kind)} is no name of a class or field.")
    return names
