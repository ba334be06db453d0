"""Fourier transforms as `pellucid.fft` has them: of complex and real signals, inverse, over one and several
axes; frequencies, and the shift of the zero frequency to the middle."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod, sqrt
from typing import Any

from ...autograd.edges import labelled
from ...errors import DimensionError, DTypeError, RangeError, ShapeError
from ...op.arguments import integer_or_integers, number
from ...op.declaration import docstring
from ...op.families import called
from ...tensors.dtypes import DType, get_default_dtype
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from ..shape.creation import arange
from ..shape.joining import cat, roll
from .transform import dft, half_dft, resized

# By name: what goes in and comes out, whether exponents are positive, what it computes. "half" is that half
# of a spectrum along the last transformed axis of which the other half is the conjugate.
_KINDS = {
    "fft": ("complex", "complex", False, "Fourier transform"),
    "ifft": ("complex", "complex", True, "Inverse of `fft{}`"),
    "rfft": ("real", "half", False, "Fourier transform of a real signal: the half that says all"),
    "irfft": ("half", "real", True, "Inverse of `rfft{}`"),
    "hfft": ("half", "real", False, "Fourier transform of a signal whose other half is the conjugate"),
    "ihfft": ("real", "half", True, "Inverse of `hfft{}`"),
}
_NORMS = ("backward", "ortho", "forward")


def transformed(name: str, input: Tensor, s, dim, norm: str | None, kind: str) -> Tensor:
    """The transform of a kind over several axes; ``name`` is for messages, the others are as users give
    them."""
    given, made, inverse, _ = _KINDS[kind]
    shape, rank, d = input._meta.shape, input._meta.rank, input._meta.dtype
    if given == "real" and d.is_complex:
        raise DTypeError(f"{name}: takes a real tensor, not {d}. Use {name.lstrip('ir').replace('hf', 'f')}.")
    lengths = None if s is None else _several(s, f"{name}: s")
    if dim is not None:
        axes = [axis(k, rank) for k in _several(dim, f"{name}: dim")]
        if axes and not rank:
            raise DimensionError(
                f"{name}: a tensor without axes has none to transform. Give it one: x[None]."
            )
    else:
        axes = list(range(0 if lengths is None else rank - len(lengths), rank))
    if len(set(axes)) != len(axes) or (axes and axes[0] < 0):
        raise ShapeError(f"{name}: axes {axes} of {rank}: each may be named once.")
    if lengths is not None and len(lengths) != len(axes):
        raise ShapeError(f"{name}: s has {len(lengths)} lengths for {len(axes)} axes.")
    if not axes and kind not in ("fft", "ifft"):
        raise ShapeError(f"{name}: there is no axis to transform.")
    own = [shape[k] for k in axes]
    if given == "half":
        own[-1] = 2 * (own[-1] - 1)
    counts = [n if m == -1 else m for n, m in zip(own, lengths or own, strict=True)]
    if any(n < 1 for n in counts):
        raise ShapeError(f"{name}: a transform of {min(counts)} elements is asked for; there must be one.")
    x = input if d.is_complex or d.is_floating_point else input.to(get_default_dtype())
    for k, n in zip(axes, counts, strict=True):
        x = resized(x, k, n // 2 + 1 if given == "half" and k == axes[-1] else n)
    if norm not in (None, *_NORMS):
        raise RangeError(f"{name}: norm is one of {', '.join(_NORMS)}, not {norm!r}.")
    count = prod(counts)
    scale = 1 / sqrt(count) if norm == "ortho" else 1 / count if (norm == "forward") != inverse else 1.0
    if not axes:
        return x if x._meta.dtype.is_complex else x + 0j
    # What has half of the elements is worked on as long as possible.
    order = axes if given == "half" else axes[::-1]
    for k in order:
        factor = scale if k == order[-1] else 1.0
        if given == "half" and k == axes[-1]:
            other = x.narrow(k, 1, (counts[-1] - 1) // 2).flip(k).conj()
            x = dft(cat([x, other], k), k, inverse, factor).real
        else:
            x = (half_dft if made == "half" and k == axes[-1] else dft)(x, k, inverse, factor)
    return x


def _node(kind: str, end: str, input: Tensor) -> str:
    """What PyTorch calls the node of a transform."""
    _, made, inverse, _ = _KINDS[kind]
    if made == "real":
        return "FftC2RBackward0"
    if made == "half" and not inverse:
        return "FftR2CBackward0"
    if end or input._meta.dtype.is_complex:
        return "FftC2CBackward0"
    return "ConjBackward0" if inverse else "FftR2CBackward0"


def _several(value, name: str) -> tuple[int, ...]:
    value = integer_or_integers(value, name)
    return value if isinstance(value, tuple) else (value,)


def _declare(kind: str, end: str) -> Any:
    """Declare the form over one axis, two or several (``end`` is "", "2" or "n")."""
    name = kind + end

    def one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        length = None if n is None else index(n, f"{name}: n")
        out = transformed(name, input, length, index(dim, f"{name}: dim"), norm, kind)
        return labelled(_node(kind, end, input), out, (input,))

    def several(
        input: Tensor,
        s: tuple[int, ...] | None = None,
        dim: tuple[int, ...] | None = (-2, -1) if end == "2" else None,
        norm: str | None = None,
    ) -> Tensor:
        out = transformed(name, input, s, dim, norm, kind)
        return labelled(_node(kind, end, input), out, (input,))

    call: Any = several if end else one
    given, made, _, sentence = _KINDS[kind]
    length, over = ("n", "one axis") if not end else ("s", "two axes" if end == "2" else "several axes")
    known = {
        "input": f"{'real' if given == 'real' else 'real or complex'}; integers become the default float.",
        length: f"{'lengths' if end else 'length'} of the {'result' if made == 'real' else 'signal'}, which "
        "is cut or filled up with zeros; its own if None.",
        "dim": f"the {'axes' if end else 'axis'}{'; all if None, or the last of ``s``' * (end == 'n')}.",
        "norm": 'where 1 / n stands: "backward" in inverses, "forward" in others, "ortho" its root in both.',
    }
    sections: dict[str, dict[str, str] | str] = {
        "Args": known,
        "Raises": {"ShapeError": "an axis is named twice, or has no element.", "DTypeError": "halves."},
    }
    doc = docstring(f"{sentence.format(end)}, over {over}.", sections)
    return called(name, doc, call, exports="fft", aten=f"fft_{name}.default")


fft, fft2, fftn = [_declare("fft", end) for end in ("", "2", "n")]
ifft, ifft2, ifftn = [_declare("ifft", end) for end in ("", "2", "n")]
rfft, rfft2, rfftn = [_declare("rfft", end) for end in ("", "2", "n")]
irfft, irfft2, irfftn = [_declare("irfft", end) for end in ("", "2", "n")]
hfft, hfft2, hfftn = [_declare("hfft", end) for end in ("", "2", "n")]
ihfft, ihfft2, ihfftn = [_declare("ihfft", end) for end in ("", "2", "n")]


def _frequencies(name: str, ranges: Callable, shown: str) -> Any:
    """Declare the frequencies of a transform, which are these ranges of integers."""

    def call(
        n: int, d: float = 1.0, *, dtype: DType | None = None, device=None, requires_grad: bool = False
    ) -> Tensor:
        n, dtype = index(n, f"{name}: n"), get_default_dtype() if dtype is None else dtype
        whole = [arange(*part, dtype=dtype, device=device) for part in ranges(n)]
        d = n * number(d, f"{name}: d")
        return (cat(whole, 0) * (1 / d if d else inf)).requires_grad_(requires_grad)

    known = {"n": "length of the signal.", "d": "time between two samples."}
    doc = docstring(f"The frequencies of `{name[:-4]}`: ``[0, 1, ..., {shown}] / (d n)``.", {"Args": known})
    return called(name, doc, call, exports="fft", aten=f"fft_{name}.default")


fftfreq = _frequencies(
    "fftfreq", lambda n: ((0, (n + 1) // 2), (-(n // 2), 0)), "(n - 1) // 2, -(n // 2), ..., -1"
)
rfftfreq = _frequencies("rfftfreq", lambda n: ((0, n // 2 + 1),), "n // 2")


def _shift(name: str, more: int, doc: str) -> Any:
    """Declare a shift by half of each axis, rounded down, or with one more up."""

    def call(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
        shape = input._meta.shape
        dims = tuple(range(len(shape))) if dim is None else _several(dim, f"{name}: dim")
        if dims and not shape:
            raise DimensionError(f"{name}: a tensor without axes has none to shift. Leave dim out.")
        return (
            roll(input, tuple((shape[axis(k, len(shape))] + more) // 2 for k in dims), dims)
            if dims
            else input
        )

    return called(name, doc, call, exports="fft", aten=f"fft_{name}.default")


fftshift = _shift("fftshift", 0, "The zero frequency in the middle of axes (all if ``dim`` is None).")
ifftshift = _shift("ifftshift", 1, "Inverse of `fftshift`.")
