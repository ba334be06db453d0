"""Rotary position embedding as configurations describe it: base, scaling, tables that grow as needed."""

from __future__ import annotations

from math import ceil, floor, log, pi, sqrt
from typing import Any, TypeGuard

import numpy as np

from ..device.stream import stream
from ..errors import DimensionError, FormatError
from ..nn.modules.module import Module
from ..ops.attention.cache import rotary_embedding, rotary_tables
from ..weights.fields import FLAG, listed, number, record, shown, text
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
    "mscale": number(0, 1e3),
    "mscale_all_dim": number(0, 1e3),
    "short_factor": listed(number(1e-3, 1e6), 4096),
    "long_factor": listed(number(1e-3, 1e6), 4096),
    "truncate": FLAG,
    "partial_rotary_factor": number(0, 1, above=True),
}
SCALING = record(_KEYS)
_KINDS = ("default", "dynamic", "linear", "llama3", "longrope", "proportional", "yarn")


def kind_of(scaling: dict[str, Any] | None) -> str:
    """The type of a scaling.

    Args:
        scaling: ``rope_scaling`` or ``rope_parameters`` of the configuration.
    """
    kind = (scaling or {}).get("rope_type") or (scaling or {}).get("type") or "default"
    return "longrope" if kind == "su" else kind  # as the first files of Phi-3 have it


def completed(scaling: dict[str, Any] | None, positions: int, original: int | None) -> dict[str, Any]:
    """A scaling with what follows from the configuration around it.

    Args:
        scaling: as in `kind_of`.
        positions: ``max_position_embeddings``.
        original: ``original_max_position_embeddings`` beside the scaling, which counts before the one in it.
    """
    known = {key: value for key, value in (scaling or {}).items() if value is not None}
    if kind_of(known) not in ("llama3", "yarn", "longrope"):
        return known
    length = original or known.setdefault("original_max_position_embeddings", positions)
    known["original_max_position_embeddings"] = length
    if kind_of(known) != "llama3" and _positive(length):
        known.setdefault("factor", positions / length)
    return known


