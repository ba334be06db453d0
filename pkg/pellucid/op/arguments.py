"""Arguments that are no tensors, made regular: only Python's numbers reach shapes, offsets and byte counts.

Each annotation of a declaration names a reader here, which runs on the slow path only: the keys of plans hold
regular values, so what is not regular finds no plan. A reader takes what PyTorch takes in the place (numpy's
numbers, integer tensors of one element, which are read) and refuses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc, signature
from typing import Any

import numpy as np

from ..device import resolved
from ..errors import ArgumentError, DimensionError, DTypeError, LayoutError, PellucidError, warn
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..tensors.formats import contiguous_format, preserve_format, strided
from ..tensors.shape import index
from .symbols import SYMBOLS, settled

Reader = Callable[[Any, str], Any]

# Types of numbers that are part of a plan's key; what else is a number becomes one of them.
REAL = frozenset({bool, int, float})
NUMBERS = REAL | {complex}


def describe(value: Any) -> str:
    """A value as errors show it: its type, and what it is where that is short."""
    if isinstance(value, (int, float, str, type(None))):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        return f"numpy {value.dtype} {value.item()!r}"
    return type(value).__name__


def wrong(name: str, kind: str, value: Any) -> ArgumentError:
    """The error for an argument of a type that a call does not take. Its name may follow that of the call."""
    call, _, name = name.rpartition(": ")
    if call:
        return ArgumentError(f"{call}(): argument '{name}' must be {kind}, not {describe(value)}")
    return ArgumentError(f"argument '{name}' must be {kind}, not {describe(value)}")


def named(public: str, error: PellucidError) -> PellucidError:
    """The error with the name of the call before it, once; PyTorch writes ``name(): argument ...``."""
    text = str(error)
    if text.startswith((f"{public}: ", f"{public}(): ")):
        return error
    form = "()" if text.startswith(("argument ", "at least one argument ")) else ""
    return type(error)(f"{public}{form}: {text}")


def plain(value: Any, name: str = "") -> Any:
    """A number of numpy, or of a class derived from Python's numbers, as Python's own; the rest as it is."""
    if type(value) in NUMBERS or type(value) in SYMBOLS:
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, (int, float, complex)) and type(value) not in NUMBERS:
        return next(kind for kind in (int, float, complex) if isinstance(value, kind))(value)  # type: ignore
    return value


def number(value: Any, name: str) -> bool | int | float:
    """A number: one of Python, of numpy, or a tensor without axes, which is read.

    Raises:
        ArgumentError: it is something else.
    """
    value = plain(value)
    if type(value) in REAL or type(value) in SYMBOLS:
        return value
    meta = getattr(value, "_meta", None)
    if meta is not None and meta.shape == () and value._node is None and not meta.dtype.is_complex:
        return value.item()
    raise wrong(name, "a number", value)


def any_number(value: Any, name: str) -> bool | int | float | complex:
    """A number, which may be complex; else as `number`."""
    value = plain(value)
    meta = getattr(value, "_meta", None)
    if meta is not None and meta.shape == () and value._node is None:
        return value.item()
    return value if type(value) is complex else number(value, name)


def boolean(value: Any, name: str) -> bool:
    """True or False, and nothing that is only like them.

    Raises:
        ArgumentError: it is something else.
    """
    if type(value) is not bool:
        raise wrong(name, "True or False", value)
    return value


def integers(value: Any, name: str) -> tuple[int, ...]:
    """Several integers.

    Raises:
        ArgumentError: it is something else.
    """
    if type(value) is not tuple and not isinstance(value, (tuple, list)):
        raise wrong(name, "a tuple or list of integers", value)
    for each in value:
        if type(each) is not int:
            return tuple([index(each, name) for each in value])
    return value if type(value) is tuple else tuple(value)


def integer_or_integers(value: Any, name: str) -> int | tuple[int, ...]:
    """One integer, or several."""
    return integers(value, name) if isinstance(value, (tuple, list)) else index(value, name)


_PYTHON_TYPES = {float: dt.float64, int: dt.int64, bool: dt.bool_, complex: dt.complex128}


def element_type(value: Any, name: str = "dtype") -> DType:
    """An element type; Python's own types of numbers stand for their widest.

    Raises:
        ArgumentError: it is something else.
    """
    if isinstance(value, DType):
        if value.kind == "n":
            raise DTypeError(f"{name}: PyTorch has {value.name}, Pellucid does not yet. Use another dtype.")
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise wrong(name, "a dtype, such as pellucid.float32", value)
    return found


def text(value: Any, name: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise wrong(name, "a string", value)
    return value


READERS: dict[frozenset[str], Reader] = {
    frozenset({"int"}): index,
    frozenset({"bool"}): boolean,
    frozenset({"float"}): lambda value, name: settled(number(value, name)),
    frozenset({"float", "int"}): lambda value, name: settled(number(value, name)),
    frozenset({"float", "complex"}): lambda value, name: settled(any_number(value, name)),
    frozenset({"str"}): text,
    frozenset({"tuple[int, ...]"}): integers,
    frozenset({"int", "tuple[int, ...]"}): integer_or_integers,
    frozenset({"DType"}): element_type,
    frozenset({"Device"}): lambda value, name: resolved(value),
}


def reader(annotation: str) -> Reader | None:
    """The reader of a static argument with this annotation; None where an op's own rule checks it."""
    parts = frozenset(annotation.split(" | "))
    kinds = parts - {"None"}
    or_text = "str" in kinds and len(kinds) > 1
    found = _with_text(READERS[kinds - {"str"}]) if or_text else READERS.get(kinds)
    return _or_none(found) if found and "None" in parts else found


