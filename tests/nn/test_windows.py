"""Layers of windows, padding and images against PyTorch's: outputs, and what they print."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same

RANKS = (1, 2, 3)
LAYERS = [
    *[(f"MaxPool{n}d", (2,), {"stride": 1, "padding": 1, "ceil_mode": True}) for n in RANKS],
    *[(f"AvgPool{n}d", (2,), {"padding": 1, "count_include_pad": False}) for n in RANKS],
    *[(f"LPPool{n}d", (2, 2), {"ceil_mode": True}) for n in RANKS],
    *[(f"AdaptiveAvgPool{n}d", (2,), {}) for n in RANKS],
    *[(f"AdaptiveMaxPool{n}d", (2,), {}) for n in RANKS],
    *[
        (f"{kind}Pad{n}d", (1,), {})
        for n in RANKS
        for kind in ("Zero", "Reflection", "Replication", "Circular")
    ],
    *[(f"ConstantPad{n}d", ((1, 0) * n, 2.5), {}) for n in RANKS],
    ("AvgPool2d", ((2, 1),), {"divisor_override": 3}),
]


@pytest.mark.parametrize(("name", "args", "options"), LAYERS, ids=[f"{n}{a}{o}" for n, a, o in LAYERS])
def test_equals_pytorch(name, args, options):
    theirs, ours = (getattr(nn, name)(*args, **options) for nn in (torch.nn, pellucid.nn))
    assert repr(ours) == repr(theirs)
    x = np.abs(floats(2, 2, *(4, 3, 5)[: int(name[-2])]))
    same(ours(pellucid.tensor(x, device="cpu")), theirs(torch.tensor(x)))


IMAGES = [
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bilinear"}), ("Upsample", (3,), {}),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}), ("UpsamplingBilinear2d", ((5, 3),), {}),
    ("PixelShuffle", (2,), {}), ("PixelUnshuffle", (2,), {}), ("ChannelShuffle", (2,), {}),
    ("Unfold", ((2, 1),), {"stride": 2}), ("Fold", ((3, 5), 2), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), IMAGES, ids=[f"{n}{a}{o}" for n, a, o in IMAGES])
def test_layers_of_images(name, args, options):
    theirs, ours = (getattr(nn, name)(*args, **options) for nn in (torch.nn, pellucid.nn))
    assert repr(ours) == repr(theirs)
    x = floats(1, 4, 8) if name == "Fold" else floats(1, 4, 4, 6)
    same(ours(pellucid.tensor(x, device="cpu")), theirs(torch.tensor(x)))


@pytest.mark.parametrize("n", RANKS)
def test_maxima_go_back_to_their_places(n):
    x = floats(1, 2, *(4, 2, 6)[:n])
    outcomes = []
    for t, options in ((torch, {}), (pellucid, {"device": "cpu"})):
        pool = getattr(t.nn, f"MaxPool{n}d")(2, return_indices=True)
        unpool = getattr(t.nn, f"MaxUnpool{n}d")(2)
        outcomes.append((repr(unpool), unpool(*pool(t.tensor(x, **options)))))
    (shown, ours), (wanted, theirs) = outcomes[::-1]
    assert shown == wanted
    same(ours, theirs)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling(n):
    name, samples = f"FractionalMaxPool{n}d", np.random.default_rng(3).random((1, 2, n), np.float32)
    x = floats(1, 2, *(5, 6, 7)[:n])
    theirs = getattr(torch.nn, name)(2, output_ratio=0.5, _random_samples=torch.tensor(samples))
    given = pellucid.tensor(samples, device="cpu")
    ours = getattr(pellucid.nn, name)(2, output_ratio=0.5, _random_samples=given)
    assert repr(ours) == repr(theirs)
    same(ours(pellucid.tensor(x, device="cpu")), theirs(torch.tensor(x)))
    for options in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError, match="output_"):
            getattr(pellucid.nn, name)(2, **options)
