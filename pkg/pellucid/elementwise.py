"""The kernel of every element-by-element op: one WGSL expression, operands of any dtype and strides,
broadcast, in place or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .dtypes import DType
from .errors import DTypeError, ShapeError
from .kernel import PHYSICAL, WGSL_TYPE, Launch, Source, convert, fetch, fold, load, narrowed, pack, physical
from .meta import Meta
from .shape import broadcast_strides, merge_axes

if TYPE_CHECKING:
    from .call import Call

_WORKGROUP = 64
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
        texts: value type ("f32", "i32", "u32", "i64", "bool") -> WGSL expression, or a function of the call
            that returns one.
        result: "same" as the computation, or a value type such as "bool".
        own: arguments that keep a value type of their own, such as the condition of ``where``.
    """

    texts: dict[str, str | Callable[[Call], str]]
    result: str = "same"
    own: dict[str, str] | None = None

    def check(self, d: DType) -> None:
        """Refuse a type of the computation for which there is no expression, on every device alike.

        Raises:
            DTypeError: there is none.
        """
        value = PHYSICAL[d][2] if d in PHYSICAL else "f32"
        if value not in self.texts:
            raise DTypeError(
                f"there is no kernel for {d}. Convert the input, for example with .to(pellucid.float32)."
            )

    def launch(self, call: Call, written: str | None = None, aliased: frozenset[str] = frozenset()) -> Launch:
        """The dispatch of this expression.

        Args:
            call: metas and arguments.
            written: the argument that is written in place, or None for a fresh output.
            aliased: arguments that are exactly the view that is written.
        """
        compute = physical(call.compute)[2]
        self.check(call.compute)
        text = self.texts[compute]
        expression = text if isinstance(text, str) else text(call)
        target = call.args[written] if written else call.outputs[0]
        own = self.own or {}
        # As in PyTorch, numbers wrap to a small integer type; halves meet them in float32 but for
        # comparisons.
        packed = PHYSICAL[call.compute][1] > 1 and compute != "bool"
        narrow = call.compute if packed and (compute != "f32" or self.result == "bool") else None
        operands = [
            _Operand(n, a, own.get(n, compute), n in aliased, None if n in own else narrow)
            for n, a in call.operands()
        ]
        return _build(
            call.op.name,
            expression,
            operands,
            target,
            compute if self.result == "same" else self.result,
            written,
            call,
        )


@dataclass
class _Operand:
    name: str
    argument: Meta | type
    type: str
    aliased: bool
    narrow: DType | None = None  # the packed dtype to which a number is reduced first

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.argument, Meta)


