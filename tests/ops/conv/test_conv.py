"""Convolutions and their transposes against PyTorch: values, gradients, gradients of gradients."""

import os

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES, check, check_error, normal
from pellucid.device.profile import DeviceProfile
from pellucid.errors import DTypeError, ShapeError
from pellucid.kernel.variants import VARIANTS
from pellucid.op.plan_cache import forget_plans


@pytest.fixture(params=VARIANTS, autouse=True)
def variant(request, monkeypatch):
    """Both variants of the kernels; plans are made anew with each, and forgotten again."""
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


FORWARD = {
    "plain": ((2, 3, 8, 9), (5, 3, 3, 3), {}),
    "many channels": ((3, 5, 5, 7), (20, 5, 3, 3), {"padding": 1}),
    "one by one": ((2, 9, 6, 5), (7, 9, 1, 1), {}),
    "even kernel": ((1, 3, 9, 8), (6, 3, 4, 2), {"padding": (2, 1)}),
    "strided": ((2, 4, 11, 10), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
    "strided apart": ((2, 4, 11, 10), (6, 4, 3, 5), {"stride": (3, 2), "padding": (0, 2)}),
    "dilated": ((2, 4, 11, 12), (6, 4, 3, 2), {"dilation": (2, 3), "padding": (2, 0)}),
    "strided and dilated": (
        (1, 4, 16, 19),
        (6, 4, 3, 3),
        {"stride": (2, 4), "dilation": (3, 6), "padding": 4},
    ),
    "groups": ((2, 6, 7, 8), (10, 3, 3, 3), {"groups": 2, "padding": 1}),
    "depthwise": ((2, 6, 9, 8), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    "depthwise, several each": ((2, 3, 9, 8), (21, 1, 5, 3), {"groups": 3, "stride": 2, "padding": 2}),
    "patches": ((2, 3, 16, 16), (12, 3, 8, 8), {"stride": 8}),
    "same": ((2, 3, 7, 8), (5, 3, 3, 3), {"padding": "same"}),
    "same, even kernel": ((2, 3, 7, 8), (5, 3, 4, 2), {"padding": "same", "dilation": (1, 3)}),
    "valid": ((2, 3, 7, 8), (5, 3, 3, 3), {"padding": "valid"}),
    "without a batch": ((3, 7, 8), (5, 3, 3, 3), {"padding": 1}),
    "the whole image": ((2, 3, 6, 5), (9, 3, 6, 5), {}),
}


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", FORWARD)
def test_conv2d(name):
    input, weight, options = FORWARD[name]
    convolve("conv2d", input, weight, **options)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(
    ("input", "weight", "options"),
    [
        ((2, 3, 30), (5, 3, 3), {}),
        ((2, 8, 31), (20, 4, 5), {"stride": 3, "padding": 2, "groups": 2}),
        ((3, 31), (6, 3, 4), {"padding": "same", "dilation": 3}),
        ((2, 6, 17), (6, 1, 7), {"padding": (3,), "groups": 6, "stride": (2,)}),
    ],
)
def test_conv1d(input, weight, options):
    convolve("conv1d", input, weight, **options)


TRANSPOSED = {
    "plain": ((2, 3, 6, 5), (3, 7, 3, 3), {}),
    "strided": ((2, 4, 5, 6), (4, 20, 4, 4), {"stride": 2, "padding": 1}),
    "odd lengths": ((2, 4, 5, 6), (4, 6, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "stride over kernel": ((1, 3, 4, 5), (3, 6, 2, 2), {"stride": (3, 5), "output_padding": (0, 4)}),
    "dilated": ((2, 3, 5, 4), (3, 6, 3, 2), {"dilation": (2, 3), "padding": 2, "output_padding": (1, 2)}),
    "strided and dilated": ((2, 3, 5, 4), (3, 6, 3, 3), {"stride": (4, 3), "dilation": (6, 2), "padding": 3}),
    "groups": ((2, 6, 5, 4), (6, 5, 3, 3), {"groups": 3, "stride": 2}),
    "depthwise": ((2, 6, 5, 4), (6, 1, 3, 3), {"groups": 6, "stride": 2, "padding": 1}),
    "without a batch": ((3, 5, 4), (3, 6, 3, 3), {"stride": 2}),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose2d(name):
    input, weight, options = TRANSPOSED[name]
    convolve("conv_transpose2d", input, weight, **options)


@pytest.mark.parametrize(
    ("input", "weight", "options"),
    [
        ((2, 3, 11), (3, 5, 3), {}),
        ((2, 4, 9), (4, 10, 16), {"stride": 8, "padding": 4, "groups": 2}),
        ((3, 9), (3, 6, 5), {"stride": (2,), "dilation": 3, "output_padding": 2}),
    ],
)
def test_conv_transpose1d(input, weight, options):
    convolve("conv_transpose1d", input, weight, **options)


def test_without_a_bias():
    convolve("conv2d", (2, 3, 6, 7), (20, 3, 3, 3), bias=False, padding=1)
    convolve("conv_transpose2d", (2, 3, 6, 7), (3, 20, 3, 3), bias=False, stride=2)


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


@pytest.mark.usefixtures("on_a_large_gpu")
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
    monkeypatch.setattr("pellucid.op.plan.plan_launch", recording(seen))
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
    from pellucid.op import plan

    compiled = plan.plan_launch

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
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any(convolution, bias):
    name, input, weight, options = convolution
    convolve(name, input, weight, bias, layouts=("strided",), **options)


SECOND = {
    "conv2d": lambda F, x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=2),
    "conv2d, uneven": lambda F, x, w, b: F.conv2d(x, w, b, stride=3, dilation=2, padding=(1, 2), groups=2),
    "conv2d, same": lambda F, x, w, b: F.conv2d(x, w, b, padding="same", groups=2),
    "transpose": lambda F, x, w, b: F.conv_transpose2d(x, w, b[:4], stride=2, padding=1, groups=2),
    "transpose, longer": lambda F, x, w, b: F.conv_transpose2d(
        x, w, b[:4], stride=2, dilation=4, output_padding=3, groups=2
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("name", SECOND)
def test_double_backward(device, name):
    arrays = normal(2, 8, 7, 6), normal(8, 2 if name.startswith("transpose") else 4, 4, 3), normal(8)
    found = []
    for module in (torch, pellucid):
        options = {} if module is torch else {"device": device}
        leaves = [module.tensor(a, requires_grad=True, **options) for a in arrays]
        out = SECOND[name](module.nn.functional, *leaves)
        first = module.autograd.grad((out * out * out).sum(), leaves, create_graph=True)
        module.stack([(g * g).sum() for g in first]).sum().backward()
        found.append([t.detach().numpy() for t in (*first, *[leaf.grad for leaf in leaves])])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())


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


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 5e-3), ("bfloat16", 4e-2)])
def test_halves(dtype, tolerance):
    def half(function):
        return lambda p, *tensors: function(p, *[t.to(getattr(p, dtype)) for t in tensors])

    for function, weight in (
        (lambda p, x, w, b: p.nn.functional.conv2d(x, w, b, padding=1), (6, 4, 3, 3)),
        (lambda p, x, w, b: p.nn.functional.conv_transpose2d(x, w, b, stride=2), (4, 6, 3, 3)),
    ):
        check(
            half(function), normal(2, 4, 7, 6), normal(*weight), normal(6), rtol=tolerance,
            atol=2 * tolerance, layouts=("contiguous",),
        )  # fmt: skip


def test_operands_with_any_strides():
    def function(p, x, w):
        image = x.permute(0, 3, 1, 2)[:, :, ::2, 1:]
        return p.nn.functional.conv2d(image, w.flip(-1).transpose(0, 1), padding=1)

    check(function, normal(2, 12, 9, 3), normal(3, 20, 3, 3), atol=1e-4, rtol=1e-4)
    check(
        lambda p, x, w: p.nn.functional.conv2d(x.expand(4, 3, 5, 6), w),
        normal(1, 3, 5, 6), normal(5, 3, 2, 2), atol=1e-4, rtol=1e-4,
    )  # fmt: skip


def test_an_empty_batch():
    convolve("conv2d", (0, 3, 6, 7), (20, 3, 3, 3), padding=1)
    convolve("conv2d", (0, 3, 6, 7), (3, 1, 3, 3), groups=3)
    convolve("conv_transpose2d", (0, 3, 6, 7), (3, 20, 3, 3), stride=2)


def test_values_outside_of_the_image_do_not_touch_what_is_read():
    """Padding is zero even where the neighbour is infinite."""
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0] = np.inf
    check(
        lambda p, x, w: p.nn.functional.conv2d(x, w, padding=2), x, np.abs(normal(20, 1, 3, 3)),
        layouts=("contiguous",), grad=False,
    )  # fmt: skip


def test_integers_on_the_cpu():
    x, w = np.arange(2 * 3 * 5 * 4).reshape(2, 3, 5, 4), np.arange(6 * 3 * 4).reshape(6, 3, 2, 2) - 30
    check(lambda p, x, w: p.nn.functional.conv2d(x, w, stride=2), x, w, devices=("cpu",))
    with pytest.raises(DTypeError, match=r"conv2d: there is no kernel for pellucid.int64 on webgpu"):
        pellucid.conv2d(pellucid.tensor(x), pellucid.tensor(w))


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_refused(device):
    x, w = normal(1, 4, 5, 5), normal(8, 4, 3, 3)
    for options in (
        {"stride": 0}, {"padding": -1}, {"padding": "same", "stride": 2}, {"padding": "other"}, {"groups": 3},
        {"groups": 0}, {"groups": -1}, {"stride": (1, 2, 3)}, {"dilation": 0}, {"stride": 1.5},
    ):  # fmt: skip
        check_error(lambda p, x, w, o=options: p.conv2d(x, w, **o), x, w, device=device)
    for shapes in (
        ((1, 4, 5, 5), (8, 2, 3, 3)), ((1, 4, 5, 5), (8, 4, 7, 7)), ((5, 5), (8, 4, 3, 3)),
        ((1, 4, 5, 5), (4, 3, 3)), ((1, 4, 5, 5), (0, 4, 3, 3)), ((1, 4, 5, 5), (8, 4, 0, 3)),
        ((1, 4, 5, 5), (8, 4, 3, 3), (3,)), ((1, 4, 5, 5), (8, 4, 3, 3), (8, 1)),
        ((1, 4, 5, 5), (9, 2, 3, 3)),
    ):  # fmt: skip
        check_error(lambda p, *t: p.conv2d(*t), *[normal(*s) for s in shapes], device=device)
    check_error(lambda p, x, w: p.conv1d(x, w), x, w, device=device)
    check_error(lambda p, x, w: p.conv2d(x, w), x, w.astype(np.float16), device=device)
    w = normal(4, 2, 3, 3)
    for options in (
        {"output_padding": 1}, {"output_padding": -1}, {"padding": 4}, {"groups": 3}, {"padding": "same"},
    ):  # fmt: skip
        check_error(lambda p, x, w, o=options: p.conv_transpose2d(x, w, **o), x, w, device=device)
    check_error(lambda p, x, w, b: p.conv_transpose2d(x, w, b), x, w, normal(3), device=device)
    check_error(lambda p, x, w: p.conv_transpose2d(x, w), x, w[:3], device=device)


def test_what_errors_say():
    x, w = pellucid.zeros(1, 4, 5, 5, device="cpu"), pellucid.zeros(8, 3, 3, 3, device="cpu")
    with pytest.raises(ShapeError) as caught:
        pellucid.conv2d(x, w)
    assert str(caught.value) == (
        "conv2d: input of shape (1, 4, 5, 5) has 4 channels, weight of shape (8, 3, 3, 3) with groups=1 "
        "takes 3."
    )
    with pytest.raises(
        ShapeError, match=r"conv_transpose2d: output_padding is 2; it must be less than stride 2"
    ):
        pellucid.conv_transpose2d(x, w[:4], stride=2, output_padding=2)


def test_names_of_nodes():
    x, w = (pellucid.tensor(normal(1, 1, 3, 3), device="cpu", requires_grad=True) for _ in range(2))
    assert pellucid.conv2d(x, w).grad_fn.name() == "Conv2dBackward0"


def test_nothing_is_kept():
    """A step forward and backward leaves its gradients, and no memory of parts or windows."""
    x = pellucid.tensor(normal(2, 40, 9, 8), requires_grad=True)
    w = pellucid.tensor(normal(24, 40, 3, 3), requires_grad=True)
    before = pellucid.webgpu.memory_allocated()
    for _ in range(3):
        x.grad = w.grad = None
        pellucid.conv2d(x, w, padding=1).sum().backward()
        assert pellucid.webgpu.memory_allocated() == before + 4 * (x.numel() + w.numel())
