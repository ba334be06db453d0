"""Element types: how a kernel sees a dtype, and the WGSL that loads, stores and converts its elements."""

from __future__ import annotations

from ...errors import DTypeError, warn
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType

# How a kernel sees a dtype: the element type of the buffer, elements per u32 word, and the type of a value
# once loaded.
# "i64" and "f64" values are vec2<u32>, low word first, "c64" vec2<f32>, the real part first, "c128" both
# parts as "f64"; see wgsl/parts/number/int64.wgsl and narrow.wgsl, and wgsl/parts/complex.
PHYSICAL: dict[DType, tuple[str, int, str]] = {
    dt.float32: ("f32", 1, "f32"),
    dt.int32: ("i32", 1, "i32"),
    dt.uint32: ("u32", 1, "u32"),
    dt.int64: ("vec2<u32>", 1, "i64"),
    dt.float16: ("u32", 2, "f32"),
    dt.bfloat16: ("u32", 2, "f32"),
    dt.int16: ("u32", 2, "i32"),
    dt.uint16: ("u32", 2, "u32"),
    dt.int8: ("u32", 4, "i32"),
    dt.uint8: ("u32", 4, "u32"),
    dt.bool_: ("u32", 4, "bool"),
    dt.complex64: ("vec2<f32>", 1, "c64"),
    dt.float64: ("vec2<u32>", 1, "f64"),
    dt.complex128: ("vec4<u32>", 1, "c128"),
}
# Types that are only moved and converted there, and only if asked for, with those in which ops compute.
WIDE = {dt.float64: dt.float32, dt.complex128: dt.complex64}
# "none" or "float32"; see `webgpu.set_float64_precision`.
float64_precision = "none"
NATIVE = {
    "f32": dt.float32,
    "i32": dt.int32,
    "u32": dt.uint32,
    "vec2<u32>": dt.int64,
    "vec2<f32>": dt.complex64,
}
WGSL_TYPE = {
    "f32": "f32", "i32": "i32", "u32": "u32", "i64": "vec2<u32>", "bool": "bool", "c64": "vec2<f32>",
    "f64": "vec2<u32>", "c128": "vec4<u32>",
}  # fmt: skip

_UNPACK = {
    dt.float16: "half_to_float({bits})",
    dt.bfloat16: "bfloat_to_float({bits})",
    dt.int16: "(bitcast<i32>({bits} << 16u) >> 16u)",
    dt.uint16: "{bits}",
    dt.int8: "(bitcast<i32>({bits} << 24u) >> 24u)",
    dt.uint8: "{bits}",
    dt.bool_: "({bits} != 0u)",
}
_PACK = {
    dt.float16: "float_to_half({value})",
    dt.bfloat16: "float_to_bfloat({value})",
    dt.int16: "(bitcast<u32>({value}) & 0xffffu)",
    dt.uint16: "({value} & 0xffffu)",
    dt.int8: "(bitcast<u32>({value}) & 0xffu)",
    dt.uint8: "({value} & 0xffu)",
    dt.bool_: "u32({value})",
}
_CONVERT = {
    ("f32", "i32"): "float_to_i32({})",
    ("f32", "u32"): "float_to_u32({})",
    ("f32", "i64"): "i64_from_f32({})",
    # By the bits: NaN is true, and a device that flushes subnormals must not change the answer.
    ("f32", "bool"): "((bitcast<u32>({}) & 0x7fffffffu) != 0u)",
    ("i32", "f32"): "f32({})",
    ("i32", "u32"): "bitcast<u32>({})",
    ("i32", "i64"): "i64_from_i32({})",
    ("i32", "bool"): "({} != 0)",
    ("u32", "f32"): "f32({})",
    ("u32", "i32"): "bitcast<i32>({})",
    ("u32", "i64"): "vec2<u32>({}, 0u)",
    ("u32", "bool"): "({} != 0u)",
    ("i64", "f32"): "i64_to_f32({})",
    ("i64", "i32"): "bitcast<i32>(({}).x)",
    ("i64", "u32"): "({}).x",
    ("i64", "bool"): "any({} != vec2<u32>(0u))",
    ("bool", "f32"): "f32({})",
    ("bool", "i32"): "i32({})",
    ("bool", "u32"): "u32({})",
    ("bool", "i64"): "vec2<u32>(u32({}), 0u)",
    ("c64", "bool"): "any((bitcast<vec2<u32>>({}) & vec2<u32>(0x7fffffffu)) != vec2<u32>(0u))",
}
# What is only moved and converted becomes, and comes from, the value type beside it.
_NARROWS = {"f64": ("f32", "float_from_f64({})"), "c128": ("c64", "complex_from_c128({})")}
_WIDENS = {"f64": ("f32", "float_to_f64({})"), "c128": ("c64", "complex_to_c128({})")}
_has_warned = False


