"""Checkpoints of ``torch.save`` as PyTorch writes them, known from their pickle and streamed in place."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest
import torch

from fuzz.pickles import repacked
from pellucid import weights
from pellucid.errors import FormatError
from weights.test_load import Slots

DTYPES = ["float32", "float64", "float16", "bfloat16", "uint8", "int64", "bool", "complex64"]


def saved(value, legacy=False):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file.getvalue()


def state():
    """A state_dict: every dtype, tensors that share memory, that lie otherwise, that are parts."""
    base = torch.arange(24).float().reshape(4, 6)
    values = {name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)) for name in DTYPES}
    values |= {"turned": base.T, "part": base[1:3], "steps": base[:, ::2], "column": base[:, 1]}
    values |= {"same": values["float32"], "none": torch.zeros(0, 4), "one": torch.tensor(2.5)}
    values["parameter"] = torch.nn.Parameter(base)
    return values


def raw(t):
    return bytes(t.detach().clone(memory_format=torch.contiguous_format).untyped_storage())


def read(checkpoint):
    return dict(zip(checkpoint, weights.read(checkpoint, list(checkpoint.values())), strict=True))


@pytest.mark.parametrize("legacy", [False, True])
def test_every_tensor_of_a_state_is_read(legacy):
    checkpoint = weights.open(saved(state(), legacy))
    assert checkpoint.format == "pytorch"
    found = read(checkpoint)
    assert list(found) == list(state())
    for name, t in state().items():
        info = checkpoint[name]
        assert (info.shape, f"torch.{info.dtype}") == (tuple(t.shape), str(t.dtype))
        assert found[name].tobytes() == raw(t), name


@pytest.mark.parametrize("legacy", [False, True])
def test_containers_join_their_keys(legacy):
    value = {"model": {"w": torch.ones(2)}, "more": [{"x": torch.zeros(1)}], "epoch": 3, "name": "tiny"}
    checkpoint = weights.open(saved(value, legacy))
    assert list(checkpoint) == ["model.w", "more.0.x"]
    assert checkpoint.metadata == {"epoch": 3, "name": "tiny"}


@pytest.mark.parametrize("legacy", [False, True])
def test_each_byte_comes_once_by_range(server, legacy):
    large = {f"layer.{k}.weight": torch.randn(300, 700) for k in range(8)}
    data = saved(large, legacy)
    server.files["/pytorch_model.bin"] = data
    checkpoint = weights.open(f"{server.url}/pytorch_model.bin")
    opened = sum(request.sent for request in server.log)
    assert opened < 1_600_000 < len(data)
    wanted = [info for info in checkpoint.values() if "3" in info.name or "6" in info.name]
    assert [a.tobytes() for a in weights.read(checkpoint, wanted)] == [
        large[info.name].numpy().tobytes() for info in wanted
    ]
    assert sum(request.sent for request in server.log) - opened < 1.05 * sum(i.nbytes for i in wanted)


def test_a_stream_writes_what_lies_otherwise(server):
    values = {"turned": torch.randn(400, 900).T, "plain": torch.randn(30, 7)}
    server.files["/model.pt"] = saved(values)
    checkpoint, host = weights.open(f"{server.url}/model.pt"), Slots()
    items = [(t, weights.Target(k, t.nbytes)) for k, t in enumerate(checkpoint.values(), 1)]
    weights.stream(checkpoint, items, host, connections=3)
    for k, t in enumerate(values.values(), 1):
        assert bytes(host.data[k][: t.nbytes]) == t.contiguous().numpy().tobytes()


def test_a_folder_in_shards(tmp_path):
    shared = torch.randn(3, 2)
    parts = {
        "pytorch_model-00001-of-00002.bin": {"a": shared, "turned": torch.randn(4, 3).T, "b": shared},
        "pytorch_model-00002-of-00002.bin": {"c": torch.randn(5, 4).T, "d": torch.randn(2)},
    }
    for name, tensors in parts.items():
        torch.save(tensors, tmp_path / name)
    names = {key: file for file, tensors in parts.items() for key in tensors}
    index = tmp_path / "pytorch_model.bin.index.json"
    for total in (4 * (6 + 12 + 20 + 2), 4 * (6 + 6 + 12 + 20 + 2)):  # what is shared once, or twice
        index.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": names}))
        opened = weights.open_folder(tmp_path).checkpoint
        found = read(opened)
        for tensors in parts.values():
            for key, t in tensors.items():
                assert found[key].tobytes() == t.contiguous().numpy().tobytes()
    index.write_text(json.dumps({"weight_map": {"a": "../a.bin"}}))
    with pytest.raises(FormatError, match=r"'../a.bin'; the plain name of a .bin file was expected"):
        weights.open(str(index))


class Loud:
    def __reduce__(self):
        return print, ("executed",)


def bottomless():
    inner: list = [torch.ones(1)]
    for _ in range(30):
        inner = [inner, inner]
    return inner


def looped():
    inner: list = []
    inner.append(inner)
    return inner


def compressed(data):
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return file.getvalue()


def longer(pickled):
    return pickled.replace(b"K\t\x85", b"K\x0a\x85")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: saved(Loud()), r"'(__builtin__|builtins).print' is asked for, which is not known"),
        (lambda: saved(Loud(), True), r"print' is asked for"),
        (lambda: saved({"x": torch.ones(1).expand(1 << 40)}), r"spread over 1 elements. Save its clone"),
        (lambda: compressed(saved({"x": torch.zeros(999)})), r"is compressed. .*'stored'"),
        (lambda: saved(bottomless()), r"containers hold each other too often"),
        (lambda: saved(looped()), r"containers hold each other too often"),
        (lambda: saved({"x": torch.ones(9)})[:-30], r"no directory at its end"),
        (lambda: saved({"x": torch.ones(9)}, True)[:-30], r"occupies bytes|ends at byte"),
        (lambda: saved({"x": torch.ones(9)}, True)[:40], r"cut short|left"),
        (lambda: saved({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}), r"has two tensors 'a.b'"),
        (lambda: repacked(saved({"x": torch.ones(9)}), longer), r"ends at element 10"),
    ],
)  # fmt: skip
def test_what_is_refused(data, words):
    with pytest.raises(FormatError, match=words):
        weights.open(data())


def test_a_program_is_no_checkpoint(tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("m/data.pkl", "m/constants.pkl"):
            file.writestr(name, b"\x80\x02}.")
    with pytest.raises(FormatError, match="TorchScript"):
        weights.open(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/archive_format", "pt2")
    with pytest.raises(FormatError, match=r"pellucid\.export\.load opens it"):
        weights.open(path)


def test_damaged_storages_before_the_zip_are_named():
    data = bytearray(saved({"x": torch.ones(9)}, True))
    at = len(data) - 36 - 8
    assert struct.unpack_from("<q", data, at) == (9,)
    data[at : at + 8] = np.int64(1 << 40).tobytes()
    with pytest.raises(FormatError, match=r"has 1,099,511,627,776 elements at byte .* says 9"):
        weights.open(bytes(data))
