"""Autocast and the gradient scaler: dtypes by op, training beside PyTorch's, overflow."""

import numpy as np
import pytest
import torch

import pellucid

F = pellucid.nn.functional


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_dtypes_within_and_without(half, device):
    half = getattr(pellucid, half)
    x = pellucid.ones(2, 3, device=device)
    layer, conv = pellucid.nn.Linear(3, 2, device=device), pellucid.nn.Conv1d(2, 2, 1, device=device)
    with pellucid.autocast(device, dtype=half):
        assert pellucid.is_autocast_enabled(device)
        assert pellucid.get_autocast_dtype(device) == half
        y = layer(x)
        for t in (y, x @ x.T, x.matmul(x.T), conv(x), y.relu(), pellucid.einsum("ab,cb->ac", x, x)):
            assert t.dtype == half
        for t in (y.exp(), y.softmax(-1), F.layer_norm(y, (2,)), y.sum(), y**2, y + x[:, :2]):
            assert t.dtype == pellucid.float32
        assert (x.long() @ x.T.long()).dtype == pellucid.int64 if device == "cpu" else True
        with pellucid.autocast(device, enabled=False):
            assert layer(x).dtype == pellucid.float32
        assert layer(x).dtype == half
    assert not pellucid.is_autocast_enabled(device)
    assert layer(x).dtype == pellucid.float32
    assert pellucid.autocast(device, dtype=half)(layer)(x).dtype == half
    np.testing.assert_allclose(y.float().tolist(), layer(x).tolist(), atol=0.02)


def test_only_the_device_that_is_meant():
    here, there = (pellucid.ones(2, 2, device=d) for d in ("cpu", "webgpu"))
    with pellucid.autocast("webgpu"):
        assert (here @ here).dtype == pellucid.float32
        assert (there @ there).dtype == pellucid.float16


def trained(lib, where, device_type, compiled=False):
    rng = np.random.default_rng(0)
    model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Tanh(), lib.nn.Linear(8, 3)).to(where)
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.3, device=where))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    x = lib.tensor(rng.standard_normal((5, 4)).astype(np.float32), device=where)
    y = lib.tensor(rng.integers(0, 3, 5), device=where)

    def loss_of(x, y):
        return lib.nn.functional.cross_entropy(model(x), y)

    losses = []
    call = lib.compile(loss_of) if compiled else loss_of
    for _ in range(6):
        optimizer.zero_grad()
        with lib.autocast(device_type, dtype=lib.bfloat16):
            loss = call(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.grad.dtype for p in model.parameters()]


def test_training_is_pytorchs(device):
    """P-085: halves forward, float32 masters, scaled losses."""
    ours, dtypes = trained(pellucid, device, device)
    theirs, _ = trained(torch, "cpu", "cpu")
    np.testing.assert_allclose(ours, theirs, atol=0.02)
    assert set(dtypes) == {pellucid.float32}


def test_captured_functions_are_others_within():
    ours, _ = trained(pellucid, "webgpu", "webgpu", compiled=True)
    np.testing.assert_allclose(ours, trained(pellucid, "webgpu", "webgpu")[0], atol=1e-5)


def test_backward_within(device):
    layer = pellucid.nn.Linear(3, 2, device=device)
    with pellucid.autocast(device):
        (layer(pellucid.ones(4, 3, device=device)) ** 2).mean().backward()
    assert layer.weight.grad.dtype == pellucid.float32


def test_recurrent_layers(device):
    model = pellucid.nn.LSTM(3, 4, device=device)
    x = pellucid.ones(3, 2, 3, device=device)
    with pellucid.autocast(device, dtype=pellucid.bfloat16):
        out, _ = model(x)
    out.float().sum().backward()
    np.testing.assert_allclose(out.float().tolist(), model(x)[0].tolist(), atol=0.05)
    assert model.weight_hh_l0.grad.dtype == pellucid.float32


def scaled(lib, device):
    """A scaler over steps of which one overflows."""
    w = lib.ones(2, device=device, requires_grad=True)
    o = lib.optim.SGD([w], lr=0.125)
    name = device if lib is pellucid else "cpu"
    scaler, seen = lib.amp.GradScaler(name, init_scale=16.0, growth_interval=2), []
    for factor in (1.0, float("inf"), 1.0, 1.0, 1.0):
        o.zero_grad()
        scaler.scale([(w * factor).sum()])[0].backward()
        scaler.unscale_(o)
        seen.append(w.grad.tolist())
        scaler.step(o)
        scaler.update()
        seen += [scaler.get_scale(), w.tolist()]
    again = lib.amp.GradScaler(name)
    again.load_state_dict(scaler.state_dict())
    return [*seen, scaler.state_dict(), again.state_dict()]


