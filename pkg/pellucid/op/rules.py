"""Rules that declarations share.

A dtype rule returns (dtype of the outputs, dtype of the computation), a shape rule the shape of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DTypeError, ShapeError
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType, result_type
from ..tensors.meta import Meta
from ..tensors.shape import Size, broadcast_shapes
from .call import Call
from .elementwise import Elementwise


def _promoted(call: Call) -> DType:
    own = call.op.kernel.own or {} if isinstance(call.op.kernel, Elementwise) else {}
    dimensioned, zero_dim, numbers = [], [], []
    for a in call.op.arguments:
        value = call.args[a.name]
        if a.name in own or a.role in ("number", "static", "dynamic"):
            continue
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, Meta):
                (dimensioned if v.rank else zero_dim).append(v.dtype)
            elif isinstance(v, type) and v is not type(None):
                numbers.append(v)
    return result_type(dimensioned, zero_dim, numbers)


def promote(call: Call) -> tuple[DType, DType]:
    """The common type of the operands."""
    d = _promoted(call)
    return d, d


def floating(call: Call) -> tuple[DType, DType]:
    """The common type, integers and bools becoming the default float."""
    d = _promoted(call)
    d = d if d.is_floating_point or d.is_complex else dt.get_default_dtype()
    return d, d


def boolean(call: Call) -> tuple[DType, DType]:
    """bool, computed in the common type."""
    return dt.bool_, _promoted(call)


def logical(call: Call) -> tuple[DType, DType]:
    """bool, computed in bool: any value other than zero is true."""
    return dt.bool_, dt.bool_


_KINDS = {"b": "bool", "c": "complex", "f": "floating-point"}
_INSTEAD = {
    "b": "Convert with .int() or .float() first.",
    "f": "Convert with .long() first.",
    "c": "Take its .abs(), or work on its real and imaginary parts.",
}


def refusing(rule: Callable, kinds: str) -> Callable:
    """A rule that refuses kinds of dtypes for which the op has no meaning, on every device alike.

    Args:
        rule: for what is left.
        kinds: "b" for bool, "f" for floating point, "c" for complex.
    """

    def checked(call: Call):
        found = rule(call)
        d = found[1]
        if d.kind in kinds:
            raise DTypeError(f"takes no {_KINDS[d.kind]} tensors. {_INSTEAD[d.kind]}")
        return found

    return checked


# Of what has an order; of numbers that have one; and of these as floats.
ordered, real, real_floating = refusing(promote, "c"), refusing(promote, "bc"), refusing(floating, "c")


def refuse_complex(value: Meta | type, d: DType) -> None:
    """Refuse a complex value for a tensor of real numbers."""
    if not d.is_complex and (value.dtype.is_complex if isinstance(value, Meta) else value is complex):
        raise DTypeError(f"{d} does not hold a complex value. Give a real one.")


def lone(name: str, instead: str) -> Callable:
    """A rule for what takes a number or a tensor without axes: the type of the first tensor, which holds it.

    Args:
        name: of the argument.
        instead: what takes tensors with axes.
    """

    def checked(call: Call) -> tuple[DType, DType]:
        value, found = call[name], same(call)
        if isinstance(value, Meta) and value.rank:
            shape = tuple(value.shape)
            raise ShapeError(
                f"{name} has shape {shape}; give a number or a tensor without axes, or use {instead}."
            )
        refuse_complex(value, found[0])
        return found

    return checked


def alike(rule: Callable, first: str, *others: str) -> Callable:
    """A rule for arguments of one type, that of the first; others may be None.

    Raises:
        DTypeError: at a call, they have several.
    """

    def checked(call: Call):
        found, d = rule(call), call[first].dtype
        for name in others:
            if call[name] is not None and call[name].dtype is not d:
                raise DTypeError(
                    f"'{first}' is {d} and '{name}' is {call[name].dtype}. They must be equal. Convert one "
                    "of them."
                )
        return found

    return checked


def real_result(rule: Callable) -> Callable:
    """A rule whose results of complex numbers are real."""

    def checked(call: Call):
        d, compute = rule(call)
        return {dt.complex64: dt.float32, dt.complex128: dt.float64}.get(d, d), compute

    return checked


def same(call: Call) -> tuple[DType, DType]:
    """The type of the first tensor."""
    d = call.tensors()[0][1].dtype
    return d, d


def stated(call: Call) -> tuple[DType, DType]:
    """The type that the argument ``dtype`` says."""
    return call["dtype"], call["dtype"]


def float_only(call: Call) -> tuple[DType, DType]:
    """The common type, which must be floating point."""
    d = _promoted(call)
    if not d.is_floating_point:
        raise DTypeError(f"takes floating-point tensors, not {d}. Convert with .float().")
    return d, d


def float_input(call: Call) -> tuple[DType, DType]:
    """The type of the first tensor, which must be floating point."""
    d, _ = same(call)
    if not d.is_floating_point:
        raise DTypeError(f"takes floating-point tensors, not {d}. Convert with .float().")
    return d, d


def float_or_complex(call: Call) -> tuple[DType, DType]:
    """The common type, which must be floating point or complex."""
    d = _promoted(call)
    return (d, d) if d.is_complex else float_only(call)


def of_one_dtype(*given: Any) -> None:
    """Refuse tensors or layouts of different dtypes, where nothing is promoted; None stands for none.

    Raises:
        DTypeError: there are two.
    """
    types = [t.dtype for t in given if t is not None]
    for d in types:
        if d is not types[0]:
            raise DTypeError(f"takes tensors of one dtype, not {types[0]} and {d}. Convert one of them.")


def fit_input(input: Any, *given: Any) -> None:
    """Refuse factors and statistics of another dtype than the input's; float32 fits halves.

    Raises:
        DTypeError: one has another.
    """
    for t in given:
        half = input.dtype in dt.LARGEST_HALF
        if t is not None and t.dtype is not input.dtype and not (half and t.dtype is dt.float32):
            raise DTypeError(
                f"a weight, bias or statistic is {t.dtype} for an input of {input.dtype}. Convert one."
            )


def in_one_dtype(rule: Callable) -> Callable:
    """A rule that refuses tensors of different dtypes."""

    def checked(call: Call):
        of_one_dtype(*(m for _, m in call.tensors()))
        return rule(call)

    return checked


def on_cpu(call: Call) -> None:
    """The ``kernel=`` of an op that has none: its tensors are read, the numpy reference runs, and the results
    come back. A kernel's function returns None for what it does not take."""


def broadcast(call: Call) -> Size:
    """The shape that all tensor operands broadcast to."""
    return broadcast_shapes(*[m.shape for _, m in call.tensors()])


def sized(call: Call) -> Size:
    """The shape that the argument ``size`` says."""
    size = Size(call["size"])
    if any(n < 0 for n in size):
        raise ShapeError(f"size {tuple(size)} has a negative length.")
    return size


def as_input(call: Call) -> Size:
    """The shape of the first tensor."""
    return call.tensors()[0][1].shape
