"""The kernel of every element-by-element op: one WGSL expression, operands of any dtype and strides,
broadcast, in place or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import DTypeError, ShapeError
from ..tensors.dtypes import DType
from ..tensors.meta import Meta
from ..tensors.shape import broadcast_strides, contiguous_strides, merge_axes
from .call import Call
from .expression import Map, Operand, dense_form, write
from .kernel.element_types import PHYSICAL, WGSL_TYPE, WIDE, physical
from .kernel.launch import Launch

_TAKEN = frozenset(
    {
        "min",
        "max",
        "out",
        "params",
        "select",
        "value",
        "self",
        "target",
        "from",
        "main",
        "load",
        "element",
        "apply",
    }
)


def wgsl_name(argument: str) -> str:
    """An argument's name as it stands in WGSL: some are reserved or builtin functions there."""
    return f"{argument}_operand" if argument in _TAKEN else argument


@dataclass(frozen=True)
class Elementwise:
    """An expression over the op's arguments; the word ``index`` in it is the element's number in the result.

    Args:
        texts: value type ("f32", "i32", "u32", "i64", "bool", "c64") -> WGSL expression, or a function of the
            call that returns one.
        result: "same" as the computation, "real" if it is that of a complex one, or a value type such as
            "bool".
        own: arguments that keep a value type of their own, such as the condition of ``where``.
        wide: operands whose numbers, and tensors of one element, meet halves in float32 (`narrows`).
    """

    texts: dict[str, str | Callable[[Call], str]]
    result: str = "same"
    own: dict[str, str] | None = None
    wide: tuple[str, ...] = ()

    def check(self, d: DType) -> None:
        """Refuse a type of the computation for which there is no expression, on every device alike; numpy has
        more of complex numbers.

        Raises:
            DTypeError: there is none.
        """
        values = ("f32", "c64") if d.is_complex or d in WIDE else (PHYSICAL[d][2],)
        if not any(value in self.texts for value in values):
            raise DTypeError(
                f"there is no kernel for {d}. Convert the input, for example with .to(pellucid.float32)."
            )

    def narrows(self, call: Call, name: str) -> bool:
        """Whether an operand is reduced to a small type of the computation first: all are in integers, and as
        on PyTorch's CPU those of halves, but for numbers and tensors of one element that are ``wide`` or only
        scale (arguments that are never tensors).
        """
        if name in (self.own or {}):
            return False
        value = call.args[name]
        if not call.compute.is_floating_point or (isinstance(value, Meta) and value.numel != 1):
            return True
        scales = any(a.name == name and a.role == "number" for a in call.op.arguments)
        return not scales and name not in self.wide

    def launch(self, call: Call, written: str | None = None, aliased: frozenset[str] = frozenset()) -> Launch:
        """The dispatch of this expression.

        Args:
            call: metas and arguments.
            written: the argument that is written in place, or None for a fresh output.
            aliased: arguments that are exactly the view that is written.
        """
        compute = physical(call.compute)[2]
        self.check(call.compute)
        text = self.texts.get(compute)
        if text is None:
            raise DTypeError(f"there is no kernel for {call.compute} on webgpu. Use the cpu device.")
        expression = text if isinstance(text, str) else text(call)
        target = call.args[written] if written else call.outputs[0]
        own = self.own or {}
        packed = call.compute if PHYSICAL[call.compute][1] > 1 and compute != "bool" else None

        def narrow(name: str, a: Meta | type) -> DType | None:
            holds = isinstance(a, Meta) and a.dtype is packed
            return None if holds or not self.narrows(call, name) else packed

        operands = [
            _Operand(n, a, own.get(n, compute), n in aliased, narrow(n, a)) for n, a in call.operands()
        ]
        return _build(
            call.op.name,
            expression,
            operands,
            target,
            {"same": compute, "real": compute.replace("c64", "f32")}.get(self.result, self.result),
            written,
            call,
        )


@dataclass
class _Operand:
    name: str
    argument: Meta | type
    type: str
    aliased: bool
    narrow: DType | None = None  # the packed dtype to which its value is reduced first

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.argument, Meta)


def moved(text: str, own: dict[str, str] | None = None) -> Elementwise:
    """A kernel that hands arguments on, of every type; `own` as `Elementwise` has it."""
    return Elementwise(dict.fromkeys(WGSL_TYPE, text), own=own)


