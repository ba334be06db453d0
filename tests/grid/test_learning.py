"""P-037, P-038, P-042, P-043, P-095: records of training, methods compared on one task, tasks that change."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.device.stream import stream
from pellucid.errors import ArgumentError, RangeError
from pellucid.grid import (
    AdaptationTracker,
    Backpropagation,
    FitConfig,
    GridNetwork,
    TargetPropagation,
    TargetPropagationConfig,
    adapt,
    compare_methods,
    fit,
)
from pellucid.nn.functional import cross_entropy, mse_loss

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
Y = np.array([[0], [1], [1], [0]], np.float32)


def network(device="cpu", outputs=1):
    layers = nn.Linear(2, 8, device=device), nn.Tanh(), nn.Linear(8, outputs, device=device)
    return GridNetwork(1, 1, 3, 1, {(0, 0, x, 0): layer for x, layer in enumerate(layers)})


@pytest.mark.parametrize(("device", "clip"), zip(DEVICES, (0.05, None), strict=True))
def test_fit_is_what_pytorch_does(device, clip):
    """P-037: both losses, clipping; losses and weights as by the same loop of PyTorch."""
    pellucid.manual_seed(0)
    for name, target in (("mse", Y), ("cross_entropy", Y[:, 0].astype(np.int64))):
        outputs = 1 if name == "mse" else 2
        net = network(device, outputs)
        theirs = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))
        for p, q in zip(theirs.parameters(), net.parameters(), strict=True):
            p.data = torch.tensor(q.detach().numpy())
        sgd = torch.optim.SGD(theirs.parameters(), 0.1)
        losses = []
        for _ in range(5):
            sums = 0.0
            for part in (slice(0, 3), slice(3, 4)):
                sgd.zero_grad()
                loss = getattr(torch.nn.functional, name.replace("mse", "mse_loss"))(
                    theirs(torch.tensor(X[part])), torch.tensor(target[part])
                )
                loss.backward()
                if clip:
                    torch.nn.utils.clip_grad_norm_(theirs.parameters(), clip)
                sgd.step()
                sums += loss.item()
            losses.append(sums / 2)
        batches = [
            (pellucid.tensor(X[p], device=device), pellucid.tensor(target[p], device=device))
            for p in (slice(0, 3), slice(3, 4))
        ]
        result = fit(net, batches, FitConfig(5, 0.1, name, clip))
        np.testing.assert_allclose(result.losses, losses, rtol=1e-4)
        assert result.final_loss == result.losses[-1] < result.losses[0]
        assert len(result.epoch_seconds) == 5
        assert result.seconds == sum(result.epoch_seconds) > 0
        for p, q in zip(theirs.parameters(), net.parameters(), strict=True):
            np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-3, atol=1e-6)


def test_exclusive_or(capsys):
    """P-037: with an optimizer of PyTorch's, and a line for each epoch."""
    pellucid.manual_seed(0)
    net = network()
    optimizer = pellucid.optim.Adam(net.parameters(), 0.1)
    batch = pellucid.tensor(X, device="cpu"), pellucid.tensor(Y, device="cpu")
    assert fit(net, [batch], FitConfig(100, verbose=True), optimizer).final_loss < 1e-2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 100
    assert lines[0].startswith("epoch 1: loss ")
    with pytest.raises(ArgumentError, match="no batches"):
        fit(net, iter([batch]), FitConfig(2), optimizer)
    with pytest.raises(ArgumentError, match="no parameters"):
        fit(nn.ReLU(), [batch])
    for wrong in ({"epochs": 0}, {"learning_rate": -1}, {"gradient_clip": np.inf}, {"loss": "mae"}):
        with pytest.raises(RangeError, match=next(iter(wrong))):
            FitConfig(**wrong)


def letters():
    """A text's pairs of neighbouring letters, as a batch."""
    ids = np.array([b"abcd ".index(c) for c in b"abcd dcba abcd dcba"], np.int64)
    return ids[:-1], ids[1:]


def pictures():
    """Sixty 8 x 8 pictures of three strokes in noise, and which it is."""
    rng = np.random.default_rng(0)
    classes = np.arange(60) % 3
    drawn = rng.standard_normal((60, 1, 8, 8)).astype(np.float32) * 0.3
    for image, kind in zip(drawn[:, 0], classes, strict=True):
        image[(slice(3, 5), slice(0, 8), range(8))[kind], (slice(0, 8), slice(3, 5), range(8))[kind]] += 1
    return drawn, classes


@pytest.mark.parametrize("name", ["exclusive or", "pictures", "letters"])
def test_fit_learns_on_the_gpu(name):
    """P-037: losses fall for squares, for pictures by a convolution, and for the next letter of a text."""
    pellucid.manual_seed(0)
    x, y, loss, layers = {
        "exclusive or": lambda: (X, Y, "mse", (nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))),
        "pictures": lambda: (
            *pictures(), "cross_entropy",
            (nn.Conv2d(1, 4, 3, padding=1), nn.Sequential(nn.ReLU(), nn.Flatten()), nn.Linear(256, 3)),
        ),
        "letters": lambda: (
            *letters(), "cross_entropy",
            (nn.Embedding(5, 8), nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 5)),
        ),
    }[name]()  # fmt: skip
    net = GridNetwork(1, 1, 3, 1, {(0, 0, k, 0): layer for k, layer in enumerate(layers)})
    batch = pellucid.tensor(x), pellucid.tensor(y)
    assert batch[0].device.type == "webgpu"
    optimizer = pellucid.optim.Adam(net.parameters(), 0.05)
    losses = fit(net, [batch], FitConfig(40, loss=loss), optimizer).losses
    # After most letters come two: no less than log(2) is to be had of those.
    assert losses[-1] < (0.7 if name == "letters" else 0.1) * losses[0]


