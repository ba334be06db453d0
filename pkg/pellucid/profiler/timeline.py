"""A timeline as SVG: what Python, the submissions and the GPU did, each on a line, as notebooks draw it."""

from __future__ import annotations

from html import escape

from .events import Event

WIDTH, ROW, LEFT = 720, 22, 76  # pixels
MOST = 2000  # events that are drawn: the longest
# Kinds of events by the line that they are on, with a colour that is seen on light and on dark.
_LINES = {
    "parts": {"span": "#8a63d2"},
    "Python": {"op": "#2f7fd0"},
    "submitting": {"window": "#c98a16", "wait": "#8b93a1"},
    "GPU": {"dispatch": "#2e9e62"},
}


def timeline(events: list[Event]) -> str:
    """The events from the first to the last; each tells its name and time where a pointer rests.

    Args:
        events: as `profile.events` gives them.
    """
    drawn = sorted(events, key=lambda e: -e.duration)[:MOST]
    begin = min((e.start for e in events), default=0.0)
    end = max((e.start + e.duration for e in events), default=1.0)
    scale = (WIDTH - LEFT) / max(end - begin, 1e-3)
    height = ROW * (len(_LINES) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="11" fill="currentColor" role="img" '
        'aria-label="Timeline of a profile">'
    ]
    for k, (name, colours) in enumerate(_LINES.items()):
        parts.append(f'<text x="0" y="{ROW * k + 15}">{name}</text>')
        parts += [
            f'<rect x="{LEFT + (e.start - begin) * scale:.2f}" y="{ROW * k + 3}" '
            f'width="{max(e.duration * scale, 0.5):.2f}" height="{ROW - 6}" fill="{colours[e.kind]}">'
            f"<title>{escape(e.name)}: {_time(e.duration)}</title></rect>"
            for e in drawn
            if e.kind in colours
        ]
    y = height - 7
    parts.append(f'<text x="{LEFT}" y="{y}">0</text>')
    left_out = f" ({len(events) - MOST:,} shorter events are not drawn)" if len(events) > MOST else ""
    parts.append(f'<text x="{WIDTH}" y="{y}" text-anchor="end">{_time(end - begin)}{left_out}</text></svg>')
    return "".join(parts)


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:,.2f} ms" if microseconds >= 1000 else f"{microseconds:.1f} us"
