"""P-005, P-044 to P-050, P-076: what benchmarks of the grid measure holds in small."""

import ast
import gc
import importlib.util
import re
import sys

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import DTypeError

from paths import ROOT


def benchmark(name):
    """A file of benchmarks as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generations_leave_nothing_and_come_again():
    """P-044 to P-048: bytes on the device are those of the networks, and a seed gives the same bits again."""
    generations = benchmark("grid_generations")
    runs = [generations.Run() for _ in range(2)]
    gc.collect()
    pellucid.webgpu.synchronize()
    beside = []
    for k in range(25):
        runs[0].generation()
        if k in (4, 14, 24):
            beside.append(generations.settled(runs[0])["live_bytes"])
        if k == 7:
            digest = runs[0].bits()
    assert len(set(beside)) == 1
    for _ in range(8):
        runs[1].generation()
    assert runs[1].bits() == digest
    runs[1].generation()
    assert runs[1].bits() != digest


def test_files_and_times_of_every_kind(monkeypatch, capsys):
    """P-049, P-050, P-076: 21 rows; files of each kind come back, and bits say how long they are."""
    monkeypatch.setattr(sys, "argv", ["grid_precisions", "--size", "64"])
    precisions = benchmark("grid_precisions")
    monkeypatch.setattr(precisions, "REPEAT", 1)
    assert precisions.main() == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert len(rows) == 21
    assert all(row[-1] == "yes" for row in rows)
    size = {row[0]: int(row[1]) for row in rows}
    assert size["binary"] < size["int2"] < size["int4"] < size["int8"] < size["int16"] < size["int32"]
    assert all(float(n) > 0 for row in rows for n in row[4:6])


def test_the_six_networks_are_those_of_the_table():
    """P-076, P-078: the docs have a row for each of the benchmark, with a loss that falls."""
    text = (ROOT / "benchmarks" / "grid_networks.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+) .*": \(', text, re.MULTILINE)
    assert len(names) == 6
    table = (
        (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").partition("### Networks of the grid")
    )
    rows = [
        row.split("|")[1:-1]
        for row in table[2].split("\n##")[0].splitlines()
        if re.match(r"\| (dense|conv|of)", row)
    ]
    assert len(rows) == 6
    for row in rows:
        assert float(row[4]) < 0.1 * float(row[3])


UNSIGNED = ("uint32", "uint16", "uint8")
NUMBERS = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", *UNSIGNED, "bool")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", NUMBERS)
def test_every_pair_of_dtypes(source, device):
    """P-005: `.to(dtype)` of every pair as in PyTorch; float64 only where it is, on the CPU."""
    if source == "float64" and device == "webgpu":
        with pytest.raises(DTypeError, match="does not exist on webgpu"):
            pellucid.zeros(1, device=device).to(pellucid.float64)
        return
    values = np.resize(np.array([0, 1, -1, 3.7, -2.5, 100, 1e-3, 127], np.float32), 1031)
    whole = torch.tensor(np.abs(values) if source in UNSIGNED else values).to(getattr(torch, source))
    ours = pellucid.tensor(whole.float().numpy(), device=device).to(getattr(pellucid, source))
    for target in NUMBERS[device == "webgpu" :]:
        for part in (slice(0), slice(1), slice(7), slice(1, None, 2)):
            found = ours[part].to(getattr(pellucid, target))
            right = whole[part].to(getattr(torch, target))
            assert (found.dtype.name, found.shape) == (target, right.shape)
            # Of negative numbers C leaves it open.
            keep = whole[part].double().numpy() >= 0 if target in UNSIGNED else slice(None)
            np.testing.assert_array_equal(
                found.float().numpy()[keep], right.float().numpy()[keep], err_msg=f"{target} {part}"
            )


def ids_of(text):
    found = {int(n) for n in re.findall(r"P-(\d{3})", text)}
    for first, last in re.findall(r"P-(\d{3}) to P-(\d{3})", text):
        found |= set(range(int(first), int(last) + 1))
    return found


def test_every_id_has_a_test():
    """Each stands in the name or docstring of a test, or at the head of a file of tests that are about it."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        tests = [n for n in module.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
        for node in (module, *tests):
            found |= ids_of(f"{getattr(node, 'name', '')} {ast.get_docstring(node) or ''}".replace("_", "-"))
    assert sorted(set(range(1, 102)) - found) == []


def test_what_a_page_cannot_have_is_said():
    """Of a few ids a part is missing, in the docs with its reason."""
    text = (ROOT / "docs" / "grid.md").read_text(encoding="utf-8").partition("Not here, because")[2]
    for missing in ("caches", "files\nmapped into memory", "buses", "NPUs", "CUDA", "C#"):
        assert missing in text
