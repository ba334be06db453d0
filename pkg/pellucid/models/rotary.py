"""Rotary position embedding as configurations describe it: base, scaling, tables that grow as needed."""

from __future__ import annotations

from math import ceil, floor, log, pi
from typing import Any

import numpy as np

from ..device.stream import stream
from ..errors import DimensionError, FormatError
from ..nn.modules.module import Module
from ..ops.attention.cache import rotary_embedding, rotary_tables
from ..weights.fields import FLAG, number, record, shown, text
from .config import NEUTRAL, UNSET

# The keys of rope_scaling and rope_parameters that are read.
_KEYS = {
    "rope_type": text(100),
    "type": text(100),
    "rope_theta": number(1, 1e15),
    "factor": number(1e-3, 1e6),
    "low_freq_factor": number(1e-3, 1e6),
    "high_freq_factor": number(1e-3, 1e6),
    "original_max_position_embeddings": number(1, 1e9),
    "beta_fast": number(1e-3, 1e6),
    "beta_slow": number(1e-3, 1e6),
    "attention_factor": number(1e-3, 1e6),
    "truncate": FLAG,
    "partial_rotary_factor": number(0, 1, above=True),
}
SCALING = record(_KEYS)


def inverse_frequencies(head_dim: int, base: float, scaling: dict[str, Any] | None) -> np.ndarray:
    """Angles in radians per position: ``base ** (-2 k / head_dim)``, changed as the scaling says.

    Args:
        head_dim: columns of a head.
        base: ``rope_theta``.
        scaling: ``rope_scaling`` of the configuration; types default, linear, llama3 and yarn.

    Raises:
        FormatError: another type of scaling, or a key of it is missing or unknown.

    Source: Su et al. 2021, "RoFormer"; the llama3 rule is that of Meta's reference implementation;
        Peng et al. 2023, "YaRN".
    """
    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    kind = (scaling or {}).get("rope_type") or (scaling or {}).get("type") or "default"
    if kind not in ("default", "linear", "llama3", "yarn"):
        raise FormatError(
            f"config.json: rope_scaling of type {shown(kind)} is not known. There are default, linear, "
            "llama3 and yarn."
        )
    scaling = scaling or {}
    unknown = {
        k: v
        for k, v in scaling.items()
        if (k not in _KEYS or k in NEUTRAL) and v not in UNSET and v != NEUTRAL.get(k)
    }
    if unknown:
        raise FormatError(
            f"config.json: rope_scaling does not know {shown(unknown)}. Positions are turned differently "
            "there; load a model without these keys."
        )
    if kind == "default":
        return frequencies
    if kind == "linear":
        return frequencies / _number(scaling, "factor")
    length = _number(scaling, "original_max_position_embeddings")
    if kind == "yarn":
        return _yarn(head_dim, base, length, scaling, frequencies)
    low, high = _number(scaling, "low_freq_factor"), _number(scaling, "high_freq_factor")
    if not low < high:
        raise FormatError(
            f"config.json: low_freq_factor of rope_scaling is {low} and high_freq_factor {high}; the second "
            "must be larger. The file is damaged."
        )
    factor = _number(scaling, "factor")
    wavelength = 2 * pi / frequencies
    smooth = (length / wavelength - low) / (high - low)
    blended = (1 - smooth) * frequencies / factor + smooth * frequencies
    slow = wavelength > length / low
    return np.where(slow, frequencies / factor, np.where(wavelength < length / high, frequencies, blended))