def test_methods_on_one_task():
    """P-042: all methods begin with equal weights; for a chain, ticks are backpropagation."""
    pellucid.manual_seed(1)
    x, y = pellucid.tensor(X, device="cpu"), pellucid.tensor(Y, device="cpu")
    found = compare_methods(network, x, y, mse_loss, steps=400, goal=1.0, every=20, name="exclusive or")
    one, two, three = (found.methods[n] for n in ("backpropagation", "target propagation", "systolic"))
    assert one.losses[0] == two.losses[0] == three.losses[0]
    np.testing.assert_allclose(three.losses, one.losses, rtol=1e-5)
    for record in (one, two, three):
        assert record.accuracy == 1
        assert len(record.losses) == record.steps < 400
        assert record.seconds_to_goal == record.seconds > 0
        assert record.milestones[0.5] <= record.milestones[0.75] <= record.milestones[1.0] == record.steps
        assert record.loss < record.losses[0]
    assert found.layers == 3
    assert found.best() == min(found.methods, key=lambda n: (found.methods[n].steps, found.methods[n].loss))
    table = str(found).splitlines()
    assert table[0] == f"exclusive or, 3 layers; best: {found.best()}"
    assert len(table) == 5
    for wrong in ({"steps": 0}, {"every": 0}, {"goal": 2}, {"methods": {}}):
        with pytest.raises((RangeError, ArgumentError), match="compare_methods"):
            compare_methods(network, x, y, mse_loss, **wrong)


def test_windows_of_time():
    """P-043: windows, a change in the middle of one, recovery; a clock of our own."""
    now = [0.0]
    tracker = AdaptationTracker(1.0, 0.9, lambda: now[0])
    with pytest.raises(ArgumentError, match="start"):
        tracker.record(True)
    tracker.start("a")

    def answer(rates):
        for rate in rates:
            for k in range(10):
                tracker.record(k < 10 * rate)
                now[0] += 0.125 if k < 4 else 0.5 / 6

    answer([0.5, 1.0])
    now[0] += 0.5
    tracker.change("b")
    answer([0.2, 0.8, 1.0])
    now[0] = 5.5
    result = tracker.finish()
    assert [(w.start, w.end, w.task) for w in result.windows[:4]] == [
        (0, 1, "a"), (1, 2, "a"), (2, 2.5, "a"), (2.5, 3.5, "b")
    ]  # fmt: skip
    assert result.outputs == 50
    assert result.accuracy == pytest.approx(0.7)
    assert result.duration == 5.5
    (change,) = result.changes
    assert (change.at, change.before, change.after) == (2.5, "a", "b")
    assert change.accuracy_before == result.windows[1].accuracy == 1.0
    assert change.accuracy_after == 0.2
    assert change.recovery == pytest.approx(3.0)
    assert result.windows[1].outputs_per_second == 10
    for wrong in ((0, 0.9), (1, 1.5)):
        with pytest.raises(RangeError, match="window must be positive"):
            AdaptationTracker(*wrong)
    with pytest.raises(RangeError, match="3 of 2"):
        tracker.record(3, 2)


def test_learners_recover_from_a_change_of_task():
    """P-043: the accuracy falls when the task changes, and comes back, by two methods."""
    pellucid.manual_seed(0)
    x = pellucid.randn(16, 2, device="cpu")
    ways = (x[:, 0] > 0).long(), (x[:, 0] < 0).long()
    tasks = {"right": lambda: (x, ways[0]), "left": lambda: (x, ways[1])}
    first = network(outputs=2)
    second = copy.deepcopy(first)
    config = TargetPropagationConfig(0.2, momentum=0.5, budget=-1, max_step=0.5)
    for net, method in (
        (first, Backpropagation(first, learning_rate=0.5)),
        (second, TargetPropagation(second, config)),
    ):
        told = adapt(net, method, tasks, [("right", 40), ("left", 40)], cross_entropy)
        assert [w.task for w in told.windows] == ["right"] * 4 + ["left"] * 4
        assert told.outputs == 80 * 16
        (change,) = told.changes
        assert change.accuracy_before > 0.9 > 0.7 > told.windows[4].accuracy == change.accuracy_after
        assert change.recovery in (20.0, 30.0, 40.0)
    with pytest.raises(ArgumentError, match="schedule"):
        adapt(first, method, tasks, [("up", 3)], mse_loss)


def test_a_step_is_one_submission(monkeypatch):
    """P-038: losses are summed on the device; only an epoch's sum is read."""
    pellucid.manual_seed(0)
    net = network("webgpu")
    batch = pellucid.tensor(X, device="webgpu"), pellucid.tensor(Y, device="webgpu")
    fit(net, [batch], FitConfig(1))
    host, seen = type(stream().host), {"submit": [], "begin_read": []}

    def counted(name):
        original = getattr(host, name)

        def call(self, *args, **kwargs):
            seen[name].append(args)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(host, name, call)

    for name in seen:
        counted(name)
    fit(net, [batch] * 10, FitConfig(1))
    assert 10 <= len(seen["submit"]) <= 11
    assert len(seen["begin_read"]) == 1
    assert sum(args[2] for args in seen["begin_read"]) <= 16
