"""Bad input is answered by a clear typed error, and nothing of it stays: in a page and natively."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from models.gguf_files import written
from models.tiny import made, saved
from weights.file_server import FileServer

from paths import SCRIPTS

PROGRAM = Path(__file__).parent / "bad_input_page" / "page.py"
HTML = b"<!doctype html><title>Not here</title>" * 40
# name -> (class of the error, what its text says)
FILES = {
    "truncated.gguf": ("FormatError", ["truncated.gguf", "cut short or damaged"]),
    "short_header.gguf": ("FormatError", ["short_header.gguf"]),
    "magic.gguf": ("FormatError", ["magic.gguf"]),
    "page.gguf": ("FormatError", ["page.gguf"]),
    "nothing.gguf": ("FormatError", ["nothing.gguf"]),
    "count.gguf": ("FormatError", ["count.gguf", f"claims {1 << 60:,} tensors"]),
    "past.gguf": ("FormatError", ["past.gguf"]),
    "absent.gguf": ("MissingFile", ["absent.gguf", "404"]),
    "cut.gguf": ("SourceError", ["cut.gguf", "attempts"]),
    "truncated": ("FormatError", ["truncated/model.safetensors"]),
    "header": ("FormatError", ["header/model.safetensors"]),
    "past": ("FormatError", ["past/model.safetensors"]),
    "absent": ("MissingFile", ["/absent: has none of model.safetensors, "]),
    "cut": ("SourceError", ["cut/model.safetensors", "attempts"]),
    "mismatch": ("WeightError", ["(32, 64)", "(32, 96)"]),
}
CALLS = {
    "float64": ("DTypeError", ["float64 does not exist on webgpu", "float32"]),
    "float64 made there": ("DTypeError", ["float64 does not exist on webgpu", "float32"]),
    "mixed devices": ("DeviceError", ["'input' is on webgpu and 'other' is on cpu", ".to('webgpu')"]),
    "shapes": ("ShapeError", ["(2, 3)", "(4,)", "do not broadcast"]),
    "matmul": ("ShapeError", ["(2, 3)", "(4, 5)", "cannot be multiplied"]),
    "index": ("IndexOutOfRange", ["index 7 is out of range for 4 entries"]),
    "row": ("IndexOutOfRange", ["embedding", "index -3 is out of range for 4 entries"]),
    "axis": ("DimensionError", ["sum", "2"]),
    "backward twice": ("GradientError", ["retain_graph"]),
    "changed in between": ("GradientError", ["exp", "changed in place"]),
    "no gradient": ("GradientError", ["requires_grad"]),
    "a gradient of several": ("GradientError", ["(3,)"]),
    "state": ("WeightError", ["first.weight", "second.weight", "(3, 4)", "(5, 4)"]),
    "too much": ("OutOfMemoryError", ["4000 bytes more", "set_memory_limit"]),
    "too large": ("DeviceError", [str(4 << 40), "over this device's limit"]),
    "a bool of several": ("ShapeError", ["3"]),
    "an item of several": ("ShapeError", ["3"]),
    "ragged": ("ShapeError", ["tensor"]),
    "a device": ("DeviceError", ["'cuda' does not exist"]),
    "numpy of a gradient": ("GradientError", ["detach()"]),
}
# What a PyTorch user would catch.
ALSO = {
    "DTypeError": "TypeError", "ShapeError": "RuntimeError", "DimensionError": "IndexError",
    "DeviceError": "RuntimeError", "IndexOutOfRange": "IndexError", "GradientError": "RuntimeError",
    "WeightError": "RuntimeError", "OutOfMemoryError": "RuntimeError", "FormatError": "ValueError",
    "SourceError": "OSError", "MissingFile": "OSError",
}  # fmt: skip


def folders(tmp_path: Path) -> dict[str, bytes]:
    """Folders of a tiny Llama, one good and the others damaged, by address."""
    good = saved(made("llama", intermediate_size=64), tmp_path / "good")
    config = json.loads((good / "config.json").read_text())
    data = (good / "model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    header["model.norm.weight"]["data_offsets"][1] += 1 << 30
    text = json.dumps(header).encode()
    damaged = {
        "good": data,
        "truncated": data[:-100],
        "header": struct.pack("<Q", 1 << 60) + data[8:],
        "past": struct.pack("<Q", len(text)) + text + data[8 + struct.unpack("<Q", data[:8])[0] :],
        "cut": data,
        "mismatch": data,
    }
    files = {f"/{name}/model.safetensors": bytes_ for name, bytes_ in damaged.items()}
    other = json.dumps({**config, "intermediate_size": 96}).encode()
    plain = json.dumps(config).encode()
    return files | {f"/{name}/config.json": other if name == "mismatch" else plain for name in damaged}


def ggufs(tmp_path: Path) -> dict[str, bytes]:
    """The same model as a GGUF, damaged in other ways."""
    good = written(made("llama", intermediate_size=64), tmp_path / "good.gguf", "q4_0").read_bytes()
    past = bytearray(good)
    # The last number of a tensor's entry is its offset; this one belongs to the last norm.
    name = b"output_norm.weight"
    at = good.index(name) + len(name) + 4 + 8 + 4
    past[at : at + 8] = struct.pack("<Q", 1 << 40)
    return {
        "/good.gguf": good,
        "/cut.gguf": good,
        "/truncated.gguf": good[:-100],
        "/short_header.gguf": good[:300],
        "/magic.gguf": b"GGML" + good[4:],
        "/count.gguf": good[:8] + struct.pack("<Q", 1 << 60) + good[16:],
        "/past.gguf": bytes(past),
        "/page.gguf": HTML,
        "/nothing.gguf": b"",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = FileServer()
    running.files = ggufs(tmp_path_factory.mktemp("gguf")) | folders(tmp_path_factory.mktemp("folders"))

    def allow(request):
        """No answer goes past the middle of these."""
        if not request.path.startswith(("/cut.gguf", "/cut/model")):
            return None
        return max(0, len(running.files[request.path]) // 2 - request.start)

    running.allow = allow
    yield running
    running.stop()


@pytest.fixture(scope="module", params=["browser", "native"])
def said(request, server):
    """What the program said, by name."""
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--timeout=140"]
    command += ["--native"] if request.param == "native" else []
    environment = {**os.environ, "PELLUCID_TEST_URL": server.url}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", [*FILES, *CALLS])
def test_the_error_is_clear_and_nothing_is_leaked(said, name):
    expected, words = {**FILES, **CALLS}[name]
    line = said[name]
    assert line["error"] == expected, line
    assert {ALSO[expected], "PellucidError"} <= set(line["classes"])
    assert all(word in line["text"] for word in words), line["text"]
    assert line["after"] == line["before"]


@pytest.mark.parametrize("name", ["good.gguf", "good"])
def test_the_undamaged_files_load_and_go(said, name):
    assert said[name]["error"] is None, said[name]
    assert said[name]["after"] == said[name]["before"]


def test_a_lost_device_is_said_until_it_is_reset(said):
    for name in ("lost, read", "lost, op"):
        assert said[name]["error"] == "DeviceError", said[name]
        assert "pellucid.webgpu.reset()" in said[name]["text"]
    assert said["reset"]["values"] == [0, 2, 4, 6, 8]


def test_without_an_adapter_the_error_names_what_is_missing_and_the_way_out():
    program = PROGRAM.with_name("no_webgpu.py")
    flags = ["--chromium-arg=--disable-gpu", "--chromium-arg=--disable-software-rasterizer", "--timeout=60"]
    command = [sys.executable, SCRIPTS / "browser", program, *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["error"] == "DeviceError"
    assert "device webgpu: WebGPU is there, but it found no adapter" in said["text"]
    assert "pellucid.set_default_device('cpu')" in said["text"]
    assert (said["available"], said["on_cpu"]) == (False, [1.0, 2.0])