def _yarn(
    head_dim: int, base: float, length: float, scaling: dict[str, Any], frequencies: np.ndarray
) -> np.ndarray:
    """Frequencies that turn rarely in ``length`` positions divided by the factor, others kept."""

    def column(turns: float) -> float:
        return head_dim * log(length / (turns * 2 * pi)) / (2 * log(base))

    low, high = column(scaling.get("beta_fast") or 32), column(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True) is not False:
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    ramp = (np.arange(head_dim // 2) - low) / (high - low if high != low else 0.001)
    slowed = np.clip(ramp, 0, 1)
    return frequencies * (1 - slowed) + frequencies / _number(scaling, "factor") * slowed


def attention_factor(scaling: dict[str, Any] | None) -> float:
    """Factor of turned queries and keys: YaRN's ``0.1 log(factor) + 1``; 1 for other scalings.

    Args:
        scaling: as in `inverse_frequencies`.
    """
    if scaling is None or (scaling.get("rope_type") or scaling.get("type")) != "yarn":
        return 1.0
    return scaling.get("attention_factor") or 0.1 * log(max(_number(scaling, "factor"), 1)) + 1


def _number(scaling: dict[str, Any], key: str) -> float:
    value = scaling.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise FormatError(
            f"config.json: {key} of rope_scaling is {shown(value)}; it must be a number above 0."
        )
    return float(value)


class RotaryEmbedding(Module):
    """Turns queries and keys by their positions.

    Args:
        head_dim: columns of a head.
        max_positions: positions that the model was made for.
        base, scaling: as in `inverse_frequencies`.
        interleaved: pairs are neighbouring columns (GGUF's order of Llama) instead of halves.
    """

    _first_rows = 2048

    def __init__(
        self,
        head_dim: int,
        max_positions: int,
        base: float,
        scaling: dict[str, Any] | None = None,
        interleaved: bool = False,
    ):
        super().__init__()
        self.base, self.scaling = base, scaling or {}
        self._frequencies = inverse_frequencies(head_dim, base, scaling)
        self._factor = attention_factor(scaling)
        self._max_positions = max_positions
        self._interleaved = interleaved
        self._tables: dict = {}
        self._opened = stream().opened

    def to_gguf(self) -> dict[str, Any]:
        """The keys of a GGUF that say how it turns, without the architecture's name."""
        keys, kind = {"rope.freq_base": self.base}, self.scaling.get("rope_type") or self.scaling.get("type")
        if kind in ("linear", "yarn"):
            keys |= {"rope.scaling.type": kind, "rope.scaling.factor": self.scaling["factor"]}
        if kind == "yarn":
            length = self.scaling["original_max_position_embeddings"]
            keys["rope.scaling.original_context_length"] = int(length)
        return keys

    def slowed(self) -> np.ndarray:
        """By how much each pair of columns is slower than its base alone says."""
        return inverse_frequencies(2 * len(self._frequencies), self.base, None) / self._frequencies

    def turns_as(self, other: RotaryEmbedding) -> bool:
        """Whether the other one turns by the same angles and factor."""
        mine, theirs = (np.append(r._frequencies, r._factor) for r in (self, other))
        return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-6, atol=0)

    def divide_frequencies(self, factors: np.ndarray) -> None:
        """Slow each pair of columns down by a factor of its own, as a GGUF's ``rope_freqs`` does."""
        self._frequencies = self._frequencies / factors

    def tables(self, end: int, device):
        """Cosines and sines for at least ``end`` positions; made once, doubled when they no longer suffice.

        Raises:
            DimensionError: ``end`` is past what the model was made for.
        """
        if self._opened != stream().opened:  # the tables of a device that was closed since are gone
            self._opened = stream().opened
            self._tables = {}
        cos, sin, rows = self._tables.get(device, (None, None, 0))
        if rows < end:
            if end > self._max_positions:
                raise DimensionError(
                    f"position {end - 1}: the model has {self._max_positions} positions. Shorten the prompt "
                    "or what is generated."
                )
            rows = self._first_rows
            while rows < end:
                rows *= 2
            rows = min(rows, self._max_positions)
            cos, sin = rotary_tables(self._frequencies, rows, factor=self._factor, device=device)
            self._tables[device] = cos, sin, rows
        return cos, sin

    def forward(self, x, position: int):
        """Queries or keys (batch, heads, time, head_dim), the first of them at ``position``."""
        *_, time, _ = x.shape
        cos, sin = self.tables(position + time, x.device)
        return rotary_embedding(x, cos, sin, position, interleaved=self._interleaved)

    def extra_repr(self) -> str:
        return f"{2 * len(self._frequencies)}, max_positions={self._max_positions}"
