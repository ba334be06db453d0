"""How a reduction is split into parts and dispatches: long axes in parts, several axes one run after the
other."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod as product

from ...op.kernel.variants import is_direct

# Workgroups that fill a large GPU, and parts of rows, which are counted one after the other; lanes where each
# makes an output of its own, and lanes where each walks along an axis whose neighbours lie apart.
_GROUPS, _PARTS, _OUTPUTS, _LANES = 1024, 528, 1 << 16, 1 << 17
# What the lanes of a workgroup load at once: long parts are whole ones, for a rest is loaded one by one.
_EIGHTS = 8 * 256
# Parts of which a lane adds up all before its own.
_SCANNED = 64
# Outputs that neighbouring lanes of a strip make.
_WIDTH = 32
# Parts of a strip that one workgroup folds in less time than another dispatch takes, and elements of a part
# for which a dispatch is rather filled by more of them.
_FOLDED, _LONG = 128, 1024


@dataclass(frozen=True)
class Pass:
    """One dispatch of a reduction: (outer, reduced, inner) becomes (outer, parts, inner), each part being
    ``chunk`` long; in the split forms (outer, inner).

    Args:
        form: how lanes share the work. "rows": a group of lanes makes an output; "columns": each lane makes
            one, for outputs that are neighbours in ``inner`` or have little to combine; "strips": as columns,
            but several lanes of a workgroup share an output; "split_rows", "split_strips": the last
            workgroup of an output to finish folds its parts, so that there is no pass after it.
    """

    outer: int
    reduced: int
    inner: int
    parts: int
    form: str

    @property
    def chunk(self) -> int:
        return max(-(-self.reduced // self.parts), 1)

    @property
    def is_split(self) -> bool:
        return self.form.startswith("split")

    @property
    def pieces(self) -> int:
        """Values that workgroups or lanes make: the parts of all outputs."""
        return self.outer * self.parts * self.inner

    @property
    def outputs(self) -> int:
        return self.outer * self.inner if self.is_split else self.pieces

    @property
    def grid(self) -> int:
        """Workgroups; in the form "rows" where each makes one output."""
        if self.form.endswith("strips"):
            return self.outer * self.parts * -(-self.inner // _WIDTH)
        return -(-self.outputs // 64) if self.form == "columns" else self.pieces

    @property
    def params(self) -> dict[str, int | float]:
        names = ("outputs", "reduced", "inner", "parts", "chunk")
        return {name: getattr(self, name) for name in names}


def passes(outer: int, reduced: int, inner: int, strips: bool) -> list[Pass]:
    """The dispatches that reduce the middle of (outer, reduced, inner): long axes in parts first, for
    speed and for short sums; ``strips`` says whether the kernel has this form."""
    found = []
    while True:
        form, parts = (
            _direct(outer, reduced, inner) if is_direct() else _shared(outer, reduced, inner, strips)
        )
        # With equal chunks rounded up, fewer parts may already cover the axis.
        parts = -(-reduced // max(-(-reduced // max(parts, 1)), 1)) or 1
        found.append(Pass(outer, reduced, inner, parts, form))
        if parts == 1 or found[-1].is_split:
            return found
        reduced = parts


def _direct(outer: int, reduced: int, inner: int) -> tuple[str, int]:
    """Form and parts of a pass on a CPU: few lanes, long chunks."""
    if inner >= 32 or reduced <= 32:
        return "columns", -(-reduced // 256) if reduced > 512 else 1
    if reduced > 4096 and outer * inner < 512:
        return "rows", -(-reduced // 4096)
    return "rows", -(-reduced // (1 << 18))


def _shared(outer: int, reduced: int, inner: int, strips: bool) -> tuple[str, int]:
    """Form and parts of a pass on a GPU: enough workgroups to fill it, and no more than one workgroup can
    combine afterwards. Split forms stay within the room that the status buffer has for them: "split_rows" has
    less than 1024 outputs and 2048 parts, "split_strips" 1024 parts of 32 outputs each."""
    outputs = max(outer * inner, 1)
    if inner < 32 and reduced > (4 if strips and inner == 1 else 32):
        parts = min(-(-reduced // 1024), -(-_PARTS // outputs))
        if parts > 1 and reduced >= 8 * parts * _EIGHTS:
            parts = -(-reduced // (-(-reduced // (parts * _EIGHTS)) * _EIGHTS))
        return "split_rows" if parts > 1 else "rows", parts
    if inner < 32 or reduced <= (8 if strips else 64) or outputs >= 2 * _OUTPUTS:
        return "columns", 1
    if not strips:
        return "columns", min(-(-reduced // 16), -(-_LANES // outputs))
    parts = min(-(-reduced // 64), _GROUPS // (max(outer, 1) * -(-inner // _WIDTH)))
    if parts > 1 and (parts <= _FOLDED or reduced <= _FOLDED * _LONG):
        return "split_strips", min(parts, _FOLDED)
    return "strips", parts


def strip(outer: int, reduced: int, inner: int) -> Pass:
    """The one dispatch in which lanes of strips reduce the middle, whatever its length."""
    parts = min(-(-reduced // 64), _FOLDED, max(_GROUPS // (outer * -(-inner // _WIDTH)), 1))
    parts = -(-reduced // -(-reduced // parts))
    return Pass(outer, reduced, inner, parts, "split_strips")


def column_parts(shape, k: int) -> int:
    """Parts of an axis whose neighbours lie apart, of which a scan gives each a lane; 0 where they were too
    many for a lane to add up those before it, or where lanes would not read neighbouring words."""
    inner, lines = product(shape[k + 1 :]), product(shape) // max(shape[k], 1)
    if inner < _WIDTH or not shape[k]:
        return 0
    parts = min(-(-shape[k] // 64), -(-_LANES // lines))
    return -(-shape[k] // -(-shape[k] // parts)) if parts <= _SCANNED else 0


def runs(shape, dims: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """What a reduction of several axes is made of: (outer, reduced, inner) of each run of neighbouring axes,
    the last run first."""
    lengths = list(shape)
    found: list[list[int]] = []
    for d in dims:
        if lengths[d] == 1:
            continue
        if found and product(lengths[found[-1][-1] + 1 : d]) == 1:
            found[-1].append(d)
        else:
            found.append([d])
    made = []
    for run in reversed(found):
        first, last = run[0], run[-1] + 1
        made.append((product(lengths[:first]), product(lengths[first:last]), product(lengths[last:])))
        for d in run:
            lengths[d] = 1
    return made or [(product(lengths), 1, 1)]


def stages(shape, dims: tuple[int, ...], strips: bool = False) -> list[Pass]:
    """The dispatches that reduce several axes, each run of neighbouring axes in turn; see `passes`."""
    return [step for run in runs(shape, dims) for step in passes(*run, strips)]
