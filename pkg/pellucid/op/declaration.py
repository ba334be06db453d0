"""The op table: `@op` turns a declaration into the one call path from Python to a kernel.

A declaration is a function whose signature and docstring are the schema; its body is never run. From it come
the fast call path (a plan per metas and static arguments), the cpu path through the numpy reference, the
in-place form (`inplace`) and the graph node. See docs/design.md, "Ops".
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import namedtuple
from collections.abc import Callable
from textwrap import fill
from typing import Any

import numpy as np

from ..autograd.edges import labelled
from ..autograd.recorder import recorder
from ..device.stream import stream
from ..tensors.dtypes import from_numpy_dtype
from ..tensors.shape import index
from .arguments import any_number, number, plain, reader
from .call import Call, results
from .call_path import call_path, is_taken
from .elementwise import Elementwise, elementwise, moved
from .planning import Op
from .public import form_of, function, is_written, name_overloads, publish
from .rules import broadcast, promote
from .schema import OPS, Argument
from .slow_path import call_into, call_slowly

# What declarations are written with.
__all__ = ["Call", "composite", "docstring", "elementwise", "example_of", "function", "moved", "op"]

# By the number that kernels write into the status buffer.
BY_INDEX: list[Op] = []
_FORMULAS = (
    'It takes a dictionary from arguments to formulas, such as {"input": lambda g, input: 2 * g * input}; '
    "only rows of one tensor (unary, activation) take the formula alone."
)
composite = "composite"  # grad=composite: differentiate the definition


_ROLES = {
    "Tensor": "tensor",
    "Tensor | None": "optional",
    "Tensor | float": "operand",
    "Tensor | float | None": "operand",
    "list[Tensor]": "tensors",
    "float": "number",
}


def written(annotation: Any) -> str:
    """An annotation as a file with ``from __future__ import annotations`` has it."""
    if isinstance(annotation, str):
        return annotation
    return re.sub(r"(?:\w+\.)+(\w+)", r"\1", inspect.formatannotation(annotation))


def op(
    *,
    dtype: Callable = promote,
    shape: Callable | None = None,
    kernel: Any = None,
    reference: Callable | None = None,
    view: Callable | None = None,
    composite: Callable | None = None,
    grad: Any,
    outputs: tuple[str, ...] = ("out",),
    strided: tuple[str, ...] = (),
    dynamic: tuple[str, ...] = (),
    public: str | None = None,
    mutates: str | tuple[str, ...] | None = None,
    check: Callable | None = None,
    follow: Callable | None = None,
    prepare: Callable | None = None,
    alone: Callable | None = None,
    route: Callable | None = None,
    exact: tuple[str, ...] = (),
    fits: tuple[str, ...] = (),
    out: bool = False,
    exports: str | tuple[str, ...] | None = "torch",
    method: bool = False,
    in_place: bool | tuple[str, ...] = False,
    aten: str | tuple[str, ...] | None = None,
    ours: str = "",
    node: str = "",
) -> Callable[[Callable], Any]:
    """Declare an op.

    Args:
        dtype: rule for the dtypes (`promote`, `floating`, `boolean`, `same`, ... or a function of the
            `Call` that returns outputs' and computation's).
        shape: rule for the shapes (`broadcast`, `as_input` or a function of the `Call`); that of what is
            `elementwise` is `broadcast` unless it says otherwise.
        kernel: `elementwise`, or a function from the `Call` to one or more `Launch`es (the webgpu device), or
            to None where the reference runs in their place; `on_cpu` does so always.
        reference: numpy function with the same arguments (the cpu device); a keyword ``compute=None`` of
            it is the dtype of the computation.
        view: function from the `Call` to (shape, strides, added offset) for ops that only look
            differently at the same storage, and the dtype where it is another of half or twice the size.
        composite: the definition in terms of other ops, where ``grad`` says `composite`.
        grad: input name -> formula; a formula's arguments are what is saved (``g`` the incoming gradient, of
            the first result, ``grads`` those of all, None for what was not used, ``out`` or output names
            the results, else the op's arguments, ``<argument>_meta`` only its metadata, ``needs`` the inputs
            with gradients). One that several inputs have may give all at once, as a dictionary. `composite`,
            or None for what has no derivative.
        outputs: names of the results; several become a named tuple.
        strided: inputs that the kernel reads with any strides; others are made contiguous first.
        mutates: the argument, or the arguments, that the kernel writes into; the op then returns the
            first of them and has no output
            of its own. The kernel sees the first with its strides, the others must be contiguous.
        public: the name that users know it by, where that is another: errors and graph nodes say it. Such
            an op is exported nowhere.
        dynamic: integer arguments that are parameters of the launch instead of part of the plan's key.
        check: function of the arguments that refuses values which are no part of the plan's key; runs at
            every call.
        follow: of views: function of the arguments that gives them without symbols (`symbols`), where an
            offset follows these; without it they are settled.
        alone: function of the first argument: what a call gives that has no other one.
        prepare: function of the arguments that calls without a plan go through first: the result in terms of
            other declarations, or of this one with other arguments; None for what the declaration itself
            takes. Which of the two it is must follow from the plan's key.
        route: of an op with ``prepare``: function of the arguments that says what later calls of the same key
            run in its place, or None.
        exact: numbers that must fit where the computation is in integers or float32; others wrap, or become
            infinite.
        fits: numbers that must fit where it is in integers or halves.
        out: results can be written into a tensor given as ``out=``; those of elementwise ops always can.
        exports, method, in_place: where it is public; see `publish`.
        aten, ours: ATen's operators that it computes, or why there are none; see `name_overloads`. An op with
            another public name has those of that name.
        node: of an op with ``prepare``: what the node of what that makes is called; see `publish`.

    Raises:
        TypeError: the declaration is not total.
    """

    def declare(function: Callable) -> Callable:
        name = function.__name__
        if (view is None) == (kernel is None) or (kernel is not None and reference is None):
            raise TypeError(f"op {name}: declare either view=, or kernel= together with reference=")
        rule = broadcast if shape is None and isinstance(kernel, Elementwise) else shape
        if kernel is not None and rule is None and mutates is None:
            raise TypeError(f"op {name}: a kernel needs a shape rule")
        if grad == "composite" and composite is None:
            raise TypeError(
                f"op {name}: grad=composite needs composite=, the definition in terms of other ops"
            )
        if callable(grad):
            raise TypeError(f"op {name}: grad= is one function. {_FORMULAS}")
        if not function.__doc__:
            raise TypeError(f"op {name}: a declaration needs a docstring")
        arguments = []
        for p in form_of(function).parameters.values():
            if is_taken(p.name):
                raise TypeError(f"op {name}: the text of calls uses the name {p.name!r}. Choose another.")
            annotation = written(p.annotation)
            role = "dynamic" if p.name in dynamic else _ROLES.get(annotation, "static")
            scale = any_number if isinstance(kernel, Elementwise) and "c64" in kernel.texts else number
            readers = {"static": reader(annotation), "dynamic": index, "number": scale, "operand": plain}
            read = readers.get(role)
            typed = role == "static" and bool({"int", "float", "bool"} & set(annotation.split(" | ")))
            arguments.append(Argument(p.name, role, p.default, p.kind is p.KEYWORD_ONLY, read, typed))
        formulas: Any = grad
        saved: set[str] = set()
        if isinstance(grad, dict):
            if not all(map(callable, grad.values())):
                raise TypeError(f"op {name}: a value in grad= is no function. {_FORMULAS}")
            formulas = {k: (f, tuple(inspect.signature(f).parameters)) for k, f in grad.items()}
            names = [a.name for a in arguments]
            known = {*names, *[f"{n}_meta" for n in names], *outputs, "g", "grads", "needs"}
            for k, (_, wanted) in formulas.items():
                if unknown := [n for n in (k,) if n not in names] or [n for n in wanted if n not in known]:
                    raise TypeError(
                        f"op {name}: gradient of {k!r} names something that the op does not have: "
                        f"{unknown[0]}. Its arguments are {', '.join(names)}; formulas may also name g, "
                        f"grads, needs, {', '.join(outputs)} and a layout, such as {names[0]}_meta."
                    )
                saved |= set(wanted) - {"g", "grads", "needs"}
        result: Any = None
        if len(outputs) > 1:
            place = "linalg_" if public is None and exports == "linalg" else ""
            result = results(f"{place}{public or name}")(namedtuple(name, outputs))
        mutated = () if mutates is None else (mutates,) if isinstance(mutates, str) else tuple(mutates)
        o = Op(
            name, function, tuple(arguments), dtype, rule, kernel, reference, view, composite, formulas,
            outputs, frozenset(strided), mutated[0] if mutated else None, len(BY_INDEX),
            saved=frozenset(saved),
            result=result, mutated=mutated, public=public or name, check=check, follow=follow,
            prepare=_named_nodes(node, prepare) if prepare and node else prepare, route=route, exact=exact,
            fits=fits, alone=alone,
        )  # fmt: skip
        if name in OPS:
            raise TypeError(f"op {name} is declared twice")
        OPS[name] = o
        BY_INDEX.append(o)
        stream().sites.append(o.public)
        o.record = recorder(o)
        o.call = call_path(o, call_slowly, call_into if out or _takes_out(o, exports) else None)
        functools.update_wrapper(o.call, function)
        o.call.op = o  # type: ignore[attr-defined]
        publish(o.call, None if public else exports, method, in_place)
        if aten or ours or (not public and (exports or method or in_place)):
            name_overloads(o.call, aten, ours, exports)
        return o.call

    return declare


def _named_nodes(node: str, prepare: Callable) -> Callable:
    """A `prepare` whose results have a node of this name."""

    def prepared(*values: Any) -> Any:
        return labelled(f"{node}Backward0", prepare(*values), values)

    return prepared


def _takes_out(o: Op, exports: str | tuple[str, ...] | None) -> bool:
    """Whether results can be written into a given tensor: elementwise ops of tensors, and as in PyTorch."""
    if is_written(o.name, exports) and not o.mutates:
        return True
    tensors = any(a.role in ("tensor", "optional", "operand", "tensors") for a in o.arguments)
    return isinstance(o.kernel, Elementwise) and tensors and not o.mutates


def operator_of(o: Op) -> Callable:
    """The function as an operator of Python calls it: keyword arguments have their defaults, and an array of
    numpy may stand beside a tensor."""
    made = call_path(o, _operate, None, operator=True)
    made.__doc__ = o.call.__doc__
    return made


def _operate(o: Op, values: tuple) -> Any:
    arrays = [v for v in values if type(v) is np.ndarray and v.ndim]
    if arrays:
        like = next(v for v in values if hasattr(v, "_meta"))
        common, own = like._meta.dtype, like._meta.dtype.numpy
        if own is not None:  # bfloat16 is not numpy's
            common = from_numpy_dtype(np.result_type(own, *(a.dtype for a in arrays)))
        like = like.to(common)
        values = tuple(like.detach().new_tensor(v) if type(v) is np.ndarray else like for v in values[:2])
    return call_slowly(o, (*values, *(a.default for a in o.arguments[len(values) :])))


# Docstrings of rows


def docstring(sentence: str, sections: dict[str, dict[str, str] | str], example: str = "") -> str:
    """A docstring from its parts.

    Args:
        sentence: what the op computes.
        sections: heading -> text, or names -> their texts.
        example: lines of a console; none if empty.
    """
    lines = [sentence]
    for heading, told in sections.items():
        texts = [f"{names}: {text}" for names, text in told.items()] if isinstance(told, dict) else [told]
        wrapped = [fill(text, 100, subsequent_indent="    ") for text in texts]
        lines += ["", f"{heading}:", *[f"    {line}" for text in wrapped for line in text.splitlines()]]
    if example:
        lines += ["", "Example:", *[f"    {line}" for line in example.splitlines()]]
    return "\n    ".join(lines)


def example_of(name: str, reference: Callable, given: tuple) -> str:
    """An example: a call of constants, and what the reference makes of them."""
    arrays = [np.asarray(g, np.float32 if "." in str(g) else None) for g in given]
    with np.errstate(all="ignore"):
        result = np.asarray(reference(*arrays))
    tensors = ", ".join(f'torch.tensor({g}, device="cpu")' for g in given)
    call = f"torch.{name}({tensors})"
    if result.dtype.kind == "f" and not result.ndim:
        shown = [f"round({call}.item(), 4)", str(round(float(result), 4))]
    else:
        shown = [f"{call}.tolist()", str(result.tolist())]
    return "\n".join([">>> import pellucid as torch", f">>> {shown[0]}", shown[1]])
