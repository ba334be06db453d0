"""Fourier transforms of short pieces of a signal: `stft`, and the signal back: `istft`."""

from __future__ import annotations

from ...errors import ArgumentError, DTypeError, RangeError, ShapeError, warn
from ...op.public import function
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.complex import view_as_real
from ..shape.padding import pad
from ..shape.slicing import overlap_add
from .transform import resized
from .transforms import transformed


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, ...]:
    n = index(n_fft, f"{name}: n_fft")
    hop = n // 4 if hop_length is None else index(hop_length, f"{name}: hop_length")
    width = n if win_length is None else index(win_length, f"{name}: win_length")
    if not (n > 0 and hop > 0 and 0 < width <= n):
        raise RangeError(
            f"{name}: n_fft {n}, hop_length {hop}, win_length {width}: all must be positive, and the window "
            "no longer than n_fft."
        )
    return n, hop, width


def _window_of(name: str, window: Tensor | None, like: Tensor, n: int, width: int) -> Tensor:
    """The window with zeros at both ends, as long as a piece."""
    if window is None:
        window = like.real.new_ones(width)
    if window._meta.shape != (width,):
        raise ShapeError(f"{name}: window has shape {tuple(window._meta.shape)} for a win_length of {width}.")
    before = (n - width) // 2
    return resized(resized(window.flip(0), 0, width + before).flip(0) if before else window, 0, n)


def _padded(input: Tensor, count: int, mode: str) -> Tensor:
    shape = input._meta.shape
    wide = pad(input.reshape(*(1,) * (3 - len(shape)), *shape), (count, count), mode)
    return wide.reshape(*shape[:-1], wide._meta.shape[-1])


@function(method=True, aten="stft.center")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Short-time Fourier transform: ``out[..., m] = fft(window * input[m hop_length :][: n_fft])``.

    Args:
        input: (length,) or (batch, length), real or complex.
        n_fft: length of a piece.
        hop_length: elements from one piece to the next; n_fft // 4 if None.
        win_length: length of the window, which has zeros on both sides up to n_fft; n_fft if None.
        window: (win_length,); ones if None.
        center: whether piece m has its middle at m * hop_length; the signal is padded for it.
        pad_mode: of that padding.
        normalized: with a factor 1 / sqrt(n_fft).
        onesided: only the half that says all; None says so of real signals.
        return_complex: complex results; else, of real signals only, their parts along a last axis.
        align_to_window: without ``center``, whether the window of the first piece begins with the signal.

    Returns:
        (batch, frequencies, pieces), without batch where the input has none.

    Raises:
        ArgumentError: a real signal without ``return_complex``.
        RangeError, ShapeError: lengths do not fit.
    """
    n, hop, width = _lengths("stft", n_fft, hop_length, win_length)
    is_complex = input._meta.dtype.is_complex or (window is not None and window._meta.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise ArgumentError("stft: return_complex must be given for real signals. Use return_complex=True.")
    if is_complex and onesided:
        raise ArgumentError("stft: of complex signals or windows there is no one-sided result.")
    if center and align_to_window is not None:
        raise ArgumentError("stft: align_to_window is for center=False.")
    if input._meta.rank not in (1, 2):
        raise ShapeError(f"stft: takes (length,) or (batch, length), not {tuple(input._meta.shape)}.")
    if center:
        input = _padded(input, n // 2, pad_mode)
    elif align_to_window:
        input = _padded(input, (n - width) // 2, "constant")
    if n > input._meta.shape[-1]:
        raise RangeError(f"stft: n_fft is {n}, and the signal has {input._meta.shape[-1]} elements.")
    pieces = input.unfold(-1, n, hop) * _window_of("stft", window, input, n, width)
    kind = "fft" if is_complex or onesided is False else "rfft"
    out = transformed("stft", pieces, None, -1, "ortho" if normalized else None, kind).transpose(-1, -2)
    return view_as_real(out.contiguous()) if return_complex is False else out


@function(method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` made ``input``: pieces are added where they overlap, and divided by what
    squared windows add up to. It reads whether that is 0 anywhere, and so waits.

    Args:
        input: (frequencies, pieces) or (batch, frequencies, pieces), complex.
        n_fft, hop_length, win_length, window, center, normalized: as of `stft`.
        onesided: as of `stft`; seen from the frequencies if None.
        length: of the signal; what the pieces give if None.
        return_complex: whether the signal is complex.

    Raises:
        RangeError: windows add up to 0 somewhere, or lengths do not fit.
        DTypeError: the input is not complex.
    """
    n, hop, width = _lengths("istft", n_fft, hop_length, win_length)
    shape = input._meta.shape
    if not input._meta.dtype.is_complex:
        raise DTypeError(f"istft: takes complex tensors as stft returns, not {input._meta.dtype}.")
    if len(shape) not in (2, 3) or not input.numel():
        raise ShapeError(f"istft: takes (batch, frequencies, pieces) or without batch, not {tuple(shape)}.")
    onesided = shape[-2] != n if onesided is None else onesided
    if shape[-2] != (n // 2 + 1 if onesided else n):
        raise ShapeError(f"istft: {shape[-2]} frequencies are not those of n_fft {n}, onesided {onesided}.")
    if hop > width:
        raise RangeError(f"istft: hop_length {hop} leaves gaps between windows of {width}.")
    if onesided and return_complex:
        raise ArgumentError("istft: a one-sided spectrum gives a real signal.")
    if window is not None and window._meta.dtype.is_complex and not return_complex:
        raise ArgumentError("istft: a complex window needs return_complex=True.")
    spectra = input.transpose(-1, -2)
    norm = "ortho" if normalized else None
    if return_complex:
        pieces = transformed("istft", spectra, None, -1, norm, "ifft")
    else:
        pieces = transformed("istft", resized(spectra, len(shape) - 1, n // 2 + 1), n, -1, norm, "irfft")
    factors = _window_of("istft", window, pieces, n, width)
    whole = n + hop * (shape[-1] - 1)
    total = (*shape[:-2], whole)
    added = overlap_add(pieces * factors, total, -1, hop)
    weights = overlap_add(factors.square().expand(shape[-1], n), (whole,), 0, hop)
    begin = n // 2 if center else 0
    end = whole - begin if length is None else begin + index(length, "istft: length")
    stop = min(end, whole)
    added, weights = added[..., begin:stop], weights[begin:stop]
    if not weights.abs().min().item() > 1e-11:
        raise RangeError("istft: windows add up to 0 somewhere. Use a smaller hop_length, or another window.")
    if end > whole:
        warn("istft: the signal is shorter than length; zeros follow.")
    return resized(added / weights, len(total) - 1, end - begin)
