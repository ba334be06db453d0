"""How a reduction is split into dispatches: long axes in parts, several axes one run after the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod as product


@dataclass(frozen=True)
class Pass:
    """One dispatch of a reduction: (outer, reduced, inner) becomes (outer, parts, inner), each part being
    ``chunk`` long.
    """

    outer: int
    reduced: int
    inner: int
    parts: int

    @property
    def chunk(self) -> int:
        return max(-(-self.reduced // self.parts), 1)

    @property
    def outputs(self) -> int:
        return self.outer * self.parts * self.inner

    @property
    def by_columns(self) -> bool:
        """One lane per output instead of one workgroup: where neighbours lie in ``inner``, or where there
        is little to combine.
        """
        return self.inner >= 32 or self.chunk <= 32

    @property
    def grid(self) -> int:
        return -(-self.outputs // 64) if self.by_columns else self.outputs

    @property
    def params(self) -> dict[str, int | float]:
        return {
            "outputs": self.outputs,
            "reduced": self.reduced,
            "inner": self.inner,
            "parts": self.parts,
            "chunk": self.chunk,
        }


def passes(outer: int, reduced: int, inner: int) -> list[Pass]:
    """The dispatches that reduce the middle of (outer, reduced, inner): long axes in parts first, for
    speed and for short sums.
    """
    found = []
    while True:
        if inner >= 32 or reduced <= 32:
            parts = -(-reduced // 256) if reduced > 512 else 1
        elif reduced > 4096 and outer * inner < 512:
            parts = -(-reduced // 4096)
        else:
            parts = -(-reduced // (1 << 18))
        # With equal chunks rounded up, fewer parts may already cover the axis.
        parts = -(-reduced // max(-(-reduced // max(parts, 1)), 1)) or 1
        found.append(Pass(outer, reduced, inner, parts))
        if parts == 1:
            return found
        reduced = parts


def stages(shape, dims: tuple[int, ...]) -> list[Pass]:
    """The dispatches that reduce several axes: each run of neighbouring axes in turn, the last run first."""
    lengths = list(shape)
    runs: list[list[int]] = []
    for d in dims:
        if lengths[d] == 1:
            continue
        if runs and product(lengths[runs[-1][-1] + 1 : d]) == 1:
            runs[-1].append(d)
        else:
            runs.append([d])
    found: list[Pass] = []
    for run in reversed(runs):
        found += passes(
            product(lengths[: run[0]]),
            product(lengths[run[0] : run[-1] + 1]),
            product(lengths[run[-1] + 1 :]),
        )
        for d in run:
            lengths[d] = 1
    return found or passes(product(lengths), 1, 1)
