"""Every WGSL file stands on its own: a header, legal, within the default limits, and used."""

import re

import pytest

from pellucid.device.resources import path
from pellucid.device.stream import stream
from pellucid.op.declaration import BY_INDEX
from pellucid.op.elementwise import Elementwise
from pellucid.op.fusion.sites import sites_of
from pellucid.op.kernel import load
from pellucid.op.kernel.header import KernelHeader

ROOT = path("wgsl")
FILES = sorted(p.relative_to(ROOT).as_posix().removesuffix(".wgsl") for p in ROOT.rglob("*.wgsl"))
KERNELS = [f for f in FILES if "@compute" in (ROOT / f"{f}.wgsl").read_text(encoding="utf-8")]


def text(name: str) -> str:
    return (ROOT / f"{name}.wgsl").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sources() -> str:
    """All Python of the package, and the kernels that headers name: a file's name must occur there."""
    named = [f'"{joint}"' for name in KERNELS for joint in load(name).header.joint]
    modules = sorted(path("pkg/pellucid").rglob("*.py"))
    return "\n".join([*named, *[p.read_text(encoding="utf-8") for p in modules]])


@pytest.mark.parametrize("name", FILES)
def test_header_and_style(name):
    lines = text(name).splitlines()
    assert lines[0].startswith("// ")
    assert not re.search(r"^\s*(enable|requires|override)\b", text(name), re.M)
    assert max(map(len, lines)) <= 140
    assert text(name).endswith("}\n") or text(name).endswith(";\n")
    if name in KERNELS:
        header = "\n".join(line for line in lines if line.startswith("//"))
        assert "grid" in header


@pytest.mark.parametrize("name", KERNELS)
def test_limits(name):
    source = load(name)
    assert 1 <= len(source.bindings) <= 8
    assert [int(n) for n in re.findall(r"@group\(0\) @binding\((\d+)\)", source.text)] == list(
        range(len(source.bindings))
    )
    assert 4 * source.params_words <= 256
    assert len(re.findall(r"@compute", source.text)) == 1
    assert re.search(r"@workgroup_size\(\w+", source.text)


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_header_names_is_there(name):
    """Outputs have store functions that fusion finds, the input a load function, and kernels exist."""
    source = load(name)
    header = source.header
    assert sorted(output for site in sites_of(source) for output in site.values) == sorted(header.outputs)
    if header.input:
        loaded = rf"^fn load_{header.input}\(i: u32\) -> \w+ \{{ return .*; \}}$"
        assert re.search(loaded, source.text, re.M)
    assert {*header.joins, *header.joint, *header.norms} <= {*KERNELS}
    assert len(header.joint) in (0, 2)


def test_headers():
    """The lines are read as they are written; who has none takes no part."""
    headers = {name: load(name).header for name in KERNELS}
    assert headers["norm/rms"] == KernelHeader("x", ("out",))
    assert headers["attention/cache_write"] == KernelHeader("rows")
    assert headers["matmul/quant/vectors"] == KernelHeader(None, ("out_0", "out_1", "out_2"))
    assert headers["matmul/quant/vector"].joint == ("matmul/quant/vectors", "matmul/quant/pair")
    assert headers["attention/decode_step"].joins[:4] == headers["attention/place"].joins
    written = {name for name in KERNELS if re.search(r"^// (fuses|joins|joint|norms) ", text(name), re.M)}
    assert {name for name in KERNELS if headers[name]._replace(compact=False) != KernelHeader()} == written
    compact = {name for name in KERNELS if "\nconst COMPACT = false;\n" in text(name)}
    assert {name for name in KERNELS if headers[name].compact} == compact != set()


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_compiles_alone(name):
    """With parameters as a uniform block and, where the device has them, as immediates."""
    host = stream().open()
    source = load(name)
    if "subgroupAdd(" in source.finish(False) and "subgroups" not in host.info.features:
        pytest.skip("the device has no subgroups")
    letters = "".join("w" if b.written else "r" for b in source.bindings)
    size = 4 * source.params_words
    for immediate in {False, 0 < size <= host.info.immediates}:
        host.pipeline(source.finish(immediate), letters, size, immediate, name)
        assert host.failure() is None


@pytest.mark.parametrize("name", [f for f in FILES if f.startswith("parts/")])
def test_parts_are_used(name):
    functions = re.findall(r"^fn (\w+)\(", text(name), re.M)
    assert functions
    kernels = [o.kernel for o in BY_INDEX if isinstance(o.kernel, Elementwise)]
    everything = "\n".join(
        [
            *[text(f) for f in FILES if f != name],
            *[p.read_text(encoding="utf-8") for p in path("pkg/pellucid").rglob("*.py")],
            *[made for kernel in kernels for made in kernel.texts.values() if isinstance(made, str)],
        ]
    )
    assert any(re.search(rf"\b{f}\(", everything) for f in functions)


def test_functions_of_numbers_have_names_of_their_own():
    """What is fused into a kernel brings parts/number with it: no other file defines a name that is there."""
    places: dict[str, list[str]] = {}
    for name in FILES:
        for found in re.findall(r"^(?:fn|const|struct|alias|var(?:<[^>]*>)?) (\w+)", text(name), re.M):
            places.setdefault(found, []).append(name)
    numbers = {k: v for k, v in places.items() if any(f.startswith("parts/number/") for f in v)}
    assert numbers
    assert {k: v for k, v in numbers.items() if len(v) > 1} == {}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_used(name, sources):
    folder, file = name.rsplit("/", 1)
    assert (
        f'"{name}"' in sources
        or f"{folder}/{{" in sources
        or (re.search(rf'"{folder}/.*"', sources) and f'"{file}"' in sources)
    )


def test_functions_have_one_home():
    """Parts are found by the functions that they define, so no two may define the same."""
    seen: dict[str, str] = {}
    for name in FILES:
        if name.startswith("parts/"):
            for function in re.findall(r"^fn (\w+)\(", text(name), re.M):
                assert seen.setdefault(function, name) == name
