"""P-001 to P-006, P-019, P-049, P-050, P-082 to P-085: 21 kinds of numbers as packed bits, masters with
versions, morphing while a network runs, and files that come back bit for bit."""

import copy
import json

import numpy as np
import pytest
import torch

import pellucid
from grid.test_specification import SAMPLES
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import ArgumentError, DTypeError, FormatError, RangeError, WeightError
from pellucid.grid import (
    PRECISIONS,
    GridNetwork,
    PackedTensor,
    compare_networks,
    dna,
    fake_quantize,
    freeze,
    load_packed,
    morph,
    network_from_json,
    network_to_json,
    pack,
    precision,
    restore,
    save_packed,
    stored,
    stored_bytes,
)

TINY = [1e-9, 3e-3, -2e-2, 447.9, 464.0, -465.0, 1e9, 0.0]
X = np.random.default_rng(0).standard_normal((15, 67)).astype(np.float32)


def test_names():
    """P-001: 21 kinds with their numbers, and names both ways."""
    assert [p.number for p in PRECISIONS.values()] == list(range(21))
    assert sum(p.bits for p in PRECISIONS.values()) == 403
    for p in PRECISIONS.values():
        assert precision(p.name.upper()) is precision(p) is p
    assert precision("FP8E5M2").name == "float8_e5m2"
    assert precision(pellucid.uint16).number == 12
    with pytest.raises(DTypeError, match="no kind of number"):
        precision("float3")


def test_tables():
    """P-001: every number of the small kinds."""
    for name in ("float8_e4m3fn", "float8_e5m2"):
        want = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)).float().numpy()
        np.testing.assert_array_equal(precision(name).values(), want)
    fp4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert precision("fp4").values().tolist() == [*fp4, *(-v for v in fp4)]
    assert precision("int4").values().tolist() == [*range(8), *range(-8, 0)]
    assert precision("int2").values().tolist() == [0, 1, -2, -1]
    assert precision("uint2").values().tolist() == [0, 1, 2, 3]
    assert precision("ternary").values().tolist() == [0, 1, -1, -1]
    assert precision("binary").values().tolist() == [-1, 1]
    with pytest.raises(DTypeError, match="too long"):
        precision("int16").values()


@pytest.mark.parametrize("device", DEVICES)
def test_rounding(device):
    """P-001, P-082: numbers and the halves between them become the codes that PyTorch gives."""
    for name in ("float8_e4m3fn", "float8_e5m2"):
        p = precision(name)
        known = np.sort(p.values()[np.isfinite(p.values())])
        x = np.concatenate([known, (known[1:] + known[:-1]) / 2, TINY, [np.nan, np.inf]]).astype(np.float32)
        want = torch.tensor(x.clip(-p.largest, p.largest)).to(getattr(torch, name)).view(torch.uint8)
        np.testing.assert_array_equal(p.encode(pellucid.tensor(x, device=device)).numpy(), want.numpy())
    x = np.array([1.5, -2.25, 0, -0.0, np.inf, -np.inf, 3e38, 1.2e-38, np.pi], np.float32)
    for name in ("float64", "float32", "float16", "bfloat16"):
        packed = pack(pellucid.tensor(x, device=device), name)
        want = torch.tensor(x).to(getattr(torch, name))
        assert packed.data.numpy().tobytes() == want.view(torch.uint8).numpy().tobytes()
        np.testing.assert_array_equal(packed.unpack().numpy(), want.float().numpy())
    # float64 that float32 has not: to the nearest, halves to even.
    wide = np.array([np.pi, 1 + 2**-24, 1 + 3 * 2**-24, 1e300, -1e39, 1e-300, np.nan])
    data = pellucid.tensor(wide.view(np.uint8), device=device)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(precision("float64").decode(data).numpy(), wide.astype(np.float32))


