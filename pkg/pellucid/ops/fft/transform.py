"""The discrete Fourier transform (FFT) along one axis of any length: passes of small radices, and Bluestein's
for large primes."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import pi, prod

import numpy as np

from ...device import CPU
from ...device import device as Device
from ...device.stream import stream
from ...errors import DTypeError
from ...op.declaration import Call, op
from ...op.kernel import Launch, flag, is_direct, per_element
from ...op.rules import as_input
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..shape.joining import cat

# Prime factors up to this one have passes of their own; an element then reads as many.
_LARGEST = 61
# The kernel of a pass whose invocations hold all numbers of a butterfly, by how many these are.
_IN_REGISTERS = {4: "fft/pass_4", 16: "fft/pass_16"}
# Rows that workgroup memory holds, of a power of two; the most lanes that share one, each of which makes four
# elements or 16, and the fewest lanes of a workgroup.
_SHORTEST, _LONGEST = 64, 4096
_LANES, _FEWEST = 512, 64
# From so many on a lane makes 16, whose passes go by two without workgroup memory between.
_BY_SIXTEEN = 256
# Workgroup memory for an element of a row, with what pads it and a quarter of a root.
_BYTES = 12
_WHOLE = {dt.float32: dt.complex64, dt.float64: dt.complex128}


def radices(n: int) -> list[int]:
    """The radices of the passes of a transform: fours, a two, and odd primes.

    Example:
        >>> radices(120)
        [4, 2, 3, 5]
    """
    found, divisor = [], 4
    while n > 1:
        if divisor * divisor > n and divisor > 4:
            divisor = n
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor = {4: 2, 2: 3}.get(divisor, divisor + 2)
    return found or [1]


def _step(n: int) -> dict[str, int | float]:
    """An eighth of a turn over n, as two floats."""
    step = pi / (4 * n)
    high = float(np.float32(step))
    return {"step_high": high, "step_low": step - high}


def _types(call: Call):
    d: dt.DType = call["input"].dtype
    whole = _WHOLE.get(d, d)
    if not whole.is_complex:
        raise DTypeError(f"takes float32, float64 and complex numbers, not {d}. Convert with .float().")
    return whole, whole


def _is_held(n: int, inner: int) -> bool:
    """Whether a GPU's workgroup holds whole rows."""
    if is_direct() or inner > 1 or n < _SHORTEST or n & n - 1:
        return False
    room = stream().open().info.limits.get("maxComputeWorkgroupStorageSize", 16384)
    return n <= min(_LONGEST, 16 * _lanes()) and n * _BYTES <= room


def _lanes() -> int:
    """The most lanes that share a row: a power of two."""
    most = min(_LANES, stream().open().info.limits.get("maxComputeInvocationsPerWorkgroup", 256))
    return 1 << most.bit_length() - 1


