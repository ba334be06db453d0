"""P-003, P-019, P-058, P-064, P-083 to P-085: kernels of layers unpack packed weights, forward and backward,
and nothing makes a float copy of them."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid import func, nn
from pellucid.errors import ArgumentError
from pellucid.grid import PackedTensor, fake_quantize, freeze, morph, pack, stored_bytes
from pellucid.grid.packed.planes import kernel_weight
from pellucid.nn.utils import parametrize

# Each kind in a group of scales of rows and in one of columns, where there is one.
KINDS = [
    ("int32", "tensor", None), ("int32", 64, None), ("int16", "channel", None), ("int16", 32, None),
    ("uint32", "tensor", None), ("uint32", 32, None), ("uint16", "channel", None), ("uint16", 32, None),
    ("float16", "tensor", None), ("bfloat16", "tensor", None),
    ("float8_e4m3fn", "channel", None), ("float8_e4m3fn", 128, None), ("float8_e5m2", "tensor", None),
    ("int8", "channel", None), ("int8", 32, None), ("uint8", "tensor", None), ("uint8", 64, None),
    ("int4", "channel", None), ("int4", 32, None), ("int4", 32, "float8_e4m3fn"),
    ("uint4", "channel", None), ("uint4", 64, None),
    ("float4_e2m1fn", "channel", None), ("float4_e2m1fn", 32, None), ("float4_e2m1fn", 16, "float8_e4m3fn"),
    ("int2", "tensor", None), ("int2", 32, None), ("uint2", "channel", None), ("uint2", 32, None),
    ("ternary", "channel", None), ("ternary", 32, None), ("binary", "tensor", None), ("binary", 32, None),
]  # fmt: skip

# Those for layers on webgpu, where each is some pipelines: layers ask the same few products of each kind.
FEW = (
    ("int16", "channel", None),
    ("uint4", "channel", None),
    ("float4_e2m1fn", 16, "float8_e4m3fn"),
    ("binary", 32, None),
)


def layers(device):
    """Layers whose weights have rows of 128 columns, and inputs of theirs."""
    pellucid.manual_seed(0)
    pellucid.set_default_device(device)
    try:
        rnn = {"input_size": 128, "hidden_size": 128}
        return {
            "linear": (nn.Linear(128, 6), pellucid.randn(3, 128)),
            "embedding": (nn.Embedding(7, 128, padding_idx=2), pellucid.tensor([[1, 2], [6, 1]])),
            "conv1d": (nn.Conv1d(32, 5, 4, 2, 1, 2), pellucid.randn(2, 32, 13)),
            "conv2d": (nn.Conv2d(32, 5, 2, padding="same", dilation=2), pellucid.randn(2, 32, 4, 5)),
            "grouped2d": (nn.Conv2d(64, 6, 2, groups=2), pellucid.randn(2, 64, 4, 5)),
            "conv3d": (nn.Conv3d(16, 5, 2, (2, 1, 1), (1, 0, 1)), pellucid.randn(2, 16, 3, 4, 3)),
            "turned1d": (nn.ConvTranspose1d(5, 32, 4, 2, 1, 1), pellucid.randn(2, 5, 6)),
            "turned2d": (nn.ConvTranspose2d(5, 32, 2, 2, 1), pellucid.randn(2, 5, 4, 3)),
            "grouped_turned1d": (nn.ConvTranspose1d(6, 64, 4, 2, groups=2), pellucid.randn(1, 6, 5)),
            "turned3d": (nn.ConvTranspose3d(5, 16, 2, (2, 1, 2), 0, (1, 0, 1)), pellucid.randn(5, 3, 2, 3)),
            "rnn": (nn.RNN(**rnn), pellucid.randn(3, 2, 128)),
            "lstm": (nn.LSTM(**rnn), pellucid.randn(3, 2, 128)),
            "gru": (nn.GRU(**rnn, bidirectional=True), pellucid.randn(2, 2, 128)),
            "cell": (nn.LSTMCell(128, 128), pellucid.randn(2, 128)),
        }
    finally:
        pellucid.set_default_device("webgpu")


NAMES = list(layers("cpu"))


def run(layer, x):
    """Outputs, and gradients of the input and of the parameters."""
    x = x.clone().requires_grad_() if x.dtype.is_floating_point else x
    out = layer(x)
    out = out[0] if isinstance(out, tuple) else out
    (out * pellucid.linspace(0.5, 1.5, out.numel(), device=out.device).reshape(out.shape)).sum().backward()
    slopes = [p.grad for p in layer.parameters()]
    return [t.detach().cpu().numpy() for t in (out, *([x.grad] if x.requires_grad else []), *slopes)]


@pytest.mark.turns(7)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_layers_unpack_while_they_multiply(name, device, monkeypatch):
    """P-019, P-083 to P-085: what PyTorch gives with the rounded weights; nothing is unpacked before."""
    layer, x = layers(device)[name]
    theirs = getattr(torch.nn, type(layer).__name__)(**settings(layer))
    unpacked = []
    unpack = PackedTensor.unpack
    monkeypatch.setattr(PackedTensor, "unpack", lambda t: unpacked.append(t.shape) or unpack(t))
    few = [k for k in KINDS if k in FEW] if device == "webgpu" else KINDS
    for kind, group, scales in KINDS if name == "linear" else few:
        ours = morph(copy.deepcopy(layer), kind, "*weight*", group, scales)
        rounded = {
            n: (fake_quantize(p, kind, group, scales) if "weight" in n else p).detach().cpu().numpy()
            for n, p in layer.named_parameters()
        }
        theirs.load_state_dict({n: torch.from_numpy(v) for n, v in rounded.items()})
        theirs.zero_grad()
        unpacked.clear()
        found = run(ours, x)
        assert not unpacked, (kind, group)
        y = torch.from_numpy(x.cpu().numpy())
        y = y.requires_grad_() if y.is_floating_point() else y
        out = theirs(y)
        out = out[0] if isinstance(out, tuple) else out
        (out * torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape)).sum().backward()
        # Masters stand behind other names, in an order of their own.
        order = [
            n.replace("parametrizations.", "").replace(".original", "") for n, _ in ours.named_parameters()
        ]
        slopes = dict(theirs.named_parameters())
        wanted = [out, *([y.grad] if y.requires_grad else []), *(slopes[n].grad for n in order)]
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-4, atol=2e-4, err_msg=f"{kind} {group}")


def settings(layer):
    """What makes the layer of the same name in PyTorch."""
    if isinstance(layer, nn.Linear):
        return {"in_features": 128, "out_features": layer.out_features}
    if isinstance(layer, nn.Embedding):
        return {"num_embeddings": 7, "embedding_dim": 128, "padding_idx": 2}
    if isinstance(layer, nn.LSTMCell):
        return {"input_size": 128, "hidden_size": 128}
    if isinstance(layer, nn.RNNBase):
        own = {"bidirectional": True} if layer.bidirectional else {}
        return {"input_size": 128, "hidden_size": 128, **own}
    names = ["in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups"]
    names += ["output_padding"] if layer.transposed else []
    return {n: getattr(layer, n) for n in names}


@pytest.mark.parametrize("device", DEVICES)
def test_values_are_those_of_unpack(device):
    """P-003, P-064: bit for bit, in each kind and group, with rows that fill no whole unit, too."""
    rng = np.random.default_rng(1)
    for shape in ((5, 128), (3, 7, 19), (4, 50)):
        x = pellucid.tensor(rng.standard_normal(shape).astype(np.float32), device=device)
        for kind, group, scales in KINDS:
            packed = pack(x, kind, group, scales)
            weight = kernel_weight(packed)
            if weight is None:
                columns = x.numel() // shape[0]
                assert isinstance(group, int)
                assert columns % group
                continue
            assert weight.shape == x.shape
            found, wanted = weight.dequantize().numpy(), packed.unpack().numpy()
            assert np.array_equal(found, wanted), (kind, group, shape)


@pytest.mark.parametrize("device", DEVICES)
def test_frozen_layers_keep_only_bits(device):
    """P-019, P-094: convolutions and recurrent layers without a master, in as many bytes as bits say."""
    for kind, bits in (("binary", 1), ("uint2", 2)):
        for layer, x in layers(device).values():
            check_frozen(layer, x, device, kind, bits)


def check_frozen(layer, x, device, kind, bits_each):
    """Same outputs and gradients of the input, and no byte that is not of bits, steps, offsets or biases."""
    morph(layer, kind, "*weight*", "channel")
    weights = [n.removesuffix(".original") for n, _ in layer.named_parameters() if "weight" in n]
    want = run(layer, x)[: 2 if x.dtype.is_floating_point else 1]
    layer.zero_grad()
    assert len(freeze(layer)) == len(weights)
    floats = [n for n, p in layer.named_parameters() if p.dtype is pellucid.float32]
    assert not any("weight" in n for n in floats)
    frozen = [p for p in layer.parameters() if p.dtype.is_quantized]
    biases = sum(4 * p.numel() for p in layer.parameters() if not p.dtype.is_quantized)
    # Bits, and a step and an offset for each row; planes begin at multiples of 16.
    bits = sum(p.numel() * bits_each // 8 + 2 * -(-4 * p.shape[0] // 16) * 16 for p in frozen)
    assert stored_bytes(layer) == bits + biases
    assert stored_bytes(copy.deepcopy(layer).cpu()) == bits + biases
    assert "weight" in repr(layer.state_dict())
    if x.dtype.is_floating_point:
        x = x.clone().requires_grad_()
    out = layer(x)
    out = out[0] if isinstance(out, tuple) else out
    np.testing.assert_allclose(out.detach().numpy(), want[0], rtol=1e-4, atol=1e-4)
    if x.requires_grad:
        (out * pellucid.linspace(0.5, 1.5, out.numel(), device=device).reshape(out.shape)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), want[1], rtol=1e-4, atol=2e-4)


def test_what_no_kernel_unpacks_is_a_float():
    """Classes with a forward of their own, norms of rows, weights looked at once for all."""

    class Squared(nn.Linear):
        def forward(self, input):
            return nn.functional.linear(input, self.weight * self.weight, self.bias)

    for layer, x in (
        (Squared(8, 3, device="cpu"), pellucid.ones(2, 8, device="cpu")),
        (nn.Embedding(4, 8, max_norm=0.5, device="cpu"), pellucid.tensor([1, 2], device="cpu")),
    ):
        morph(layer, "int4", "weight")
        out = layer(x)
        assert out.isfinite().all()
        with pytest.raises(ArgumentError, match="convolutions or recurrent layers"):
            freeze(layer)
    layer = morph(nn.Linear(32, 3, device="cpu"), "int4", "weight")
    with parametrize.cached():
        layer(pellucid.ones(1, 32, device="cpu"))
        assert layer.weight.dtype is pellucid.float32
    assert layer.weight.dtype is pellucid.float32


def test_training_in_bits_takes_steps():
    """P-007: a convolution and an LSTM learn through kernels that unpack."""
    pellucid.manual_seed(0)
    conv, lstm, head = nn.Conv1d(8, 16, 3, padding=1), nn.LSTM(16, 16, batch_first=True), nn.Linear(16, 1)
    net = nn.ModuleList([conv, lstm, head])
    morph(net, "int4", "*weight*", "channel")
    x, y = pellucid.randn(16, 8, 5), pellucid.randn(16, 1).tanh()
    optimizer = pellucid.optim.Adam(net.parameters(), 0.02)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((head(lstm(conv(x).transpose(1, 2))[0][:, -1]) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < 0.5 * losses[0].item()


def trained(net, x, y, steps, rate):
    """The network after steps of a rate that falls to 0."""
    optimizer = pellucid.optim.Adam(net.parameters(), rate)
    falling = pellucid.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1 / steps, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
        falling.step()
    return net


def test_training_in_few_bits():
    """P-007, P-085: a few steps in a kind of few bits take away much of what rounding afterwards costs. Of
    ten times four networks the means were at most 0.79, 0.64 and 0.46 of it.
    """
    kinds, losses, right = {"int8": 1, "int4": 0.8, "ternary": 0.6}, {}, {}
    for seed in range(4):
        pellucid.manual_seed(seed)
        x = pellucid.randn(48, 8, device="cpu")
        y = (x @ pellucid.randn(8, 1, device="cpu")).tanh()
        net = nn.Sequential(nn.Linear(8, 16, device="cpu"), nn.Tanh(), nn.Linear(16, 1, device="cpu"))
        trained(net, x, y, 100, 0.05)
        for kind in kinds:
            few = morph(copy.deepcopy(net), kind, "*weight")
            for aware in (False, True):
                out = trained(few, x, y, 40, 0.01)(x) if aware else few(x)
                losses.setdefault((kind, aware), []).append(((out - y) ** 2).mean().item())
                right.setdefault((kind, aware), []).append(((out > 0) == (y > 0)).float().mean().item())
    for kind, better in kinds.items():
        assert np.mean(losses[kind, True]) < better * np.mean(losses[kind, False]), kind
    assert np.mean(losses["int4", True]) < 0.01  # the targets' mean square is 0.8
    assert np.mean(right["ternary", True]) > max(0.9, np.mean(right["ternary", False]))


def of_captured(layer, x, monkeypatch):
    """Losses of twelve captured steps, how many were replayed, and how often something was unpacked."""
    unpacked = []
    monkeypatch.setattr(PackedTensor, "unpack", lambda t: unpacked.append(t))
    optimizer = pellucid.optim.SGD(layer.parameters(), 0.1)

    @pellucid.compile
    def step(x):
        optimizer.zero_grad()
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(x).item() for _ in range(12)]
    monkeypatch.undo()
    return losses, step.explain().replays, len(unpacked)


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", ["linear", "conv2d", "grouped2d", "turned1d"])
def test_captured_steps_unpack_in_their_kernels(name, monkeypatch):
    """P-019, P-064: a replay packs what the master then is, and nothing makes floats of it."""
    layer, x = layers("webgpu")[name]
    for kind, group, _ in (("int4", "channel", None), ("int16", "channel", None), ("binary", 32, None)):
        morphed = morph(copy.deepcopy(layer), kind, "weight", group)
        eager, wanted = copy.deepcopy(morphed), []
        optimizer = pellucid.optim.SGD(eager.parameters(), 0.1)
        for _ in range(12):
            optimizer.zero_grad()
            loss = (eager(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            wanted.append(loss.item())
        losses, replays, unpacked = of_captured(morphed, x, monkeypatch)
        np.testing.assert_allclose(losses, wanted, rtol=1e-4)
        assert replays >= 8
        assert not unpacked
        assert wanted[-1] < wanted[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["linear", "embedding", "grouped2d", "cell"])
def test_batches_of_inputs_and_of_masters(name, device, monkeypatch):
    """P-019, P-048: ``vmap`` over inputs unpacks in kernels; a master for each example is unpacked once."""
    layer, x = layers(device)[name]
    morph(layer, "int4", "*weight*", "channel")

    def first(out):
        return out[0] if isinstance(out, tuple) else out

    xs = pellucid.stack([x, x.flip(0), x.roll(1, -1)])
    unpacked, unpack = [], PackedTensor.unpack
    monkeypatch.setattr(PackedTensor, "unpack", lambda t: unpacked.append(t.shape) or unpack(t))
    found = func.vmap(lambda x: first(layer(x)))(xs).detach().numpy()
    assert not unpacked
    np.testing.assert_allclose(found, np.stack([first(layer(x)).detach().numpy() for x in xs]), atol=1e-5)

    masters = {n: pellucid.stack([p.detach() * s for s in (1, -2, 3)]) for n, p in layer.named_parameters()}
    found = func.vmap(lambda p, x: first(func.functional_call(layer, p, (x,))))(masters, xs).numpy()
    assert len(unpacked) == 3 * sum("weight" in n for n in masters)
    one = [
        first(func.functional_call(layer, {n: p[k] for n, p in masters.items()}, (x,))).numpy()
        for k, x in enumerate(xs)
    ]
    np.testing.assert_allclose(found, np.stack(one), atol=1e-5)


def test_a_master_is_known_by_its_place():
    """Masters that are parts of one tensor have versions of their own."""
    layer = morph(nn.Linear(32, 2, bias=False, device="cpu"), "float16", "weight")
    many = pellucid.randn(2, 2, 32, device="cpu")
    x = pellucid.ones(1, 32, device="cpu")
    for part in many:
        out = func.functional_call(layer, {"parametrizations.weight.original": part}, (x,))
        np.testing.assert_allclose(out[0].numpy(), part.sum(-1).numpy(), atol=1e-2)


def test_captured_functions_replay_beside_morphed_layers():
    """Their hooks, and that their masters are packed anew, matter only to what is recorded: replays go on."""
    pellucid.manual_seed(0)
    layer = morph(nn.Linear(32, 4, device="webgpu"), "int4", "weight", "channel")
    x = pellucid.randn(2, 32, device="webgpu")
    plain, captured = pellucid.compile(lambda x: x * 2 + 1), pellucid.compile(lambda x: layer(x))
    with pellucid.no_grad():
        for _ in range(12):
            np.testing.assert_allclose(captured(x).numpy(), layer(x).numpy(), atol=1e-5)
            plain(x)
            layer.parametrizations.weight.original.mul_(1.01)
    assert plain.explain().replays >= 8
    assert captured.explain().replays >= 8
