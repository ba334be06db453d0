"""Convolutional layers and padding by modes against PyTorch's: outputs, gradients, state, text."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, same_call, state_of

LAYERS = [
    ("Conv1d", (3, 6, 3), {}, (2, 3, 9)),
    ("Conv1d", (4, 6, 5), {"stride": 2, "padding": 2, "groups": 2, "bias": False}, (4, 11)),
    ("Conv1d", (3, 4, (3,)), {"padding": "same", "padding_mode": "circular"}, (2, 3, 7)),
    ("Conv2d", (3, 6, 3), {}, (2, 3, 7, 6)),
    ("Conv2d", (4, 20, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}, (2, 4, 9, 8)),
    ("Conv2d", (4, 8, 3), {"padding": 1, "groups": 4, "bias": False}, (4, 6, 5)),
    ("Conv2d", (2, 3, 3), {"padding": "same", "dilation": (1, 2)}, (1, 2, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": "valid"}, (1, 2, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": (2, 1), "padding_mode": "reflect"}, (2, 2, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": (3, 1), "padding_mode": "replicate"}, (2, 2, 4, 3)),
    ("Conv2d", (2, 3, (2, 4)), {"padding": "same", "padding_mode": "circular"}, (2, 2, 5, 6)),
    ("Conv2d", (2, 3, 3), {"padding": "valid", "padding_mode": "circular"}, (1, 2, 5, 6)),
    ("Conv3d", (2, 3, (2, 1, 2)), {"padding": "same", "padding_mode": "reflect"}, (1, 2, 3, 2, 3)),
    ("ConvTranspose3d", (2, 2, 2), {"stride": (2, 1, 1), "output_padding": (1, 0, 0)}, (2, 2, 1, 2)),
    ("ConvTranspose1d", (3, 6, 4), {"stride": 2, "padding": 1}, (2, 3, 7)),
    ("ConvTranspose1d", (4, 6, 3), {"output_padding": 1, "stride": 2, "groups": 2, "bias": False}, (4, 5)),
    ("ConvTranspose2d", (3, 5, 3), {}, (2, 3, 4, 5)),
    ("ConvTranspose2d", (3, 5, 3), {"stride": 2, "padding": 1, "output_padding": (1, 0)}, (2, 3, 4, 5)),
    ("ConvTranspose2d", (3, 5, 2), {"dilation": (2, 1), "stride": (1, 3)}, (3, 4, 5)),
]
IDS = [f"{name}{args}{options}" for name, args, options, _ in LAYERS]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=IDS)
def test_equals_pytorch(name, args, options, shape, device):
    theirs = getattr(torch.nn, name)(*args, **options)
    with pellucid.device(device):
        ours = getattr(pellucid.nn, name)(*args, **options)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, floats(*shape))


@pytest.mark.parametrize("size", [(10, 10), (1, 3, 10, 9), [9, 10]])
def test_the_output_size_of_a_transposed_layer(size, device):
    theirs = torch.nn.ConvTranspose2d(2, 3, 3, stride=2)
    ours = pellucid.nn.ConvTranspose2d(2, 3, 3, stride=2, device=device)
    ours.load_state_dict(state_of(theirs))
    x = floats(1, 2, 4, 4)
    same(ours(pellucid.tensor(x, device=device), size), theirs(torch.tensor(x), size))


def test_an_output_size_that_cannot_be_made():
    layer = pellucid.nn.ConvTranspose2d(2, 3, 3, stride=2, device="cpu")
    x = pellucid.zeros(1, 2, 4, 4, device="cpu")
    for size in ((11, 9), (8, 9)):
        with pytest.raises(ValueError, match=r"lengths from \[9, 9\] to \[10, 10\] can be made"):
            layer(x, size)
    with pytest.raises(ValueError, match=r"output_size is \(10,\); give 2 lengths, or 4"):
        layer(x, (10,))


def test_first_values():
    """As PyTorch draws them: uniform within one over the root of the inputs of a unit."""
    pellucid.manual_seed(1)
    for layer, inputs in (
        (pellucid.nn.Conv2d(8, 64, 3, groups=2, device="cpu"), 4 * 9),
        (pellucid.nn.ConvTranspose1d(64, 8, 9, groups=2, device="cpu"), 4 * 9),
    ):
        for values in (layer.weight, layer.bias):
            bound = 1 / np.sqrt(inputs)
            found = np.abs(values.detach().numpy())
            assert found.max() <= bound
            assert found.max() > 0.7 * bound
        assert abs(layer.weight.detach().numpy().std() - bound / np.sqrt(3)) < 0.05 * bound


REFUSED = [
    ("Conv2d", (3, 6, 3), {"groups": 2}, "groups is 2; it must be positive and divide 3 and 6"),
    ("Conv2d", (4, 6, 3), {"groups": 4}, "divide 4 and 6"),
    ("Conv2d", (4, 6, 3), {"groups": 0}, "must be positive"),
    ("Conv1d", (4, 6, 3), {"padding": "other"}, "Conv1d: padding is 'other'; there are 'valid', 'same'"),
    ("Conv2d", (4, 6, 3), {"padding": "same", "stride": 2}, r"stride \(2, 2\) does not"),
    ("Conv2d", (4, 6, 3), {"padding_mode": "mirror"}, "padding_mode is 'mirror'; there is zeros, reflect"),
    ("ConvTranspose2d", (4, 6, 3), {"padding_mode": "reflect"}, "there is 'zeros' only"),
    ("ConvTranspose1d", (4, 6, 3), {"padding": "same"}, "there are numbers only"),
]


@pytest.mark.parametrize(("name", "args", "options", "message"), REFUSED)
def test_settings_that_are_refused(name, args, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(pellucid.nn, name)(*args, **options, device="cpu")


PADS = [
    ((2, 3, 5), (1, 2)),
    ((2, 3, 5), (4, 0)),
    ((2, 4, 3, 5), (2, 1, 0, 2)),
    ((2, 3, 5), (-1, 2)),
    ((2, 3, 5), (0, -2)),
    ((2, 3, 5), (0, 0)),
    ((3, 5, 70, 3), (1, 2, 6, 3)),
    ((2, 3, 3, 4, 5), (1, 2, 0, 3, 2, 1)),
]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("shape", "pads"), PADS)
def test_pad(shape, pads, mode, device):
    leaf = floats(*shape)
    x = pellucid.tensor(leaf, device=device, requires_grad=True)
    y = torch.tensor(leaf, requires_grad=True)
    out, expected = (m.nn.functional.pad(t, pads, mode) for m, t in ((pellucid, x), (torch, y)))
    same(out, expected)
    seed = floats(*expected.shape, seed=3)
    out.backward(pellucid.tensor(seed, device=device))
    expected.backward(torch.tensor(seed))
    same(x.grad, y.grad)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_planes_are_padded_in_one_launch(mode):
    x = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    ours = pellucid.tensor(x.numpy(), device="webgpu")
    pellucid.webgpu.synchronize()
    before = pellucid.webgpu.memory_stats()["dispatches"]
    out = pellucid.nn.functional.pad(ours, (2, 1, 0, 3), mode)
    pellucid.webgpu.synchronize()
    assert pellucid.webgpu.memory_stats()["dispatches"] == before + 1
    if mode == "replicate":
        x = x.double()  # PyTorch repeats no integers
    assert out.tolist() == torch.nn.functional.pad(x, (2, 1, 0, 3), mode).long().tolist()


def test_pad_of_more_than_there_is():
    x, pad = pellucid.zeros(2, 4, device="cpu"), pellucid.nn.functional.pad
    for mode, pads, most in (("reflect", (4, 0), 3), ("circular", (0, 5), 4)):
        with pytest.raises(RuntimeError, match=rf"axis 1, which has 4; mode '{mode}' gives at most {most}"):
            pad(x, pads, mode)
    assert pad(x, (9, 0), "replicate").shape == (2, 13)
    with pytest.raises(RuntimeError, match="mode 'replicate' gives at most 0"):
        pad(x[:, :0], (1, 0), "replicate")
    with pytest.raises(RuntimeError, match="mode 'reflect' takes no value"):
        pad(x, (1, 1), "reflect", 1.0)


def test_a_small_network(device):
    def made(nn):
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 20, 3, stride=2, bias=False), nn.SiLU(), nn.ConvTranspose2d(20, 6, 2, stride=2),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 5),
        )  # fmt: skip

    theirs = made(torch.nn)
    with pellucid.device(device):
        ours = made(pellucid.nn)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, floats(3, 3, 14, 12))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_gradients_by_themselves(axes):
    rng = np.random.default_rng(axes)
    x, w = (
        rng.normal(size=(2, 4, *[6] * axes)).astype("f4"),
        rng.normal(size=(6, 2, *[3] * axes)).astype("f4"),
    )
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    g = rng.normal(size=(2, 6, *[3] * axes)).astype("f4")
    for kind, sizes in (("input", (x.shape, w)), ("weight", (x, w.shape))):
        found = []
        for lib in (pellucid, torch):
            given = [lib.tensor(a, device="cpu") if isinstance(a, np.ndarray) else a for a in sizes]
            call = getattr(lib.nn.grad, f"conv{axes}d_{kind}")
            found.append(call(*given, lib.tensor(g, device="cpu"), **settings).numpy())
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)
