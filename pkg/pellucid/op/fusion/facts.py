"""What fusion asks of a launch, found once: its bindings by number, where they begin, what it hands on."""

from __future__ import annotations

from ...tensors.dtypes import DType
from ..launches import RegisteredLaunch
from .sites import handed_on, sites

# Instead of the place of a word: an offset that is fixed, to zero or to something else.
FIXED_AT_ZERO, FIXED_ELSEWHERE = -1, -2


class LaunchFacts:
    """What follows from a launch alone, whatever its runs bring.

    It does not hold the launch, which ends when nobody does.

    Attributes:
        names: of the bindings.
        numbers: the same, by name.
        is_map: it is an expression.
        is_plain: it is one over all elements of a contiguous tensor, if that begins where its buffer does.
        is_view: it writes a tensor that was there before.
        written: numbers of the bindings that it writes.
        is_written: the same, as a flag for each binding.
        needed: numbers of those whose old values it needs.
        offsets: where in a run's words behind the head the offset of each binding lies, if it is not fixed.
        brought: those that are not fixed.
        flat: for each binding, whether it is an operand that is read element by element.
        dtypes: for each binding, the type in which an expression takes it.
        out: the number of an expression's output.
        count: elements that an expression writes; of a joined tensor that is a part.
        aliased: operands of an expression that are the tensor which it writes.
        load: the binding through which a kernel takes values instead of a tensor.
        handed_on: the outputs that others may take over: the site and the number of the binding.
    """

    __slots__ = (
        "aliased", "brought", "count", "dtypes", "flat", "handed_on", "is_map", "is_plain", "is_view",
        "is_written", "load", "names", "needed", "numbers", "offsets", "out", "written",
    )  # fmt: skip

    def __init__(self, node: RegisteredLaunch):
        bindings, m = node.source.bindings, node.map
        self.names = tuple([b.name for b in bindings])
        self.numbers = {name: k for k, name in enumerate(self.names)}
        self.is_written = tuple([b.written for b in bindings])
        self.written = tuple([k for k, b in enumerate(bindings) if b.written])
        self.offsets = tuple([_offset_at(node, name) for name in self.names])
        self.brought = tuple([at for at in self.offsets if at >= 0])
        self.is_map = m is not None
        self.load = self.numbers.get(node.source.header.input or "", -1)
        self.out, self.count, self.is_plain, self.is_view = -1, 0, False, False
        self.aliased: tuple[str, ...] = ()
        self.handed_on: tuple[tuple[int, int], ...] = ()
        self.dtypes: tuple[DType | None, ...] = (None,) * len(bindings)
        self.flat: tuple[bool, ...] = (False,) * len(bindings)
        if m is not None:
            operands = {o.local: o for o in m.operands if o.is_read}
            self.out = self.numbers["out"]
            self.is_plain = not m.is_atomic and m.out_index in ("", "flat")
            self.is_view = bool(m.out_index)
            self.aliased = tuple([o.local for o in m.operands if o.aliased])
            self.flat = tuple([n in operands and operands[n].index == "flat" for n in self.names])
            self.dtypes = tuple([operands[n].dtype if n in operands else None for n in self.names])
            meta = node.metas[self.out]
            self.count = m.count if m.lanes == 1 or meta is None else meta.numel
            fresh = set() if m.is_atomic or self.aliased else {"out"}
        else:
            fresh = handed_on(node)
            self.handed_on = tuple([
                (k, self.numbers[name]) for k, site in enumerate(sites(node)) for name in site.values
                if name in fresh
            ])  # fmt: skip
        self.needed = tuple([k for k, name in enumerate(self.names) if name not in fresh])


def _offset_at(node: RegisteredLaunch, binding: str) -> int:
    word = node.offset_word(binding)
    if word is not None:
        return node.slot_count + word
    return FIXED_ELSEWHERE if node.values.get(f"{binding}_offset", 0) else FIXED_AT_ZERO


def facts_of(node: RegisteredLaunch) -> LaunchFacts:
    """What fusion asks of a launch."""
    facts: LaunchFacts | None = node.facts
    if facts is None:
        facts = node.facts = LaunchFacts(node)
    return facts
