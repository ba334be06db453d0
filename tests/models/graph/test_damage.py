"""Damaged and hostile files of exported programs: typed errors, in bounded time and memory."""

import json
import random
import struct
import time
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

import pellucid
from models.graph.damage import changed, disturb, packed, parts
from models.graph.programs import exported, saved
from pellucid import export
from pellucid.errors import FormatError, LoadCancelled, MissingError, PellucidError
from pellucid.models.graph.sizes import parse
from pellucid.weights import Cancel

SECONDS = 2  # for each kind of damage


class Model(nn.Module):
    """A little of all that a document holds."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(3), persistent=False)

    def forward(self, x, scale=2.0, *, more=None):
        with torch.no_grad():
            self.seen.add_(x.sum() * float("inf"))
        parts = torch.split(self.inner(x), [1, 2], 1)
        return {"a": parts[0] * scale, "b": [parts[1].flatten(), x.shape[0]]}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = torch.ones(5, 4)
    program = exported(Model(), (x,), {"more": None}, {"x": {0: torch.export.Dim.DYNAMIC}, "more": None})
    return saved(program, tmp_path_factory.mktemp("damage") / "model.pt2")


def attempt(data: bytes, run: bool = True) -> bool:
    """Whether the file loads and runs."""
    try:
        program = export.load(data, device="cpu")
        if run:
            program(pellucid.ones(3, 4, device="cpu"), more=None)
    except PellucidError:
        return False
    return True


def test_damaged_documents_give_typed_errors(path, tmp_path):
    assert attempt(path.read_bytes())
    entries = parts(path)
    names = [n for n in entries if n.endswith(".json")]
    rng, begun, count, fine = random.Random(1), time.monotonic(), 0, 0
    while time.monotonic() - begun < SECONDS:
        name = rng.choice((names[-1], names[-1], *names))
        document = json.loads(entries[name])
        disturb(document, rng)
        made = packed(entries | {name: json.dumps(document).encode()}, tmp_path / "a.pt2").read_bytes()
        count, fine = count + 1, fine + attempt(made)
    assert count > 10
    assert fine < count


def test_damaged_bytes_give_typed_errors(path):
    data = path.read_bytes()
    rng, begun, count = random.Random(2), time.monotonic(), 0
    while time.monotonic() - begun < SECONDS / 2:
        made = bytearray(data)
        kind = rng.random()
        if kind < 0.3:
            del made[rng.randrange(len(made)) :]
        elif kind < 0.5:
            at = rng.randrange(len(made))
            del made[at : at + rng.choice((1, 2, 64, 1000))]
        for _ in range(rng.choice((1, 1, 4, 30))):
            if made:
                # Most of what matters is at the end.
                at = (
                    rng.randrange(len(made))
                    if rng.random() < 0.3
                    else len(made) - 1 - rng.randrange(min(len(made), 1500))
                )
                made[at] = rng.choice((0, 1, 255, rng.randrange(256)))
        attempt(bytes(made), run=False)
        count += 1
    assert count > 10


def test_what_is_wrong_is_said(path, tmp_path):
    entries = parts(path)
    program = "models/model.json"

    def refused(change, text: str, end: str = program, error=FormatError):
        with pytest.raises(error, match=text):
            export.load(changed(path, tmp_path, change, end), device="cpu")

    def graph(document):
        return document["graph_module"]["graph"]

    refused(lambda d: d.update(schema_version={"major": 9, "minor": 0}), r"schema has version 9; 8 is read")
    refused(
        lambda d: graph(d)["nodes"][0].update(target=3),
        r"models/model\.json: graph_module\.graph\.nodes\[0\]\.target is 3; it must be a text",
    )
    refused(
        lambda d: graph(d)["nodes"][-1]["inputs"][0].update(arg={"as_tensor": {"name": "nope"}}),
        r"node '\w+' \(aten\.\S+\).* uses 'nope', which nothing before it makes",
    )
    refused(lambda d: graph(d)["nodes"][-1].update(target="os.system"), r"os\.system \(", error=MissingError)
    refused(lambda d: graph(d)["outputs"].pop(), r"outputs")
    refused(lambda d: d["graph_module"]["signature"]["input_specs"].pop(), r"its signature \d")

    def deep(document):
        called = document["graph_module"]["module_call_graph"][0]["signature"]
        called["in_spec"] = called["in_spec"].replace(json.dumps('["more"]'), json.dumps("[" * 60_000))

    refused(deep, r"in_spec: a context: brackets nest deeper than 64 levels")
    weights = "weights_config.json"
    refused(
        lambda d: d["config"]["inner.weight"]["tensor_meta"]["sizes"].__setitem__(0, {"as_int": 99}),
        r"reaches element 395, and its file has 12",
        weights,
    )
    refused(lambda d: d["config"]["inner.weight"].update(use_pickle=True), "by pickle", weights, MissingError)
    refused(lambda d: d["config"].pop("inner.bias"), r"holds no values of inner\.bias", weights)
    refused(
        lambda d: d["config"]["inner.bias"].update(path_name="../x"),
        r"has no entry 'data/weights/\.\./x'",
        weights,
    )
    deflated = packed(entries, tmp_path / "b.pt2", zipfile.ZIP_DEFLATED).read_bytes()
    swapped = {n: b"big" if n.endswith("byteorder") else data for n, data in entries.items()}
    for data, told in (
        (deflated, r"is compressed\. .*'stored'"),
        (path.read_bytes()[:-30], r"has no directory at its end"),
        (b"GGUF" + bytes(100), r"is a GGUF file; a zip archive was expected"),
        (b"", r"is empty; a zip"),
        (packed({"a/b": b"1"}, tmp_path / "c.pt2").read_bytes(), r"'archive_format'.*export\.save"),
        (packed({"a/data.pkl": b"1"}, tmp_path / "e.pt2").read_bytes(), r"torch\.save wrote it"),
        (packed(swapped, tmp_path / "d.pt2").read_bytes(), r"its byteorder is b'big'; b'little' was"),
    ):
        with pytest.raises(FormatError, match=told):
            export.load(data, device="cpu")


def test_large_archives_and_other_writers(path, tmp_path):
    """Numbers of 64 bits, and headers that are not aligned as PyTorch aligns them."""
    entries = parts(path)
    with zipfile.ZipFile(tmp_path / "a.pt2", "w") as archive:
        for name, data in entries.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as file:
                file.write(data)
    data = (tmp_path / "a.pt2").read_bytes()
    at = data.rindex(b"PK\5\6")
    count, length, start = struct.unpack_from("<HII", data, at + 10)
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, start)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at, 1)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert attempt(data)
    assert attempt(data[:at] + record + locator + end)


def test_a_load_is_cancelled_and_reported(path):
    seen = []
    export.load(path, device="webgpu", on_progress=seen.append)
    assert seen[-1].bytes_done == seen[-1].bytes_total == 72
    cancel = Cancel()
    cancel.cancel()
    before = pellucid.webgpu.memory_allocated()
    with pytest.raises(LoadCancelled):
        export.load(path, device="webgpu", cancel=cancel)
    assert pellucid.webgpu.memory_allocated() <= before


def test_expressions_are_never_run():
    for text in ("__import__('os')", "(1).__class__", "L['x'].shape()", "(" * 300, "lambda: 1", "Add(*[1])"):
        assert parse(text) is None, text
    with pytest.raises(ValueError, match="power out of range"):
        parse("Pow(Integer(9), Pow(Integer(9), Integer(9)))")({})
