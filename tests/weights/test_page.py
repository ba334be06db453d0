"""Loads in a real page, judged by the server's log and by what the page reads back from the device."""

import hashlib
import io
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pellucid import weights
from pellucid.weights.header import LARGEST_READ
from weights import samples
from weights.file_server import FileServer

from paths import ROOT, SCRIPTS

pytestmark = pytest.mark.browser
SLACK = 1.05
HELD = 32_000_000  # bytes of downloads, in a file of twice as many
PATHS = ["/plain.safetensors", "/dropped.safetensors", "/unranged.safetensors", "/hidden.safetensors"]


@pytest.fixture(scope="module")
def model():
    """Sixteen megabytes: large tensors, and many small ones of odd sizes."""
    random = np.random.default_rng(3)
    arrays = {f"{k:02}.large": random.integers(0, 255, 4_000_003, dtype=np.uint8) for k in range(4)}
    arrays |= {f"{k:02}.small": random.integers(0, 255, 101 + k, dtype=np.uint8) for k in range(50)}
    return samples.safetensors_file(arrays)


@pytest.fixture(scope="module")
def long_model():
    """Sixty-four megabytes."""
    random = np.random.default_rng(4)
    return samples.safetensors_file({f"{k}": random.integers(0, 255, 8_000_000, np.uint8) for k in range(8)})


def other_formats():
    """Matrices in a file of PyTorch, one of which lies by columns, and compressed ones of numpy."""
    random = np.random.default_rng(5)
    tensors = {f"t{k}": torch.from_numpy(random.standard_normal((400, 300 + k))) for k in range(3)}
    tensors["t1"] = tensors["t1"].T
    files = {"/pytorch.bin": io.BytesIO(), "/arrays.npz": io.BytesIO()}
    torch.save(tensors, files["/pytorch.bin"])
    np.savez_compressed(files["/arrays.npz"], **{name: t.numpy() for name, t in tensors.items()})
    whole = b"".join(np.ascontiguousarray(t.numpy()).tobytes() for t in tensors.values())
    return {path: file.getvalue() for path, file in files.items()}, hashlib.sha256(whole).hexdigest()


@pytest.fixture(scope="module")
def server(model, long_model):
    running = FileServer()
    names = ("plain", "dropped", "unranged", "tape", "hidden", "cut", "changed", "refused", "slow", "slower")
    running.files = {f"/{name}.safetensors": model for name in names}
    running.files["/long.safetensors"] = long_model
    running.files |= other_formats()[0]
    running.files["/html.safetensors"] = b"<!doctype html><title>Not here</title>" * 9
    running.unranged = {"/unranged.safetensors", "/tape.safetensors"}
    running.hidden = {"/hidden.safetensors"}
    dropped = []

    def allow(request):
        at = len(model) * 6 // 10
        if request.path == "/dropped.safetensors" and request.start < at < request.stop and not dropped:
            dropped.append(request)
            return at - request.start
        return max(0, 5_000_000 - request.start) if request.path == "/cut.safetensors" else None

    def etag(request):
        changed = (
            request.path == "/changed.safetensors" and sum(r.path == request.path for r in running.log) > 2
        )
        return '"v2"' if changed else '"v1"'

    running.allow, running.etag = allow, etag
    running.answer = lambda request: 403 if request.path == "/refused.safetensors" else None
    # Slow enough for requests to overlap, and for the page to have taken what was sent before a connection
    # drops: a browser then throws away what waits in its own queues.
    running.pace = {f"/{name}.safetensors": 0.005 for name in ("plain", "dropped")}
    running.pace |= {f"/{name}.safetensors": 0.05 for name in ("slow", "slower")}
    yield running
    running.stop()


@pytest.fixture(scope="module")
def said(server):
    """What the page said, by name; one boot of the browser for all tests of this file."""
    program = Path(__file__).parent / "page_load.py"
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=200"]
    watch = runpy.run_path(str(ROOT / "benchmarks" / "_downloads.py"))["WATCH"]
    environment = {**os.environ, "PELLUCID_TEST_URL": server.url, "PELLUCID_TEST_WATCH": watch}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    result: dict[str, list[dict]] = {}
    for line in lines:
        result.setdefault(line["name"], []).append(line)
    return result


