"""Symbolic sizes: expressions and guards that an exported program writes as text.

Texts are parsed by Python's own parser and never run: what is not in the tables here is no expression.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from ...errors import FormatError
from ...weights.fields import shown

# What an expression is: a function of the values of symbols, or of the program's arguments.
Expression = Callable[[Mapping[str, Any]], Any]
_DEEPEST = 48
_LARGEST = 1 << 63
_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)")
_INTEGER = re.compile(r"Integer\((-?\d+)\)")


def _checked(value: Any) -> Any:
    if abs(value) >= _LARGEST:
        raise ValueError("a size that 64 bits do not hold")
    return value


def _power(base: Any, exponent: Any) -> Any:
    if not 0 <= exponent <= 64 or abs(base) >= 1 << 32:
        raise ValueError("a power out of range")
    return _checked(base**exponent)


def _sum(*terms: Any) -> Any:
    return _checked(sum(terms))


def _product(*factors: Any) -> Any:
    return reduce(lambda a, b: _checked(a * b), factors, 1)


# Functions of SymPy and of PyTorch by their names in texts.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": _sum, "Mul": _product, "Pow": _power, "Max": max, "Min": min, "Abs": abs,
    "Mod": operator.mod, "PythonMod": operator.mod, "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv, "CeilDiv": lambda a, b: -(-a // b), "PowByNatural": _power,
    "IntTrueDiv": operator.truediv, "Equality": operator.eq, "Unequality": operator.ne,
    "StrictLessThan": operator.lt, "LessThan": operator.le, "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge, "And": lambda *a: all(a), "Or": lambda *a: any(a), "Not": operator.not_,
    "Integer": lambda a: a, "max": max, "min": min,
}  # fmt: skip
_PAIRS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: _sum, ast.Sub: lambda a, b: _checked(a - b), ast.Mult: _product,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_ALONE: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}


class _Unknown(Exception):
    """The text holds something else than an expression."""


def parse(text: str) -> Expression | None:
    """The expression of a text; None where it is none that is known here.

    Args:
        text: as SymPy's ``srepr`` writes it (``Mul(Integer(2), Symbol('s0'))``), or a guard in Python
            (``L['x'].size()[0] <= 32``).

    Example:
        >>> parse("Add(Symbol('s0', positive=True), Integer(1))")({"s0": 4})
        5
    """
    try:
        return _expression(ast.parse(text.strip(), mode="eval").body, 0)
    except (_Unknown, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _expression(node: ast.expr, depth: int) -> Expression:
    if depth > _DEEPEST:
        raise _Unknown
    match node:
        case ast.Constant(value=int() as value):
            return lambda given: value
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
            return lambda given: given[name]
        case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
            return _applied(FUNCTIONS[name], args, depth)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _PAIRS:
            return _applied(_PAIRS[type(op)], [left, right], depth)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _ALONE:
            return _applied(_ALONE[type(op)], [operand], depth)
        case ast.BoolOp(op=op, values=values):
            return _applied(FUNCTIONS[type(op).__name__], values, depth)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(o) in _COMPARISONS for o in ops):
            asked = [_COMPARISONS[type(o)] for o in ops]
            return _applied(
                lambda *v: all(ask(a, b) for ask, a, b in zip(asked, v, v[1:], strict=False)),
                [left, *others],
                depth,
            )
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=value, attr="size"), args=[]),
            slice=ast.Constant(value=int() as axis),
        ):
            path = _path(value)
            return lambda given: reduce(_part, path, given).shape[axis]
        case ast.Subscript():
            path = _path(node)
            return lambda given: reduce(_part, path, given)
    raise _Unknown


def _applied(function: Callable[..., Any], arguments: list[ast.expr], depth: int) -> Expression:
    inner = [_expression(a, depth + 1) for a in arguments]
    return lambda given: function(*[e(given) for e in inner])


def _path(node: ast.expr) -> list[Any]:
    """The keys and names of ``L['x'][0].left``."""
    keys: list[Any] = []
    while True:
        match node:
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                node = inner
            case ast.Attribute(value=inner, attr=key) if not key.startswith("_"):
                node, key = inner, _Attribute(key)
            case ast.Name(id="L") if keys:
                return keys
            case _:
                raise _Unknown
        keys.insert(0, key)


class _Attribute(str):
    """A part of an argument that has a name instead of a key."""


def _part(value: Any, key: Any) -> Any:
    return getattr(value, key) if type(key) is _Attribute else value[key]


class SymbolicSize:
    """A size in the description of a tensor: a number, or an expression of symbols.

    Args:
        where: the file and the tensor, for messages.
        field: as the file has it.
    """

    def __init__(self, where: str, field: Mapping[str, Any]):
        self.fixed: int | None = field.get("as_int")
        self.text = str(self.fixed)
        self.symbols: tuple[str, ...] = ()
        self.value: Expression | None = None
        if self.fixed is None:
            text = field["as_expr"]["expr_str"]
            self.value = parse(text)
            if self.value is None:
                raise FormatError(f"{where}: the size {shown(text)} is no expression that is known here.")
            self.symbols = tuple(dict.fromkeys(_SYMBOL.findall(text)))
            self.text = _INTEGER.sub(r"\1", _SYMBOL.sub(r"\1", text))

    def of(self, symbols: Mapping[str, int]) -> int | None:
        """The number where symbols stand for these; None where one of them is not known."""
        if self.value is None:
            return self.fixed
        try:
            return self.value(symbols)
        except (LookupError, ValueError, TypeError, ArithmeticError):
            return None

    def solve(self, value: int, symbols: Mapping[str, int]) -> tuple[str, int] | None:
        """The symbol that is not known yet, and what it is where the size is this; None where that is open.

        Of one that is linear in the symbol; a value that no whole number gives is left to the comparison.
        """
        unknown = [name for name in self.symbols if name not in symbols]
        if len(unknown) != 1:
            return None
        at = [self.of({**symbols, unknown[0]: n}) for n in (1, 2, 3)]
        if (
            at[0] is None
            or at[1] is None
            or at[2] is None
            or at[2] - at[1] != at[1] - at[0]
            or at[0] == at[1]
        ):
            return None
        return unknown[0], 1 + (value - at[0]) // (at[1] - at[0])
