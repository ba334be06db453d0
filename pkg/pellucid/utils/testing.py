"""Tensors in tests: `assert_close` compares them, `make_tensor` makes some. PyTorch's ``torch.testing``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import RangeError
from ..ops.random.distributions import rand, randint
from ..ops.shape.creation import empty
from ..tensors import dtypes as dt
from ..tensors.absent import refuse_others
from ..tensors.construct import tensor
from ..tensors.dtypes import DType
from ..tensors.shape import sizes
from ..tensors.tensor import Tensor

# Relative and absolute tolerances; other dtypes must be equal.
_TOLERANCES = {
    dt.float16: (1e-3, 1e-5),
    dt.bfloat16: (1.6e-2, 1e-5),
    dt.float32: (1.3e-6, 1e-5),
    dt.float64: (1e-7, 1e-7),
    dt.complex64: (1.3e-6, 1e-5),
    dt.complex128: (1e-7, 1e-7),
}


class _Comparison:
    """What `assert_close` was asked for.

    Args:
        rtol, atol: tolerances; those of the dtypes if None.
        equal_nan: whether NaN is NaN.
        checked: attributes that must be equal, by their names in messages.
        msg: the message, or what makes it of the one that would be raised.
    """

    def __init__(self, rtol, atol, equal_nan: bool, checked: dict[str, Callable], msg: Any):
        self.rtol, self.atol, self.equal_nan, self.checked, self.msg = rtol, atol, equal_nan, checked, msg

    def fail(self, text: str, place: str) -> None:
        """Raise the error of a pair.

        Raises:
            AssertionError: always.
        """
        text += f"\n\nThe failure occurred for item {place}" if place else ""
        raise AssertionError(self.msg(text) if callable(self.msg) else self.msg or text)

    def pair(self, actual: Any, expected: Any, place: str = "") -> None:
        """Compare two values: tensors, numbers, or sequences and mappings of them."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            if actual.keys() != expected.keys():
                missing = sorted(map(str, expected.keys() - actual.keys()))
                more = sorted(map(str, actual.keys() - expected.keys()))
                self.fail(
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {missing}\n"
                    f"Additional keys in the actual mapping: {more}",
                    place,
                )
            for key in expected:
                self.pair(actual[key], expected[key], f"{place}[{key!r}]")
            return
        if _is_list(actual) and _is_list(expected):
            if len(actual) != len(expected):
                self.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place)
            for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
                self.pair(a, b, f"{place}[{k}]")
            return
        if isinstance(actual, Tensor) != isinstance(expected, Tensor) and not (
            isinstance(actual, np.ndarray) or isinstance(expected, np.ndarray)
        ):
            raise TypeError(
                f"assert_close: No comparison pair was able to handle inputs of type {type(actual)} and "
                f"{type(expected)}."
            )
        if actual is None and expected is None:
            return
        a, b = (v if isinstance(v, Tensor) else tensor(v, device="cpu") for v in (actual, expected))
        if isinstance(actual, Tensor):
            self.attributes(a, b, place)
        self.values(a, b, place, isinstance(actual, (bool, int, float, complex)))

    def attributes(self, a: Tensor, b: Tensor, place: str) -> None:
        """Compare shapes and what else was asked for."""
        for name, look in {"shape": lambda t: t.shape, **self.checked}.items():
            if look(a) != look(b):
                self.fail(f"The values for attribute '{name}' do not match: {look(a)} != {look(b)}.", place)

    def values(self, a: Tensor, b: Tensor, place: str, is_number: bool) -> None:
        """Compare elements."""
        known = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, b)]
        rtol = max(r for r, _ in known) if self.rtol is None else self.rtol
        atol = max(r for _, r in known) if self.atol is None else self.atol
        x, y = (_widened(t) for t in (a, b))
        with np.errstate(all="ignore"):
            far = np.abs(x - y) if x.dtype.kind != "O" else np.array(abs(x - y))
            close = (x == y) | (np.isfinite(far) & (far <= atol + rtol * np.abs(y)))
            if self.equal_nan:
                close |= np.isnan(x) & np.isnan(y)
            wrong = ~close
            if not wrong.any():
                return
            share = np.where(close, 0, far / np.abs(y))
        far = np.where(close, 0, far)
        what = "equal" if rtol == atol == 0 else "close"
        allowed = "" if what == "equal" else " (up to {} allowed)"
        if is_number:
            lines = [
                f"Scalars are not {what}!\n",
                f"Expected {b.item()} but got {a.item()}.",
                f"Absolute difference: {far.item()}{allowed.format(atol)}",
                f"Relative difference: {share.item()}{allowed.format(rtol)}",
            ]
        else:
            count = int(wrong.sum())
            lines = [
                f"Tensor-likes are not {what}!\n",
                f"Mismatched elements: {count} / {wrong.size} ({count / wrong.size:.1%})",
                f"Greatest absolute difference: {far.max()} at index {_place(far)}{allowed.format(atol)}",
                f"Greatest relative difference: {share.max()} at index {_place(share)}{allowed.format(rtol)}",
            ]
        self.fail("\n".join(lines), place)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _place(values: np.ndarray) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(np.argmax(values), values.shape)))


