"""Notebook display of tensors: shape, dtype and device, a small heat map, a histogram, how many NaN. HTML."""

from __future__ import annotations

import base64
import html
import struct
import zlib

import numpy as np

from .tensor import Tensor

_TEXT_IS_ENOUGH = 8  # elements
_ROWS, _COLUMNS = 24, 64  # of a heat map
_SAMPLE = 1 << 16  # elements that are read for the histogram
_BARS = 32
_LOW, _MIDDLE, _HIGH = (np.array(c, float) for c in ((33, 102, 172), (247, 247, 247), (178, 24, 43)))
_NAN = (255, 0, 255)
_STYLE = "font:13px/1.5 system-ui,sans-serif"


def picture(x: Tensor) -> str | None:
    """What a notebook shows of a tensor; None where its text says as much. Waits for the values.

    Large tensors are looked at through evenly spaced elements; NaN are counted in all.
    """
    facts = describe(x)
    if facts is None:
        return None
    return f'<div style="{_STYLE}">{facts}<pre class="pellucid-values">{html.escape(repr(x))}</pre></div>'


def describe(x: Tensor, height: int = 96) -> str | None:
    """The facts and pictures alone, of so many pixels; None where there is nothing to draw."""
    m = x._meta
    if m.numel <= _TEXT_IS_ENOUGH or m.dtype.is_quantized or m.dtype.is_complex or m.device.type == "meta":
        return None
    x = x.detach()
    flat = x.reshape(-1)
    step = -(-m.numel // _SAMPLE)
    sample = flat[::step].cpu().numpy().astype(float)
    missing = int(x.isnan().sum().item()) if m.dtype.is_floating_point else 0
    matrix = x.reshape(-1, m.shape[-1])
    steps = [-(-size // most) for size, most in zip(matrix.shape, (_ROWS, _COLUMNS), strict=True)]
    cells = matrix[:: steps[0], :: steps[1]].cpu().numpy().astype(float)
    finite = sample[np.isfinite(sample)]
    told = [f"<b>{list(m.shape)}</b>", str(m.dtype), str(m.device)]
    if finite.size:
        told += [
            f"{finite.min():.4g} to {finite.max():.4g}",
            f"mean {finite.mean():.4g}",
            f"std {finite.std():.4g}",
        ]
    told.append(f"<b>{missing} NaN</b>" if missing else "no NaN")
    if step > 1:
        told.append(f"drawn from {sample.size:,} of {m.numel:,}")
    images = f"{_heat(cells, finite, height)}{_histogram(finite, height)}"
    return f'<div>{" · ".join(told)}</div><div style="display:flex;gap:12px;flex-wrap:wrap">{images}</div>'


def _heat(cells: np.ndarray, finite: np.ndarray, height: int) -> str:
    """Blue below zero, red above; a tensor of one sign goes from white to its colour."""
    most = float(np.abs(finite).max()) if finite.size else 0.0
    share = np.clip(np.nan_to_num(cells / (most or 1.0)), -1, 1)[..., None]
    colours = _MIDDLE + np.abs(share) * (np.where(share < 0, _LOW, _HIGH) - _MIDDLE)
    colours[np.isnan(cells)] = _NAN
    image = base64.b64encode(_png(colours.astype(np.uint8))).decode()
    rows, columns = cells.shape
    size = max(2, min(12, height // rows))
    look = f"width:{columns * size}px;height:{rows * size}px;max-width:100%;image-rendering:pixelated"
    return f'<img alt="heat map of {rows} by {columns}" style="{look}" src="data:image/png;base64,{image}">'


def _histogram(finite: np.ndarray, height: int) -> str:
    if not finite.size:
        return ""
    counts, _ = np.histogram(finite, _BARS)
    bars = "".join(
        f'<rect x="{6 * i}" y="{height - tall:.1f}" width="5" height="{tall:.1f}"/>'
        for i, tall in enumerate(counts / counts.max() * height)
    )
    label = f"histogram from {finite.min():.4g} to {finite.max():.4g}"
    box = f'width="{6 * _BARS}" height="{height}" viewBox="0 0 {6 * _BARS} {height}"'
    return f'<svg role="img" aria-label="{label}" {box} fill="currentColor" opacity="0.6">{bars}</svg>'


def _png(pixels: np.ndarray) -> bytes:
    """Pixels [rows, columns, 3] of uint8 as a file."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