def elementwise(
    f32: str | Callable | None,
    *,
    i32=None,
    u32=None,
    i64=None,
    boolean=None,
    result: str = "same",
    own: dict[str, str] | None = None,
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
    texts |= {"i64": i64, "bool": boolean}
    return Elementwise({k: v for k, v in texts.items() if v}, result, own)


def _build(
    name: str,
    expression: str,
    operands: list[_Operand],
    out: Meta,
    result: str,
    written: str | None,
    call: Call | _Named,
) -> Launch:
    tensors = [o for o in operands if o.is_tensor and not o.aliased]
    strides = [broadcast_strides(o.argument.shape, o.argument.strides, out.shape) for o in tensors]
    shape, merged = merge_axes(out.shape, [*strides, out.strides])
    flat = len(shape) <= 1 and all(s in ((), (0,), (1,)) for s in merged) and merged[-1] in ((), (1,))
    rank = len(shape)
    if rank > 8:
        raise ShapeError(
            f"tensors of shape {tuple(out.shape)} need {rank} strided axes; kernels take 8. Call "
            ".contiguous() on the operands first."
        )
    wide = rank > 4

    element, lanes, out_type = physical(out.dtype)
    strided_out = merged[-1] != () and not (len(shape) == 1 and merged[-1] == (1,)) and not out.is_contiguous
    by_element = strided_out or (written is not None and lanes > 1)
    atomic = by_element and lanes > 1
    params: dict[str, Any] = {"count": out.numel if by_element else -(-out.numel // lanes)}
    fields = ["count: u32"]
    bindings, functions, bind = [], [], {}

    def index_of(local: str, steps: tuple[int, ...], contiguous: bool) -> str:
        fields.append(f"{local}_offset: u32")
        if contiguous or (steps == (1,) and rank == 1):
            return f"params.{local}_offset + i"
        if not any(steps):
            return f"params.{local}_offset"
        padded = (0,) * ((8 if wide else 4) - rank) + steps
        if "shape0" not in params and "shape" not in params:
            lengths = (1,) * ((8 if wide else 4) - rank) + shape
            params.update({"shape0": lengths[:4], "shape1": lengths[4:]} if wide else {"shape": lengths})
        if wide:
            params.update({f"{local}_strides0": padded[:4], f"{local}_strides1": padded[4:]})
            axes = f"params.shape0, params.shape1, params.{local}_strides0, params.{local}_strides1"
            return f"params.{local}_offset + strided8(i, {axes})"
        params[f"{local}_strides"] = padded
        return f"params.{local}_offset + strided4(i, params.shape, params.{local}_strides)"

    for k, o in enumerate(tensors):
        local = wgsl_name(o.name)
        kind, _, value = physical(o.argument.dtype)
        bindings.append(f"@group(0) @binding({k}) var<storage, read> {local}: array<{kind}>;")
        index = index_of(local, merged[k], flat and merged[k] != (0,))
        before, read = fetch(o.argument.dtype, local, f"index_{local}(i)")
        functions.append(f"fn index_{local}(i: u32) -> u32 {{ return {index}; }}")
        functions.append(
            f"fn load_{local}(i: u32) -> {WGSL_TYPE[o.type]} "
            f"{{ {before}return {convert(read, value, o.type)}; }}"
        )
        bind[local] = o.name
    bindings.append(
        f"@group(0) @binding({len(tensors)}) var<storage, read_write> out: "
        f"array<{'atomic<u32>' if atomic else element}>;"
    )
    bind["out"] = written or call.op.outputs[0]
    if written:
        functions.append(
            f"fn index_out(i: u32) -> u32 {{ return {index_of('out', merged[-1], not strided_out)}; }}"
        )
    for o in operands:
        local = wgsl_name(o.name)
        if o.aliased:
            before, read = fetch(out.dtype, "out", "index_out(i)", atomic)
            functions.append(
                f"fn load_{local}(i: u32) -> {WGSL_TYPE[o.type]} "
                f"{{ {before}return {convert(read, out_type, o.type)}; }}"
            )
        elif not o.is_tensor:
            functions.append(
                f"fn load_{local}(i: u32) -> {WGSL_TYPE[o.type]} "
                f"{{ return {_scalar(local, o.type, fields, o.narrow)}; }}"
            )
            bind[f"params.{local}"] = o.name
    parameters = ", ".join(f"{wgsl_name(o.name)}: {WGSL_TYPE[o.type]}" for o in operands)
    loads = ", ".join(f"load_{wgsl_name(o.name)}(i)" for o in operands)
    if re.search(r"\bindex\b", expression):
        parameters = ", ".join(filter(None, [parameters, "index: u32"]))
        loads = ", ".join(filter(None, [loads, "i"]))
    functions.append(
        f"fn apply({parameters}) -> {WGSL_TYPE[result]} {{ return {_rename(expression, operands)}; }}"
    )
    functions.append(
        f"fn element(i: u32) -> {WGSL_TYPE[out_type]} "
        f"{{ return {convert(f'apply({loads})', result, out_type)}; }}"
    )
    functions.append(f"fn store_out(i: u32) {{ {_store(out.dtype, lanes, by_element, written)} }}")

    vectors = [f"{n}: vec4<u32>" for n, v in params.items() if isinstance(v, tuple)]
    declared = "\n".join(
        [
            *bindings,
            f"struct Params {{ {', '.join([*vectors, *fields])} }}",
            *_frame()[0],
            *functions,
            _frame()[1],
        ]
    )
    if not flat:
        declared = "// uses  strided\n" + declared
    words = params["count"]
    return Launch(
        Source(f"elementwise/map ({name})", declared, typed=True),
        fold(-(-words // _WORKGROUP)),
        params,
        bind=bind,
    )


def _frame() -> tuple[list[str], str]:
    """What is kept of the file: the declaration of params with the workgroup size, and main."""
    text = load("elementwise/map").text
    kept = [line for line in text.splitlines() if line.startswith(("@group(1)", "const WORKGROUP"))]
    return kept, text[text.index("@compute") :]


def _scalar(local: str, kind: str, fields: list[str], narrow: DType | None) -> str:
    if narrow is not None:
        return narrowed(narrow, _scalar(local, kind, fields, None))
    if kind == "i64":
        fields.extend((f"{local}_low: u32", f"{local}_high: u32"))
        return f"vec2<u32>(params.{local}_low, params.{local}_high)"
    if kind == "bool":
        fields.append(f"{local}: u32")
        return f"params.{local} != 0u"
    fields.append(f"{local}: {kind}")
    return f"params.{local}"


def _rename(expression: str, operands: list[_Operand]) -> str:
    """Expressions name arguments as ``{min}`` where the plain name is taken in WGSL."""
    for o in operands:
        expression = expression.replace("{" + o.name + "}", wgsl_name(o.name))
    return expression


def _store(d: DType, lanes: int, by_element: bool, written: str | None) -> str:
    if lanes == 1:
        return f"out[{'index_out(i)' if written else 'i'}] = element(i);"
    width, mask, shift = 32 // lanes, (1 << 32 // lanes) - 1, 1 if lanes == 2 else 2
    if not by_element:
        pieces = [f"({pack(d, f'element(i * {lanes}u + {k}u)')} << {k * width}u)" for k in range(lanes)]
        return f"out[i] = {' | '.join(pieces)};"
    # Neighbours share a word and belong to other invocations: each changes its own bits only.
    return (
        f"let bits = {pack(d, 'element(i)')}; let k = index_out(i); let place = (k & {lanes - 1}u) * "
        f"{width}u; "
        f"atomicAnd(&out[k >> {shift}u], ~({mask}u << place)); atomicOr(&out[k >> {shift}u], bits << place);"
    )


class _Named:
    """What `_build` asks of a call, for copies that no declaration makes."""

    def __init__(self, name: str, target: str):
        self.name, self.outputs = name, (target,)
        self.op = self


def cast_launch(source: str, target: str, held: Meta, wanted: Meta) -> Launch:
    """A dispatch that converts a contiguous temporary into an output of another dtype."""
    value = physical(held.dtype)[2]
    return _build(
        "cast",
        wgsl_name(source),
        [_Operand(source, held, value, False)],
        wanted,
        value,
        None,
        _Named("cast", target),
    )


def launch_copy(source: str, held: Meta, target: str, part: Meta, offset: int) -> Launch:
    """A dispatch that writes a tensor into a part of an output: ``part`` has the output's strides, ``offset``
    is where it begins."""
    value = physical(held.dtype)[2]
    operand = _Operand("source", held, value, False)
    launch = _build("copy", "source", [operand], part, value, target, _Named("copy", target))
    launch.params["out_offset"] = offset
    launch.bind["source"] = source
    return launch


__all__ = ["Elementwise", "cast_launch", "elementwise", "launch_copy", "wgsl_name"]
