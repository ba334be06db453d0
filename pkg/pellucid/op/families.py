"""Families of ops: `unary`, `binary`, `compare` and others declare an op by a row of what is its own.

A row has a name, an expression or kernel, a numpy reference, a derivative and a sentence. Its family gives
the signature, the rules and the rest of the docstring: arguments, source, and an example that the reference
computes.
"""

# A form has no body.
# pyright: reportReturnType=false
from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from ..tensors.tensor import Tensor
from .declaration import docstring, example_of, function, op
from .elementwise import Elementwise, elementwise
from .inplace import in_place
from .kernel.element_types import convert
from .public import page_of
from .rules import as_input, boolean, broadcast, float_only, floating, ordered, promote, real, real_floating

_TAKES: dict[Callable, str] = {
    floating: "any dtype; integers and bools become the default float",
    float_only: "floating point",
    real: "any dtype but bool and complex ones",
    ordered: "any real dtype",
    real_floating: "any real dtype; integers and bools become the default float",
}


class Declared(Protocol):
    """What a row gives: the function that users call."""

    op: Any

    def __call__(self, *arguments: Any, **options: Any) -> Tensor: ...


def of_one(input: Tensor) -> Tensor: ...


def of_tensors(input: Tensor, other: Tensor) -> Tensor: ...


def of_tensor(input: Tensor, other: Tensor | float) -> Tensor: ...


def of_operands(input: Tensor | float, other: Tensor | float) -> Tensor: ...


def of_one_or_over(input: Tensor, inplace: bool = False) -> Tensor: ...


def formed(form: Callable, name: str, doc: str) -> Callable:
    """A function of its own with the signature of a form. Tools that look for its source find the row that
    asks for it.

    Args:
        form: a function of this form, whose body it gets.
        name, doc: of the new one.
    """
    row: Any = sys._getframe()
    while row.f_globals["__name__"].endswith(".families"):
        row = row.f_back
    assert isinstance(form, FunctionType)
    code = form.__code__.replace(
        co_name=name, co_filename=row.f_code.co_filename, co_firstlineno=row.f_lineno
    )
    made = FunctionType(code, row.f_globals, name, form.__defaults__)
    made.__kwdefaults__, made.__annotations__ = form.__kwdefaults__, form.__annotations__
    made.__qualname__, made.__doc__ = name, doc
    return made