def elementwise(
    f32: str | Callable | None,
    *,
    i32=None,
    u32=None,
    i64=None,
    boolean=None,
    c64=None,
    result: str = "same",
    own: dict[str, str] | None = None,
    wide: tuple[str, ...] = (),
) -> Elementwise:
    """An elementwise kernel from expressions by value type; the one for f32 also serves i32 and u32 unless
    they have their own.

    ``i32=False`` says that there is none for integers.

    Example:
        >>> elementwise("a + b", i64="i64_add(a, b)").texts["u32"]
        'a + b'
    """
    texts = {
        "f32": f32,
        "i32": f32 if i32 is None else i32,
        "u32": (f32 if i32 is None else i32) if u32 is None else u32,
    }
    texts |= {"i64": i64, "bool": boolean, "c64": c64}
    return Elementwise({k: v for k, v in texts.items() if v}, result, own, wide)


def _build(
    name: str,
    expression: str,
    operands: list[_Operand],
    out: Meta,
    result: str,
    written: str | None,
    call: Call | _Named,
) -> Launch:
    tensors = [o for o in operands if isinstance(o.argument, Meta) and not o.aliased]
    strides = [broadcast_strides(o.argument.shape, o.argument.strides, out.shape) for o in tensors]
    shape, merged = merge_axes(out.shape, [*strides, out.strides])
    rank = len(shape)
    if rank > 8:
        raise ShapeError(
            f"tensors of shape {tuple(out.shape)} need {rank} strided axes; kernels take 8. Call "
            ".contiguous() on the operands first."
        )
    walked = "wide" if rank > 4 else "strided"

    dense = contiguous_strides(tuple(shape))

    def index(steps: tuple[int, ...]) -> str:
        if tuple(steps) == dense:
            return "flat"
        return (dense_form(tuple(shape), tuple(steps)) or walked) if any(steps) else "fixed"

    lanes = physical(out.dtype)[1]
    strided_out = merged[-1] != () and not (len(shape) == 1 and merged[-1] == (1,)) and not out.is_contiguous
    by_element = strided_out or (written is not None and lanes > 1)
    names = [wgsl_name(o.name) for o in operands]
    places = {o.name: index(steps) for o, steps in zip(tensors, merged, strict=False)}
    made = Map(
        name,
        _rename(expression, operands),
        tuple(
            Operand(
                local,
                o.type,
                out.dtype if o.aliased else o.argument.dtype if isinstance(o.argument, Meta) else None,
                places.get(o.name, ""),
                o.aliased,
                o.narrow,
            )
            for local, o in zip(names, operands, strict=True)
        ),
        result,
        out.dtype,
        index(merged[-1]) if written else "",
        by_element,
        tuple(shape),
        {wgsl_name(o.name): tuple(steps) for o, steps in zip(tensors, merged, strict=False)}
        | {"out": tuple(merged[-1])},
        out.numel if by_element else -(-out.numel // lanes),
    )
    bind = {local: o.name for local, o in zip(names, operands, strict=True) if o.is_tensor and not o.aliased}
    bind |= {f"params.{local}": o.name for local, o in zip(names, operands, strict=True) if not o.is_tensor}
    bind["out"] = written or call.op.outputs[0]
    return write(made, bind)


def _rename(expression: str, operands: list[_Operand]) -> str:
    """Expressions name arguments as ``{min}`` where the plain name is taken in WGSL."""
    for o in operands:
        expression = expression.replace("{" + o.name + "}", wgsl_name(o.name))
    return expression


class _Named:
    """What `_build` asks of a call, for copies that no declaration makes."""

    def __init__(self, name: str, target: str):
        self.name, self.outputs = name, (target,)
        self.op = self


def cast_launch(source: str, target: str, held: Meta, wanted: Meta) -> Launch:
    """A dispatch that converts a contiguous temporary into an output of another dtype."""
    value = physical(held.dtype)[2]
    return map_launch(source, target, held, wanted, wgsl_name(source), value, value)


def map_launch(
    source: str, target: str, held: Meta, wanted: Meta, expression: str, value: str, result: str
) -> Launch:
    """A dispatch that makes one tensor of another, element by element.

    Args:
        source, target: their names among arguments, outputs and temporaries.
        held, wanted: what they are.
        expression: over the source, by its name in WGSL.
        value, result: value types of the source in the expression, and of what this makes.
    """
    operand = _Operand(source, held, value, False)
    return _build("cast", expression, [operand], wanted, result, None, _Named("cast", target))


def launch_copy(source: str, held: Meta, target: str, part: Meta, offset: int) -> Launch:
    """A dispatch that writes a tensor into a part of an output: ``part`` has the output's strides, ``offset``
    is where it begins."""
    value = physical(held.dtype)[2]
    operand = _Operand("source", held, value, False)
    launch = _build("copy", "source", [operand], part, value, target, _Named("copy", target))
    launch.params["out_offset"] = offset
    launch.bind["source"] = source
    return launch


__all__ = ["Elementwise", "cast_launch", "elementwise", "launch_copy", "map_launch", "moved", "wgsl_name"]
