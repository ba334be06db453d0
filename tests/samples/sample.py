"""Sample: one call of an op, its arrays from a seed. Needs numpy only, so that samples also run in a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

LAYOUTS = ("contiguous", "strided", "offset")
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
# Tolerances of results that are rounded to a type of 16 bits.
LOOSE = {"float16": 2e-3, "bfloat16": 1e-2}
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Sample:
    """One call. What is an array among the arguments becomes a tensor; a string given for ``dtype`` a dtype.

    Args:
        args, kwargs: of the op.
        call: ``call(t, *tensors)`` in the op's place, where it takes more than one call to show something.
        theirs: PyTorch's spelling of the call, where it is another.
        rtol, atol: of the results; those of gradients are ten times as wide.
        grad: whether gradients of the floating-point arrays are compared.
        second: whether derivatives of these are compared too.
        dtype: what floating-point arrays are converted to first.
        refused: pattern of the error's text, of a call that PyTorch refuses too.
        error: the class of the error, where PyTorch takes the call or has another.
        maybe: PyTorch says whether the call is refused.
        random: values come from the generator: those of the devices are compared with each other.
        layouts: how arrays lie in memory.
        devices: where there are kernels for it.
        variants: kernel variants besides the device's own in which a page runs it.
        paged: whether a page runs it; without where it adds calls and no kernel.
        alone: whether a page runs it beside the first sample of its op and types: it reaches another kernel.
    """

    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    call: Callable | None = None
    theirs: Callable | None = None
    rtol: float = 1e-5
    atol: float = 1e-5
    grad: bool = True
    second: bool = True
    dtype: str | None = None
    refused: str | None = None
    error: type[Exception] | None = None
    maybe: bool = False
    random: bool = False
    layouts: tuple[str, ...] = LAYOUTS
    devices: tuple[str, ...] = ("webgpu", "cpu")
    variants: tuple[str, ...] = ()
    paged: bool = True
    alone: bool = False

    def but(self, **changes: Any) -> Sample:
        """The same with these fields changed."""
        return replace(self, **changes)


def S(*args: Any, **kwargs: Any) -> Sample:
    """A call with these arguments; if the first is a function, of that with the others."""
    if args and callable(args[0]):
        return Sample(args[1:], kwargs, call=args[0])
    return Sample(args, kwargs)


def bad(text: str, *args: Any, **kwargs: Any) -> Sample:
    """A call that is refused with an error whose text matches."""
    return S(*args, **kwargs).but(refused=text, layouts=("contiguous",))


def each(dtypes: Sequence[str], *args: Any, **kwargs: Any) -> list[Sample]:
    """The call with its floating-point arrays in each of these types; what PyTorch refuses is refused."""
    made = []
    for dtype in dtypes:
        s = S(*map_arrays(lambda a, d=dtype: cast(a, d) if a.dtype.kind == "f" else a, args), **kwargs)
        rough = LOOSE.get(dtype, 1e-5)
        made.append(
            s.but(dtype=dtype if "float" in dtype else None, rtol=rough, atol=rough, grad=False, maybe=True,
                  layouts=("offset",), paged=False)
        )  # fmt: skip
    return made


def cast(a: np.ndarray, dtype: str) -> np.ndarray:
    """Small numbers of that type; those of bfloat16, which numpy does not have, as float32."""
    if dtype == "bool":
        return a > 0
    if "float" in dtype:
        return a
    return np.round(np.abs(4 * a) if dtype == "uint8" else 4 * a).astype(dtype)


def map_arrays(function: Callable, value: Any) -> Any:
    """The value with the function of every array in it."""
    if isinstance(value, (np.ndarray, np.generic)):  # numpy makes numbers of arrays without axes
        return function(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return type(value)([map_arrays(function, v) for v in value])
    if isinstance(value, dict):
        return {k: map_arrays(function, v) for k, v in value.items()}
    return value


def arrays_of(*values: Any) -> list[np.ndarray]:
    """The arrays in these values, in order."""
    found: list[np.ndarray] = []
    map_arrays(found.append, values)
    return found


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32 numbers."""
    return np.asarray(RANDOM.standard_normal(shape), np.float32)


def uniform(low: float, high: float, *shape: int) -> np.ndarray:
    """float32 numbers between these."""
    return np.asarray(RANDOM.uniform(low, high, shape), np.float32)


def apart(*shape: int) -> np.ndarray:
    """float32 numbers no two of which are close, so that their order is the same everywhere."""
    count = int(np.prod(shape))
    return (RANDOM.permutation(count).astype(np.float32) / 4 - count / 8).reshape(shape)


def below(limit: int, *shape: int) -> np.ndarray:
    """int64 numbers from 0 to limit - 1."""
    return np.asarray(RANDOM.integers(0, limit, shape), np.int64)


def nothing(*shape: int) -> np.ndarray:
    """An array without elements, or of zeros."""
    return np.zeros(shape, np.float32)
