"""Jinja for chat templates of strangers: jinja2's sandbox, with bounds of time and of the size of values.

A template is a program. jinja2 keeps it from Python's objects, not from `range` in `range`,
``'a'.center(10**10)`` or a string that doubles forty times. Here every loop, call, filter, test and operator
asks the clock, and what would make a large value is looked at before it is made.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST_TEXT = 1 << 24  # characters of one value, and of the result
_MOST_TEXT = 1 << 29  # characters of all values that are made together
_MOST_PARTS = 1 << 20  # of a list or dict, with everything in it
_MOST_BITS = 1 << 14  # of a whole number
_LARGEST_WIDTH = 1 << 16
_SECONDS = 3.0  # of this thread's processor time
_STEPS = 32  # between two looks at the clock, each of which calls the system

_LONG = (str, list, tuple)  # what can be repeated and joined

# Filters that no chat template needs, and whose time or size would have to be bounded in their own ways;
# @huggingface/jinja has none of them.
_WITHOUT = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr")


class ValueSize(NamedTuple):
    """How large a value is, with everything in it, as a tree: what occurs twice counts twice."""

    parts: int
    text: int
    depth: int


def size(value: Any) -> ValueSize:
    """The size of a value; linear in the number of different objects in it.

    Raises:
        SecurityError: it is larger than a template's values may be.
    """
    known: dict[int, ValueSize] = {}
    waiting = [value]
    while waiting:
        v = waiting[-1]
        if id(v) in known:
            waiting.pop()
            continue
        if isinstance(v, dict):
            inner = [*v.keys(), *v.values()]
        elif isinstance(v, list | tuple | set | frozenset):
            inner = list(v)
        else:
            known[id(v)] = ValueSize(1, len(v) if isinstance(v, str | bytes) else 1, 0)
            waiting.pop()
            continue
        new = [x for x in inner if id(x) not in known]
        if new:
            if len(waiting) > _MOST_PARTS:
                raise SecurityError("a list or dict has too many parts")
            waiting += new
            continue
        sizes = [known[id(x)] for x in inner]
        whole = ValueSize(
            1 + sum(s.parts for s in sizes),
            sum(s.text for s in sizes),
            1 + max((s.depth for s in sizes), default=0),
        )
        if whole.parts > _MOST_PARTS or whole.text > LONGEST_TEXT:
            raise SecurityError(
                f"a list or dict has {whole.parts:,} parts and {whole.text:,} characters; {_MOST_PARTS:,} "
                f"and {LONGEST_TEXT:,} are allowed"
            )
        known[id(v)] = whole
        waiting.pop()
    return known[id(value)]


def _text(length: int) -> None:
    if length > LONGEST_TEXT:
        raise SecurityError(f"a text would have {length:,} characters; {LONGEST_TEXT:,} are allowed")


def _width(value: Any) -> int:
    """A number that says how long something becomes."""
    if isinstance(value, int) and abs(value) > _LARGEST_WIDTH:
        raise SecurityError(f"the number {str(value)[:20]} is too large here; {_LARGEST_WIDTH:,} is allowed")
    return abs(value) if isinstance(value, int) else 0


def _format(form: str, values: Iterable[Any]) -> None:
    """Before `%` and ``format``: widths, and how often what is large is repeated."""
    if re.search(r"[0-9]{5}", form):
        raise SecurityError("a format asks for a width of more than four digits")
    text = 0
    for value in values:
        _width(value)
        text += 32 + size(value).text
    _text(len(form) + (form.count("{") + form.count("%")) * text)


def _replace(text: str, old: str, new: str) -> None:
    _text(len(text) + text.count(old) * len(new))


def _join(separator: str, values: Any) -> None:
    if isinstance(values, list | tuple | dict | str):
        _text(len(separator) * len(values) + (len(values) if isinstance(values, str) else size(values).text))
    elif len(separator) > 1000:
        raise SecurityError("a separator has more than 1,000 characters")


def _before_method(obj: Any, args: tuple, kwargs: dict) -> None:
    """Before a method of a text is called."""
    method = getattr(obj, "__wrapped__", obj)  # the sandbox wraps str.format
    owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    if not isinstance(owner, str):
        return
    if name in ("format", "format_map"):
        _format(owner, [*args, *kwargs.values()])
    elif name == "replace" and len(args) > 1 and isinstance(args[0], str) and isinstance(args[1], str):
        _replace(owner, args[0], args[1])
    elif name == "join" and args:
        _join(owner, args[0])
    elif name in ("expandtabs", "translate"):
        raise SecurityError(f"the method {name} is not there in chat templates")
    else:
        for value in (*args, *kwargs.values()):
            _width(value)


def _before_filter(name: str, args: list, kwargs: dict) -> None:
    """Before a filter is called: ``args`` begin with what is filtered."""
    more = [*args[1:], *kwargs.values()]
    value = args[0] if args else None
    if name == "replace" and len(args) > 2:
        _replace(str(value), str(args[1]), str(args[2]))
    elif name == "join":
        _join(str(more[0]) if more else "", value)
    elif name == "format":
        _format(str(value), more)
    elif name == "sum" and any(not isinstance(m, int | float | str | None) for m in more):
        raise SecurityError("sum adds numbers only")
    elif name == "indent":
        _text(len(str(value)) + (str(value).count("\n") + 1) * max([4, *map(_width, more)]))
    elif name == "tojson":
        whole = size(value)
        _text(whole.text + whole.parts * (4 + (whole.depth + 1) * sum(map(_width, more))))
    else:
        for m in more:
            _width(m)


def _before_operator(operator: str, left: Any, right: Any) -> None:
    if operator == "%" and isinstance(left, str):
        values = (
            right.values() if isinstance(right, dict) else right if isinstance(right, tuple) else (right,)
        )
        _format(left, values)
    elif operator == "*" and isinstance(left, int) and isinstance(right, int):
        _bits(left.bit_length() + right.bit_length())
    elif operator == "**" and isinstance(left, int) and isinstance(right, int):
        _bits(left.bit_length() * max(right, 0))
    elif operator == "*":
        many, times = (right, left) if isinstance(left, int) else (left, right)
        if isinstance(times, int) and isinstance(many, _LONG):
            _text(len(many) * max(times, 0) * (1 if isinstance(many, str) else 8))
    elif operator == "+" and isinstance(left, _LONG) and isinstance(right, _LONG):
        _text(len(left) + len(right))


def _bits(bits: int) -> None:
    if bits > _MOST_BITS:
        raise SecurityError(f"a number would have {bits:,} bits; {_MOST_BITS:,} are allowed")


class _Generation(Extension):
    """``{% generation %}`` marks what the assistant wrote; for rendering it is only its content."""

    tags = {"generation"}

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Left(threading.local):
    """What a rendering has left; nothing is counted while no template is rendered."""

    until: float | None = None
    text = 0
    steps = 0  # since the clock was asked


class Environment(ImmutableSandboxedEnvironment):
    """jinja2 with the names that Hugging Face's templates rely on, and with bounds."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self):
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            loader=jinja2.DictLoader({}),  # there is nothing to include
            finalize=self.measured,
        )
        self._left = _Left()
        self.filters["tojson"] = _to_json
        for name in _WITHOUT:
            del self.filters[name]
        self.filters = {name: self._bounded(name, f) for name, f in self.filters.items()}
        self.tests = {name: self._bounded("", f) for name, f in self.tests.items()}
        self.filters |= {
            "_each": self._each,
            "_measured": self.measured,
            "_concat": self._concatenated,
            "_sum": self._sum,
        }
        del self.globals["lipsum"]
        self.globals |= {"raise_exception": _raise, "strftime_now": _now}

    def compiled(self, source: str) -> jinja2.Template:
        """A template whose loops, comparisons and concatenations are bounded, too; a chain of sums is one."""
        tree = self.parse(source)
        _join_sums(tree)
        for node in list(tree.find_all((nodes.For, nodes.Compare, nodes.Concat))):
            if isinstance(node, nodes.For):
                node.iter = _filtered(node.iter, "_each")
            elif isinstance(node, nodes.Compare):
                node.expr = _filtered(node.expr, "_measured")
                for operand in node.ops:
                    operand.expr = _filtered(operand.expr, "_measured")
            else:
                node.nodes = [_filtered(node.nodes[0], "_concat", node.nodes[1:])]
        return self.from_string(tree)

    def rendered(self, template: jinja2.Template, values: dict[str, Any]) -> str:
        """The template's text."""
        self._left.until, self._left.text = time.thread_time() + _SECONDS, _MOST_TEXT
        try:
            return self.concat(list(template.generate(values)))
        finally:
            self._left.until = None

    def tick(self, made: int = 0) -> None:
        """Ask the clock, and count characters that were made.

        Raises:
            SecurityError: the time or the characters are used up.
        """
        left = self._left
        if left.until is None:
            return
        left.text -= made
        left.steps += 1
        if left.steps >= _STEPS:
            left.steps = 0
            if time.thread_time() > left.until:
                raise SecurityError(f"it takes more than {_SECONDS:g} s of processor time")
        if left.text < 0:
            raise SecurityError(f"its values have more than {_MOST_TEXT:,} characters together")

    def measured(self, value: Any) -> Any:
        """A value, if it is not too large to be written or compared."""
        if isinstance(value, str):
            _text(len(value))
            self.tick()
        elif isinstance(value, dict | list | tuple | set):
            size(value)
        return value

    def made(self, value: Any) -> Any:
        """A value that was just made."""
        self.tick(len(value) if isinstance(value, _LONG) else 0)
        return value

    def concat(self, pieces: Iterable[str]) -> str:  # type: ignore[override]
        pieces = list(pieces)
        _text(sum(map(len, pieces)))
        return self.made("".join(pieces))

    @jinja2.pass_context
    def _sum(self, context, *values: Any) -> Any:
        if all(type(value) is str for value in values):  # most of what templates do
            length = sum(map(len, values))
            _text(length)
            self.tick(length)
            return "".join(values)
        return functools.reduce(lambda left, right: self.call_binop(context, "+", left, right), values)

    def call_binop(self, context, operator: str, left: Any, right: Any) -> Any:
        _before_operator(operator, left, right)
        return self.made(super().call_binop(context, operator, left, right))

    def call(self, context, obj: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        self.tick()
        _before_method(obj, args, kwargs)
        return self.made(super().call(context, obj, *args, **kwargs))

    def _bounded(self, name: str, function: Callable) -> Callable:
        skipped = hasattr(function, "jinja_pass_arg")  # the environment, say, comes first

        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            values = list(args[1:] if skipped else args)
            for value in (*values, *kwargs.values()):
                self.measured(value)
            _before_filter(name, values, kwargs)
            return self.made(function(*args, **kwargs))

        return bounded

    def _each(self, values: Any) -> Iterator[Any]:
        for value in values:
            self.tick()
            yield value

    def _concatenated(self, *values: Any) -> str:
        return self.concat([str(self.measured(value)) for value in values])


def _join_sums(node: Any) -> None:
    """Make one filter of ``a + b + c``: a call for each sign takes most of a template's time."""
    for name, value in list(node.iter_fields()):
        several = isinstance(value, list)
        for k, part in enumerate(value if several else [value]):
            if not isinstance(part, nodes.Node):
                continue
            if isinstance(part, nodes.Add):
                terms, first = [], part
                while isinstance(first, nodes.Add):
                    terms.append(first.right)
                    first = first.left
                part = _filtered(first, "_sum", reversed(terms))
                if several:
                    value[k] = part
                else:
                    setattr(node, name, part)
            _join_sums(part)


def _filtered(node: Any, name: str, more: Iterable[nodes.Expr] = ()) -> nodes.Filter:
    return nodes.Filter(node, name, list(more), [], None, None, lineno=node.lineno)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _now(form: str) -> str:
    _format(form, ())
    return datetime.now().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML, which would change what the model reads.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