def test_scaler_is_pytorchs(device):
    assert scaled(pellucid, device) == scaled(torch, "cpu")


def test_a_scaler_that_does_nothing():
    with pytest.warns(UserWarning, match="no cuda here"):
        scaler = pellucid.amp.GradScaler("cuda")
    w = pellucid.ones(1, device="cpu", requires_grad=True)
    o = pellucid.optim.SGD([w], lr=0.5)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(o)
    scaler.step(o)
    scaler.update()
    assert (w.item(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (0.5, 1.0, {}, False)


def test_what_does_nothing_says_so():
    x = pellucid.ones(2, 2, device="cpu")
    for kind, settings, message in (
        ("cuda", {}, "no cuda here"),
        ("cpu", {"dtype": pellucid.float32}, "float32"),
    ):
        with pytest.warns(UserWarning, match=message), pellucid.autocast(kind, **settings):
            assert (x @ x).dtype == pellucid.float32


class Context:
    """What an autograd.Function keeps."""


def test_forward_and_backward_of_ones_own():
    amp, seen = pellucid.amp, []
    x = pellucid.ones(2, 2, device="cpu")

    @amp.custom_fwd(device_type="cpu", cast_inputs=pellucid.float32)
    def cast(ctx, x):
        return x @ x

    @amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        return x @ x

    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return g @ g

    ctx = Context()
    with pellucid.autocast("cpu", dtype=pellucid.bfloat16):
        seen += [cast(Context(), x.bfloat16()).dtype, forward(ctx, x).dtype]
    seen.append(backward(ctx, x).dtype)
    assert seen == [pellucid.float32, pellucid.bfloat16, pellucid.bfloat16]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a, o: pellucid.autocast(3), TypeError, "must be a string, not int 3"),
        (lambda a, o: pellucid.autocast("tpu"), RuntimeError, "'webgpu' or 'cpu', not 'tpu'"),
        (lambda a, o: a.set_autocast_dtype("cpu", pellucid.int8), ValueError, "float16 or bfloat16"),
        (lambda a, o: a.GradScaler("cpu", growth_factor=1.0), ValueError, "above 1"),
        (lambda a, o: a.GradScaler("cpu").scale(3), TypeError, "a tensor or several"),
        (lambda a, o: a.GradScaler("cpu").update(), RuntimeError, "no optimizer stepped"),
        (lambda a, o: a.GradScaler("cpu").step(o, lambda: 0), TypeError, "closure"),
        (lambda a, o: [f(o) for s in [a.GradScaler("cpu")] for f in [s.step] * 2], RuntimeError, "step: was"),
        (
            lambda a, o: [f(o) for s in [a.GradScaler("cpu")] for f in [s.unscale_] * 2],
            RuntimeError,
            "unscale_",
        ),
        (lambda a, o: a.GradScaler("cpu").load_state_dict({}), RuntimeError, "empty"),
    ],
)
def test_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(pellucid.amp, pellucid.optim.SGD([pellucid.ones(1, device="cpu")]))


def test_autocast_without_a_context():
    x = pellucid.ones(2, 2, device="cpu")
    pellucid.set_autocast_enabled("cpu", True)
    try:
        assert pellucid.is_autocast_enabled("cpu")
        assert pellucid.is_autocast_cpu_enabled()
        assert (x @ x).dtype is pellucid.get_autocast_cpu_dtype()
    finally:
        pellucid.set_autocast_enabled("cpu", False)
    assert (x @ x).dtype is pellucid.float32
    assert pellucid.autocast_increment_nesting() == 1
    assert pellucid.autocast_decrement_nesting() == 0
    wanted = str(torch.get_autocast_dtype("cuda")).removeprefix("torch.")
    assert str(pellucid.get_autocast_gpu_dtype()).endswith(wanted)
    within = pellucid.amp.autocast_decorator(pellucid.autocast("cpu"), lambda: (x @ x).dtype)
    assert within() is pellucid.bfloat16
