"""P-031, P-032: parallel branches in all five ways to combine, nested containers: values and gradients."""

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import PellucidError
from pellucid.grid import Parallel

X = np.random.default_rng(9).standard_normal((4, 3))


def made(combine, device="cpu", dtype=pellucid.float32, **settings):
    pellucid.manual_seed(2)
    branches = [nn.Linear(3, 2, device=device, dtype=dtype) for _ in range(3)]
    if combine == "filter":
        settings["gate"] = nn.Linear(3, 3, device=device, dtype=dtype)
    if combine == "grid_scatter":
        settings.setdefault("grid", (2, 2))
    return Parallel(branches, combine, **settings)


def by_hand(layer, x):
    outs = [x @ b.weight.detach().numpy().T + b.bias.detach().numpy() for b in layer.branches]
    if layer.combine == "concat":
        return np.concatenate(outs, -1)
    if layer.combine in ("add", "avg"):
        return sum(outs) / (3 if layer.combine == "avg" else 1)
    if layer.combine == "grid_scatter":
        cells = np.zeros((len(x), 4, 2))
        for place, out in zip(layer.places, outs, strict=True):
            cells[:, place] = out
        return cells.reshape(len(x), 2, 2, 2)
    logits = x @ layer.gate.weight.detach().numpy().T + layer.gate.bias.detach().numpy()
    if layer.top_k:
        logits[logits < np.sort(logits)[:, -layer.top_k, None]] = -np.inf
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return sum(p[:, k, None] * out for k, out in enumerate(outs))


CASES = {
    "concat": {}, "add": {}, "avg": {}, "filter": {},
    "filter, top 2": {"top_k": 2}, "filter, top 1": {"top_k": 1},
    "grid_scatter": {}, "grid_scatter, places": {"places": [(1, 1), (0, 0), (1, 0)]},
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_values(case, device):
    layer = made(case.partition(",")[0], device, **CASES[case])
    out = layer(pellucid.tensor(X, dtype=pellucid.float32, device=device)).detach().numpy()
    np.testing.assert_allclose(out, by_hand(layer, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    layer = made(case.partition(",")[0], dtype=pellucid.float64, **CASES[case])
    names, values = zip(*layer.named_parameters(), strict=True)

    def function(x, *given):
        return pellucid.func.functional_call(layer, dict(zip(names, given, strict=True)), (x,))

    x = pellucid.tensor(X, device="cpu", requires_grad=True)
    assert pellucid.autograd.gradcheck(function, (x, *values))


def test_only_the_chosen_branches_get_gradients():
    layer = made("filter", top_k=1)
    x = pellucid.tensor(X[:1], dtype=pellucid.float32, device="cpu")
    chosen = layer.weights(x).argmax(-1).item()
    layer(x).sum().backward()
    for k, branch in enumerate(layer.branches):
        assert (branch.weight.grad.abs().sum() > 0).item() == (k == chosen)


def test_containers_in_containers_three_deep():
    inner = Parallel([nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Identity()], "add")
    net = (
        nn.Sequential(Parallel([nn.Sequential(inner, nn.Linear(3, 2)), nn.Linear(3, 2)], "avg"))
        .to("cpu")
        .double()
    )
    names, values = zip(*net.named_parameters(), strict=True)
    assert len(values) == 6

    def function(x, *given):
        return pellucid.func.functional_call(net, dict(zip(names, given, strict=True)), (x,))

    assert pellucid.autograd.gradcheck(
        function, (pellucid.tensor(X, device="cpu", requires_grad=True), *values)
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: Parallel([]),
        lambda: Parallel([nn.ReLU()], "max"),
        lambda: Parallel([nn.ReLU()], "filter"),
        lambda: Parallel([nn.ReLU()], "add", gate=nn.ReLU()),
        lambda: Parallel([nn.ReLU()], "grid_scatter"),
        lambda: Parallel([nn.ReLU()], "add", grid=(2,)),
        lambda: Parallel([nn.ReLU()], "add", top_k=1),
        lambda: Parallel([nn.ReLU()], "filter", gate=nn.Linear(3, 1), top_k=2),
        lambda: Parallel([nn.ReLU()] * 3, "grid_scatter", grid=(2,)),
        lambda: Parallel([nn.ReLU()] * 2, "grid_scatter", grid=(2,), places=[(0,), (0,)]),
        lambda: Parallel([nn.ReLU()], "grid_scatter", grid=(2,), places=[(2,)]),
        lambda: Parallel([nn.ReLU(), nn.Linear(3, 2)], "add")(pellucid.ones(1, 3)),
        lambda: Parallel([nn.ReLU()], "filter", gate=nn.Linear(3, 2))(pellucid.ones(1, 3)),
        lambda: made("add").weights(pellucid.ones(1, 3)),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call()
