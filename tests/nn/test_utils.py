"""Clipping and vectors of parameters, against PyTorch's."""

import pytest
import torch

import pellucid
from nn.twins import floats, same
from pellucid.nn import utils


def gradients(lib, device):
    made = []
    for k, shape in enumerate([(3, 4), (5,), (2, 2, 2)]):
        p = lib.nn.Parameter(lib.tensor(floats(*shape, seed=k), device=device))
        p.grad = lib.tensor(floats(*shape, seed=10 + k), device=device)
        made.append(p)
    made.append(lib.nn.Parameter(lib.ones(2, device=device)))
    return made


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clip_grad_norm(max_norm, norm_type, device):
    ours, theirs = gradients(pellucid, device), gradients(torch, "cpu")
    total = utils.clip_grad_norm_(ours, max_norm, norm_type)
    same(total, torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type))
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        same(a.grad, b.grad)
    assert ours[3].grad is None


def test_clip_grad_norm_refuses_what_is_not_finite(device):
    ours = gradients(pellucid, device)
    ours[0].grad[0, 0] = float("nan")
    with pytest.raises(RuntimeError, match="total norm is nan"):
        utils.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_clip_grad_value(device):
    ours, theirs = gradients(pellucid, device), gradients(torch, "cpu")
    utils.clip_grad_value_(ours, 0.4)
    torch.nn.utils.clip_grad_value_(theirs, 0.4)
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        same(a.grad, b.grad)


def test_vectors(device):
    ours, theirs = gradients(pellucid, device), gradients(torch, "cpu")
    vector = utils.parameters_to_vector(ours)
    same(vector, torch.nn.utils.parameters_to_vector(theirs))
    utils.vector_to_parameters(vector.detach() * 2, ours)
    same(ours[0], theirs[0] * 2)
    with pytest.raises(ValueError, match=r"have 27 elements, the vector has shape \(3,\)"):
        utils.vector_to_parameters(vector[:3], ours)
