"""bernoulli of what is no probability, and its gradient."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [2.0, -0.1, np.nan, np.inf])
def test_bernoulli_of_what_is_no_probability(p, device):
    for lib in (torch, pellucid):
        with pytest.raises(RuntimeError):
            lib.bernoulli(lib.tensor([p], device="cpu"))
        with pytest.raises(RuntimeError):
            lib.zeros(2, device="cpu").bernoulli_(lib.tensor([p], device="cpu"))
    if device == "cpu":
        return
    # Nothing waits for values of the device.
    out = pellucid.bernoulli(pellucid.tensor([p, 0.0, 1.0], device=device))
    np.testing.assert_array_equal(out.numpy(), [np.nan, 0, 1])


@pytest.mark.parametrize("device", DEVICES)
def test_bernoulli_has_a_gradient_of_zeros(device):
    p = pellucid.full((3,), 0.5, device=device, requires_grad=True)
    out = pellucid.bernoulli(p)
    assert out.requires_grad
    out.sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 0.0]
