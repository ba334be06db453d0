"""Files of `torch.save`: PyTorch reads ours, we read PyTorch's, nothing is executed untrusted."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError, DeviceError, DTypeError, FormatError
from pellucid.weights.saving import replacing

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool",
    "complex64", "complex128",
]  # fmt: skip
PLAIN = {
    "n": (1, -5, 1 << 40, -(1 << 90), 2.5, "s\u00e9", b"\x00\xff", None, True), "l": [[], {}, (), {3: "x"}],
    "s": {1, 2}, 7: OrderedDict(a=1), "t": (1, 2, 3, 4),
}  # fmt: skip


def theirs(value, file=None):
    """What PyTorch reads of our file."""
    file = file or io.BytesIO()
    pellucid.save(value, file)
    file.seek(0)
    return torch.load(file)


def ours(value, **more):
    """What we read of PyTorch's file."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return pellucid.load(file, **more)


def of(library, name):
    values = torch.tensor([0, 1, 2, 3, 4, 5]).to(getattr(torch, name)).reshape(2, 3)
    if library is torch:
        return values
    return pellucid.tensor(
        values.float().numpy() if name == "bfloat16" else values.numpy(),
        dtype=getattr(pellucid, name),
        device="cpu",
    )


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_both_ways(name):
    mine, other = of(pellucid, name), of(torch, name)
    read = theirs([mine, mine[:, 1:]])
    assert read[0].dtype is other.dtype
    assert torch.equal(read[0], other)
    assert torch.equal(read[1], other[:, 1:])
    assert read[0].untyped_storage().data_ptr() == read[1].untyped_storage().data_ptr()
    back = ours([other, other.T], map_location="cpu")
    assert back[0].dtype.name == name
    assert back[1].stride() == (1, 3)
    assert back[0].tolist() == other.tolist()
    assert back[1].tolist() == other.T.tolist()
    assert back[0]._storage is back[1]._storage


def test_plain_values_both_ways():
    assert theirs(PLAIN) == ours(PLAIN) == PLAIN
    read = theirs([pellucid.Size((2, 3)), pellucid.float16, pellucid.device("webgpu"), np.float32(1.5)])
    assert read == [torch.Size([2, 3]), torch.float16, torch.device("cpu"), 1.5]
    shared = [1]
    again = ours([shared, shared])
    assert again[0] is again[1]
    assert theirs([shared, shared])[0] == [1]


