"""RMS norm, layer norm and vector norms against PyTorch."""

import math

import numpy as np
import pytest
import torch.nn.functional as F

from ops.oracle import check, check_error, normal
from pellucid.errors import ShapeError
from pellucid.ops.norm.normalization import layer_norm, rms_norm


@pytest.mark.parametrize(
    ("shape", "last"), [((3, 40), (40,)), ((2, 5, 577), (577,)), ((4, 3, 5), (3, 5)), ((1, 3000), (3000,))]
)
def test_rms_norm(shape, last):
    x, weight = normal(*shape), normal(*last)
    check(
        lambda p, x, w: rms_norm(x, last, w, 1e-5),
        x,
        weight,
        theirs=lambda p, x, w: F.rms_norm(x, last, w, 1e-5),
        atol=2e-5,
    )
    check(lambda p, x: rms_norm(x, last), x, theirs=lambda p, x: F.rms_norm(x, last), atol=2e-5)


@pytest.mark.parametrize(("shape", "last"), [((3, 40), (40,)), ((2, 5, 577), (577,)), ((4, 3, 5), (3, 5))])
def test_layer_norm(shape, last):
    x, weight, bias = normal(*shape) + 3, normal(*last), normal(*last)
    check(
        lambda p, x, w, b: layer_norm(x, last, w, b, 1e-6),
        x,
        weight,
        bias,
        theirs=lambda p, x, w, b: F.layer_norm(x, last, w, b, 1e-6),
        atol=3e-5,
    )
    check(
        lambda p, x, w: layer_norm(x, last, w),
        x,
        weight,
        theirs=lambda p, x, w: F.layer_norm(x, last, w),
        atol=3e-5,
    )
    check(lambda p, x: layer_norm(x, last), x, theirs=lambda p, x: F.layer_norm(x, last), atol=3e-5)


def test_half_rows():
    x = normal(3, 100).astype(np.float16)
    check(
        lambda p, x: rms_norm(x, (100,)),
        x,
        theirs=lambda p, x: F.rms_norm(x, (100,)),
        rtol=3e-3,
        atol=3e-3,
        grad=False,
    )
    check(
        lambda p, x: layer_norm(x, (100,)),
        x,
        theirs=lambda p, x: F.layer_norm(x, (100,)),
        rtol=3e-3,
        atol=3e-3,
        grad=False,
    )


@pytest.mark.parametrize("p_", [2, "fro", 1, 0, 3, 0.5, math.inf, -math.inf])
@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
def test_vector_norms(p_, dim):
    x = normal(4, 6)
    check(
        lambda p, x: p.norm(x, p=p_, dim=dim, keepdim=dim == 0),
        x,
        theirs=lambda p, x: p.linalg.vector_norm(x, 2 if p_ == "fro" else p_, dim, dim == 0),
        rtol=1e-4,
    )


def test_gradient_of_a_zero_norm_is_zero():
    check(lambda p, x: p.norm(x, dim=1), np.array([[0, 0], [3, 4]], np.float32))


def test_errors():
    check_error(lambda p, x: p.norm(x), np.arange(3))
    import pellucid

    x = pellucid.tensor(normal(2, 3), device="cpu")
    for shape in ((2,), (4, 3), ()):
        with pytest.raises(ShapeError, match="normalized_shape"):
            rms_norm(x, shape)
    with pytest.raises(ShapeError, match="weight has shape"):
        layer_norm(x, (3,), x)