def called(name: str, doc: str, call: Callable, **public: Any) -> Callable[..., Any]:
    """Declare a function that a family makes of other ops; ``public`` is what `function` takes."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return function(**public)(call)


def _kernel(kernel: str | Elementwise, c64: str | None = None) -> Elementwise:
    return elementwise(kernel, i32=False, c64=c64) if isinstance(kernel, str) else kernel


def unary(
    name: str,
    kernel: str | Elementwise,
    reference: Callable,
    grad: Callable | None,
    sentence: str,
    *,
    dtype: Callable = floating,
    takes: str = "",
    c64: str | None = None,
    at: float = 0.5,
    in_place: bool = True,
    exports: str | tuple[str, ...] = "torch",
    public: str | None = None,
    aten: str | tuple[str, ...] | None = None,
) -> Declared:
    """Declare an op of one tensor, element by element.

    Args:
        name, reference, dtype: as `op` has them.
        kernel: an expression for floats, or a kernel for more dtypes.
        grad: formula of ``input``, or None.
        sentence: what it computes.
        takes: which inputs, where the rule for dtypes does not say it.
        c64: an expression for complex numbers, beside one for floats.
        at: the number of the example.
        in_place: whether its method has an in-place form.
        exports: where it is public; what `pellucid` has is also a method.
        public, aten: as `op` has them; what has another public name is no method.
    """
    known = {"input": f"{takes or _TAKES.get(dtype, 'any dtype')}."}
    doc = docstring(
        sentence, {"Args": known}, "" if public else example_of(page_of(name, exports), reference, (at,))
    )
    method = "torch" in exports and not public
    return op(
        dtype=dtype,
        shape=as_input,
        kernel=_kernel(kernel, c64),
        reference=reference,
        grad=grad and {"input": grad},
        exports=exports,
        method=method,
        in_place=in_place and method,
        public=public,
        aten=aten,
    )(formed(of_one, name, doc))


def elementary(name: str, grad: Callable, sentence: str, **options: Any) -> Declared:
    """Declare a function that numpy has by the same name. Its expression is ``<name>_of(input)``, that of
    complex numbers ``complex_<name>(input)``; all else is as `unary` has it.
    """
    options.setdefault("c64", f"complex_{name}(input)")
    return unary(name, f"{name}_of(input)", getattr(np, name), grad, sentence, **options)


def activation(
    name: str,
    kernel: str | Callable | Elementwise,
    reference: Callable,
    grad: Callable,
    sentence: str,
    *,
    form: Callable = of_one,
    dtype: Callable = float_only,
    at: tuple = (0.5,),
    exports: str | tuple[str, ...] = "nn.functional",
    method: bool = False,
    check: Callable | None = None,
    aten: str | None = None,
) -> Declared:
    """Declare an op of one floating-point tensor for `nn.functional`.

    Args:
        name, kernel, reference, grad, sentence, dtype, exports, aten: as `unary` has them, check: as `op`.
        form: the signature. Where ``inplace`` is its last argument, the result may be written over the input.
        at: the numbers of the example.
        method: whether it is a method of Tensor.
    """
    page = f"nn.functional.{name}"
    given = inspect.signature(form).parameters
    writes = "inplace" in given
    asked = [n for n in given if n != "inplace"]
    known = {"input": "floating point."}
    if asked[1:]:
        known[", ".join(asked[1:])] = "numbers."
    if writes:
        known["inplace"] = "write the result over the input."
    plain = [str(given[n].replace(annotation=inspect.Parameter.empty)) for n in asked]
    usual = [given[n].default for n in asked[len(at) :]]

    def over(*values):
        return written(*values[:-1]) if values[-1] is True else None

    doc = docstring(sentence, {"Args": known}, example_of(page, lambda *x: reference(*x, *usual), at))
    made = op(
        dtype=dtype,
        shape=as_input,
        kernel=kernel if isinstance(kernel, Elementwise) else elementwise(kernel, i32=False),
        reference=(lambda *values: reference(*values[:-1])) if writes else reference,
        grad={"input": grad},
        exports=exports,
        method=method,
        check=check,
        prepare=over if writes else None,
        aten=aten or f"{name}.default({', '.join(plain)})",
    )(formed(form, name, doc))
    written = in_place(made.op)
    return made


def _numbers(form: Callable) -> list[str]:
    """The arguments of a form that may be numbers."""
    return [p.name for p in inspect.signature(form).parameters.values() if "float" in p.annotation]


def _pair(name: str, reference: Callable, sentence: str, takes: str, form: Callable, at: tuple) -> str:
    """The docstring of an op of two."""
    numbers = _numbers(form)
    also = f"; {'one' if len(numbers) > 1 else numbers[0]} may be a number" if numbers else ""
    sections: dict[str, dict[str, str] | str] = {
        "Args": {", ".join(inspect.signature(form).parameters): f"{takes}, of shapes that broadcast{also}."},
        "Raises": {"ShapeError": "shapes do not broadcast."},
    }
    return docstring(sentence, sections, example_of(name, reference, at))


def _overloads(name: str, form: Callable) -> tuple[str, ...]:
    """ATen's usual overloads of an op of two."""
    return (f"{name}.Tensor", f"{name}.Scalar") if _numbers(form) else (f"{name}.default",)


