"""What a file is called that is no model: by its first bytes, and before the rest of it is read."""

import io

import numpy as np
import pytest
import safetensors.numpy

import pellucid as torch
from pellucid.errors import FormatError, SourceError
from pellucid.weights import LocalSource
from pellucid.weights.kind import describe, is_safetensors, may_be_json

CASES = [
    (b"", "is empty"),
    (b"<!doctype html><html>", "is a web page"),
    (b"\xef\xbb\xbf\r\n <html>", "is a web page"),
    (b"PK\x03\x04\x14\x00archive", "is a zip archive"),
    (b"\x1f\x8b\x08\x00", "is compressed by gzip"),
    (b"version https://git-lfs.github.com/spec/v1", "is a pointer of Git LFS"),
    (b"\x93NUMPY\x01\x00", "begins with b'"),
    (b"plain text", "begins with b'plain te'"),
]


@pytest.mark.parametrize(("begin", "words"), CASES)
def test_a_wrong_file_is_named(begin, words):
    assert words in describe(begin)
    assert not may_be_json(begin)
    with pytest.raises(FormatError, match="Give a GGUF file") as raised:
        torch.AutoTokenizer.from_pretrained(begin)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("begin", "words"), [row for row in CASES if row[0][:2] not in (b"", b"PK", b"\x93N")]
)
def test_weights_that_are_none_are_named(begin, words):
    with pytest.raises(FormatError) as raised:
        torch.AutoModelForCausalLM.from_pretrained(begin + b"." * 100)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "gpt2",
            "gpt2: there is no such file or folder, and a hub name has its owner, as openai-community/gpt2",
        ),
        ("ftp://example.org/x.gguf", "begins with ftp:, which is not read. An address begins with http"),
        ("htp://x y", "begins with htp:, which is not read"),
        (r"C:\Users\me\x.gguf", "there is no such file"),
    ],
)
def test_an_address_that_is_none_is_told_at_once(source, words):
    with pytest.raises(SourceError) as raised:
        torch.AutoModelForCausalLM.from_pretrained(source)
    assert words in str(raised.value)


@pytest.mark.parametrize("begin", [b"{", b'\xef\xbb\xbf{"a": 1}', b" " * 16, b'\n\t{"version"'])
def test_what_may_be_json_is_read(begin):
    assert may_be_json(begin)


def test_weights_alone_are_named_without_being_read(tmp_path):
    file = tmp_path / "model.safetensors"
    safetensors.numpy.save_file({"x": np.zeros(1000, "f")}, file)
    assert is_safetensors(file.read_bytes()[:16])
    source, reads = LocalSource(file), []
    read = source.read
    source.read = lambda start, stop: reads.append(stop) or read(start, stop)
    with pytest.raises(FormatError, match="is a safetensors file, which holds no tokenizer"):
        torch.AutoTokenizer.from_pretrained(source)
    assert reads == [16]


PAGE = b"<!DOCTYPE html><html><head><title>Not found</title></head></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 123456\n"
OTHERS = {
    "page": (PAGE, "is a web page"),
    "gzip": (b"\x1f\x8b\x08\x00" + PAGE, "is compressed by gzip"),
    "pointer": (POINTER, "is a pointer of Git LFS, not the file"),
}


@pytest.mark.parametrize(
    "name", ["a.gguf", "a.safetensors", "a.npz", "a.npy", "a.bin", "a.pt", "a.pt2", "a.onnx", "a.tflite"]
)
@pytest.mark.parametrize(("data", "words"), OTHERS.values(), ids=OTHERS)
def test_every_reader_names_a_file_that_is_something_else(name, data, words, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=rf"{name}: {words}") as raised:
        torch.inspect(tmp_path / name)
    assert len(str(raised.value)) < 300  # and no more than that
    if name.endswith((".npz", ".safetensors")):
        with pytest.raises(FormatError, match=words):
            torch.match(tmp_path / name, {"input": np.ones(1)})


@pytest.mark.parametrize(("data", "words"), OTHERS.values(), ids=OTHERS)
def test_documents_and_files_of_torch_save_are_named_too(data, words, tmp_path):
    for given in (tmp_path / "a.pt", io.BytesIO(data)):
        (tmp_path / "a.pt").write_bytes(data)
        with pytest.raises(FormatError, match=words):
            torch.load(given)
    for name in ("config.json", "tokenizer.json", "model.safetensors.index.json"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes(data)
        if name == "config.json":
            safetensors.numpy.save_file({"x": np.zeros(1, "f")}, folder / "model.safetensors")
        open_it = torch.AutoTokenizer if name == "tokenizer.json" else torch.AutoModelForCausalLM
        with pytest.raises(FormatError, match=rf"{name}: {words}"):
            open_it.from_pretrained(folder)


def test_the_order_of_a_recording_is_read_with_care(tmp_path):
    values = {"input": np.ones((1, 2), np.float32), "0": np.ones((1, 2), np.float32)}
    for text in ("[1]", "{}", "[" * 100_000, "no json", '["0"], "points": []'):
        safetensors.numpy.save_file(values, tmp_path / "a.safetensors", {"points": text})
        with pytest.raises(FormatError, match="points"):
            torch.match(tmp_path / "a.safetensors", dict(values))
    safetensors.numpy.save_file(values, tmp_path / "a.safetensors", {"points": '["0", "gone"]'})
    assert torch.match(tmp_path / "a.safetensors", dict(values))
