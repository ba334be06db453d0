"""The events of a profile summed by op and kernel, and their table."""

from __future__ import annotations

from dataclasses import dataclass, field

from .recording import Dispatch, OpCall, Recording, Span
from .roofline import Peak, known_peak
from .text import about_times, shortened, table, with_unit


@dataclass
class Average:
    """What the dispatches of one kernel for the same ops took together, or one named part of the program.

    Args:
        key: the ops, or the name that `record_function` gave.
        kernel: the kernel; empty for a named part.
        count: how often.
        input_shapes: shapes of the tensors behind the bindings, if asked for.
        device_time_total: microseconds on the GPU, of the dispatches that were timed.
        timed: how many were.
        python_time_total: microseconds in which Python prepared them: from the end of the op before, without
            submitting and waiting. Of a named part all that passed.
        bytes: read and written.
        timed_bytes: of the dispatches that were timed.
        flops: floating-point operations of products of matrices.
        timed_flops: of the dispatches that were timed.
    """

    key: str
    kernel: str
    count: int = 0
    input_shapes: tuple[tuple[int, ...], ...] = ()
    device_time_total: float = 0.0
    timed: int = 0
    python_time_total: float = 0.0
    bytes: int = 0
    timed_bytes: int = 0
    flops: int = 0
    timed_flops: int = 0

    @property
    def is_span(self) -> bool:
        """Whether it is a named part of the program, whose dispatches have rows of their own."""
        return not self.kernel

    @property
    def device_time(self) -> float:
        """Microseconds on the GPU of one dispatch, or of all dispatches of one run of a named part."""
        count = self.count if self.is_span else self.timed
        return self.device_time_total / count if count else 0.0

    @property
    def python_time(self) -> float:
        """Microseconds in Python of one."""
        return self.python_time_total / self.count if self.count else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes a second while the GPU was at it."""
        return self.timed_bytes / self.device_time_total * 1e6 if self.device_time_total else 0.0

    @property
    def flop_rate(self) -> float:
        """Floating-point operations of products a second while the GPU was at it."""
        return self.timed_flops / self.device_time_total * 1e6 if self.device_time_total else 0.0

    def share_of(self, peak: Peak) -> tuple[float, str]:
        """How near it comes to what the device can do, and in what it comes nearest: bytes or flops."""
        return max((self.bandwidth / peak.bandwidth, "bytes"), (self.flop_rate / peak.flop_rate, "flops"))

    def add(self, dispatch: Dispatch) -> None:
        """Count a dispatch."""
        self.bytes += dispatch.bytes
        self.flops += dispatch.flops
        if dispatch.seconds is not None:
            self.timed += 1
            self.device_time_total += dispatch.seconds * 1e6
            self.timed_bytes += dispatch.bytes
            self.timed_flops += dispatch.flops

    @property
    def cpu_time_total(self) -> float:
        """PyTorch's name of `python_time_total`."""
        return self.python_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """The same: ops are not nested."""
        return self.python_time_total

    @property
    def cpu_time(self) -> float:
        """PyTorch's name of `python_time`."""
        return self.python_time

    @property
    def self_device_time_total(self) -> float:
        """`device_time_total`: ops are not nested."""
        return self.device_time_total


# PyTorch's names of columns.
_NAMES = {
    "cpu_time": "python_time",
    "cpu_time_total": "python_time_total",
    "cuda_time": "device_time",
    "cuda_time_total": "device_time_total",
    "self_cpu_time_total": "python_time_total",
    "self_cuda_time_total": "device_time_total",
    "self_device_time_total": "device_time_total",
}
# What a table can be sorted by.
KEYS = (
    "device_time_total", "device_time", "python_time_total", "python_time", "count", "bytes", "flops",
    "bandwidth",
)  # fmt: skip