# Half a step beside the largest number, of one scale.
ERRORS = {
    "float16": 2**-11, "bfloat16": 2**-9,
    "float8_e4m3fn": 1 / 28, "float8_e5m2": 1 / 14, "float4_e2m1fn": 1 / 6,
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
def test_round_trips(device):
    """P-002, P-004: sizes as bits say, errors within half a step, the same bytes when packed again; numbers
    that only look quantized are those that were packed, with the gradient of the identity."""
    x = pellucid.tensor(X, device=device, requires_grad=True)
    for name, p in PRECISIONS.items():
        for group in ("tensor", "channel", 32):
            packed = pack(x, name, group)
            assert packed.data.numel() == -(-X.size * p.bits // 8)
            y = fake_quantize(x, name, group)
            assert (y == packed.unpack()).all()
            (slope,) = pellucid.autograd.grad((y * 3).sum(), [x])
            assert (slope == 3).all()
            again = pack(packed.unpack(), name, group)
            assert {k: v.tolist() for k, v in again.parts.items()} == {
                k: v.tolist() for k, v in packed.parts.items()
            }
            groups = {"tensor": 1, "channel": 15, 32: 32}[group]
            assert packed.nbytes == packed.data.numel() + groups * 4 * (p.is_scaled + (p.kind == "unsigned"))
        if p.kind in ("ternary", "binary"):
            continue
        steps = 2.0 ** (p.bits - (p.kind == "signed")) - 1
        # Steps of the wide ones are powers of two.
        bound = ERRORS.get(name, (0.5 if p.bits <= 8 else 1) / steps + 2**-24)
        size = np.ptp(X) if p.kind == "unsigned" else np.abs(X).max()
        assert (pack(x, name).unpack() - x).abs().max().item() <= 1.001 * bound * size, name
    with pytest.raises(RangeError, match="group must be"):
        pack(x, "int4", 0)
    with pytest.raises(DTypeError, match=r"\.float\(\)"):
        pack(x.detach().half(), "int4")


def test_scales_are_those_of_the_papers():
    """P-001, P-006, P-084: binary, ternary, blocks of 32, and NVFP4."""
    x = pellucid.tensor(X, device="cpu")
    assert abs(pack(x, "binary").scales.item() / np.abs(X).mean() - 1) < 2**-15
    kept = np.abs(X)[np.abs(X) > 0.7 * np.abs(X).mean()]
    assert abs(pack(x, "ternary").scales.item() / kept.mean() - 1) < 2**-15
    assert pack(x, "int4", 32).nbytes == 31 * 20 + 7 + 4  # the last block has 13 numbers
    blocks = pack(x, "int4", 32)
    steps = np.repeat(blocks.scales.numpy(), 32)[: X.size].reshape(X.shape)
    assert (np.abs(blocks.unpack().numpy() - X) <= steps * (0.5 + 2**-14)).all()
    nv = pack(x, "fp4", 16, "float8_e4m3fn")
    assert nv.nbytes == 503 + 63 + 4
    blocks = np.pad(X.ravel(), (0, 3)).reshape(-1, 16)
    largest = np.abs(blocks).max(1)
    factor = largest.max() / 6 / 448
    scale = torch.tensor(largest / 6 / factor).to(torch.float8_e4m3fn).float().numpy() * factor
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    near = steps[np.abs(np.abs(blocks / scale[:, None])[..., None] - steps).argmin(-1)]
    want = (np.copysign(near, blocks) * scale[:, None]).ravel()[: X.size].reshape(X.shape)
    assert np.mean(np.abs(nv.unpack().numpy() - want) > 1e-4) < 0.01  # numbers between two steps
    broken = pack(pellucid.tensor([[1.0, np.nan], [1.0, 2.0]], device="cpu"), "int8", "channel").unpack()
    assert broken[0].isnan().all()
    assert broken[1].isfinite().all()
    assert (pack(pellucid.zeros(5, device="cpu"), "binary").unpack() == 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_masters_and_versions(device):
    """P-003, P-004: versions beside each other, packed anew when the master was written, masters kept."""
    layer = nn.Linear(64, 64, device=device)
    x = pellucid.ones(1, 64, device=device)
    wide = layer(x).detach().numpy()
    morph(layer, "int8", "weight")
    seen, chain = layer.parametrizations.weight[0], layer.parametrizations.weight
    before = chain.original.detach().clone()
    first = seen.version(chain.original)
    for kind in ("int8", "fp4", "float32"):
        rounded = nn.functional.linear(x, fake_quantize(before, kind), layer.bias).detach().numpy()
        out = morph(layer, kind, "weight")(x).detach().numpy()
        np.testing.assert_allclose(out, rounded, rtol=1e-4, atol=1e-5)
        assert (out == wide).all() == (kind == "float32")
    morph(layer, "fp4", "weight")
    assert len(layer.weight.unique()) <= 15
    assert stored_bytes(layer) == 64 * 64 // 2 + 4 + 4 * 64
    morph(layer, "int8", "weight")
    assert seen.version(chain.original) is first
    assert len(seen.versions) == 2
    layer(x).sum().backward()
    pellucid.optim.SGD(layer.parameters(), lr=0.5).step()
    assert seen.version(chain.original) is not first
    assert len(seen.versions) == 1
    assert (chain.original == before - 0.5).all()
    twin = copy.deepcopy(layer)
    assert (twin.weight == layer.weight).all()
    morph(layer, "float32")
    assert layer.weight is chain.original


def test_captured_steps_follow_the_master():
    """A replay packs what the master is by then, not what it was when it was recorded."""
    layer = morph(nn.Linear(8, 8, bias=False), "int8")
    x = pellucid.ones(1, 8)
    layer(x)
    captured = pellucid.compile(lambda x: layer(x))
    for _ in range(4):
        np.testing.assert_allclose(captured(x).detach().numpy(), layer(x).detach().numpy(), rtol=1e-6)
        with pellucid.no_grad():
            layer.parametrizations.weight.original.mul_(-1.5)


@pytest.mark.parametrize("kind", ["dense", "cnn2", "rnn", "lstm", "embedding"])
def test_layers_in_each_kind_of_number(kind):
    """P-019: values and gradients are those of the same layer with rounded weights."""
    fields, shape = SAMPLES[kind]
    own = {"device": "cpu"}
    plain = network_from_json({"layers": [{"type": kind, **fields}]}, **own)
    x = (
        pellucid.tensor(X.ravel()[: np.prod(shape)].reshape(shape), **own)
        if shape
        else pellucid.tensor([1, 8], **own)
    )
    net = copy.deepcopy(plain)
    for name in PRECISIONS:
        net.morph(name)
        for p, rounded in zip(net.parameters(), plain.parameters(), strict=True):
            p.grad = rounded.grad = None
            rounded.data = fake_quantize(p.detach(), name)
        out, want = net(x), plain(x)
        assert (out == want).all(), name
        out.sum().backward()
        want.sum().backward()
        assert all(
            (p.grad == q.grad).all() for p, q in zip(net.parameters(), plain.parameters(), strict=True)
        )


def whole():
    """A network with a layer of each type; they are called one by one."""
    pellucid.manual_seed(0)
    layers = [{"x": k, "type": t, **f} for k, (t, (f, _)) in enumerate(SAMPLES.items())]
    return network_from_json({"cols": len(layers), "layers": layers}, device="cpu")


NETS = whole(), whole()
INPUTS = [
    pellucid.tensor(X.ravel()[: np.prod(shape)].reshape(shape), device="cpu")
    if shape
    else pellucid.tensor([[1, 8]], device="cpu")
    for _, shape in SAMPLES.values()
]


@pytest.mark.parametrize("name", PRECISIONS)
def test_all_layers_come_back(name, tmp_path):
    """P-049, P-050: 19 types of layers in 21 kinds of numbers: equal outputs, and equal bytes again."""
    net = NETS[0].morph(name)
    text = network_to_json(net)
    twin = network_from_json(text, device="cpu")
    assert network_to_json(twin) == text
    save_packed(net, tmp_path / "one.safetensors")
    third = load_packed(NETS[1], tmp_path / "one.safetensors")
    save_packed(third, tmp_path / "two.safetensors")
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "two.safetensors").read_bytes()
    with pellucid.no_grad():
        for x, (_, a), (_, b), (_, c) in zip(
            INPUTS, net.layers(), twin.layers(), third.layers(), strict=True
        ):
            out = a(x)
            assert (out == b(x)).all()
            assert (out == c(x)).all()


def test_sizes_on_disk(tmp_path):
    """P-050: bits on disk, measured: 1/32 of float32 but for scales, a third more as base64."""
    layer = nn.Linear(512, 512, bias=False, device="cpu")
    sizes = {}
    for name in ("float32", "int8", "fp4", "ternary", "binary"):
        save_packed(morph(layer, name), tmp_path / name)
        sizes[name] = (tmp_path / name).stat().st_size
    for name, bits in {"float32": 32, "int8": 8, "fp4": 4, "ternary": 2, "binary": 1}.items():
        assert 0 <= sizes[name] - 512 * 512 * bits // 8 < 300
    assert sizes["binary"] < 0.032 * sizes["float32"]
    net = network_from_json({"layers": [{"type": "dense", "d_model": 512, "dtype": "binary"}]}, device="cpu")
    assert len(network_to_json(net)) < 1.36 * 512 * 513 / 8


def test_likeness_of_networks_in_few_bits():
    """P-044: DNA is of the weights that are seen."""
    net = network_from_json({"layers": [{"type": "dense", "d_model": 32}]}, device="cpu")
    one = dna(net)
    likeness = {name: compare_networks(one, dna(net.morph(name))).overall for name in ("fp16", "binary")}
    assert likeness["fp16"] > 0.999999
    assert 0.7 < likeness["binary"] < 0.95


def test_what_does_not_fit_is_refused(tmp_path):
    net = network_from_json({"layers": [{"type": "dense", "d_model": 4, "dtype": "int4"}]}, device="cpu")
    spec = json.loads(network_to_json(net))
    weight = spec["layers"][0]["weights"]["layer.weight"]
    for change, text in (
        ({"dtype": "int8"}, "has the parts"),
        ({"dtype": "float3"}, "no kind of number"),
        ({"shape": [4, -4]}, "list of lengths"),
        ({"shape": [2, 8]}, "its shape is"),
        ({"group": "all"}, "group must be"),
        ({"scales": "AAA="}, "whole numbers"),
        ({"data": 7}, "no base64"),
        ({"data": None}, "no base64"),
    ):
        broken = copy.deepcopy(spec)
        broken["layers"][0]["weights"]["layer.weight"] = {**weight, **change}
        with pytest.raises(FormatError, match=text):
            network_from_json(broken, device="cpu")
    for fields in ({"dtype": "int5"}, {"dtype": 4}, {"dtype": "int4", "group": -1}):
        with pytest.raises(FormatError, match="layer 0"):
            network_from_json({"layers": [{"type": "softmax", **fields}]}, device="cpu")
    layer = nn.Linear(3, 3, device="cpu")
    with pytest.raises(WeightError, match="does not fit"):
        restore(layer, stored(nn.Linear(3, 4, device="cpu")))
    with pytest.raises(DTypeError, match="masters are float32"):
        morph(nn.Linear(3, 3, device="cpu", dtype=pellucid.float16), "int4")
    halves = nn.Linear(3, 3, device="cpu", dtype=pellucid.bfloat16)
    save_packed(halves, tmp_path / "halves")
    assert (load_packed(nn.Linear(3, 3, device="cpu"), tmp_path / "halves").weight == halves.weight).all()
    pellucid.weights.save_file(layer.state_dict(), tmp_path / "plain")
    with pytest.raises(FormatError, match="packed"):
        load_packed(layer, tmp_path / "plain")


def test_masters_in_a_specification():
    """P-049: float32 weights of a layer with a dtype are its masters; scales of 8 bits come back, too."""
    layer = {"type": "dense", "d_model": 32, "dtype": "fp4", "group": 16, "scale_dtype": "FP8E4M3"}
    plain = network_from_json({"layers": [{"type": "dense", "d_model": 32}]}, device="cpu")
    weights = json.loads(network_to_json(plain))["layers"][0]["weights"]
    net = network_from_json({"layers": [{**layer, "weights": weights}]}, device="cpu")
    x = pellucid.tensor(X[:, :32], device="cpu")
    assert (net(x) == plain.morph("fp4", group=16, scale_dtype="fp8e4m3")(x)).all()
    text = network_to_json(net)
    assert '"factor"' in text
    assert network_to_json(network_from_json(text, device="cpu")) == text


def test_networks_of_any_modules():
    net = GridNetwork(1, 1, 2, 1, {(0, 0, k, 0): nn.Linear(8, 8, device="cpu") for k in range(2)})
    net.morph("binary", (0, 0, 1, 0))
    assert [len(layer.weight.unique()) for _, layer in net.layers()] == [64, 2]
    assert net.num_bytes() == 72 * 4 + 8 + 1 + 8
    assert isinstance(stored(net)["z0y0x1l0.weight"], PackedTensor)


KERNELS = [
    ("int8", "channel", None),
    ("fp8e4m3", "tensor", None),
    ("fp8e5m2", "channel", None),
    ("ternary", "channel", None),
    ("fp4", 16, "float8_e4m3fn"),
    ("fp16", "tensor", None),
    ("bf16", "tensor", None),
]


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_unpack_frozen_weights(device):
    """P-019, P-083 to P-085: the same outputs and gradients of inputs, without a master, in few bytes."""
    ids = pellucid.tensor([[1, 8, 3]], device=device)
    for kind, group, scales in KERNELS:
        columns = 64 if kind == "fp4" else 50
        pellucid.manual_seed(0)
        net = nn.Sequential(nn.Embedding(9, columns, device=device), nn.Linear(columns, 24, device=device))
        morph(net, kind, "*weight", group, scales)
        x = net[0](ids).detach().requires_grad_()
        want = net[1](x)
        (want * want).sum().backward()
        slope, x.grad = x.grad, None
        assert freeze(net) == ["0.weight", "1.weight"]
        assert {name for name, _ in net.named_parameters()} == {"0.weight", "1.weight", "1.bias"}
        out = net[1](x)
        (out * out).sum().backward()
        np.testing.assert_allclose(out.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(x.grad.numpy(), slope.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(net[0](ids).numpy(), x.detach().numpy(), rtol=1e-6)
    layer = morph(nn.Linear(4096, 64, bias=False, device=device), "ternary", "weight", "channel")
    freeze(layer)
    assert stored_bytes(layer) == 64 * 4096 // 4 + 64 * 4
    with pytest.raises(ArgumentError, match="Call morph first"):
        freeze(nn.Linear(2, 2, device=device))
