"""Parts of shaders: which functions a text gets, and the module in which a wheel has them read."""

from pathlib import Path

from pellucid.device.resources import path
from pellucid.op.kernel.part_file import (
    ShaderPart,
    called_in,
    defined_in,
    module_of,
    read_part,
    read_parts,
    used_by,
)
from pellucid.op.kernel.parts import collect

TEXT = """// uses  one, two
const K = 1u;  // of calls(like this)
fn short(x: f32) -> f32 { return long(x); }
fn long(x: f32) -> f32 {
    return sin(x) + short(f32(K));
}
"""


def test_a_file_is_read():
    part = read_part(TEXT)
    assert list(part.functions) == ["short", "long"]
    assert part.functions["short"] == "fn short(x: f32) -> f32 { return long(x); }"
    assert part.others.strip() == "const K = 1u;"
    assert part.uses == used_by(TEXT) == ("one", "two")
    assert part.calls == {"short": ("short", "long"), "long": ("long", "sin", "short", "f32"), "": ()}
    assert defined_in(TEXT) == {"short", "long"}
    assert called_in("a(b(a(1)))") == ("a", "b")


def test_the_module_of_a_wheel_has_what_is_read():
    root = str(path("wgsl/parts"))
    scope: dict = {}
    exec(module_of(root), scope)
    assert {name: ShaderPart(*part) for name, part in scope["PARTS"].items()} == read_parts(root)
    assert set(scope["PARTS"]) == {file.stem for file in Path(root).rglob("*.wgsl")}


def test_a_text_gets_what_it_calls_and_what_that_calls():
    text = "fn element(i: u32) -> f32 { return tanh_of(x[i]); }"
    collected = collect(text)
    assert "fn tanh_of(" in collected
    assert "fn gamma_of(" not in collected
    known = {f for part in read_parts(str(path("wgsl/parts"))).values() for f in part.functions}
    assert {*called_in(collected)} & known <= defined_in(collected)