def _rows(call: Call, n: int, holes: dict[str, str]) -> Launch:
    """All passes in one dispatch, of rows of n complex numbers."""
    each = 4 if n >= _BY_SIXTEEN else max(n // 4 // _lanes(), 1)
    together = max(_FEWEST * 4 * each // n, 1)
    rows = prod(call["input"].shape[:-1])
    left = 1 << (n.bit_length() - 1) % 4
    holes = {"N": f"{n}u", "ROWS": f"{together}u", "EACH": f"{each}u", "LEFT": f"{left}u", **holes}
    bind = {"x": "input", "out": "out"}
    return Launch("fft/rows", -(-rows // together), {"rows": rows} | _step(n), holes, bind)


def _passes(call: Call) -> list[Launch]:
    shape, dim = call["input"].shape, call["dim"]
    n, inner = shape[dim], prod(shape[dim + 1 :])
    if _is_held(n, inner):
        return [_rows(call, n, {"INVERSE": flag(call["inverse"])})]
    made, done, source = [], 1, "input"
    steps = radices(n)
    if not is_direct():
        fours = steps.count(4)
        steps = [16] * (fours // 2) + [4] * (fours % 2) + [radix for radix in steps if radix != 4]
    for k, radix in enumerate(steps):
        last = k == len(steps) - 1
        target = "out" if last else f"pass{k % 2}"
        if not last and k < 2:
            call.temporary(target, shape, dt.complex64)
        params: dict[str, int | float] = {"done": done, "rest": n // (radix * done), "inner": inner}
        params |= _step(radix * done)
        if not last:
            params["scale"] = 1.0
        if radix in _IN_REGISTERS:
            file, params["count"] = _IN_REGISTERS[radix], call.out.numel // radix
        else:
            file, params["count"], params["radix"] = "fft/pass", call.out.numel, radix
        holes = {"INVERSE": flag(call["inverse"])}
        made.append(per_element(file, int(params["count"]), params, holes, {"x": source, "out": target}))
        source, done = target, done * radix
    return made


def _reference(input, dim, inverse, scale):
    wide = input.astype(np.complex128)
    n = input.shape[dim]
    return scale * (np.fft.ifft(wide, axis=dim) * n if inverse else np.fft.fft(wide, axis=dim))


@op(
    public="fft",
    dtype=_types,
    shape=as_input,
    kernel=_passes,
    reference=_reference,
    grad={"input": lambda g, dim, inverse, scale: dft(g, dim, not inverse, scale)},
)
def transform(input: Tensor, dim: int, inverse: bool, scale: float) -> Tensor:
    """``out[k] = scale * sum_j exp(-2 pi i j k / n) input[j]`` along an axis counted from the first; with
    ``inverse`` the exponents are positive."""


@op(
    public="rfft",
    dtype=_types,
    shape=lambda call: Size((*call["input"].shape[:-1], call["input"].shape[-1] // 2 + 1)),
    kernel=lambda call: _rows(call, call["input"].shape[-1] // 2, {"REAL": "true"}),
    reference=lambda input, scale: scale * np.fft.rfft(input.astype(np.float64)),
    grad={"input": lambda g, input_meta, scale: _of_half(g, input_meta.shape[-1], scale)},
)
def half_transform(input: Tensor, scale: float) -> Tensor:
    """The first half of the transform of rows of real numbers, of which workgroup memory holds half as many
    complex ones."""


def _of_half(g: Tensor, n: int, scale: float) -> Tensor:
    k = g.dim() - 1
    return dft(resized(g, k, n), k, True, scale).real


def half_dft(input: Tensor, dim: int, inverse: bool, scale: float) -> Tensor:
    """The first half of the transform of a real signal; arguments as `dft`."""
    m = input._meta
    n = m.shape[dim]
    is_last = dim == m.rank - 1 and n % 2 == 0 and not inverse and m.numel
    if is_last and m.device.type == "webgpu" and m.dtype is dt.float32 and _is_held(n // 2, 1):
        return half_transform(input, scale)
    return dft(input, dim, inverse, scale).narrow(dim, 0, n // 2 + 1)


@op(
    public="fft",
    dtype=lambda call: (dt.complex64, dt.complex64),
    shape=lambda call: Size((call["count"],)),
    kernel=lambda call: Launch(
        "fft/chirp", -(-call["count"] // 64), {"count": call["count"]} | _step(2 * call["count"])
    ),
    reference=lambda count, device: np.exp(-1j * pi * (np.arange(count) ** 2 % (2 * count)) / count),
    grad=None,
)
def chirp(count: int, device: Device) -> Tensor:
    """``out[k] = exp(-pi i k^2 / count)``."""


def resized(x: Tensor, dim: int, length: int) -> Tensor:
    """The first elements along an axis, zeros behind the last."""
    shape = list(x._meta.shape)
    more = length - shape[dim]
    if more <= 0:
        return x.narrow(dim, 0, length) if more else x
    shape[dim] = more
    return cat([x, x.new_zeros(*shape)], dim)


def dft(input: Tensor, dim: int, inverse: bool, scale: float) -> Tensor:
    """The transform along an axis of any length; arguments as those of `transform`."""
    m = input._meta
    n = m.shape[dim]
    if m.device is CPU or max(radices(n)) <= _LARGEST or not m.numel:
        return transform(input, dim, inverse, scale)
    # jk = (j^2 + k^2 - (k - j)^2) / 2 makes a convolution of it, whose length is free.
    length = 1 << (2 * n - 2).bit_length()
    factors = chirp(n, m.device).reshape(n, *(1,) * (m.rank - dim - 1))
    factors = factors.conj() if inverse else factors
    back = factors.conj()
    ring = cat([resized(back, 0, length - n + 1), back[1:].flip(0)], 0)
    signal = resized(input * factors, dim, length)
    product = transform(signal, dim, False, 1.0) * transform(ring, 0, False, 1.0)
    return transform(product, dim, True, scale / length).narrow(dim, 0, n) * factors
