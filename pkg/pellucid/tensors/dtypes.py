"""Element types and the promotion rules between them. Logical types only: how a kernel reads one is in
kernel.py."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from ..errors import DTypeError


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """An element type, such as ``pellucid.float32``.

    ``kind`` is one letter: b bool, u unsigned, i signed, f float, c complex, q quantized (a weight's format,
    no elements of its own), n a name only.
    ``numpy`` is the type in which the ``cpu`` device holds it; bfloat16 is held as float32 with rounded
    values.
    """

    name: str
    kind: str
    itemsize: int
    numpy: np.dtype | None
    rank: int = 0
    # As what programs know the package: "torch" where `compat.install` lets it stand for PyTorch.
    package: ClassVar[str] = "pellucid"

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "f" or self.name.startswith("float8")

    @property
    def largest(self) -> float:
        """The largest number that it holds, of floating-point ones."""
        return 3.3895313892515355e38 if self.name == "bfloat16" else float(np.finfo(self.numpy).max)

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_quantized(self) -> bool:
        return self.kind == "q"

    @property
    def is_signed(self) -> bool:
        """Whether elements can be negative."""
        return self.kind in "ifc"

    def to_real(self) -> "DType":
        """The type of its parts, if it is complex, else itself."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> "DType":
        """The complex type whose parts it is; itself if it is complex.

        Raises:
            DTypeError: there is none.
        """
        found = self if self.is_complex else {"float32": complex64, "float64": complex128}.get(self.name)
        if found is None:
            raise DTypeError(f"to_complex: {self} has no complex type. Convert to float32 first.")
        return found

    @property
    def is_integer(self) -> bool:
        """Signed and unsigned integers; not bool."""
        return self.kind in "iu"

    def __repr__(self) -> str:
        return f"{self.package}.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)


def _by_name(name: str) -> DType:
    return NAMES[name] if name in NAMES else next(d for d in NAMED if d.name == name)


bool_ = DType("bool", "b", 1, np.dtype(np.bool_))
uint8 = DType("uint8", "u", 1, np.dtype(np.uint8), 1)
int8 = DType("int8", "i", 1, np.dtype(np.int8), 1)
int16 = DType("int16", "i", 2, np.dtype(np.int16), 2)
uint16 = DType("uint16", "u", 2, np.dtype(np.uint16), 2)
int32 = DType("int32", "i", 4, np.dtype(np.int32), 3)
uint32 = DType("uint32", "u", 4, np.dtype(np.uint32), 3)
int64 = DType("int64", "i", 8, np.dtype(np.int64), 4)
float16 = DType("float16", "f", 2, np.dtype(np.float16), 5)
bfloat16 = DType("bfloat16", "f", 2, np.dtype(np.float32), 5)
float32 = DType("float32", "f", 4, np.dtype(np.float32), 6)
float64 = DType("float64", "f", 8, np.dtype(np.float64), 7)
complex64 = DType("complex64", "c", 8, np.dtype(np.complex64), 8)
complex128 = DType("complex128", "c", 16, np.dtype(np.complex128), 9)

NAMES = {
    d.name: d
    for d in (
        bool_,
        uint8,
        int8,
        int16,
        uint16,
        int32,
        uint32,
        int64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64,
        complex128,
    )
}
# Types of PyTorch's by name only: programs mention them, nothing holds their elements.
NAMED = tuple(
    DType(name, "n", itemsize, None)
    for name, itemsize in {
        "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
        "float4_e2m1fn_x2": 1, "uint64": 8, "complex32": 4, "qint8": 1, "quint8": 1, "qint32": 4,
    }.items()
)  # fmt: skip

_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_FROM_NUMPY = {d.numpy: d for d in NAMES.values() if d is not bfloat16}
_default = float32
# Called before the default dtype is another: plans were made for the old one.
changes: list[Callable[[], None]] = []


def get_default_dtype() -> DType:
    """The dtype that Python floats become (float32 unless changed)."""
    return _default


def set_default_dtype(d: DType) -> None:
    """Change the dtype that Python floats become.

    Raises:
        DTypeError: ``d`` is not a floating-point type.
    """
    global _default
    for change in changes if d is not _default else ():
        change()
    if not d.is_floating_point:
        raise DTypeError(
            f"set_default_dtype: {d} is not a floating-point type. Give float32, float64, float16 or "
            "bfloat16."
        )
    _default = d


