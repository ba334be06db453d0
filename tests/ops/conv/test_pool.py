"""Means and maxima of windows against PyTorch: values, places, gradients, gradients of gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES, check, check_error, normal
from pellucid.errors import DTypeError, ShapeError

MAXIMA = {
    "plain": ((2, 3, 8, 9), (2,), {}),
    "overlapping": ((2, 3, 8, 9), (3,), {"stride": 2, "padding": 1}),
    "uneven": ((2, 3, 9, 11), ((3, 2),), {"stride": (2, 3), "padding": (1, 0), "dilation": (2, 3)}),
    "to the ceiling": ((2, 3, 8, 10), (3,), {"stride": 3, "ceil_mode": True}),
    "to the ceiling, padded": ((1, 2, 7, 6), ((2, 3),), {"stride": (3, 2), "padding": 1, "ceil_mode": True}),
    "no batch": ((3, 6, 7), ([2, 3],), {"stride": ()}),
    "the whole image": ((2, 3, 5, 4), ((5, 4),), {}),
}
MEANS = {
    "plain": ((2, 3, 8, 9), (2,), {}),
    "overlapping": ((2, 3, 8, 9), (3,), {"stride": 2, "padding": 1}),
    "without the padding": ((2, 3, 8, 9), (3, 2, 1), {"count_include_pad": False}),
    "uneven": ((2, 3, 9, 11), ((4, 2),), {"stride": (2, 3), "padding": (2, 0)}),
    "to the ceiling": ((2, 3, 8, 10), (3,), {"stride": 3, "ceil_mode": True}),
    "to the ceiling, padded": ((1, 2, 7, 6), ((2, 3),), {"stride": (3, 2), "padding": 1, "ceil_mode": True}),
    "by a number": ((2, 3, 6, 7), (3,), {"padding": 1, "divisor_override": -4}),
    "no batch": ((3, 6, 7), ((2, 3),), {}),
}


@pytest.mark.parametrize("name", MAXIMA)
def test_max_pool2d(name):
    shape, args, options = MAXIMA[name]
    check(lambda p, x: p.nn.functional.max_pool2d(x, *args, **options), normal(*shape))
    check(
        lambda p, x: p.nn.functional.max_pool2d(x, *args, **options, return_indices=True), normal(*shape),
        grad=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", MEANS)
def test_avg_pool2d(name):
    shape, args, options = MEANS[name]
    check(lambda p, x: p.nn.functional.avg_pool2d(x, *args, **options), normal(*shape))


def test_over_one_axis():
    x = normal(2, 3, 13)
    check(lambda p, x: p.nn.functional.max_pool1d(x, 3, 2, 1, ceil_mode=True), x)
    check(lambda p, x: p.nn.functional.max_pool1d(x, 2, dilation=3, return_indices=True), x, grad=False)
    check(lambda p, x: p.nn.functional.avg_pool1d(x, 4, 3, 2, True, False), x)
    check(lambda p, x: p.nn.functional.avg_pool1d(x[0], (3,)), x)
    check(lambda p, x: p.nn.functional.adaptive_avg_pool1d(x, 5), x)


@pytest.mark.parametrize("size", [1, 3, (2, 5), (None, 4), (7, 9), (12, 3), [3, 1]])
def test_adaptive_avg_pool2d(size):
    check(lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, size), normal(2, 3, 7, 9))


def test_no_windows():
    check(lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, (0, 3)), normal(2, 3, 7, 9), grad=False)


@given(
    st.integers(1, 12), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2), st.integers(1, 3),
    st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any(length, kernel, stride, padding, dilation, ceil_mode, count):
    padding = min(padding, kernel // 2)
    x = normal(2, 2, length + dilation * (kernel - 1))
    check(
        lambda p, x: (
            p.nn.functional.max_pool1d(x, kernel, stride, padding, dilation, ceil_mode),
            p.nn.functional.avg_pool1d(x, kernel, stride, padding, ceil_mode, count),
            p.nn.functional.adaptive_avg_pool1d(x, kernel),
        ),
        x, layouts=("strided",),
    )  # fmt: skip


def test_equal_elements_and_special_ones():
    """The first of equal elements is taken, a NaN before any number, of several the last."""
    x = np.array([1, 1, np.nan, 2, np.nan, -np.inf, -np.inf, -np.inf, np.inf, 3, 3, 3, 0, -0.0], np.float32)
    for kernel in (2, 3, 4):
        check(
            lambda p, x, k=kernel: p.nn.functional.max_pool1d(x, k, 1, k // 2, return_indices=True),
            x.reshape(1, 1, -1), grad=False,
        )  # fmt: skip
    check(lambda p, x: p.nn.functional.max_pool2d(x, 2, 1), np.zeros((1, 2, 4, 5), np.float32))


@pytest.mark.parametrize("device", DEVICES)
def test_double_backward(device):
    array = normal(2, 3, 7, 8)
    for call in (
        lambda F, x: F.max_pool2d(x, 3, 2, 1),
        lambda F, x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda F, x: F.adaptive_avg_pool2d(x, (3, 5)),
    ):
        found = []
        for module in (torch, pellucid):
            x = module.tensor(array, requires_grad=True, **({} if module is torch else {"device": device}))
            (first,) = module.autograd.grad((call(module.nn.functional, x) ** 3).sum(), x, create_graph=True)
            (first * first).sum().backward()
            found.append((first.detach().numpy(), x.grad.numpy()))
        for theirs, ours in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_halves_and_integers():
    for dtype, tolerance in (("float16", 2e-3), ("bfloat16", 1e-2)):
        check(
            lambda p, x, d=dtype: (
                p.nn.functional.max_pool2d(x.to(getattr(p, d)), 2),
                p.nn.functional.avg_pool2d(x.to(getattr(p, d)), 2),
            ),
            normal(1, 2, 4, 5), rtol=tolerance, atol=tolerance, layouts=("contiguous",),
        )  # fmt: skip
    whole = np.arange(-20, 20).reshape(1, 2, 4, 5)
    check(lambda p, x: p.nn.functional.max_pool2d(x, 2, 1, 1), whole, devices=("cpu",))
    with pytest.raises(DTypeError, match=r"avg_pool: takes floating-point tensors, not pellucid\.int64"):
        pellucid.nn.functional.avg_pool2d(pellucid.tensor(whole, device="cpu"), 2)


def test_an_empty_batch():
    x = normal(0, 3, 6, 7)
    check(lambda p, x: p.nn.functional.max_pool2d(x, 2), x)
    check(lambda p, x: p.nn.functional.avg_pool2d(x, 2), x)
    check(lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, 3), x)


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = normal(2, 3, 7, 8)
    for args, options in (
        ((3,), {"padding": 2}), ((0,), {}), ((9,), {}), ((3,), {"stride": 0}), (((3, 2, 1),), {}),
        ((3,), {"dilation": 0}), ((2,), {"padding": -1}),
    ):  # fmt: skip
        check_error(lambda p, x, a=args, o=options: p.nn.functional.max_pool2d(x, *a, **o), x, device=device)
    for options in ({"padding": 2}, {"divisor_override": 0}, {"stride": 0}):
        check_error(lambda p, x, o=options: p.nn.functional.avg_pool2d(x, 3, **o), x, device=device)
    for size in ((3,), -1, None):
        check_error(lambda p, x, s=size: p.nn.functional.adaptive_avg_pool2d(x, s), x, device=device)
    for images in (x[0, 0], x[:, :0], x[:, :, :0]):
        check_error(lambda p, x: p.nn.functional.max_pool2d(x, 2), images, device=device)
    check_error(lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, 3), x[:, :, :0], device=device)


def test_what_errors_say():
    x = pellucid.zeros(1, 3, 4, device="cpu")
    F = pellucid.nn.functional
    with pytest.raises(ShapeError, match="max_pool1d: padding is 2; it must be at most half of the 3 places"):
        F.max_pool1d(x, 3, padding=2)
    with pytest.raises(
        ShapeError, match=r"avg_pool2d: images of \(3, 4\) .* smaller than windows of \(5, 5\)"
    ):
        F.avg_pool2d(x, 5)


def test_means_of_everything_are_reductions():
    """One window an image is a long sum, which many lanes share."""
    x = pellucid.tensor(normal(1, 2, 5, 6), device="cpu", requires_grad=True)
    assert pellucid.nn.functional.adaptive_avg_pool2d(x, 1).grad_fn.name() == "MeanBackward0"


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
