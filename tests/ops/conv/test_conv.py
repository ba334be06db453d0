"""Convolutions and their transposes against PyTorch: values, gradients, gradients of gradients."""

import os

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES, check, normal
from pellucid.device.profile import DeviceProfile
from pellucid.op.kernel.variants import VARIANTS
from pellucid.op.plan_cache import forget_plans
from pellucid.op.plan_text import write


@pytest.fixture(params=VARIANTS[:2], autouse=True)
def variant(request, monkeypatch):
    """Both variants of the kernels, none of which uses subgroups; plans are made anew and forgotten again."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", request.param)
    yield request.param
    forget_plans()


def devices() -> tuple[str, ...]:
    """The cpu device has no variants: it is compared beside one of them."""
    return DEVICES if os.environ["PELLUCID_KERNELS"] == VARIANTS[0] else ("webgpu",)


def convolve(name, input, weight, bias=True, **options):
    """Compare a function with PyTorch's on normal numbers of these shapes."""
    keywords = {k: options.pop(k) for k in ("layouts", "devices") if k in options}
    keywords = {"atol": 1e-4, "rtol": 1e-4, "devices": devices(), **keywords}
    arrays = [normal(*input), normal(*weight)]
    if bias:
        channels = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
        arrays.append(normal(channels))
    check(lambda p, *tensors: getattr(p.nn.functional, name)(*tensors, **options), *arrays, **keywords)


LARGE = {
    # tiles that are not full
    "few rows": ((2, 4, 20, 21), (11, 4, 3, 3), {"padding": 1}),
    "more rows": ((1, 4, 20, 20), (50, 4, 3, 3), {"padding": 1}),
    "many pixels": ((1, 2, 132, 130), (61, 2, 3, 3), {"padding": 1}),
    "a depth in parts": ((1, 400, 5, 4), (24, 400, 3, 3), {"padding": 1}),
    "a weight of many tiles": ((2, 1890, 3, 3), (64, 1890, 3, 3), {}),
}


@pytest.fixture
def on_a_large_gpu(monkeypatch):
    """Work is cut as for a device of many processors."""
    monkeypatch.setattr("pellucid.ops.conv.tiles.profile", lambda info: DeviceProfile(132))


@pytest.mark.turns(3)
@pytest.mark.usefixtures("on_a_large_gpu", "form")
@pytest.mark.parametrize("name", LARGE)
def test_large(name):
    input, weight, options = LARGE[name]
    convolve("conv2d", input, weight, layouts=("contiguous",), devices=("webgpu",), **options)


@pytest.mark.usefixtures("on_a_large_gpu")
def test_a_depth_in_parts_of_a_transpose():
    convolve("conv_transpose2d", (1, 900, 3, 2), (900, 24, 4, 4), stride=2, padding=1, layouts=("offset",))


@pytest.mark.usefixtures("on_a_large_gpu")
def test_the_kernels_that_are_chosen(variant, monkeypatch):
    """Which files run: tiles where groups have rows enough, else invocations of their own."""
    seen = []
    monkeypatch.setattr("pellucid.op.plan_text.write.plan_launch", recording(seen))
    F = pellucid.nn.functional
    x = pellucid.tensor(normal(1, 400, 5, 5), requires_grad=True)
    w = pellucid.tensor(normal(32, 400, 3, 3), requires_grad=True)
    F.conv2d(x, w).sum().backward()
    F.conv2d(x, pellucid.tensor(normal(400, 1, 3, 3), requires_grad=True), groups=400).sum().backward()
    ran = {name for name in seen if name.startswith(("conv/", "matmul/"))}
    files = {
        "direct": {"conv/direct", "conv/weight_direct"},
        "shared": {"conv/tiled", "conv/weight_tiled", "conv/direct", "conv/weight_rows", "matmul/combine"},
    }
    assert ran == files["direct" if variant == "direct" else "shared"]


def recording(seen: list[str]):
    """`plan_launch`, which notes the kernel's file."""

    compiled = write.plan_launch

    def note(o, launch, metas):
        seen.append(launch.source.name)
        return compiled(o, launch, metas)

    return note