def _or_none(read: Reader) -> Reader:
    return lambda value, name: None if value is None else read(value, name)


def _with_text(read: Reader) -> Reader:
    return lambda value, name: value if isinstance(value, str) else read(value, name)


# How new tensors lie in memory, in the words of PyTorch.
_LAID = frozenset({"layout", "memory_format", "pin_memory"})


def by_name(function: Callable) -> Callable:
    """Declare that what a function takes by place, as ``*given``, also comes as the argument behind it.

    Its signature shows that argument in the place: ``zeros(*given, size=None)`` as ``zeros(*size)``.
    """
    form = signature(function)
    parts = list(form.parameters.values())
    k = next(k for k, p in enumerate(parts) if p.kind is p.VAR_POSITIONAL)
    parts[k : k + 2] = [parts[k].replace(name=parts[k + 1].name)]
    shown: Any = function
    shown.__signature__ = form.replace(parameters=parts)
    return function


def without_axes(name: str, problem: Exception, args: tuple, kwargs: dict[str, Any]) -> Exception:
    """What is wrong where a function looked for an axis of a tensor without axes; else the problem itself."""
    given = (getattr(x, "_meta", None) for x in (*args, *kwargs.values()))
    if isinstance(problem, IndexError) and any(m is not None and not m.rank for m in given):
        return DimensionError(f"{name}: takes tensors with axes, and one has none. Unsqueeze it.")
    return problem


# numpy's names of arguments, which PyTorch takes, too, and one of methods.
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "split_size": "split_size_or_sections"}


_FIRST = dict.fromkeys("ABLbx", "input")
_SECOND = {"B": "other", "L": "input2"}
# What PyTorch's functions call otherwise than its pages do.
_OF_FUNCTIONS = {
    "isin": {"element": "elements", "test_element": "test_elements"},
    "lstsq": {"b": "B"},
    "one_hot": {"input": "tensor"},
    "ormqr": {"input2": "tau", "input3": "other"},
    "unsafe_split": {"input": "tensor"},
}
_OF_X = re.compile(r"airy_ai|scaled_modified_bessel_k\d|spherical_bessel_j0|\w+_polynomial_\w+")


def aliases_of(name: str, form: Iterable[str]) -> dict[str, str]:
    """The names that a function takes for arguments of its own besides these: numpy's, and those that
    PyTorch's functions have where its pages have others.

    Args:
        name: of the function.
        form: its arguments.
    """
    form = [*form]
    if _OF_X.fullmatch(name):
        return {"x": "input"}
    found = {alias: name for alias, name in _ALIASES.items() if name in form and alias not in form}
    for names, others in ((form[:1], _FIRST), (form[1:2], _SECOND)):
        found |= {others[k]: k for k in names if k in others}
    return found | _OF_FUNCTIONS.get(name, {})