def digest(model):
    """Of all tensors, in the file's order."""
    checkpoint = weights.open(model)
    return hashlib.sha256(b"".join(model[t.start : t.stop] for t in checkpoint.values())).hexdigest()


@pytest.mark.parametrize("path", PATHS)
def test_the_device_has_every_byte(said, model, path):
    (load,) = said[path]
    assert load["digest"] == digest(model)
    assert (load["first"], load["last"]) == (0, load["total"])
    assert load["reports"] >= 2
    assert load["grown"] < 20e6


@pytest.mark.parametrize("path", ["/pytorch.bin", "/arrays.npz"])
def test_files_of_pytorch_and_numpy_are_loaded(said, path):
    (load,) = said[path]
    assert load["digest"] == other_formats()[1]
    assert load["last"] == load["total"]


# Chunks that were read are held until the browser collects garbage, later on a busy machine.
@pytest.mark.parametrize(
    ("name", "held"), [("/long.safetensors", HELD), ("chunks of /long.safetensors", 1.5 * HELD)]
)
def test_what_javascript_holds_does_not_grow_with_the_file(said, long_model, name, held):
    (load,) = said[name]
    assert load["digest"] == digest(long_model)
    assert load["arrived"] >= load["total"] >= 2 * HELD, "the watch saw every byte"
    assert 0 < load["held"] <= held


def test_a_server_without_range_feeds_browsers_without_byte_readers(said, model):
    (load,) = said["chunks of /tape.safetensors"]
    assert load["digest"] == digest(model)


def test_requests_are_of_limited_size_and_several_are_in_flight(said, server, model):
    log = [r for r in server.log if r.path == "/plain.safetensors" and r.status == 206]
    assert max(r.stop - r.start for r in log) <= LARGEST_READ
    assert log[0].stop - log[0].start <= 1 << 18
    assert server.most_in_flight("/plain.safetensors") >= 3


def test_a_dropped_connection_goes_on_where_it_stopped(said, server, model):
    assert said["/dropped.safetensors"]
    assert server.sent("/dropped.safetensors") <= SLACK * len(model)


def test_a_server_without_range_is_one_download(said, server, model):
    assert said["/unranged.safetensors"]
    assert server.sent("/unranged.safetensors") == len(model)
    assert sum(r.path == "/unranged.safetensors" for r in server.log) == 1


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("/absent.safetensors", "MissingFile", "there is no such file (status 404)"),
        ("/refused.safetensors", "SourceError", "access refused (status 403)"),
        ("/cut.safetensors", "SourceError", "after 4 attempts"),
        ("/changed.safetensors", "SourceError", "the file changed while it was being read"),
        ("/html.safetensors", "FormatError", "is a web page"),
    ],
)
def test_errors_are_those_of_the_desktop(said, server, path, error, text):
    (refusal,) = said[path]
    assert refusal["error"] == error
    assert text in refusal["text"]
    assert refusal["text"].startswith(f"{server.url}{path}: ")


@pytest.mark.parametrize(("path", "error"), [("/slow", "LoadCancelled"), ("/slower", "CancelledError")])
def test_nothing_is_written_after_a_cancellation(said, server, model, path, error):
    (cancelled,) = said[f"{path}.safetensors"]
    assert cancelled["error"] == error
    assert cancelled["later"] == 0
    assert server.sent(f"{path}.safetensors") < len(model)


def test_files_and_bytes_are_sources(said, model):
    for load, name in zip(said["source"], ("chosen.safetensors", "bytes"), strict=True):
        assert load["file"] == name
        assert load["digest"] == load["cpu"] == digest(model)


def test_where_python_cannot_wait_the_twin_is_named(said):
    (callback,) = said["callback"]
    assert callback["error"] == "SourceError"
    assert "_async" in callback["text"]
