"""P-008, P-013, P-018 to P-030, P-033, P-078, P-087, P-090: layers of the grid beside PyTorch, forward and
backward, their activations, nested parameters, and that each learns."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import FormatError
from pellucid.grid import GridNetwork, Layer, Link, Position, Residual, network_from_json
from pellucid.grid.layers import ACTIVATIONS, LAYERS


def attention(x, w):
    """Four heads, two of keys and values, rotary positions of halves."""
    q, k, v = ((x @ w[f"{n}_proj.weight"].T).unflatten(-1, (-1, 4)).transpose(1, 2) for n in "qkv")
    angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** -torch.tensor([0.0, 0.5])
    cos, sin = angles.cos(), angles.sin()

    def turned(y):
        return torch.cat([y[..., :2] * cos - y[..., 2:] * sin, y[..., 2:] * cos + y[..., :2] * sin], -1)

    out = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(-2) @ w["o_proj.weight"].T


def recurrent(kind, x, w):
    layer = kind(x.shape[-1], w["layer.weight_hh_l0"].shape[1], batch_first=True)
    return torch.func.functional_call(layer, {n.removeprefix("layer."): t for n, t in w.items()}, x)[0]


def swiglu(x, w):
    gate, up = (x @ w[f"{n}_proj.weight"].T for n in ("gate", "up"))
    return (F.silu(gate) * up) @ w["down_proj.weight"].T


def clusters(x, w):
    distances = ((x[:, None] - w["centers"]) ** 2).sum(-1)
    return torch.softmax(-distances / 0.7, -1)


IMAGE = {"input_channels": 3, "filters": 4, "kernel_size": 3, "padding": 1, "stride": 2}
# Type, fields, the input's shape, and what PyTorch computes.
BESIDE = [
    ("P-019", "dense", {"input_height": 6, "output_height": 4}, (5, 6), lambda x, w: F.linear(x, **w)),
    ("P-020", "multi_head_attention", {"d_model": 16, "num_kv_heads": 2}, (2, 7, 16), attention),
    ("P-021", "swiglu", {"d_model": 6}, (5, 6), swiglu),
    ("P-022", "rms_norm", {"d_model": 6}, (5, 6), lambda x, w: F.rms_norm(x, (6,), w["weight"], 1e-5)),
    ("P-023", "layer_norm", {"d_model": 6}, (5, 6), lambda x, w: F.layer_norm(x, (6,), **w)),
    *(
        ("P-024", f"cnn{n}", {**IMAGE, **dict.fromkeys(axes, 5)}, (2, 3, *[5] * n),
         lambda x, w, n=n: getattr(F, f"conv{n}d")(x, **w, stride=2, padding=1))
        for n, axes in enumerate((["input_height"], ["input_height", "input_width"],
                                  ["input_height", "input_width", "input_depth"]), 1)
    ),
    *(
        ("P-025", f"conv_transposed_{n}d", {**IMAGE, **dict.fromkeys(axes, 4), "output_padding": 1},
         (2, 3, *[4] * n),
         lambda x, w, n=n: getattr(F, f"conv_transpose{n}d")(x, **w, stride=2, padding=1, output_padding=1))
        for n, axes in enumerate((["input_height"], ["input_height", "input_width"],
                                  ["input_height", "input_width", "input_depth"]), 1)
    ),
    ("P-026", "rnn", {"d_model": 6}, (2, 4, 6), lambda x, w: recurrent(torch.nn.RNN, x, w)),
    ("P-027", "lstm", {"input_height": 6, "output_height": 3}, (2, 4, 6),
     lambda x, w: recurrent(torch.nn.LSTM, x, w)),
    ("P-028", "embedding", {"vocab_size": 9, "embedding_dim": 4}, None, lambda x, w: F.embedding(x, **w)),
    ("P-029", "kmeans", {"num_clusters": 3, "d_model": 6, "kmeans_temperature": 0.7}, (5, 6), clusters),
    ("P-030", "residual", {"sequential_layers": [{"type": "dense", "d_model": 6}]}, (5, 6),
     lambda x, w: x + F.linear(x, *(w.values()))),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("kind", "fields", "shape", "theirs"), [r[1:] for r in BESIDE], ids=[" ".join(r[:2]) for r in BESIDE]
)
def test_layers_beside_pytorch(kind, fields, shape, theirs, device):
    """P-019, P-020, P-021, P-022, P-023, P-024, P-025, P-026, P-027, P-028, P-029, P-030: values, and
    gradients of the input and of all parameters; what comes twice adds up."""
    pellucid.manual_seed(0)
    layer = Layer({"type": kind, **fields}, device=device)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(np.float32) if shape else np.array([[1, 8, 1], [1, 0, 8]])
    weights = {
        n: torch.tensor(p.detach().numpy(), requires_grad=True) for n, p in layer.layer.named_parameters()
    }
    ours = pellucid.tensor(x, device=device, requires_grad=bool(shape))
    wanted = torch.tensor(x, requires_grad=bool(shape))
    out, right = layer(ours), theirs(wanted, weights)
    slope = rng.standard_normal(tuple(right.shape)).astype(np.float32)
    out.backward(pellucid.tensor(slope, device=device).reshape(out.shape))
    right.backward(torch.tensor(slope))
    pairs = [(out.detach().reshape(right.shape), right.detach())]
    pairs += [(ours.grad, wanted.grad)] if shape else []
    pairs += [(p.grad, weights[n].grad) for n, p in layer.layer.named_parameters()]
    assert len(pairs) == 1 + bool(shape) + len(weights)
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_residual_is_exact(device):
    """P-030: the sum of the input and what a layer, or a link, brings, bit for bit, and its gradients."""
    rng = np.random.default_rng(2)
    x, skip, slope = (pellucid.tensor(rng.standard_normal((9, 67)).astype(np.float32), device=device)
                      for _ in range(3))  # fmt: skip
    layers = {(0, 0, 0, 0): pellucid.nn.Linear(67, 67, device=device), (0, 0, 1, 0): pellucid.nn.Identity(),
              (0, 0, 2, 0): Layer({"type": "residual"}, device=device)}  # fmt: skip
    net = GridNetwork(1, 1, 3, 1, layers, [Link(Position(0, 0, 0, 0), Position(0, 0, 2, 0))])
    h = layers[0, 0, 0, 0](x)
    assert (net(x) == h + h).all()
    layer = Residual(Adds(skip))
    out = layer(x.requires_grad_())
    np.testing.assert_array_equal(
        out.detach().numpy(), x.detach().numpy() + (x.detach().numpy() + skip.numpy())
    )
    out.backward(slope)
    np.testing.assert_array_equal(x.grad.numpy(), 2 * slope.numpy())


class Adds(pellucid.nn.Module):
    """Adds a tensor."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def forward(self, input):
        return input + self.other