def from_numpy_dtype(d: np.dtype) -> DType:
    """The element type of a numpy array.

    Raises:
        DTypeError: numpy's type has no counterpart (strings, objects, records, uint64, bytes in the other
            order).
    """
    try:
        return _FROM_NUMPY[np.dtype(d)]
    except (KeyError, TypeError):
        raise DTypeError(
            f"numpy dtype {d} has no counterpart here. Convert the array first, for example with "
            f".astype('{_nearest(d)}')."
        ) from None


def _nearest(d) -> str:
    """What an array of a type without counterpart should become: the same in the machine's byte order, or a
    float."""
    native = np.dtype(d).newbyteorder("=")
    return native.name if native in _FROM_NUMPY else "float32"


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest type that holds both, by PyTorch's table.

    Source: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    a, b = type1, type2
    if a is b:
        return a
    if a.is_quantized or b.is_quantized:
        raise DTypeError(
            f"{a} and {b}: a quantized weight takes part in matmul, linear and embedding only. Call "
            ".dequantize() first."
        )
    if _ORDER[a.kind] != _ORDER[b.kind]:
        high, low = (a, b) if _ORDER[a.kind] > _ORDER[b.kind] else (b, a)
        if high.is_complex and low is float64:
            return complex128
        return high
    if a.kind != b.kind:  # signed with unsigned
        signed, unsigned = (a, b) if a.kind == "i" else (b, a)
        if unsigned is not uint8:
            raise DTypeError(
                f"{signed} and {unsigned} have no common type (as in PyTorch). Convert one, for example "
                "with .to(pellucid.int64)."
            )
        return int16 if signed is int8 else signed
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.rank >= b.rank else b


def scalar_dtype(kind: type) -> DType:
    """The dtype of a Python number when nothing else says one."""
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    if kind is complex:
        return complex128 if _default is float64 else complex64
    return _default


def result_type(dimensioned: list[DType], zero_dim: list[DType], numbers: list[type]) -> DType:
    """The dtype of an expression: tensors with axes decide, then tensors without, then Python numbers.

    A lower class changes the result only where its category (bool, integer, float, complex) is higher.

    Source: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    result: DType | None = None
    for group in (dimensioned, zero_dim, [scalar_dtype(n) for n in numbers]):
        best: DType | None = None
        for d in group:
            best = d if best is None else promote_types(best, d)
        if best is None:
            continue
        if result is None:
            result = best
        elif _ORDER.get(best.kind, 9) > _ORDER.get(result.kind, 9):
            # A complex number of any size leaves the precision of floats as it is.
            if best.is_complex and result.is_floating_point:
                best = complex128 if result is float64 else complex64
            result = best
    assert result is not None
    return result


LARGEST_HALF = {float16: 65504.0, bfloat16: float.fromhex("0x1.fep127")}
_LARGEST = {**LARGEST_HALF, float32: float.fromhex("0x1.fffffep127")}


@cache
def _ends(d: DType) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    assert d.numpy is not None
    ends = np.iinfo(d.numpy)
    return int(ends.min), int(ends.max)


def holds(d: DType, value: float) -> bool:
    """Whether a number can become an element of dtype ``d``: integers take what lies between their ends,
    unsigned ones also negative integers, which count from the other end; floats what does not overflow.
    float64 and bools take everything.
    """
    if d in _LARGEST:
        most = _LARGEST[d]
        return not (most < value < math.inf or -math.inf < value < -most)
    if not d.is_integer:
        return True
    low, high = _ends(d)
    if isinstance(value, float):
        # The ends of int64 are no floats: the one above is the first that does not fit.
        return low - 1 < value < high + 1 if d is not int64 else low <= value < high
    return (-high if low == 0 else low) <= value <= high


def can_cast(source: DType, target: DType) -> bool:
    """Whether an in-place result may be stored: never float to integer, never anything but bool to bool."""
    return _ORDER[source.kind] <= _ORDER[target.kind]


def round_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round float32 values to the nearest bfloat16 (ties to even), kept as float32."""
    bits = np.asarray(x, dtype=np.float32, order="C").view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.astype(np.uint32).view(np.float32)).astype(
        np.float32
    )