def physical(d: DType) -> tuple[str, int, str]:
    """(element type of the buffer, elements per word, value type) of a dtype on webgpu.

    Raises:
        DTypeError: webgpu has no such type.
    """
    if d in WIDE or d not in PHYSICAL:
        _let_in(d)
    return PHYSICAL[d]


def _let_in(d: DType) -> None:
    """Refuse a type that webgpu does not have, or say once what becomes of it there."""
    global _has_warned
    if d in WIDE and float64_precision != "none":
        if not _has_warned:
            _has_warned = True
            warn(
                f"{d} on webgpu is computed in {WIDE[d].name} (webgpu.set_float64_precision). Use the cpu "
                "device where more digits matter."
            )
        return
    half = "complex64" if d.is_complex else "float32"
    raise DTypeError(
        f"{d} does not exist on webgpu. Use {half} there, for example x.to(pellucid.{half}), or the cpu "
        f"device" + (", or webgpu.set_float64_precision('float32')." if d in WIDE else ".")
    )


def fetch(d: DType, buffer: str, index: str, atomic: bool = False) -> tuple[str, str]:
    """Statements and the expression that read element ``index`` of a buffer of dtype ``d``, as its value
    type."""
    _, lanes, _ = physical(d)
    word = f"atomicLoad(&{buffer}[{{}}])" if atomic else f"{buffer}[{{}}]"
    if lanes == 1:
        return "", word.format(index)
    shift = 1 if lanes == 2 else 2
    width = 32 // lanes
    bits = f"(({word.format(f'k >> {shift}u')} >> ((k & {lanes - 1}u) * {width}u)) & {(1 << width) - 1}u)"
    return f"let k = {index}; ", _UNPACK[d].format(bits=bits)


def register_type(d: DType) -> str:
    """The WGSL type in which kernels that only move elements hold one of dtype ``d``: a hole for ``alias
    T``."""
    value = physical(d)[2]
    return "u32" if value == "bool" else WGSL_TYPE[value]


def pack(d: DType, value: str) -> str:
    """The expression of the bits of a packed element, in the low end of a u32."""
    return _PACK[d].format(value=value)


def narrowed(d: DType, value: str) -> str:
    """The expression of a number as an element of a packed dtype would hold it."""
    return _UNPACK[d].format(bits=_PACK[d].format(value=value))


def convert(expression: str, source: str, target: str) -> str:
    """An expression of value type ``source`` turned into ``target``."""
    if source == target:
        return expression
    if source in _NARROWS:
        narrow, text = _NARROWS[source]
        return convert(text.format(expression), narrow, target)
    if target in _WIDENS:
        narrow, text = _WIDENS[target]
        return text.format(convert(expression, source, narrow))
    if target == "c64":
        return f"vec2<f32>({convert(expression, source, 'f32')}, 0.0)"
    if source == "c64" and target != "bool":
        return convert(f"({expression}).x", "f32", target)
    return _CONVERT[source, target].format(expression)
