"""A whole training: the losses of every step are PyTorch's, and memory stays flat."""

import gc

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, state_of

STEPS = 50


def network(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Embedding(20, 8), nn.Flatten(), nn.Linear(24, 32), nn.LayerNorm(32), nn.GELU(),
        nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5),
    )  # fmt: skip


def train(lib, net, optimizer, schedule, inputs, targets, steps):
    loss_of = lib.nn.CrossEntropyLoss(label_smoothing=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net(inputs), targets)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def prepared(lib, device, name):
    rng = np.random.default_rng(5)
    inputs = lib.tensor(rng.integers(0, 20, (24, 3)), device=device)
    targets = lib.tensor(rng.integers(0, 5, (24,)), device=device)
    lib.manual_seed(5)  # one draw of weights in a hundred lies so near a corner of ReLU that rounding decides
    with lib.device(device):
        net = network(lib)
    settings = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.01}
    optimizer = getattr(lib.optim, name)(net.parameters(), **settings)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    return net, optimizer, schedule, inputs, targets


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_losses_are_pytorchs(name, device):
    """P-037: losses on the device."""
    theirs = prepared(torch, "cpu", name)
    ours = prepared(pellucid, device, name)
    ours[0].load_state_dict(state_of(theirs[0]))
    expected = train(torch, *theirs, STEPS)
    losses = train(pellucid, *ours, STEPS)
    np.testing.assert_allclose(losses, expected, atol=1e-4, rtol=0)
    assert losses[-1] < 0.5 * losses[0]


def test_memory_is_flat_over_steps():
    prepared_run = prepared(pellucid, "webgpu", "AdamW")
    train(pellucid, *prepared_run, 3)
    gc.collect()
    gc.disable()
    try:
        before = pellucid.webgpu.memory_allocated()
        train(pellucid, *prepared_run, 10)
        # Nothing waits for the garbage collector: no step leaves a cycle.
        assert pellucid.webgpu.memory_allocated() == before
    finally:
        gc.enable()


def test_weights_of_a_regression_are_found(device):
    true = floats(4, 1, seed=2)
    x = floats(64, 4)
    inputs, targets = pellucid.tensor(x, device=device), pellucid.tensor(x @ true, device=device)
    layer = pellucid.nn.Linear(4, 1, device=device)
    optimizer = pellucid.optim.SGD(layer.parameters(), lr=0.1, momentum=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        pellucid.nn.functional.mse_loss(layer(inputs), targets).backward()
        optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy().T, true, atol=1e-3)
