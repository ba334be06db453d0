"""Convolutions by quantized weights: every format, in the kernels of every kind of adapter, beside PyTorch's
with the values that they unpack to."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import normal
from pellucid.nn import functional as F
from pellucid.quant import FORMATS
from pellucid.tensors.meta import meta
from pellucid.tensors.tensor import Tensor
from quant.samples import sampled, widths

# Those that tiles are compiled for, which takes seconds each: a way of reading of each kind.
TILED = (
    "f16",
    "q4_1",
    "q6_k",
    "iq2_s",
    "int8_rows",
    "fp8_e4m3",
    "fp4_groups",
    "int4_affine_rows",
    "int16_scaled",
)
ALL = [(name, variant) for variant in ("cpu", "direct") for name in FORMATS]


def weight_of(name, rows, columns, device):
    """A weight of 4 x 4 elements, or of one, and its values."""
    matrix, values, _ = sampled(name, rows, columns, np.random.default_rng(columns), device)
    kernel = (columns // 16, 4, 4) if columns % 16 == 0 else (columns, 1, 1)
    shape = (rows, *kernel)
    weight = Tensor(matrix._storage, meta(shape, matrix.dtype, matrix.device), 0)
    return weight, torch.from_numpy(np.ascontiguousarray(values)).reshape(shape)


def compare(weight, values, settings, is_transposed, images):
    """Output and the gradient of the input, within rounding of sums of that many."""
    groups = settings.get("groups", 1)
    takes = values.shape[0] if is_transposed else values.shape[1] * groups
    convolve = "conv_transpose2d" if is_transposed else "conv2d"
    x = normal(images, takes, 5, 6)
    theirs = torch.from_numpy(x).double().requires_grad_()
    wanted = getattr(torch.nn.functional, convolve)(theirs, values.double(), None, **settings)
    slope = torch.linspace(0.5, 1.5, wanted.numel(), dtype=torch.float64).reshape(wanted.shape)
    (wanted * slope).sum().backward()
    ours = pellucid.tensor(x, device=weight.device).requires_grad_()
    out = getattr(F, convolve)(ours, weight, None, **settings)
    (out * pellucid.tensor(slope.float().numpy(), device=weight.device)).sum().backward()
    for found, good in ((out, wanted), (ours.grad, theirs.grad)):
        good = good.detach().numpy()
        error = np.abs(found.detach().cpu().numpy() - good).max()
        assert error <= 1e-5 * np.abs(good).max(), (settings, error)


@pytest.mark.turns(15)
@pytest.mark.parametrize(("name", "variant"), [*ALL, *((name, "shared") for name in TILED)])
def test_every_format(name, variant, monkeypatch):
    """Forward, transposed, and the gradient of the input of both."""
    if variant != "cpu":
        monkeypatch.setenv("PELLUCID_KERNELS", variant)
    images = {"cpu": 1, "direct": 1, "shared": 2}[variant]  # plans of shapes that were seen stay
    for columns in widths(name)[: 1 if variant == "shared" else 2]:
        weight, values = weight_of(name, 6, columns, "cpu" if variant == "cpu" else "webgpu")
        compare(weight, values, {"padding": 1, "stride": 2}, False, images)
        compare(weight, values, {"groups": 3, "stride": (1, 2)}, True, images)


def test_volumes():
    """Over depth, height and width, in groups."""
    matrix, values, _ = sampled("int8_rows", 4, 96, np.random.default_rng(0))
    weight = Tensor(matrix._storage, meta((4, 12, 2, 2, 2), matrix.dtype, matrix.device), 0)
    theirs = torch.from_numpy(values).reshape(4, 12, 2, 2, 2)
    for name, takes in (("conv3d", 24), ("conv_transpose3d", 4)):
        x, bias = normal(1, takes, 3, 4, 5), normal(24 if takes == 4 else 4)
        wanted = getattr(torch.nn.functional, name)(
            torch.from_numpy(x), theirs, torch.from_numpy(bias), (1, 2, 1), 1, groups=2
        )
        ours = getattr(F, name)(pellucid.tensor(x), weight, pellucid.tensor(bias), (1, 2, 1), 1, groups=2)
        np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
