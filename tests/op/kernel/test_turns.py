"""Every loop of a kernel has a bound that is stated and looked at."""

import ast
import builtins
import re

import pytest

from pellucid.device.resources import path
from pellucid.errors import ShapeError
from pellucid.op.kernel.parts import loops
from pellucid.op.kernel.source import KernelSource, load
from pellucid.op.kernel.turns import PIECE, boxes, turns_of

FILES = sorted(path("wgsl").rglob("*.wgsl"))
LOOP = re.compile(r"\b(for|while|loop)\b")
STATED = re.compile(r"^// +turns +(.+)$", re.M)


def name_of(file) -> str:
    return file.relative_to(path("wgsl")).with_suffix("").as_posix()


def code(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_loops_state_their_turns(file):
    """What loops says how long; kernels in words that a plan can evaluate, their parts' loops included."""
    text = file.read_text(encoding="utf-8")
    if "@compute" not in text:
        assert STATED.search(text) or not LOOP.search(code(text))
        return
    source = load(name_of(file))
    if not LOOP.search(code(source.finish(False))):
        return
    stated = STATED.search(text)
    assert stated, "a kernel that loops names no turns"
    names = {n.id for n in ast.walk(ast.parse(stated[1])) if isinstance(n, ast.Name)}
    known = set(source.fields) | set(re.findall(r"^const (\w+)", text, re.M)) | set(dir(builtins))
    assert names <= known
    fields = {n: (0, 3, 0, 5) if f.type.startswith("vec4") else 3 for n, f in source.fields.items()}
    assert turns_of(source, fields) >= 0


def test_consts_are_those_of_the_filled_kernel():
    text = "// turns  count // STEP + 1\n\nconst LANES = 16u;\nconst STEP = 4u * LANES;\n"
    source = KernelSource("some", text)
    assert turns_of(source, {"count": 640}) == 11
    assert turns_of(source.fill({"LANES": "32u"}), {"count": 640}) == 6


def test_pieces_cover_two_loops_in_order():
    for tall, wide in [(1, 70_000), (3, 5), (0, 4), (4, 0), (300, 300), (2, PIECE - 1), (70_000, 1)]:
        pieces = boxes(tall, wide)
        assert all((y1 - y0) * (x1 - x0 + 1) <= PIECE + 1 for y0, y1, x0, x1 in pieces)
        assert pieces == sorted(pieces)
        area = sum((y1 - y0) * (x1 - x0) for y0, y1, x0, x1 in pieces)
        assert area == tall * wide


def test_expressions_that_loop_are_known():
    assert loops("power_i32(a, b)")
    assert loops("remainder_of(a, b)")
    assert not loops("power(a, exp_of(b)) + nan_max(a, b)")


@pytest.mark.gpu
def test_what_would_take_too_long_is_refused():
    from pellucid.device.stream import stream
    from pellucid.op.kernel.turns import check_turns

    assert stream().open()
    check_turns(load("reduce/scan_direct"), {"chunk": 1000})
    with pytest.raises(ShapeError, match="reduce/scan_direct"):
        check_turns(load("reduce/scan_direct"), {"chunk": 1 << 21})