def inverse_frequencies(
    head_dim: int, base: float, scaling: dict[str, Any] | None, *, is_long: bool = False
) -> np.ndarray:
    """Angles in radians per position: ``base ** (-2 k / head_dim)``, changed as the scaling says.

    Args:
        head_dim: columns of a head.
        base: ``rope_theta``.
        scaling: ``rope_scaling`` of the configuration; types default, dynamic, linear, llama3, longrope,
            proportional and yarn. A dynamic one changes nothing up to the positions of the model.
        is_long: those of texts longer than the original ones, where longrope has others for them.

    Raises:
        FormatError: another type of scaling, or a key of it is missing or unknown.

    Source: Su et al. 2021, "RoFormer"; the llama3 rule is that of Meta's reference implementation;
        Peng et al. 2023, "YaRN"; Ding et al. 2024, "LongRoPE".
    """
    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    kind, scaling = kind_of(scaling), scaling or {}
    if kind not in _KINDS:
        raise FormatError(
            f"config.json: rope_scaling of type {shown(kind)} is not known. There are {', '.join(_KINDS)}."
        )
    given = {k: v for k, v in scaling.items() if kind != "proportional" or k != "partial_rotary_factor"}
    unknown = {
        k: v
        for k, v in given.items()
        if (k not in _KEYS or k in NEUTRAL) and v not in UNSET and v != NEUTRAL.get(k)
    }
    if unknown:
        raise FormatError(
            f"config.json: rope_scaling does not know {shown(unknown)}. Positions are turned differently "
            "there; load a model without these keys."
        )
    if kind in ("default", "dynamic"):
        return frequencies
    if kind == "proportional":
        turned = int(scaling.get("partial_rotary_factor", 1.0) * head_dim // 2)
        return np.where(np.arange(head_dim // 2) < turned, frequencies / scaling.get("factor", 1.0), 0.0)
    if kind == "linear":
        return frequencies / _number(scaling, "factor")
    if kind == "longrope":
        return frequencies / _factors(scaling, "long_factor" if is_long else "short_factor", head_dim // 2)
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
    """Factor of turned queries and keys, which YaRN and LongRoPE have; 1 for other scalings.

    YaRN's is ``0.1 log(factor) + 1``, or the ratio of two such numbers, with the factors ``mscale`` and
    ``mscale_all_dim`` of the logarithm; LongRoPE's is ``sqrt(1 + log(factor) / log(original))``.

    Args:
        scaling: as `completed` gives it.
    """
    kind = kind_of(scaling)
    if scaling is None or kind not in ("yarn", "longrope"):
        return 1.0
    if given := scaling.get("attention_factor"):
        return given
    if kind == "longrope":
        factor = _number(scaling, "factor")
        original = _number(scaling, "original_max_position_embeddings")
        return sqrt(1 + log(factor) / log(original)) if factor > 1 else 1.0
    most, least = scaling.get("mscale"), scaling.get("mscale_all_dim")
    return yarn_scale(scaling, most) / yarn_scale(scaling, least) if most and least else yarn_scale(scaling)


def yarn_scale(scaling: dict[str, Any], share: float = 1.0) -> float:
    """YaRN's ``0.1 share log(factor) + 1``; 1 where the factor slows nothing down.

    Args:
        scaling: as `completed` gives it.
        share: of the logarithm.
    """
    return 0.1 * share * log(max(_number(scaling, "factor"), 1)) + 1


def _factors(scaling: dict[str, Any], key: str, count: int) -> np.ndarray:
    factors = scaling.get(key)
    if not isinstance(factors, list | tuple) or len(factors) != count:
        raise FormatError(
            f"config.json: {key} of rope_scaling is {shown(factors)}; it must be a list of {count} numbers, "
            "one for each pair of columns that are turned."
        )
    return np.asarray(factors, np.float64)


def _positive(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _number(scaling: dict[str, Any], key: str) -> float:
    value = scaling.get(key)
    if not _positive(value):
        raise FormatError(
            f"config.json: {key} of rope_scaling is {shown(value)}; it must be a number above 0."
        )
    return float(value)


class RotaryEmbedding(Module):
    """Turns queries and keys by their positions.

    LongRoPE turns all positions of a text otherwise once it is longer than the original ones.

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
        self._long = self._frequencies
        self.original: int | None = None  # positions past which LongRoPE turns otherwise
        if kind_of(scaling) == "longrope":
            self._long = inverse_frequencies(head_dim, base, scaling, is_long=True)
            self.original = int(_number(self.scaling, "original_max_position_embeddings"))
        self._factor = attention_factor(scaling)
        self._max_positions = max_positions
        self._interleaved = interleaved
        self._tables: dict = {}
        self._opened = stream().opened

    def to_gguf(self) -> dict[str, Any]:
        """The keys of a GGUF that say how it turns, without the architecture's name."""
        keys, kind = {"rope.freq_base": self.base}, kind_of(self.scaling)
        if kind in ("linear", "yarn"):
            keys |= {"rope.scaling.type": kind, "rope.scaling.factor": self.scaling["factor"]}
        if self.by_length:
            keys["rope.scaling.attn_factor"] = self._factor
        if kind == "yarn" or self.by_length:
            length = self.scaling["original_max_position_embeddings"]
            keys["rope.scaling.original_context_length"] = int(length)
            share = self.scaling.get("mscale_all_dim")
            if kind == "yarn" and share:
                keys["rope.scaling.yarn_log_multiplier"] = 0.1 * share
        return keys

    @property
    def by_length(self) -> bool:
        """Whether texts are turned otherwise once they are longer than the original positions."""
        is_longrope = kind_of(self.scaling) == "longrope"
        return is_longrope and not (np.array_equal(self._frequencies, self._long) and self._factor == 1)

    def slowed(self) -> np.ndarray:
        """By how much each pair of columns is slower than its base alone says."""
        return inverse_frequencies(2 * len(self._frequencies), self.base, None) / self._frequencies

    def turns_as(self, other: RotaryEmbedding) -> bool:
        """Whether the other one turns by the same angles and factor."""
        mine, theirs = (np.append(r._frequencies, [*r._long, r._factor]) for r in (self, other))
        if self.by_length and self.original != other.original:
            return False
        return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-6, atol=0)

    def lengthen(self, short: np.ndarray, long: np.ndarray, original: int, factor: float) -> None:
        """Have the factors of LongRoPE, which a GGUF has as tensors.

        Args:
            short, long: factors of texts up to the original positions, and of longer ones.
            original: these positions.
            factor: of turned queries and keys.
        """
        self.scaling = {
            "rope_type": "longrope", "short_factor": short.tolist(), "long_factor": long.tolist(),
            "attention_factor": factor, "original_max_position_embeddings": original,
        }  # fmt: skip
        self._frequencies, self._long = self._frequencies / short, self._frequencies / long
        self.original, self._factor = original, factor

    def divide_frequencies(self, factors: np.ndarray) -> None:
        """Slow each pair of columns down by a factor of its own, as a GGUF's ``rope_freqs`` does."""
        self._frequencies, self._long = self._frequencies / factors, self._long / factors

    def tables(self, end: int, device, is_long: bool = False):
        """Cosines and sines for at least ``end`` positions; made once, doubled when they no longer suffice.

        Args:
            end: how many.
            device: where.
            is_long: all as of a text longer than the original ones; else those past them alone.

        Raises:
            DimensionError: ``end`` is past what the model was made for.
        """
        if self._opened != stream().opened:  # the tables of a device that was closed since are gone
            self._opened = stream().opened
            self._tables = {}
        cos, sin, rows = self._tables.get((device, is_long), (None, None, 0))
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
            frequencies = self._long if is_long else self._frequencies
            if self.original is not None and rows > self.original and not is_long:
                is_past = np.arange(rows).reshape(-1, 1) >= self.original
                frequencies = np.where(is_past, self._long, frequencies)
            cos, sin = rotary_tables(frequencies, rows, factor=self._factor, device=device)
            self._tables[device, is_long] = cos, sin, rows
        return cos, sin

    def check_growth(self, begun: int, end: int) -> None:
        """Refuse a text that grows past the original positions, since those that are there turn otherwise.

        Args:
            begun: positions that are there.
            end: how many there will be.

        Raises:
            DimensionError: it does.
        """
        if self.original is not None and 0 < begun <= self.original < end:
            raise DimensionError(
                f"positions {begun} to {end - 1}: past {self.original} this model turns all positions by "
                "other factors, and a cache holds keys turned by the first ones. Generate up to there, then "
                "give the whole text to a new cache."
            )

    def forward(self, x, position: int):
        """Queries or keys (batch, heads, time, head_dim), the first of them at ``position``."""
        _, _, time, _ = x.shape
        end, is_long = position + time, False
        if self.original is not None:
            self.check_growth(position, end)
            is_long = position == 0 and end > self.original
        cos, sin = self.tables(end, x.device, is_long)
        return rotary_embedding(x, cos, sin, position, interleaved=self._interleaved)

    def extra_repr(self) -> str:
        return f"{2 * len(self._frequencies)}, max_positions={self._max_positions}"