def binary(
    name: str,
    kernel: str | Elementwise,
    reference: Callable,
    grad: dict[str, Callable] | None,
    sentence: str,
    *,
    form: Callable = of_operands,
    dtype: Callable = promote,
    takes: str = "",
    at: tuple = ([7, 6], [2, -4]),
    method: bool = True,
    in_place: bool = True,
    exports: str = "torch",
    aten: str | tuple[str, ...] = (),
) -> Declared:
    """Declare an op of two tensors or numbers, element by element.

    Args:
        name, reference, grad, dtype: as `op` has them.
        kernel: an expression for floats, or a kernel for more dtypes.
        sentence: what it computes.
        form: the signature: `of_operands`, `of_tensor`, `of_tensors`, or one with other names.
        takes: which inputs, where the rule for dtypes does not say it.
        at: the values of the example.
        method, in_place: whether what `pellucid` has is also a method, with an in-place form.
        exports: where it is public.
        aten: its overloads; those of PyTorch's usual names for the form if not given.
    """
    known = takes or _TAKES.get(dtype, "any dtype")
    doc = _pair(page_of(name, exports), reference, sentence, known, form, at)
    return op(
        dtype=dtype,
        shape=broadcast,
        kernel=_kernel(kernel),
        reference=reference,
        grad=grad,
        exports=exports,
        method=method and exports == "torch",
        in_place=in_place and method and exports == "torch",
        aten=aten or _overloads(name, form),
    )(formed(form, name, doc))


def compare(
    name: str,
    f32: str,
    whole: str,
    i64: str,
    bools: str,
    reference: Callable,
    *,
    c64: str | None = None,
    dtype: Callable = boolean,
    takes: str = "any dtype",
) -> Declared:
    """Declare a comparison, whose result is bool.

    Args:
        name, reference, dtype: as `op` has them.
        f32, i64, bools, c64: the expressions by value type.
        whole: the expression for i32 and u32, which is also what the docstring says.
        takes: which inputs.
    """
    doc = _pair(name, reference, f"``{whole}``.", takes, of_tensor, ([1, 2, 3], 2))
    return op(
        dtype=dtype,
        shape=broadcast,
        kernel=elementwise(f32, i32=whole, i64=i64, boolean=bools, c64=c64, result="bool"),
        reference=reference,
        grad=None,
        method=True,
        in_place=True,
        aten=_overloads(name, of_tensor),
    )(formed(of_tensor, name, doc))


def connective(name: str, bools: str, reference: Callable, sentence: str) -> Declared:
    """Declare an op of two truths; any value other than zero is true.

    As in a comparison, a tensor without axes becomes the common type before: it may wrap to 0.

    Args:
        name, reference: as `op` has them.
        bools: the expression for bools.
        sentence: what it computes.
    """

    def of(kind: str) -> str:
        return re.sub("input|other", lambda operand: convert(operand[0], kind, "bool"), bools)

    doc = _pair(name, reference, sentence, "any dtype", of_tensors, ([0, 1, 2], [0, 0, 3]))
    return op(
        dtype=boolean,
        shape=broadcast,
        kernel=elementwise(
            of("f32"),
            i32=of("i32"),
            u32=of("u32"),
            i64=of("i64"),
            boolean=bools,
            c64=of("c64"),
            result="bool",
        ),
        reference=reference,
        grad=None,
        method=True,
        in_place=True,
    )(formed(of_tensors, name, doc))


def predicate(
    name: str, f32: str, whole: str, reference: Callable, sentence: str, dtype: Callable = boolean
) -> Declared:
    """Declare a question about one number, whose answer is bool. Of a complex one it is asked of both
    parts: all must be as the other types are, or any what they are not.

    Args:
        name, reference, dtype: as `op` has them.
        f32: the expression for floats.
        whole: what it is for all other types, "true" or "false".
        sentence: what it answers.
    """
    joint = " && " if whole == "true" else " || "
    c64 = joint.join(f"({f32.replace('input', f'input.{part}')})" for part in "xy")
    kernel = elementwise(f32, i32=whole, i64=whole, boolean=whole, c64=c64, result="bool")
    return unary(name, kernel, reference, None, sentence, dtype=dtype, in_place=False)