@pytest.mark.parametrize("device", DEVICES)
def test_activations_and_their_derivatives(device):
    """P-018, P-090: each by name, beside PyTorch; a name that there is none of is refused."""
    x = np.linspace(-6, 6, 101).astype(np.float32)
    assert len(ACTIVATIONS) == 7
    for name in ACTIVATIONS:
        ours, wanted = (
            pellucid.tensor(x, device=device, requires_grad=True),
            torch.tensor(x, requires_grad=True),
        )
        plain = {"linear": lambda t: t, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
        right = (plain.get(name) or getattr(F, name))(wanted)
        out = Layer({"type": "residual", "activation": name}, device=device)(ours)
        out.sum().backward()
        right.sum().backward()
        np.testing.assert_allclose(out.detach().numpy(), right.detach().numpy(), rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(ours.grad.numpy(), wanted.grad.numpy(), rtol=2e-4, atol=2e-6)
    with pytest.raises(FormatError, match="activation"):
        Layer({"type": "residual", "activation": "bent"})


def test_types_are_a_table():
    """P-013: a layer is made from its row, and what has no row is refused."""
    for kind, row in LAYERS.items():
        assert callable(row.build), kind
    with pytest.raises(FormatError, match="type"):
        Layer({"type": "dens"})


D = {"type": "dense", "d_model": 6, "activation": "tanh"}
DEEP = {"type": "residual", "sequential_layers": [D]}
INNER = {"type": "parallel", "combine_mode": "avg", "parallel_branches": [D, DEEP]}
BRANCHES = [{"type": "sequential", "sequential_layers": [D, INNER]}, D]
NESTED = {"type": "parallel", "combine_mode": "add", "parallel_branches": BRANCHES}


def test_an_optimizer_sees_what_is_nested():
    """P-008, P-033: parameters of every depth get gradients and change by `-lr * gradient`."""
    net = network_from_json({"layers": [NESTED]}, device="cpu")
    before = {n: p.detach().clone() for n, p in net.named_parameters()}
    assert len(before) == 2 * 4
    net(pellucid.randn(3, 6, device="cpu")).sum().backward()
    pellucid.optim.SGD(net.parameters(), lr=0.5).step()
    for name, p in net.named_parameters():
        assert p.grad.abs().max() > 0, name
        np.testing.assert_allclose(p.detach().numpy(), (before[name] - 0.5 * p.grad).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "kind", ["dense", "rms_norm", "swiglu", "embedding", "residual", "multi_head_attention"]
)
def test_losses_fall(kind):
    """P-078: each of these layers learns a layer of its own kind with other weights, on the GPU."""
    fields = {
        "dense": {"d_model": 8}, "rms_norm": {"d_model": 8}, "swiglu": {"d_model": 8},
        "embedding": {"vocab_size": 9, "embedding_dim": 8},
        "residual": {"sequential_layers": [{"type": "dense", "d_model": 8}]},
        "multi_head_attention": {"d_model": 8, "num_heads": 2},
    }[kind]  # fmt: skip
    pellucid.manual_seed(0)
    layer, teacher = (Layer({"type": kind, **fields}) for _ in range(2))
    with pellucid.no_grad():
        for p in teacher.parameters():
            p.add_(0.3 * pellucid.randn_like(p))
    x = pellucid.arange(36).reshape(4, 9) % 9 if kind == "embedding" else pellucid.randn(4, 9, 8)
    wanted = teacher(x).detach()
    optimizer = pellucid.optim.Adam(layer.parameters(), 0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = ((layer(x) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < 0.5 * losses[0].item()
