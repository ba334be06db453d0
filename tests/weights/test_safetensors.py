"""The safetensors reader against the library that defines the format, and against files that are wrong."""

import json

import numpy as np
import pytest
import safetensors
import torch
from safetensors.torch import save as save_torch

from pellucid import weights
from pellucid.errors import FormatError
from pellucid.weights.formats.safetensors import DTYPES
from weights import samples
from weights.samples import entry
from weights.samples import safetensors_raw as raw

TORCH = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
    torch.complex64: "complex64",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.float8_e5m2: "float8_e5m2",
    torch.uint16: "uint16",
    torch.uint32: "uint32",
    torch.uint64: "uint64",
}


def test_a_good_file_is_what_the_library_reads():
    arrays = samples.arrays(scale=40)
    data = samples.safetensors_file(arrays, {"format": "np", "é": "ü"})
    checkpoint = weights.open(data)
    assert checkpoint.metadata == {"format": "np", "é": "ü"}
    assert set(checkpoint) == set(arrays)
    infos = list(checkpoint.values())
    for info, got in zip(infos, weights.read(checkpoint, infos), strict=True):
        want = arrays[info.name]
        assert (info.shape, info.dtype) == (want.shape, want.dtype.name)
        assert got.tobytes() == want.tobytes()
    assert checkpoint.nbytes == sum(a.nbytes for a in arrays.values())
    assert checkpoint.numel == sum(a.size for a in arrays.values())


@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_every_dtype_of_torch(dtype):
    """P-071, P-099: every type of safetensors is read."""
    x = torch.zeros(3, 4).to(dtype)
    info = weights.open(save_torch({"x": x}))["x"]
    assert (info.dtype, info.shape, info.nbytes) == (TORCH[dtype], (3, 4), x.nbytes)


def test_every_name_of_the_format_is_known_to_the_library():
    for name, (_, bits) in DTYPES.items():
        data = raw({"x": entry(name, [24], [0, 3 * bits])}, bytes(3 * bits))
        assert weights.open(data)["x"].nbytes == 3 * bits
        safetensors.deserialize(data)  # raises if the name, or the size we expect, is not the library's


def test_the_table_and_the_summary():
    checkpoint = weights.open(samples.safetensors_file({"x": np.zeros((2, 3), np.float32)}))
    assert str(checkpoint) == (
        "name  shape  dtype    bytes\n"
        "x     2x3    float32     24\n"
        "1 tensors, 6 parameters, 24 bytes in 1 file (safetensors)"
    )
    assert repr(checkpoint) == "<Checkpoint bytes: safetensors, 1 tensors, 6 parameters, 24 bytes>"


def test_a_missing_name_says_what_to_do():
    checkpoint = weights.open(samples.safetensors_file({"x": np.zeros(1, np.float32)}))
    with pytest.raises(ValueError, match="bytes: has no tensor 'y'"):
        checkpoint["y"]
    assert "y" not in checkpoint
    assert checkpoint.get("x") is not None