@st.composite
def any_convolution(draw):
    """(name, input shape, weight shape, options) of a convolution that is not empty."""
    count = draw(st.integers(1, 2))
    axes = range(count)
    groups = draw(st.sampled_from((1, 1, 2, 3)))
    taken, made = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    kernel = [draw(st.integers(1, 4)) for _ in axes]
    stride = [draw(st.integers(1, 4)) for _ in axes]
    dilation = [draw(st.integers(1, 3)) for _ in axes]
    padding = [draw(st.integers(0, 3)) for _ in axes]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    batch = draw(st.sampled_from(((), (1,), (3,))))
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if draw(st.booleans()):
        lengths = [max(r - 2 * p, 1) + draw(st.integers(0, 6)) for r, p in zip(reach, padding, strict=True)]
        weight = (made * groups, taken, *kernel)
        return f"conv{count}d", (*batch, taken * groups, *lengths), weight, options
    extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    lengths = [
        max(-(-(2 * p - r + 1 - e) // s) + 1, 1) + draw(st.integers(0, 4))
        for p, r, s, e in zip(padding, reach, stride, extra, strict=True)
    ]
    weight = (taken * groups, made, *kernel)
    options["output_padding"] = extra
    return f"conv_transpose{count}d", (*batch, taken * groups, *lengths), weight, options


@given(any_convolution(), st.booleans())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any(convolution, bias):
    """P-024, P-025, P-091: any geometry, groups and depthwise ones, too, beside PyTorch."""
    name, input, weight, options = convolution
    convolve(name, input, weight, bias, layouts=("strided",), **options)


def test_gradients_are_slopes():
    """Central differences in float64 on the cpu device."""
    arrays = [
        normal(1, 2, 5, 4).astype(np.float64),
        normal(3, 2, 2, 3).astype(np.float64),
        normal(3).astype(np.float64),
    ]
    weights = normal(1, 3, 3, 2).astype(np.float64)

    def value(*tensors):
        out = pellucid.conv2d(*tensors, stride=2, padding=1)
        return (out * pellucid.tensor(weights, device="cpu")).sum()

    leaves = [pellucid.tensor(a, device="cpu", requires_grad=True) for a in arrays]
    value(*leaves).backward()
    for k, array in enumerate(arrays):
        slopes = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[k][place] += step
                ends.append(value(*[pellucid.tensor(a, device="cpu") for a in moved]).item())
            slopes[place] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(leaves[k].grad.numpy(), slopes, rtol=1e-6, atol=1e-8)


def test_the_gradient_of_a_weight_over_many_pixels():
    """Small numbers of one sign: added one by one to a large sum, all would be rounded the same way."""
    x, g = normal(16, 4, 24, 24), normal(16, 4, 24, 24) * 1e-3 + 1e-3
    weight = torch.zeros(4, 4, 3, 3, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.conv2d(torch.tensor(x).abs().double(), weight, padding=1).backward(
        torch.tensor(g).double()
    )
    ours = pellucid.zeros(4, 4, 3, 3, device="webgpu", requires_grad=True)
    made = pellucid.nn.functional.conv2d(pellucid.tensor(abs(x), device="webgpu"), ours, padding=1)
    made.backward(pellucid.tensor(g, device="webgpu"))
    np.testing.assert_allclose(
        ours.grad.numpy(), weight.grad, rtol=0, atol=2e-6 * weight.grad.abs().max().item()
    )


def test_integers():
    x, w = np.arange(2 * 3 * 5 * 4).reshape(2, 3, 5, 4), np.arange(6 * 3 * 4).reshape(6, 3, 2, 2) - 30
    check(lambda p, x, w: p.nn.functional.conv2d(x, w, stride=2), x, w)


def test_names_of_nodes():
    x, w = (pellucid.tensor(normal(1, 1, 3, 3), device="cpu", requires_grad=True) for _ in range(2))
    assert pellucid.conv2d(x, w).grad_fn.name() == "ConvolutionBackward0"


def test_nothing_is_kept():
    """A step forward and backward leaves its gradients, and no memory of parts or windows."""
    x = pellucid.tensor(normal(2, 40, 9, 8), requires_grad=True)
    w = pellucid.tensor(normal(24, 40, 3, 3), requires_grad=True)
    before = pellucid.webgpu.memory_allocated()
    for _ in range(3):
        x.grad = w.grad = None
        pellucid.conv2d(x, w, padding=1).sum().backward()
        assert pellucid.webgpu.memory_allocated() == before + 4 * (x.numel() + w.numel())