@dataclass
class Averages:
    """The rows of a profile: `Average`s, those with the most GPU time first.

    Args:
        rows: by op and kernel, and by name.
        recording: what they are of.
    """

    rows: list[Average] = field(repr=False)
    recording: Recording = field(repr=False)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Average:
        return self.rows[number]

    def total(self) -> Average:
        """All dispatches together."""
        whole = Average("all", "all", len(self.recording.dispatches))
        for d in self.recording.dispatches:
            whole.add(d)
        whole.python_time_total = sum(call.seconds for call in self.recording.calls) * 1e6
        return whole

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 48) -> str:
        """The rows, one a line.

        Args:
            sort_by: one of ``device_time_total``, ``device_time``, ``python_time_total``, ``python_time``,
                ``count``, ``bytes``, ``flops``, ``bandwidth``, the largest first, or PyTorch's names of the
                times, such as ``cpu_time_total``; None for the GPU's time, or Python's where no dispatch was
                timed.
            row_limit: the most lines; -1 for all.
            max_name_column_width: letters of the ops' names.

        Raises:
            ValueError: there is no such column.
        """
        whole = self.total()
        sort_by = _NAMES.get(sort_by or "", sort_by)
        if sort_by is not None and sort_by not in KEYS:
            raise ValueError(f"sort_by is {sort_by!r}; it must be one of {', '.join(KEYS)}, or None.")
        by = sort_by or ("device_time_total" if whole.timed else "python_time_total")
        rows = sorted(self.rows, key=lambda row: getattr(row, by), reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]
        peak = known_peak()
        heads = ["op", "kernel", "calls"]
        heads += ["GPU total", "GPU mean", "GPU share"] if whole.timed else []
        heads += ["bytes"] + (["bytes/s"] if whole.timed else [])
        heads += ["of peak"] if whole.timed and peak is not None else []
        heads += ["Python total", "Python mean"]
        shapes = any(row.input_shapes for row in shown)
        heads += ["shapes"] if shapes else []
        cells = []
        for row in shown:
            line = [shortened(row.key, max_name_column_width), row.kernel, str(row.count)]
            if whole.timed:
                share = row.device_time_total / whole.device_time_total if whole.device_time_total else 0.0
                line += [_time(row.device_time_total), _time(row.device_time), f"{share:.1%}"]
            line.append(with_unit(row.bytes, "B"))
            if whole.timed:
                line.append(with_unit(row.bandwidth, "B/s"))
            if whole.timed and peak is not None:
                nearest, what = row.share_of(peak)
                line.append(f"{nearest:.1%} {what}" if nearest else "-")
            line += [_time(row.python_time_total), _time(row.python_time)]
            if shapes:
                line.append(", ".join("x".join(map(str, shape)) or "1" for shape in row.input_shapes))
            cells.append(line)
        lines = [*about_times(self.recording), table(heads, cells, "op, kernel, shapes")]
        if len(shown) < len(rows):
            lines.append(f"... and {len(rows) - len(shown)} more")
        lines.append(self._footer(whole, peak))
        return "\n".join(lines)

    def _footer(self, whole: Average, peak: Peak | None) -> str:
        recording = self.recording
        parts = [f"{whole.count} dispatches in {len(recording.windows)} windows"]
        if whole.timed:
            parts.append(f"{_time(whole.device_time_total)} on the GPU")
        walls = [window.seconds for window in recording.windows if window.seconds is not None]
        if walls:
            parts.append(f"{with_unit(sum(walls), 's')} in windows")
        parts.append(f"{_time(whole.python_time_total)} in Python")
        submitting = sum(window.ended - window.began for window in recording.windows)
        parts.append(f"{with_unit(submitting, 's')} submitting")
        waited = sum(end - begin for begin, end in recording.waits)
        parts.append(f"{with_unit(waited, 's')} waiting")
        parts.append(f"{with_unit(recording.ended - recording.began, 's')} in all")
        text = "; ".join(parts)
        return text if peak is None else f"{text}\npeak: {peak}"

    def __repr__(self) -> str:
        return self.table()


def averages(recording: Recording, by_shape: bool, shapes: bool) -> Averages:
    """The rows of a recording.

    Args:
        recording: what was seen.
        by_shape: whether other shapes make another row.
        shapes: whether rows tell their shapes.
    """
    rows: dict[tuple, Average] = {}
    launches: dict[OpCall, int] = {}
    dispatches = recording.dispatches
    for d in dispatches:
        for call in d.calls:
            launches[call] = launches.get(call, 0) + 1
    for d in dispatches:
        key = " + ".join(d.ops)
        found = d.shapes if by_shape else ()
        row = rows.setdefault((key, d.kernel, found), Average(key, d.kernel))
        row.count += 1
        if shapes and not row.input_shapes:
            row.input_shapes = d.shapes
        row.add(d)
        # The call's time goes to its launches in equal parts.
        row.python_time_total += sum(call.seconds / launches[call] for call in d.calls) * 1e6
    for span in recording.spans:
        row = rows.setdefault((span.name,), Average(span.name, ""))
        row.count += 1
        row.python_time_total += ((span.ended or recording.ended) - span.began) * 1e6
    known = set(recording.spans)
    for d in dispatches:
        for name in dict.fromkeys(span.name for span in _spans_around(d) if span in known):
            rows[name,].add(d)
    ordered = sorted(rows.values(), key=lambda row: row.device_time_total, reverse=True)
    return Averages(ordered, recording)


def _spans_around(dispatch: Dispatch) -> list[Span]:
    """The named parts of the program that all of a dispatch belongs to."""
    if not dispatch.calls:
        return []
    first, *others = dispatch.calls
    return [span for span in first.spans if all(span in call.spans for call in others)]


def _time(microseconds: float) -> str:
    return with_unit(microseconds / 1e6, "s")