TWO = {"x": entry(), "y": entry(offsets=[8, 16])}
MALFORMED = {
    "empty file": (b"", "cut short"),
    "four bytes": (b"\1\0\0\0", "cut short"),
    "header past the end": (raw({}, length=100), "cut short"),
    "header of 2**60 bytes": (raw({}, length=1 << 60), "of another format"),
    "header of 2**64-1 bytes": (raw({}, length=(1 << 64) - 1), "of another format"),
    "not an object": (raw(b"[1, 2]  "), "not a safetensors"),
    "bad JSON": (raw(b'{"x": }'), "not valid JSON"),
    "bad UTF-8": (raw(b'{"\xff": 1}'), "not valid JSON"),
    "two objects": (raw(b"{}{}"), "not valid JSON"),
    "deep nesting": (raw(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nest deeper"),
    "a number of 5,000 digits": (raw(b'{"x":' + b"9" * 5000 + b"}"), "not valid JSON"),
    "the same name twice": (
        raw(b'{"x":%s,"x":%s}' % ((json.dumps(entry()).encode(),) * 2), bytes(8)),
        "occurs twice",
    ),
    "lone surrogate": (raw(b'{"\\ud800":' + json.dumps(entry()).encode() + b"}", bytes(8)), "not UTF-8"),
    "no name": (raw({"": entry()}, bytes(8)), "a name has 0 bytes"),
    "metadata of numbers": (raw({"__metadata__": {"a": 1}}), "__metadata__"),
    "metadata that is a list": (raw({"__metadata__": ["a"]}), "__metadata__"),
    "entry that is a list": (raw({"x": [1]}), "exactly dtype"),
    "entry without a shape": (raw({"x": {"dtype": "F32", "data_offsets": [0, 8]}}), "exactly dtype"),
    "unknown dtype": (raw({"x": entry("F33")}, bytes(8)), "unknown dtype"),
    "dtype that is a list": (raw({"x": entry(["F32"])}, bytes(8)), "unknown dtype"),
    "negative shape": (raw({"x": entry(shape=[-2])}, bytes(8)), "non-negative"),
    "float in a shape": (raw({"x": entry(shape=[2.0])}, bytes(8)), "non-negative"),
    "true in a shape": (raw({"x": entry(shape=[True, 2])}, bytes(8)), "non-negative"),
    "65 axes": (raw({"x": entry(shape=[1] * 64 + [2])}, bytes(8)), "up to 64"),
    "more bytes than 64 bits count": (raw({"x": entry(shape=[1 << 62] * 60)}, bytes(8)), "64 bits"),
    "shape that does not fit its bytes": (raw({"x": entry(shape=[3])}, bytes(8)), "needs 12 bytes"),
    "half a byte": (raw({"x": entry("F4", [3], [0, 2])}, bytes(2)), "needs 2 bytes"),
    "negative offset": (raw({"x": entry(offsets=[-8, 0])}, bytes(8)), "data_offsets"),
    "descending offsets": (raw({"x": entry(offsets=[8, 0])}, bytes(8)), "data_offsets"),
    "three offsets": (raw({"x": entry(offsets=[0, 4, 8])}, bytes(8)), "data_offsets"),
    "offset of 2**64": (raw({"x": entry(offsets=[1 << 64, (1 << 64) + 8])}, bytes(8)), "data_offsets"),
    "past the end": (raw(TWO, bytes(12)), "cut short"),
    "overlap": (raw({**TWO, "y": entry(offsets=[4, 12])}, bytes(12)), "inside tensor 'x'"),
    "gap": (raw({**TWO, "y": entry(offsets=[12, 20])}, bytes(20)), "belong to no tensor"),
    "bytes behind the last tensor": (raw(TWO, bytes(20)), "belong to no tensor"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    data, message = MALFORMED[name]
    with pytest.raises(FormatError, match=message) as caught:
        weights.open(data)
    assert str(caught.value).startswith("bytes: ")


def shards(folder, total=None, weight_map=None):
    """Two shards and their index in a folder; what the index says may be changed."""
    first, second = samples.arrays(1), {f"2.{k}": v for k, v in samples.arrays(2).items()}
    (folder / "model-00001-of-00002.safetensors").write_bytes(samples.safetensors_file(first))
    (folder / "model-00002-of-00002.safetensors").write_bytes(samples.safetensors_file(second))
    names = dict.fromkeys(first, "model-00001-of-00002.safetensors")
    names |= dict.fromkeys(second, "model-00002-of-00002.safetensors")
    nbytes = sum(a.nbytes for a in (*first.values(), *second.values()))
    index = {
        "metadata": {"total_size": nbytes if total is None else total},
        "weight_map": weight_map or names,
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return first | second


def test_shards_are_one_checkpoint(tmp_path):
    arrays = shards(tmp_path)
    for source in (tmp_path, str(tmp_path), tmp_path / "model.safetensors.index.json"):
        checkpoint = weights.open(source)
        infos = list(checkpoint.values())
        assert len(checkpoint.shards) == 2
        for info, got in zip(infos, weights.read(checkpoint, infos), strict=True):
            assert got.tobytes() == arrays[info.name].tobytes()
        assert {i.name for i in infos} == set(arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": 1}, "total_size 1 but"),
        ({"total": -1}, "a number of bytes"),
        ({"total": "many"}, "a number of bytes"),
        ({"weight_map": {"zzz": "model-00001-of-00002.safetensors"}}, "holds 'zzz', but it does not"),
        ({"weight_map": {"a.weight": "absent.safetensors"}}, "names a shard that is not beside it .*absent"),
        ({"weight_map": {"a.weight": "../model-00001-of-00002.safetensors"}}, "plain name"),
        ({"weight_map": {"a.weight": "/etc/passwd"}}, "plain name"),
        ({"weight_map": {"a.weight": 3}}, "plain name"),
        ({"weight_map": [1]}, "no weight_map"),
    ],
)
def test_malformed_index(tmp_path, change, message):
    shards(tmp_path, **change)
    with pytest.raises(FormatError, match=message):
        weights.open(tmp_path)
