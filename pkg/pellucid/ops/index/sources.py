"""Scatter on the device: of sources that go to one row the last stays, or the extreme, or all are added up in
order."""

from __future__ import annotations

from ...op.call import Call
from ...op.elementwise import map_launch, wgsl_name
from ...op.kernel import NATIVE, PIECE, Launch, Params, load, per_element, register_type
from ...tensors import dtypes as dt
from .sort import order_launches

# Neighbours in the order of the sources that one lane adds up.
_CHUNK = 64


def put_launches(call: Call, params: Params, rows: int, width: int) -> list[Launch]:
    """The last source of each row of `out`, by ``index``, in the place of ``input``'s row; ``params`` say
    where sources go."""
    count = call.out.numel
    call.temporary("last", (rows,), dt.uint32)
    none = load("index/segment_base").fill({"T": "u32", "HAS_BASE": "false"})
    put = load("index/put_sources").fill({"T": register_type(call.out.dtype)})
    return [
        per_element(none, -(-rows // 4), {"count": rows}, bind={"x": "index", "out": "last"}),
        per_element("index/last_sources", -(-params["count"] // 4), params),
        per_element(put, -(-count // 4), {"count": count, "width": width}, bind={"x": "input"}),
    ]


def collect_launches(
    call: Call, base: str, sources: int, rows: int, width: int, holes: dict[str, str]
) -> list[Launch]:
    """What each row of `out` collects of the sources, in their order, by ``keys``: beside ``base``, where the
    hole HAS_BASE says so, combined by the hole ``apply``."""
    kind, count, chunks = holes["T"], call.out.numel, -(-sources // _CHUNK)
    call.temporary("parts", (chunks * width,), NATIVE[kind])
    begun = load("index/segment_base").fill({"T": kind, "HAS_BASE": holes["HAS_BASE"]})
    made = [per_element(begun, -(-count // 4), {"count": count}, bind={"x": base})]
    bits = (rows - 1).bit_length()
    made += order_launches(call, "keys", dt.uint32, 1, sources, False, "order", "runs", bits=max(bits, 1))
    file = load("index/segments").fill({"T": kind, "apply": holes["apply"], "CHUNK": f"{_CHUNK}u"})
    params: Params = {"count": sources * width, "sources": sources, "begin": 0, "window": 0, "width": width}
    made.append(per_element(file, sources * width, params))
    file = file.fill({"JOINS": "true"})
    for begin in range(0, chunks if chunks > 1 else 0, PIECE):
        window = min(PIECE, chunks - begin)
        own = {**params, "count": window * width, "begin": begin, "window": window}
        made.append(per_element(file, window * width, own))
    return made


def extreme_launches(call: Call, words: tuple[str, str], params: Params, kind: str) -> list[Launch]:
    """What each element of `out` has as the extreme of ``input`` and the sources that go there. ``words`` are
    expressions that make a word, of which the largest wins, of ``{0}``, and a value of a word."""
    x, out = call["input"], call.out
    held = call.temporary("words", x.shape, dt.uint32)
    word, value = words
    file = load("index/scatter_extremes").fill({"T": kind, "word": word.format("value")})
    return [
        map_launch("input", "words", x, held, word.format(wgsl_name("input")), kind, "u32"),
        per_element(file, int(params["count"]), params),
        map_launch("words", "out", held, out, value.format("words"), "u32", kind),
    ]