def test_state_of_a_module_and_an_optimizer(tmp_path):
    model = pellucid.nn.Sequential(pellucid.nn.Linear(3, 2), pellucid.nn.ReLU(), pellucid.nn.Linear(2, 1))
    optimizer = pellucid.optim.Adam(model.parameters())
    model(pellucid.ones(2, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint.pt"
    pellucid.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, path)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            assert info.filename.startswith("checkpoint/")
        place = archive.getinfo("checkpoint/data/0")
        assert (place.header_offset + 30 + len(place.filename) + len(place.extra)) % 64 == 0
    read = torch.load(path, mmap=True)
    twin = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    twin.load_state_dict(read["model"])
    other = torch.optim.Adam(twin.parameters())
    other.load_state_dict(read["optimizer"])
    assert twin[0].weight.tolist() == model[0].weight.tolist()
    # What PyTorch has mapped is not cut off under it by a file that takes the old one's place.
    pellucid.save([1], path)
    assert pellucid.load(path) == [1]
    assert read["model"]["0.weight"].tolist() == model[0].weight.tolist()
    torch.save({"model": twin.state_dict(), "optimizer": other.state_dict()}, tmp_path / "theirs.pt")
    mine = pellucid.load(tmp_path / "theirs.pt")
    assert mine["model"]["0.weight"].is_webgpu
    model.load_state_dict(mine["model"])
    optimizer.load_state_dict(mine["optimizer"])
    assert model[0].weight.tolist() == twin[0].weight.tolist()


def test_parameters_and_what_requires_grad():
    read = theirs({"p": pellucid.nn.Parameter(pellucid.ones(2)), "x": pellucid.ones(1, requires_grad=True)})
    assert isinstance(read["p"], torch.nn.Parameter)
    assert read["x"].requires_grad
    back = ours(
        {"p": torch.nn.Parameter(torch.ones(2), requires_grad=False), "x": torch.ones(1).requires_grad_()}
    )
    assert isinstance(back["p"], pellucid.nn.Parameter)
    assert not back["p"].requires_grad
    assert back["x"].requires_grad


def test_where_tensors_go():
    x = torch.ones(2)
    assert ours(x).is_webgpu
    assert ours(x, map_location={"cpu": "cpu"}).is_cpu
    with pellucid.device("cpu"):
        assert ours(x).is_cpu
    seen = []
    assert ours(x, map_location=lambda storage, place: seen.append(place) or storage).is_cpu
    assert seen == ["cpu"]
    assert ours(x, map_location=lambda storage, place: storage.to("webgpu")).tolist() == [1, 1]
    assert ours(x, map_location=lambda storage, place: None).is_webgpu
    with pytest.raises(ArgumentError, match="map_location gives a str"):
        ours(x, map_location=lambda storage, place: "cpu")
    with pytest.raises(DTypeError):
        ours(x.double())
    elsewhere = TENSOR.replace(b"cpu", b"gpu") + b"K\x00K\x02\x85K\x01\x85\x89NtR."
    with pytest.raises(DeviceError, match="Give map_location"):
        pellucid.load(archive(data_pkl=elsewhere, data__0=b"\0" * 8))


def before_1_6(value):
    """The bytes that PyTorch before 1.6 wrote."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def test_files_of_pytorch_before_1_6(tmp_path):
    x, model = (
        torch.arange(6.0).reshape(2, 3),
        torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)),
    )
    value = {
        "x": [x, x.T, x[1]],
        "half": torch.ones(3, dtype=torch.bfloat16),
        "count": torch.tensor(7),
        "none": torch.empty(0, 3),
        "model": model.state_dict(),
        "p": torch.nn.Parameter(torch.ones(1)),
        "text": ("é", 2.5, None, {1, 2}),
    }
    (tmp_path / "old.bin").write_bytes(before_1_6(value))
    read = pellucid.load(tmp_path / "old.bin", map_location="cpu")
    assert [t.tolist() for t in read["x"]] == [t.tolist() for t in value["x"]]
    assert read["x"][0]._storage is read["x"][1]._storage is read["x"][2]._storage
    assert (read["half"].dtype, read["half"].tolist()) == (pellucid.bfloat16, [1, 1, 1])
    assert (read["count"].item(), read["none"].shape, read["text"]) == (7, (0, 3), value["text"])
    assert {k: t.tolist() for k, t in read["model"].items()} == {
        k: t.tolist() for k, t in model.state_dict().items()
    }
    assert isinstance(read["p"], pellucid.nn.Parameter)
    assert pellucid.load(io.BytesIO(before_1_6([x])))[0].is_webgpu


def test_broken_files_of_pytorch_before_1_6():
    good = before_1_6([torch.ones(2), torch.zeros(3)])
    for data, said in (
        (good[:-1], r"would end at byte [\d,]+ of"),
        (good[:200], "byte 195 of its pickle"),
        (good.replace(b"little_endian", b"little_indian"), "big endian"),
        (before_1_6([Loud()]), "is asked for, which is not known"),
    ):
        with pytest.raises(FormatError, match=said):
            pellucid.load(io.BytesIO(data))
    with pytest.raises(FormatError, match="more than tensors and containers"):
        pellucid.load(io.BytesIO(before_1_6([Loud()])), weights_only=False)


class Loud:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize(
    "value",
    [Loud(), torch.nn.Linear(1, 1), [print], {"x": np.ones(2)}],
    ids=["object", "module", "function", "array"],
)
def test_nothing_is_executed(value, capsys):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    with pytest.raises(FormatError, match=r"is asked for, which is not known"):
        pellucid.load(file)
    assert not capsys.readouterr().out


def test_what_cannot_be_written():
    for value in (lambda: 0, pellucid.ones(1, dtype=pellucid.uint16), {"x": (k for k in "x")}):
        with pytest.raises(ArgumentError, match="save: "):
            pellucid.save(value, io.BytesIO())
    with pytest.raises(ArgumentError, match="has no values"):
        pellucid.save(pellucid.ones(1, device="meta"), io.BytesIO())
    with pytest.raises(ArgumentError, match="own pickler"):
        pellucid.save(1, io.BytesIO(), pickle_module=pickle)
    x = pellucid.ones(2, device="cpu")
    with pytest.raises(ArgumentError, match="share memory"):
        pellucid.save([x, x.view(pellucid.int32)], io.BytesIO())


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    pellucid.save([1], path)
    path.chmod(0o600)
    link.symlink_to(path)
    with pytest.raises(ArgumentError):
        pellucid.save([2, lambda: 0], link)
    assert pellucid.load(path) == [1]
    with pytest.raises(TypeError), replacing(path) as file:
        file.write(None)
    assert pellucid.load(path) == [1]
    pellucid.save([3], link)
    assert pellucid.load(path) == [3]
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert {p.name for p in tmp_path.iterdir()} == {"a.pt", "link.pt"}
    pellucid.save([4], "/dev/null")


# Whole modules


def of_layers(p):
    n = p.nn
    image = n.Sequential(n.Conv2d(2, 4, 3, padding=1), n.BatchNorm2d(4), n.ReLU(), n.MaxPool2d(2))
    rest = (n.GELU(), n.PixelShuffle(2), n.Flatten(), n.LayerNorm(4), n.LeakyReLU(0.3), n.Linear(4, 2))
    return n.Sequential(image, *rest).eval()


def read_again(saves, loads, value, **more):
    file = io.BytesIO()
    saves.save(value, file)
    file.seek(0)
    with pytest.raises((FormatError, pickle.UnpicklingError), match="weights_only"):
        loads.load(file)
    file.seek(0)
    return loads.load(file, weights_only=False, **more)


@pytest.mark.parametrize(
    ("saves", "loads"),
    [(pellucid, torch), (torch, pellucid), (pellucid, pellucid)],
    ids=["to", "from", "own"],
)
def test_whole_modules_of_layers(saves, loads):
    model = of_layers(saves)
    twin = read_again(saves, loads, model)
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 2, 2, 4)[..., :2].copy()
    expected, found = model(saves.tensor(x)), twin(loads.tensor(x))
    assert np.abs(np.array(expected.tolist()) - np.array(found.tolist())).max() < 1e-6
    assert list(twin.state_dict()) == list(model.state_dict())
    assert not twin.training
    twin.train()[1:3].append(loads.nn.Identity()).to(loads.float32)


@pytest.mark.parametrize("kind", ["LSTM", "TransformerEncoderLayer", "AvgPool2d", "SmoothL1Loss", "Hardtanh"])
def test_one_module_of_pytorch(kind):
    sizes = {"LSTM": (3, 4), "TransformerEncoderLayer": (4, 2, 8), "AvgPool2d": (2,)}.get(kind, ())
    shapes = {"LSTM": [(5, 3)], "TransformerEncoderLayer": [(5, 4)], "SmoothL1Loss": [(2,), (2,)]}
    model = getattr(torch.nn, kind)(*sizes).eval()
    twin = read_again(torch, pellucid, model, map_location="cpu")
    given = [torch.arange(float(np.prod(s))).reshape(s).sin() for s in shapes.get(kind, [(1, 4, 4)])]
    outputs = model(*given), twin(*(pellucid.tensor(t.numpy(), device="cpu") for t in given))
    first = [o[0] if isinstance(o, tuple) else o for o in outputs]
    assert torch.allclose(first[0], torch.tensor(first[1].tolist()), atol=1e-6)


class Net(pellucid.nn.Module):
    """A user's model: tied weights, kinds of attributes, a function, a module that is absent."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pellucid.nn.Linear(2, 2), pellucid.nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.register_module("third", None)
        self.register_buffer("scale", pellucid.tensor([2.0]))
        self.register_buffer("cache", pellucid.zeros(1), persistent=False)
        self.act, self.config, self.device = (
            pellucid.nn.functional.relu,
            {"n": (1, {2})},
            pellucid.device("webgpu"),
        )
        self.config["self"] = self.config

    def forward(self, x):
        return self.act(self.second(self.first(x))) * self.scale


def test_a_whole_module_of_a_user():
    model = Net()
    optimizer = pellucid.optim.Adam(model.parameters())
    twin, other = read_again(pellucid, pellucid, (model, optimizer))
    x = pellucid.ones(1, 2)
    assert twin(x).tolist() == model(x).tolist()
    assert twin.second.weight is twin.first.weight
    assert other.param_groups[0]["params"][0] is twin.first.weight
    assert twin.state_dict().keys() == model.state_dict().keys()
    assert [name for name, _ in twin.named_buffers()] == ["scale", "cache"]
    assert twin.config["self"] is twin.config
    assert twin.config["n"] == (1, {2})
    assert twin.device == model.device
    assert twin.act is model.act
    (twin(x) + twin.cache).sum().backward()
    assert other.step() is None
    assert model.first.weight.grad is None


def test_whole_modules_that_cannot_be_read():
    hooked = torch.nn.ReLU()
    hooked.register_forward_hook(print)
    with pytest.raises(FormatError, match="forward_hooks"):
        read_again(torch, pellucid, hooked)
    with pytest.raises(FormatError, match=r"torch\.nn\.modules\.none\.Gone.*Define or import"):
        pellucid.load(archive(data_pkl=b"\x80\x02ctorch.nn.modules.none\nGone\n."), weights_only=False)
    with pytest.raises(FormatError, match=r"nowhere\.Gone.*Define or import"):
        pellucid.load(archive(data_pkl=b"\x80\x02cnowhere\nGone\n."), weights_only=False)
    with pytest.raises(FormatError, match="is broken"):
        pellucid.load(archive(data_pkl=b"\x80\x02i"), weights_only=False)


def archive(**records) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in records.items():
            made.writestr(f"x/{name.replace('__', '/').replace('_pkl', '.pkl')}", data)
    file.seek(0)
    return file


STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
TENSOR = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE


BROKEN = [
    (b"", "1 bytes are announced, and 0 are left"),
    (b"\x80\x02.", "a value is asked for"),
    (b"\x80\x04N.", "protocol 4"),
    (b"\x80\x02(N.", None),
    (b"\x80\x02i", "opcode b'i'"),
    (b"\x80\x02cos\nsystem\n(X\x01\x00\x00\x00xtR.", r"'os\.system' is asked for"),
    (b"\x80\x02c" + b"x" * 300, "a name has no end"),
    (b"\x80\x02NN\x85R.", "no function"),
    (b"\x80\x02ctorch\nSize\nN\x85R.", "a Size is not made of whole numbers"),
    (b"\x80\x02ctorch\nSize\n)R.", "do not make"),
    (b"\x80\x02]N}b.", "attributes"),
    (b"\x80\x02}(Nu.", "a key has no value"),
    (b"\x80\x02}]Ns.", "a list is a key"),
    (b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"Ns.", "a tuple is a key"),
    (b"\x80\x02Nh\x05.", "value 5 is recalled"),
    (b"\x80\x02q\x01.", "nothing is remembered"),
    (b"\x80\x02t.", "did not begin"),
    (b"\x80\x02Na.", "no container"),
    (b"\x80\x02\x8a\x40" + b"1" * 64, "64 bytes"),
    (b"\x80\x02X\x01\x00\x00\x00\xff.", "not UTF-8"),
    (b"\x80\x02NQ.", "something else than a tuple"),
    (b"\x80\x02N\x85Q.", "named by 1 values"),
    (b"\x80\x02\x8f(]\x90.", "a list is a key"),
    (b"\x80\x02c__builtin__\nset\n]]a\x85R.", "a set holds"),
    (b"\x80\x02ccollections\nOrderedDict\n]\x85R.", "OrderedDict"),
    (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00xX\x03\x00\x00\x00zip\x86R.", "another way"),
    (TENSOR + b"K\x00K\x03\x85K\x01\x85\x89NtR.", "ends at element 3 of a storage of 2"),
    (TENSOR + b"J\xff\xff\xff\xffK\x02\x85K\x01\x85\x89NtR.", "an offset is not made"),
    (TENSOR + b"K\x00K\x02\x85)\x89NtR.", "1 lengths and 0 steps"),
    (TENSOR + b"K\x00K\x02\x85K\x01\x85NNtR.", "something else than a storage"),
    (TENSOR.replace(b"K\x02tQ", b"K\x03tQ") + b"K\x00))\x89NtR.", "has 8 bytes, not 3 elements"),
    (TENSOR.replace(b"\x000X", b"\x001X") + b"K\x00))\x89NtR.", "no record of storage '1'"),
]


@pytest.mark.parametrize(("data", "said"), BROKEN, ids=range(len(BROKEN)))
def test_broken_pickles(data, said):
    file = archive(data_pkl=data, data__0=b"\0" * 8)
    if said is None:
        assert pellucid.load(file) is None
        return
    with pytest.raises(FormatError, match=said):
        pellucid.load(file)


def test_broken_archives(tmp_path):
    good = archive(data_pkl=TENSOR + b"K\x00K\x02\x85K\x01\x85\x89NtR.", data__0=b"\0\0\x80?" * 2)
    assert pellucid.load(good).tolist() == [1.0, 1.0]
    for file, said in (
        (io.BytesIO(b"no zip"), "is no file as torch"),
        (archive(other=b""), r"holds no data\.pkl"),
        (archive(data_pkl=b"", byteorder=b"big"), "not little endian"),
        (archive(data_pkl=b"", constants_pkl=b""), "TorchScript"),
    ):
        with pytest.raises(FormatError, match=said):
            pellucid.load(file)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/data.pkl", b"N." * 1000)
    with pytest.raises(FormatError, match="is compressed"):
        pellucid.load(packed)
    (tmp_path / "old.pt").write_bytes(pickle.dumps([1]))
    with pytest.raises(FormatError, match=r"old\.pt: is no file"):
        pellucid.load(tmp_path / "old.pt")
    with pytest.raises(FileNotFoundError):
        pellucid.load(tmp_path / "none.pt")
