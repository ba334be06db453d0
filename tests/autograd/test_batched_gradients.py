"""`autograd.grad` of batches of vectors, and with zeros for what took no part."""

import pytest
import torch

import pellucid
from ops.oracle import DEVICES

pytestmark = pytest.mark.parametrize("device", DEVICES)


def batches(t, **made):
    """Gradients for each row of a batch, and zeros for what did not take part."""
    x, other = t.arange(1.0, 4.0, **made).requires_grad_(), t.ones(2, **made).requires_grad_()
    y, rows = x.pow(3) * x.sum(), t.eye(3, **made)
    found = [
        *t.autograd.grad(y, x, rows, retain_graph=True, is_grads_batched=True),
        *t.autograd.grad(y, (x, other), rows, True, allow_unused=True, is_grads_batched=True),
        *t.autograd.grad(y, (x, other), rows, True, is_grads_batched=True, materialize_grads=True),
        *t.autograd.grad(y.sum(), (x, other), retain_graph=True, materialize_grads=True),
    ]
    (rows,) = t.autograd.grad(y, x, rows, create_graph=True, is_grads_batched=True)
    found += t.autograd.grad(rows.square().sum(), x)
    return [g if g is None else g.tolist() for g in found]


def test_batches_of_gradients_and_zeros_for_what_took_no_part(device):
    assert batches(pellucid, device=device) == batches(torch)
    x = pellucid.tensor([1.0], requires_grad=True, device=device)
    with pytest.raises(ValueError, match="allow_unused=False wants an error"):
        pellucid.autograd.grad(x * 2, x, allow_unused=False, materialize_grads=True)
    with pytest.raises(TypeError, match="needs grad_outputs"):
        pellucid.autograd.grad(x * 2, x, is_grads_batched=True)
