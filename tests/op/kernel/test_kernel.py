"""Kernel sources: declarations, holes, types, parameters."""

import struct

import pytest

from pellucid.errors import DTypeError, KernelError
from pellucid.op.kernel.element_types import convert, fetch, physical
from pellucid.op.kernel.header import KernelHeader, header_of
from pellucid.op.kernel.launch import Launch, fold, pack_params
from pellucid.op.kernel.source import KernelSource, load
from pellucid.tensors import dtypes as dt

ACCESS = {"x": "read", "out": "written"}
TEXT = """// out[i] = x[i] * factor
alias T = f32;
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params {
    count: u32, // elements
    shape: vec4<u32>,
    factor: f32,
    shift: i32,
    x_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;
const TILE = 16u;
const WIDE: bool = false;
fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn apply(a: f32) -> f32 { return a; }
fn note(i: u32) { out[i] = 0.0; }
"""


@pytest.fixture
def source() -> KernelSource:
    return KernelSource("group/name", TEXT)


def test_declarations(source):
    assert [(b.name, b.written, b.element) for b in source.bindings] == [
        ("x", False, "f32"),
        ("out", True, "f32"),
    ]
    assert {n: (f.type, f.word) for n, f in source.fields.items()} == {
        "count": ("u32", 0),
        "shape": ("vec4<u32>", 4),
        "factor": ("f32", 8),
        "shift": ("i32", 9),
        "x_offset": ("u32", 10),
    }
    assert source.params_words == 12


def test_parameters_are_packed_as_uniform_layout_says(source):
    """P-062: parameters of kernels are aligned as WGSL says."""
    data = pack_params(
        source, {"count": 7, "shape": (1, 2, 3, 2**32 - 1), "factor": 1.5, "shift": -2, "x_offset": 9}
    )
    assert struct.unpack("<I12x4IfiI4x", data) == (7, 1, 2, 3, 2**32 - 1, 1.5, -2, 9)
    with pytest.raises(
        KernelError, match=r"group/name: Params lacks a value for \['shift'\] and has no field \['shifts'\]"
    ):
        pack_params(source, {"count": 7, "shape": (1, 2, 3, 4), "factor": 1.5, "shifts": -2, "x_offset": 9})
    with pytest.raises(KernelError, match=r"field sizes of Params has type array<u32>"):
        KernelSource("a", "struct Params { sizes: array<u32> }")


def test_holes(source):
    filled = source.fill(
        {"T": "u32", "TILE": "8u", "WIDE": "true", "apply": "a * 2.0", "note": "out[i] = 1.0;"}
    )
    for line in (
        "alias T = u32;",
        "const TILE = 8u;",
        "const WIDE: bool = true;",
        "fn apply(a: f32) -> f32 { return a * 2.0; }",
        "fn note(i: u32) { out[i] = 1.0; }",
    ):
        assert line in filled.text
    assert filled.bindings[0].element == "u32"
    assert source.text == TEXT
    with pytest.raises(
        KernelError, match="group/name: there is no alias, const or one-line fn called MISSING to replace"
    ):
        source.fill({"MISSING": "1"})


def test_bindings_of_other_types(source):
    half = source.retype("x", dt.float16)
    assert "var<storage, read> x: array<u32>;" in half.text
    assert (
        "fn load_x(i: u32) -> f32 { let k = params.x_offset + i; return half_to_float(((x[k >> 1u] >> ((k "
        "& 1u) * 16u)) & 65535u)); }" in half.text
    )
    assert source.retype("x", dt.float32) is source
    assert "return f32(x[params.x_offset + i]);" in source.retype("x", dt.int32).text
    with pytest.raises(KernelError, match="no one-line fn load_x returns"):
        KernelSource("a", TEXT.replace("return x[", "return 1.0 * x[")).retype("x", dt.int8)


def test_parts_are_joined_once(source):
    text = source.fill({"apply": "sin_of(a) + exp_of(a)"}).retype("x", dt.float16).finish(False)
    for function in ("sin_of", "exp_of", "half_to_float", "i64_mul_words", "with_sign"):
        assert text.count(f"fn {function}(") == 1
    assert "var<uniform> params" in text
    assert "var<immediate> params: Params;" in source.finish(True)
    assert "@group(1)" not in source.finish(True)


