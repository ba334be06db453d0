"""Pictures of examples as SVG: images, heat maps, points, lines, text; and `show`, which runs an example.

An example is a function that yields a tensor for the loss of each step, and pictures in between. Whoever
runs it reads the values: `follow` does so with `await`, natively and in a page, so an example never waits
for the device.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import inspect
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import pellucid as torch

WIDTH = 480
TOP = 26  # room for the title
EDGE = 52  # room for the numbers of axes
COLOURS = (
    "#3b82f6", "#ef4444", "#22a35a", "#a855f7", "#f59e0b", "#14b8a6",
    "#ec4899", "#84a01a", "#8b6f5c", "#7b8494",
)  # fmt: skip
# From little to much; and from negative through nothing to positive.
SEQUENCE = ((20, 24, 60), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
DIVERGING = ((33, 102, 172), (146, 197, 222), (245, 245, 245), (244, 165, 130), (178, 24, 43))
STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#1a1d23}.axis{stroke:#8a93a2;fill:none}"
    ".mono{font-family:ui-monospace,monospace;white-space:pre}.t{font-weight:600;font-size:13px}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ef}}</style>"
)


@dataclass
class Picture:
    """What is drawn of some tensors, once they have been read.

    Args:
        title: what is seen, in a sentence.
        tensors: by name, what `draw` gets as arrays; what is no tensor stays as it is.
        draw: gives the parts of the SVG and its height.
    """

    title: str
    tensors: dict[str, Any]
    draw: Callable[..., tuple[str, float]] = field(repr=False)

    def svg(self, arrays: dict[str, Any]) -> str:
        """The picture as a document."""
        parts, height = self.draw(**arrays)
        title = f'<text class="t" x="0" y="15">{escape(self.title)}</text>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}">{STYLE}{title}{parts}</svg>'
        )


def images(pixels: Any, title: str, columns: int = 8, labels: Any = None) -> Picture:
    """Grey images beside each other.

    Args:
        pixels: (count, height, width), 0 is black and 1 is white.
        title: what is seen.
        columns: images in a row.
        labels: (count,) or (count, numbers), whole numbers that are written below each image.
    """

    def draw(pixels: np.ndarray, labels: Any) -> tuple[str, float]:
        count, high, wide = pixels.shape
        side = min((WIDTH - 2 * (columns - 1)) / columns, 120)
        tall = side * high / wide
        line = tall + (18 if labels is not None else 2)
        parts = []
        for k, one in enumerate(np.clip(pixels, 0, 1)):
            x, y = k % columns * (side + 2), TOP + k // columns * line
            rgb = np.repeat((one * 255).astype(np.uint8)[..., None], 3, -1)
            parts.append(_bitmap(rgb, x, y, side, tall))
            if labels is not None:
                words = " → ".join(str(int(number)) for number in np.atleast_1d(labels[k]))
                parts.append(_text(x + side / 2, y + tall + 12, words, "middle"))
        return "".join(parts), TOP + -(-count // columns) * line

    return Picture(title, {"pixels": pixels, "labels": labels}, draw)


def heat_map(
    values: Any,
    title: str,
    names: Sequence[str] = (),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    signed: bool = False,
) -> Picture:
    """Numbers as colours: one map, or some beside each other.

    Args:
        values: (rows, columns), or (maps, rows, columns).
        title: what is seen.
        names: of the maps.
        rows: a word for each row, of the first map.
        columns: a letter for each column.
        signed: whether nothing is white, with one colour on each side.
    """

    def draw(values: np.ndarray) -> tuple[str, float]:
        maps = values[None] if values.ndim == 2 else values
        count, high, wide = maps.shape
        left = 8.0 * max(map(len, rows)) + 8 if rows else 0.0
        across = min(count, 4 if count != 3 else 3)
        side = min((WIDTH - left - 10 * (across - 1)) / across, 320)
        tall = min(side * high / wide, 380)
        parts = []
        for k, one in enumerate(maps):
            x, y = left + (k % across) * (side + 10), TOP + 18 + (k // across) * (tall + 26)
            parts.append(_bitmap(_colours(one, signed), x, y, side, tall))
            if k < len(names):
                parts.append(_text(x, y - 4, names[k]))
            for n, letter in enumerate(columns):
                parts.append(_text(x + (n + 0.5) * side / wide, y + tall + 12, letter, "middle"))
        parts += [
            _text(left - 4, TOP + 22 + (n + 0.5) * tall / high, word, "end") for n, word in enumerate(rows)
        ]
        return "".join(parts), TOP + 18 + -(-count // across) * (tall + 26)

    return Picture(title, {"values": values}, draw)


def points(
    places: Any,
    title: str,
    kinds: Any = None,
    names: Sequence[str] = (),
    paths: Any = None,
    size: float = 2.5,
) -> Picture:
    """Points of a plane, with one scale in both directions.

    Args:
        places: (count, 2).
        title: what is seen.
        kinds: (count,), numbers that choose colours.
        names: words that are written beside the points.
        paths: (paths, steps, 2), lines below the points.
        size: radius of a point.
    """

    def draw(places: np.ndarray, kinds: Any, paths: Any) -> tuple[str, float]:
        everything = places if paths is None else np.concatenate([places, paths.reshape(-1, 2)])
        everything = everything[np.isfinite(everything).all(1)]
        low, high = everything.min(0), everything.max(0)
        room = 7 * max(map(len, names), default=0)  # to the right
        scale = (WIDTH - 40 - room) / max(*(high - low), 1e-9)
        tall = (high - low)[1] * scale
        if tall > 380:
            scale, tall = scale * 380 / tall, 380.0
        left = (WIDTH - room - (high - low)[0] * scale) / 2

        def put(xy: np.ndarray) -> tuple[float, float]:
            return left + (xy[0] - low[0]) * scale, TOP + 12 + tall - (xy[1] - low[1]) * scale

        parts = []
        for k, path in enumerate(() if paths is None else paths):
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(put, path))
            colour = _colour(k) if len(paths) <= 60 else COLOURS[-1]  # so many are a net
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" opacity=".6"/>')
        for k, place in enumerate(places):
            if np.isfinite(place).all():
                x, y = put(place)
                colour = _colour(0 if kinds is None else int(kinds[k]))
                parts.append(
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}" fill-opacity=".75"/>'
                )
                if k < len(names):
                    parts.append(_text(x + 5, y + 4, names[k]))
        return "".join(parts), TOP + 24 + tall

    return Picture(title, {"places": places, "kinds": kinds, "paths": paths}, draw)


def lines(ys: Any, title: str, x: Any = None, names: Sequence[str] = ()) -> Picture:
    """Curves over a common axis.

    Args:
        ys: (curves, values).
        title: what is seen.
        x: (values,), where they lie; their numbers if it is left out.
        names: of the curves.
    """

    def draw(ys: np.ndarray, x: Any) -> tuple[str, float]:
        x = np.arange(ys.shape[1]) if x is None else x
        tall, low, high = 240.0, float(np.nanmin(ys)), float(np.nanmax(ys))
        across, up = (WIDTH - EDGE - 12) / (x.max() - x.min()), tall / (high - low or 1)
        top = TOP + 20
        parts = [f'<path class="axis" d="M{EDGE} {top}V{top + tall}H{WIDTH - 12}"/>']
        parts += [
            _text(EDGE - 4, top + 8, _number(high), "end"),
            _text(EDGE - 4, top + tall, _number(low), "end"),
        ]
        parts += [
            _text(EDGE, top + tall + 14, _number(x.min())),
            _text(WIDTH - 12, top + tall + 14, _number(x.max()), "end"),
        ]
        for k, y in enumerate(ys):
            line = " ".join(
                f"{EDGE + (a - x.min()) * across:.1f},{top + tall - (b - low) * up:.1f}"
                for a, b in zip(x, y)
                if np.isfinite(b)
            )
            dashes = ' stroke-dasharray="6 4"' if k % 2 else ""
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{_colour(k)}" stroke-width="2"{dashes}/>'
            )
        at = EDGE
        for k, name in enumerate(names):
            parts.append(f'<rect x="{at}" y="{TOP + 4}" width="10" height="10" fill="{_colour(k)}"/>')
            parts.append(_text(at + 14, TOP + 13, name))
            at += 30 + 7 * len(name)
        return "".join(parts), top + tall + 20

    return Picture(title, {"ys": ys, "x": x}, draw)


def text(ids: Any, letters: Sequence[str], title: str, width: int = 62) -> Picture:
    """Ids as text.

    Args:
        ids: (length,), or (texts, length).
        letters: what each id is written as.
        title: what is seen.
        width: letters in a line.
    """

    def draw(ids: np.ndarray) -> tuple[str, float]:
        written = "\n\n".join("".join(letters[int(i)] for i in row) for row in np.atleast_2d(ids))
        rows = [
            line[k : k + width] for line in written.split("\n") for k in range(0, max(len(line), 1), width)
        ]
        parts = [
            f'<text class="mono" x="0" y="{TOP + 14 + 16 * k}">{escape(row)}</text>'
            for k, row in enumerate(rows)
        ]
        return "".join(parts), TOP + 20 + 16 * len(rows)

    return Picture(title, {"ids": ids}, draw)


async def follow(
    steps: Iterable[Any],
    read: Callable[[Any], Any],
    on_loss: Callable[[int, float], Any],
    on_picture: Callable[[str, str], Any],
    every: int = 10,
) -> None:
    """Run an example to its end: read its losses, some steps at once, and its pictures.

    Args:
        steps: what the example yields.
        read: an array of a tensor, awaited.
        on_loss: called with the number of each step, from 1, and its loss.
        on_picture: called with title and SVG.
        every: how many losses wait to be read together.
    """
    waiting: list[Any] = []
    done = 0

    async def losses() -> None:
        nonlocal done
        for loss in await read(torch.stack(waiting)) if waiting else ():
            done += 1
            on_loss(done, float(loss))
        waiting.clear()

    for found in steps:
        if isinstance(found, Picture):
            await losses()
            arrays = {
                name: await read(value) if hasattr(value, "detach") else value
                for name, value in found.tensors.items()
            }
            on_picture(found.title, found.svg(arrays))
        else:
            waiting.append(found)
            if len(waiting) == every:
                await losses()
    await losses()


def show(main: Callable[..., Iterable[Any]]) -> None:
    """Run an example as a program: its arguments are options, losses are printed, pictures written beside."""
    parser = argparse.ArgumentParser(description=sys.modules[main.__module__].__doc__)
    for name, parameter in inspect.signature(main).parameters.items():
        default = parameter.default
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"default: {default}")
    parser.add_argument("--folder", default=".", help="where pictures are written")
    given = vars(parser.parse_args())
    folder, drawn = Path(given.pop("folder")), 0

    async def read(tensor: Any) -> np.ndarray:
        return tensor.detach().cpu().numpy()

    def on_loss(step: int, loss: float) -> None:
        if step == 1 or step % 20 == 0:
            print(f"step {step:5}  loss {loss:.4f}", flush=True)

    def on_picture(title: str, svg: str) -> None:
        nonlocal drawn
        drawn += 1
        path = folder / f"{Path(sys.argv[0]).stem}_{drawn}.svg"
        path.write_text(svg, encoding="utf-8")
        print(f"{path}: {title}", flush=True)

    asyncio.run(follow(main(**given), read, on_loss, on_picture))


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _number(value: float) -> str:
    return f"{round(float(value), 4):.3g}"


def _colour(kind: int) -> str:
    return COLOURS[kind % len(COLOURS)]


def _colours(values: np.ndarray, signed: bool) -> np.ndarray:
    """Red, green and blue of numbers."""
    finite = np.nan_to_num(values.astype(float))
    most = np.abs(finite).max() if signed else finite.max()
    least = -most if signed else finite.min()
    at = (finite - least) / ((most - least) or 1)
    anchors = np.array(DIVERGING if signed else SEQUENCE, float)
    places = np.linspace(0, 1, len(anchors))
    return np.stack([np.interp(at, places, anchors[:, k]) for k in range(3)], -1).astype(np.uint8)


def _bitmap(rgb: np.ndarray, x: float, y: float, wide: float, high: float) -> str:
    """An image element with square pixels: a PNG as the format's specification has it, without filters."""
    rows, columns, _ = rgb.shape
    raw = np.concatenate([np.zeros((rows, 1), np.uint8), rgb.reshape(rows, -1)], 1).tobytes()
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    address = "data:image/png;base64," + base64.b64encode(png).decode()
    return (
        f'<image href="{address}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated"/>'
    )
