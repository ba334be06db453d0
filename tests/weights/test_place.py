"""What a ``source`` argument means, and what a folder holds."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from pellucid import weights
from pellucid.errors import FormatError, SourceError
from pellucid.weights import MissingFile, settings
from pellucid.weights.place import Place, find
from weights import samples

ARRAYS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 8}


def folder(path: Path) -> Path:
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "tokenizer.json").write_text('{"model": {}}')
    (path / "model.safetensors").write_bytes(samples.safetensors_file(ARRAYS))
    return path


@pytest.fixture
def hub(server, monkeypatch):
    """A model hub with one model, with a token asked for."""
    base = "/org/name/resolve/main/"
    server.files |= {
        base + "config.json": json.dumps(CONFIG).encode(),
        base + "tokenizer.json": b"{}",
        base + "model.safetensors": samples.safetensors_file(ARRAYS),
        "/org/name/resolve/refs%2Fpr%2F1/model.safetensors": samples.safetensors_file({"y": ARRAYS["x"]}),
    }
    monkeypatch.setattr(settings, "hub_endpoint", server.url)
    monkeypatch.setattr(settings, "hub_token", None)
    return server


def test_bytes_paths_and_sources_are_files(tmp_path):
    folder(tmp_path)
    data = (tmp_path / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    for source in (data, bytearray(data), memoryview(data), path, str(path), path.as_uri(), find(data)):
        assert weights.open(source)["x"].shape == (2, 3)


def test_addresses_of_the_hubs_own_pages_mean_the_model(hub):
    for address in ("/org/name", "/org/name/", "/org/name/tree/main", "/org/name?library=x"):
        assert weights.open_folder(hub.url + address).checkpoint["x"].shape == (2, 3)
    assert weights.open(hub.url + "/org/name/tree/refs%2Fpr%2F1")["y"].shape == (2, 3)
    assert weights.open(hub.url + "/org/name/blob/main/model.safetensors?download=true")["x"].shape == (2, 3)


def test_a_folder_has_its_files(tmp_path):
    opened = weights.open_folder(folder(tmp_path))
    assert opened.config == CONFIG
    assert opened.checkpoint["x"].dtype == "float32"
    assert opened.json("tokenizer.json") == {"model": {}}
    assert opened.read("absent.json") is None
    assert "config.json" in repr(opened)


def test_a_lone_gguf_is_found_and_two_must_be_chosen_from(tmp_path):
    samples.gguf_file(tmp_path / "one.gguf")
    opened = weights.open_folder(tmp_path)
    assert opened.config is None
    assert opened.checkpoint.metadata["general.architecture"] == "llama"
    samples.gguf_file(tmp_path / "two.gguf")
    with pytest.raises(SourceError, match=r"2 files of weights \(one.gguf, two.gguf\).*filename="):
        weights.open_folder(tmp_path)
    assert weights.open_folder(tmp_path, filename="two.gguf").checkpoint.name.endswith("two.gguf")
    assert weights.open(tmp_path, filename="two.gguf").format == "gguf"


def test_a_gguf_file_is_a_folder_of_its_own(tmp_path):
    samples.gguf_file(tmp_path / "one.gguf")
    opened = weights.open_folder(str(tmp_path / "one.gguf"))
    assert opened.checkpoint.format == "gguf"
    assert opened.config is None
    assert opened.read("config.json") is None


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(MissingFile, match="there is no such file"):
        weights.open(tmp_path / "absent.gguf")
    with pytest.raises(FileNotFoundError, match=r"neither model.safetensors"):
        weights.open(tmp_path)
    with pytest.raises(SourceError, match="a float is not a URL"):
        weights.open(1.5)
    with pytest.raises(SourceError, match="is a file already"):
        weights.open(b"", filename="x")


def test_a_config_that_is_no_json_is_a_format_error(tmp_path):
    for text, why in (("<html>", "is a web page"), ("{no", "not valid JSON")):
        (folder(tmp_path) / "config.json").write_text(text)
        with pytest.raises(FormatError, match=rf"config.json: {why}"):
            weights.open_folder(tmp_path)


def test_a_local_file_that_changes_is_an_error(tmp_path):
    path = folder(tmp_path) / "model.safetensors"
    checkpoint = weights.open(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceError, match="changed while it was being read"):
        weights.read(checkpoint, list(checkpoint.values()))


def test_an_url_without_a_file_suffix_is_a_folder(server):
    server.files |= {
        "/models/a/config.json": json.dumps(CONFIG).encode(),
        "/models/a/model.safetensors": samples.safetensors_file(ARRAYS),
    }
    for url in (f"{server.url}/models/a", f"{server.url}/models/a/"):
        opened = weights.open_folder(url)
        assert opened.config == CONFIG
        assert list(opened.checkpoint) == ["x"]
    with pytest.raises(MissingFile, match="filename="):
        weights.open(f"{server.url}/models/b")


def test_a_hub_id(hub):
    opened = weights.open_folder("org/name")
    assert opened.config == CONFIG
    assert list(opened.checkpoint) == ["x"]
    assert opened.read("tokenizer.json") == b"{}"
    assert {r.headers.get("Authorization") for r in hub.log} == {None}


def test_a_revision_a_filename_and_a_token(hub):
    hub.files["/org/name/resolve/v1/sub/other%20name.safetensors"] = samples.safetensors_file(
        {"z": ARRAYS["x"]}
    )
    assert list(weights.open("org/name", revision="refs/pr/1")) == ["y"]
    checkpoint = weights.open("org/name", revision="v1", filename="sub/other name.safetensors", token="t")
    assert list(checkpoint) == ["z"]
    assert hub.log[-1].headers["Authorization"] == "Bearer t"


def test_the_hubs_own_token_goes_to_no_other_endpoint(hub, monkeypatch):
    monkeypatch.setattr(settings, "hub_token", "own")
    weights.open("org/name")
    assert {r.headers.get("Authorization") for r in hub.log} == {"Bearer own"}
    other = type(hub)()
    try:
        other.files = dict(hub.files)
        weights.open("org/name", endpoint=other.url)
        assert {r.headers.get("Authorization") for r in other.log} == {None}
    finally:
        other.stop()


def test_a_hub_model_of_one_gguf_is_found_by_its_listing(hub, tmp_path):
    hub.files["/org/quantized/resolve/main/m.Q4_1.gguf"] = samples.gguf_file(tmp_path / "m.gguf")
    listing = {"siblings": [{"rfilename": "README.md"}, {"rfilename": "m.Q4_1.gguf"}]}
    hub.files["/api/models/org/quantized/revision/main"] = json.dumps(listing).encode()
    assert weights.open("org/quantized").format == "gguf"


def test_a_hub_id_that_is_a_local_folder_is_that_folder(tmp_path, monkeypatch):
    (tmp_path / "org" / "name").mkdir(parents=True)
    folder(tmp_path / "org" / "name")
    monkeypatch.chdir(tmp_path)
    assert list(weights.open("org/name")) == ["x"]


def test_a_path_relative_to_an_origin(server, monkeypatch):
    monkeypatch.setattr(settings, "origin", server.url)
    server.files["/mount/m.safetensors"] = samples.safetensors_file(ARRAYS)
    for path in ("/mount/m.safetensors", "mount/m.safetensors", "./mount/m.safetensors"):
        assert list(weights.open(path)) == ["x"]


@pytest.mark.parametrize("name", ["org/name", "a-b/c.d_e", "Qwen/Qwen3-0.6B"])
def test_hub_ids(name):
    place = find(name)
    assert isinstance(place, Place)
    assert place.file("f.json").name == f"https://huggingface.co/{name}/resolve/main/f.json"


@pytest.mark.parametrize("name", ["models/x.gguf", "a/b/c", "./a/b", "x.safetensors", "/a/b"])
def test_paths(name):
    assert isinstance(find(name), weights.LocalSource)