def test_types_of_webgpu():
    assert physical(dt.int64) == ("vec2<u32>", 1, "i64")
    assert physical(dt.bool_) == ("u32", 4, "bool")
    with pytest.raises(DTypeError, match=r"pellucid\.float64 does not exist on webgpu"):
        physical(dt.float64)
    assert fetch(dt.float32, "x", "i") == ("", "x[i]")
    assert fetch(dt.uint8, "x", "i", atomic=True)[1].startswith("((atomicLoad(&x[k >> 2u])")
    assert convert("a", "i32", "i32") == "a"
    assert convert("a", "i64", "f32") == "i64_to_f32(a)"


def test_grids():
    assert fold(0) == fold(1) == (1, 1, 1)
    assert fold(65535) == (65535, 1, 1)
    for groups in (65536, 70001, 1 << 24, 65535 * 65535):
        x, y, z = fold(groups)
        assert z == 1
        assert max(x, y) <= 65535
        assert groups <= x * y < groups + y


def test_launches_read_files_by_name():
    launch = Launch("shape/triangle", 3)
    assert launch.source is load("shape/triangle")
    assert launch.source.name == "shape/triangle"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fuses", "'fuses '. Write one line: fuses input -> outputs"),
        ("fuses  ->", "'fuses ->'. Write one line"),
        ("fuses  x", "'fuses x'. Write one line"),
        ("fuses  x, y -> out", "'fuses x, y -> out'. Write one line"),
        ("fuses  x -> out out", "'fuses x -> out out'. Write one line"),
        ("fuses  x -> out\n// fuses  x ->", "'fuses x ->'. Write one line"),
        ("fuses  x -> sum", "'fuses x -> sum', but sum is no binding that is written"),
        ("fuses  x -> x", "but x is no binding that is written"),
        ("fuses  out -> out", "but out is no binding that is read"),
        ("fuses  y ->", "but y is no binding that is read"),
        ("joins", "'joins '. Write one line: joins folder/kernel"),
        ("joint  vectors", "'joint vectors'. Write one line"),
        ("norms  norm/rms norm/layer", "'norms norm/rms norm/layer'. Write one line"),
    ],
)
def test_a_header_that_does_not_fit(line, message):
    with pytest.raises(KernelError) as raised:
        header_of("group/name", f"// {line}\n{TEXT}", ACCESS)
    assert message in str(raised.value)
    assert str(raised.value).startswith("group/name: the header says '")


def test_a_header_is_kept_by_edits():
    text = f"// fuses  x -> out\n// uses   one, two\n// norms  a/b, a/c/d\n{TEXT}"
    header = header_of("a", text, ACCESS)
    assert header == KernelHeader("x", ("out",), norms=("a/b", "a/c/d"))
    assert header_of("a", TEXT, ACCESS) == KernelHeader()
    source = KernelSource("a", text, header=header)
    edited = source.fill({"TILE": "8u"}).retype("x", dt.float16).with_part("two", "three").as_typed()
    assert edited.typed
    assert edited.header == header
    assert "// uses   one, three\n" in edited.text
    assert source.without("out").header == header._replace(outputs=())
    assert source.without("x").header == header._replace(input=None)


def test_edits(source):
    assert source.with_element("x", "vec4<f32>").bindings[0].element == "vec4<f32>"
    assert [b.name for b in source.without("x").bindings] == ["out"]
    line = r"fn apply(a: f32) -> f32 { return a * \1.0; }"
    assert line in source.with_functions({"apply": line}).text
    assert [*source.with_params(["count: u32", "sizes: vec4<u32>"]).fields] == ["count", "sizes"]
    assert source.const("TILE") == "16u"
    assert source.const("WIDE") == "false"
    assert "\nvar<immediate> params: Params;\n" in source.finish(True)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda s: s.with_part("one", "two"), "part one in a line 'uses' to replace"),
        (lambda s: s.with_element("y", "u32"), "binding y to replace"),
        (lambda s: s.without("y"), "binding y on a line of its own to replace"),
        (lambda s: s.with_functions({"store": ""}), "one-line fn store to replace"),
        (lambda s: s.const("NONE"), "const called NONE"),
        (lambda s: s.fill({"NONE": "1"}), "alias, const or one-line fn called NONE to replace"),
        (lambda s: KernelSource(s.name, "").with_params([]), "struct Params to replace"),
        (lambda s: KernelSource(s.name, "").finish(True), "line @group(1) @binding(0) var<uniform> params"),
    ],
)
def test_an_edit_that_finds_nothing(source, edit, message):
    with pytest.raises(KernelError) as raised:
        edit(source)
    assert message in str(raised.value)
    assert str(raised.value).startswith("group/name: there is no ")