def renamed(where: str, named: dict[str, str], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by keyword, under the function's own names.

    Args:
        where: for messages.
        named: of `aliases_of`.
        kwargs: what is given.

    Raises:
        ArgumentError: an argument is given under both of its names, or there is none of the name.
    """
    given = dict(kwargs)
    for alias, name in named.items():
        if alias in given:
            if name in given:
                raise ArgumentError(f"{where}: takes {name}= or {alias}=, not both. Leave out one of them.")
            given[name] = given.pop(alias)
    return given


# Ops whose number by keyword stood in the second place in older versions of PyTorch: ``add(x, alpha, y)``.
NUMBER_SECOND = frozenset({"add", "sub", "addcmul", "addcdiv"})
# Sums that took numbers by place: ``addmm(beta, x, alpha, a, b)``, ``x.addmm(beta, alpha, a, b)``, and where
# the numbers stand between tensors.
NUMBERS_BETWEEN = frozenset({"addr", "addmv", "addbmm", "addmm", "baddbmm"})
_FORMS_BETWEEN = {"nttt", "ntntt", "tntt", "tnntt"}


def number_last(where: str, call: Callable, values: tuple, name: str, is_free: bool, **more: Any) -> Any:
    """A call of one of `NUMBER_SECOND` whose number stands where older programs have it.

    Args:
        where: for messages.
        call: the function.
        values: the arguments by place.
        name: of the number.
        is_free: it is not given by keyword.
        more: other arguments by keyword.

    Raises:
        TypeError: there are more arguments than the function has.
    """
    *tensors, last = values
    number, taken = tensors.pop(1), 2 if name == "alpha" else 3
    if is_free and len(values) == taken + 1 and hasattr(last, "_meta") and _is_number(number):
        _warn_of_form(where, name)
        return call(*tensors, last, **{name: number}, **more)
    raise TypeError(
        f"{where}() takes {taken} positional arguments but {len(values)} were given. Give {name} by keyword."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))


def numbers_by_name(where: str, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call of one of `NUMBERS_BETWEEN`, with numbers by keyword."""
    form = ["t" if hasattr(x, "_meta") else "n" if _is_number(x) else "?" for x in args]
    named = dict(zip(("beta", "alpha"), [x for x, kind in zip(args, form, strict=True) if kind == "n"]))
    if "".join(form) not in _FORMS_BETWEEN or not named.keys().isdisjoint(kwargs):
        return args, kwargs
    _warn_of_form(where, "beta and alpha")
    return tuple([x for x in args if hasattr(x, "_meta")]), {**named, **kwargs}


def _warn_of_form(where: str, names: str) -> None:
    warn(f"{where}: this overload is deprecated. Give {names} by keyword.")


def laid_words(form: set[str]) -> frozenset[str]:
    """Which of these words a function takes besides its own arguments: all, if it makes tensors."""
    return _LAID - form if form >= {"dtype", "device"} else frozenset()


def laid_out(name: str, call: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A new tensor, in a memory format that is asked for. No memory is pinned here.

    Raises:
        LayoutError: a layout that is not strided.
    """
    words = {word: kwargs.pop(word) for word in _LAID if word in kwargs}
    if words.get("layout") not in (None, strided):
        raise LayoutError(f"{name}: layout {words['layout']} is not here. Tensors are strided.")
    pinned, order = words.get("pin_memory"), words.get("memory_format")
    if pinned is not None and not isinstance(pinned, bool):
        raise named(name, wrong("pin_memory", "True or False", pinned))
    made = call(*args, **kwargs)
    if order in (None, contiguous_format, preserve_format):
        return made
    grad, made = made.requires_grad, made.detach().contiguous(memory_format=order)
    return made.requires_grad_(grad)


def described(text: str, names: Iterable[str], known: dict[str, str], page: str = "") -> str:
    """A docstring with what it leaves out: arguments that many have, in their order, and where it comes from.

    Args:
        text: the docstring.
        names: all arguments.
        known: what is said of some.
        page: of PyTorch's documentation, if it is to be named.
    """
    text, example, program = cleandoc(text).partition("\n\nExample:\n")
    order = {name: k for k, name in enumerate(names)}
    told = {
        n: f"    {n}: {known[n]}"
        for n in order
        if n in known and not re.search(rf"^    .*\b{n}\b.*: ", text, re.M)
    }
    if told:
        # Among the arguments that it says, else behind the first paragraph.
        first, args, rest = text.partition("\n\nArgs:\n")
        if not args:
            first, _, rest = text.partition("\n\n")
        own, _, rest = rest.partition("\n\n") if args else ("", "", rest)
        entries = [*told.values(), *(re.split(r"\n(?=    \S)", own) if own else [])]
        entries.sort(key=lambda entry: order.get(re.findall(r"\w+", entry)[0], 0))
        text = "\n".join([f"{first}\n\nArgs:", *entries, *(["", rest] if rest else [])])
    if page and "Source:" not in text:
        text += f"\n\nSource: https://pytorch.org/docs/stable/{page}"
    return text + example + program