def _widened(t: Tensor) -> np.ndarray:
    """The elements, so that no difference leaves their range."""
    values = t.detach().cpu().numpy()
    return values.astype({"c": np.complex128, "f": np.float64}.get(values.dtype.kind, np.longdouble))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that tensors, or sequences and mappings of tensors and numbers, are close: that
    ``|actual - expected| <= atol + rtol * |expected|``. Waits for the device.

    Args:
        actual, expected: what is compared; shapes must be equal.
        allow_subclasses: whether values of different classes are compared.
        rtol, atol: tolerances, both or none; by dtype if not given, such as 1.3e-6 and 1e-5 for float32.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_stride: what else must be equal.
        check_layout: without effect: all tensors are strided.
        msg: the message, or what makes one of the message that would be raised.

    Raises:
        AssertionError: they are not; it tells how many elements, and which differ most.
        RangeError: one tolerance is given without the other.

    Source: https://pytorch.org/docs/stable/testing.html#torch.testing.assert_close

    Example:
        >>> import pellucid as torch
        >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
    """
    if (rtol is None) != (atol is None):
        raise RangeError("assert_close: rtol and atol must both be specified or both be unspecified.")
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(
            f"assert_close: {type(actual)} and {type(expected)} are different classes. Allow subclasses."
        )
    checked: dict[str, tuple[bool, Callable]] = {
        "device": (check_device, lambda t: t.device),
        "dtype": (check_dtype, lambda t: t.dtype),
        "stride()": (check_stride, lambda t: t.stride()),
    }
    looks = {name: look for name, (wanted, look) in checked.items() if wanted}
    _Comparison(rtol, atol, equal_nan, looks, msg).pair(actual, expected)


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers between two bounds.

    Args:
        shape: lengths.
        dtype: of the result.
        device: of the result; the default device if not given.
        low, high: bounds; from -9 on and below 10 (9 of floats) if not given, of uint8 from 0 on.
        requires_grad: whether to record what is computed from it.
        noncontiguous: whether the elements lie with gaps.
        exclude_zero: 1 (of floats the least normal number) in the place of 0.
        memory_format: the order of axes in memory.

    Raises:
        RangeError: the bounds are in the wrong order.

    Source: https://pytorch.org/docs/stable/testing.html#torch.testing.make_tensor
    """
    size = sizes(shape)
    is_real = dtype.is_floating_point or dtype.is_complex
    least, most = (0, 2) if dtype.kind == "b" else (0 if dtype is dt.uint8 else -9, 9 if is_real else 10)
    low, high = least if low is None else low, most if high is None else high
    if not low <= high or (low == high and not is_real):
        raise RangeError(f"make_tensor: low {low} must be less than high {high}.")
    held = (*size[:-1], 2 * size[-1]) if noncontiguous and size else size
    if 0 in held:
        out = empty(*held, dtype=dtype, device=device)
    elif is_real:
        parts = rand(*held, *((2,) if dtype.is_complex else ()), device=device) * (high - low) + low
        parts = parts.to(dt.float64) if dtype in (dt.float64, dt.complex128) else parts
        out = parts.view(dtype).squeeze(-1) if dtype.is_complex else parts.to(dtype)
    else:
        out = randint(int(low), int(high), held, device=device).to(dtype)
    if noncontiguous and size:
        out = out[..., ::2]
    if exclude_zero:
        out = out.masked_fill(out == 0, float(np.finfo(np.float32).tiny) if is_real else 1)
    if memory_format is not None:
        out = out.contiguous(memory_format=memory_format)
    return out.detach().requires_grad_(requires_grad)


__all__ = ["assert_close", "make_tensor"]

refuse_others("torch.testing", globals())
