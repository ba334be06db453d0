"""Means and maxima of windows against PyTorch: values, places, gradients, gradients of gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import check, normal


@given(
    st.integers(1, 12), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2), st.integers(1, 3),
    st.booleans(), st.booleans()
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any(length, kernel, stride, padding, dilation, ceil_mode, count):
    padding = min(padding, kernel // 2)
    x = normal(2, 2, length + dilation * (kernel - 1))
    check(
        lambda p, x: (
            p.nn.functional.max_pool1d(x, kernel, stride, padding, dilation, ceil_mode),
            p.nn.functional.avg_pool1d(x, kernel, stride, padding, ceil_mode, count),
            p.nn.functional.adaptive_avg_pool1d(x, kernel)
        ),
        x, layouts=("strided",)
    )  # fmt: skip


def test_means_of_everything_are_reductions():
    """One window an image is a long sum, which many lanes share."""
    x = pellucid.tensor(normal(1, 2, 5, 6), device="cpu", requires_grad=True)
    assert pellucid.nn.functional.adaptive_avg_pool2d(x, 1).grad_fn.name() == "MeanBackward1"


LAYERS = [
    ("MaxPool1d", (2,), {}, (2, 3, 9)),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8, 9)),
    ("MaxPool2d", ((2, 3),), {"dilation": (1, 2)}, (3, 8, 9)),
    ("AvgPool1d", (3, 2, 1), {"count_include_pad": False}, (2, 3, 9)),
    ("AvgPool2d", ((3, 2),), {}, (2, 3, 8, 9)),
    ("AvgPool2d", (3,), {"divisor_override": 5, "padding": 1}, (2, 3, 8, 9)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveAvgPool2d", ((None, 3),), {}, (2, 3, 8, 9)),
]


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=[str(case[:3]) for case in LAYERS])
def test_layers(name, args, options, shape):
    check(lambda p, x: getattr(p.nn, name)(*args, **options)(x), normal(*shape), layouts=("contiguous",))
    assert repr(getattr(pellucid.nn, name)(*args, **options)) == repr(
        getattr(torch.nn, name)(*args, **options)
    )


def test_a_layer_that_returns_places():
    x = normal(1, 2, 4, 4)
    values, places = pellucid.nn.MaxPool2d(2, return_indices=True)(pellucid.tensor(x))
    expected, where = torch.nn.MaxPool2d(2, return_indices=True)(torch.tensor(x))
    np.testing.assert_array_equal(values.numpy(), expected.numpy())
    np.testing.assert_array_equal(places.numpy(), where.numpy())


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "ceil_mode"),
    [
        ((3, 5, 70, 81), 2, 2, 0, False), ((3, 5, 9, 140), (3, 2), (2, 3), (1, 1), True),
        ((2, 7, 5, 6), (5, 6), 1, (2, 3), False), ((1, 3, 130, 3), 3, 1, 1, False),
    ],
)  # fmt: skip
def test_maxima_without_places(shape, kernel, stride, padding, ceil_mode):
    """Where no derivative is recorded; with NaN, and infinities of both signs in one window."""
    x = normal(*shape)
    rng = np.random.default_rng(0)
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        x.reshape(-1)[rng.integers(0, x.size, x.size // 12)] = value
    x[0, 0] = -np.inf
    given = kernel, stride, padding, 1, ceil_mode
    expected = torch.nn.functional.max_pool2d(torch.tensor(x), *given).numpy()
    for device in ("webgpu", "cpu"):
        out = pellucid.nn.functional.max_pool2d(pellucid.tensor(x, device=device), *given)
        np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("begin", [0, 1, 2, 3])
def test_halves(begin):
    """Places that are read in pairs, and one by one where the images begin at an odd one."""
    shape = 2, 3, 6, 138
    whole = normal(begin + int(np.prod(shape)))
    x = pellucid.tensor(whole, device="webgpu")[begin:].reshape(*shape)
    taken = torch.tensor(whole[begin:]).reshape(shape)
    for call in (
        lambda f, x: f.max_pool2d(x, (3, 2)),
        lambda f, x: f.interpolate(x, scale_factor=0.5, mode="bilinear"),
        lambda f, x: f.interpolate(x, size=(9, 69), mode="bilinear") * 2,
    ):
        ours, theirs = call(pellucid.nn.functional, x), call(torch.nn.functional, taken)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
