"""Watching a run: tensors every n steps, histograms beside numpy's, and that nothing else changes."""

import asyncio
from xml.etree import ElementTree

import numpy as np
import pytest

import pellucid as torch
from pellucid import nn
from pellucid.errors import ArgumentError, RangeError
from pellucid.train import Trainer, TrainingArguments, WatchCallback, WeightHistograms
from pellucid.train.plots import histograms


def trainer(device, callbacks=(), steps=6):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    rng = np.random.default_rng(1)
    data = [(row.astype(np.float32), int(row[0] > 0)) for row in rng.normal(size=(16, 3))]
    args = TrainingArguments(max_steps=steps, learning_rate=0.05, disable_tqdm=True)
    return Trainer(
        model, args, train_dataset=data, callbacks=callbacks,
        compute_loss_func=lambda y, labels, **_: nn.functional.cross_entropy(y, labels),
    )  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_histograms_are_those_of_numpy(device):
    seen, sent = {}, []
    # Both see the weights between the same two steps.
    copies = WatchCallback(
        2, lambda model: {"w": model[0].weight}, lambda step, found: seen.setdefault(step, found["w"])
    )
    counted = WeightHistograms(2, bins=8, report=sent.append)
    trainer(device, [copies, counted]).train()
    assert sent == counted.history
    assert [entry["step"] for entry in sent] == [2, 4, 6] == list(seen)
    for entry in sent:
        assert list(entry["histograms"]) == ["0.weight", "2.weight"]
        mine, weights = entry["histograms"]["0.weight"], seen[entry["step"]]
        counts, edges = np.histogram(weights, 8)
        assert sum(mine["counts"]) == 24
        # A number on an edge may fall to either side.
        assert np.abs(np.array(mine["counts"]) - counts).sum() <= 2
        assert (mine["low"], mine["high"]) == (pytest.approx(edges[0]), pytest.approx(edges[-1]))
    assert seen[2].tolist() != seen[4].tolist()
    picture = ElementTree.fromstring(histograms(sent, "0.weight"))
    assert picture.get("aria-label") == "0.weight"
    assert histograms(sent, "9.weight") == ""


def test_weights_that_are_all_alike_lie_in_one_bin():
    run = trainer("cpu", [counted := WeightHistograms(1, "2.bias", 4, report=len)], steps=1)
    with torch.no_grad():
        run.model.get_parameter("2.bias").zero_()
    run.args.learning_rate = 0.0
    run.train()
    assert counted.history == [
        {"step": 1, "histograms": {"2.bias": {"low": 0.0, "high": 0.0, "counts": [2, 0, 0, 0]}}}
    ]


def test_a_run_that_is_watched_ends_in_the_same_bits():
    plain, watched = trainer("cpu"), trainer("cpu", [WeightHistograms(1, report=len)])
    plain.train()
    asyncio.run(watched.train_async())
    for a, b in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_what_is_refused():
    with pytest.raises(RangeError, match="every must be a whole number from 1 on, not 0"):
        WeightHistograms(0)
    with pytest.raises(RangeError, match="bins must be a whole number from 1 on, not 0"):
        WeightHistograms(bins=0)
    with pytest.raises(ArgumentError, match="look must be a function, not 3"):
        WatchCallback(1, 3, print)  # pyright: ignore[reportArgumentType]
