"""Pruning: masks, parameters and their names as in PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils import prune as theirs

import pellucid
from pellucid.errors import ArgumentError, RangeError
from pellucid.nn.utils import prune

KINDS = ("webgpu", "cpu")


def layers(device: str) -> tuple[Any, Any]:
    """The same layer in both libraries."""
    torch.manual_seed(0)
    known = torch.nn.Conv2d(3, 4, 2)
    own = pellucid.nn.Conv2d(3, 4, 2, device=device)
    own.load_state_dict({k: pellucid.tensor(v.numpy(), device=device) for k, v in known.state_dict().items()})
    return own, known


def same(own, known) -> None:
    """Names, values, and gradients of what is computed."""
    assert list(own.state_dict()) == list(known.state_dict())
    assert [n for n, _ in own.named_parameters()] == [n for n, _ in known.named_parameters()]
    for name, value in known.state_dict().items():
        np.testing.assert_allclose(own.state_dict()[name].numpy(), value.numpy(), rtol=1e-6)
    x = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4) / 50
    device = next(own.parameters()).device
    ours, expected = own(pellucid.tensor(x, device=device)), known(torch.tensor(x))
    ours.square().sum().backward()
    expected.square().sum().backward()
    np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    for (name, p), (_, q) in zip(own.named_parameters(), known.named_parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("device", KINDS)
@pytest.mark.parametrize(
    "steps",
    [
        [("l1_unstructured", {"amount": 0.3})],
        [("l1_unstructured", {"amount": 5}), ("ln_structured", {"amount": 1, "n": 2, "dim": 0})],
        [
            ("ln_structured", {"amount": 0.5, "n": float("inf"), "dim": 1}),
            ("l1_unstructured", {"amount": 0.2}),
        ],
        [
            ("ln_structured", {"amount": 1, "n": 1, "dim": 0}),
            ("ln_structured", {"amount": 1, "n": 2, "dim": 0}),
        ],
        [("identity", {}), ("l1_unstructured", {"amount": 2}), ("l1_unstructured", {"amount": 2})],
    ],
)
def test_what_is_pruned(steps, device):
    own, known = layers(device)
    for name, settings in steps:
        getattr(prune, name)(own, "weight", **settings)
        getattr(theirs, name)(known, "weight", **settings)
    assert prune.is_pruned(own)
    same(own, known)
    prune.remove(own, "weight")
    theirs.remove(known, "weight")
    assert not prune.is_pruned(own)
    own.zero_grad()
    known.zero_grad()
    same(own, known)


def test_parameters_together_and_given_masks():
    (first, its), (second, its_own) = layers("cpu"), layers("cpu")
    own, known = (first, second), (its, its_own)
    mask = np.arange(4) % 2
    prune.custom_from_mask(own[0], "bias", pellucid.tensor(mask, device="cpu"))
    theirs.custom_from_mask(known[0], "bias", torch.tensor(mask))
    pairs = ((0, "weight"), (1, "weight"), (0, "bias"))
    prune.global_unstructured([(own[k], n) for k, n in pairs], prune.L1Unstructured, amount=30)
    theirs.global_unstructured([(known[k], n) for k, n in pairs], theirs.L1Unstructured, amount=30)
    for a, b in zip(own, known, strict=True):
        same(a, b)
    scores = np.arange(48, dtype=np.float32).reshape(4, 3, 2, 2)
    prune.l1_unstructured(own[1], "weight", 10, importance_scores=pellucid.tensor(scores, device="cpu"))
    theirs.l1_unstructured(known[1], "weight", 10, importance_scores=torch.tensor(scores))
    own[1].zero_grad()
    known[1].zero_grad()
    same(own[1], known[1])


def test_random_choices_prune_as_many():
    own, _ = layers("webgpu")
    prune.random_unstructured(own, "weight", 0.25)
    assert (own.weight == 0).sum().item() == 12
    prune.random_structured(own, "weight", 1, dim=2)
    assert ((own.weight != 0).sum((0, 1, 3)) == 0).sum().item() >= 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda layer: prune.remove(layer, "weight"), ArgumentError, "has to be pruned"),
        (lambda layer: prune.l1_unstructured(layer, "weight", 1.5), RangeError, "share"),
        (lambda layer: prune.l1_unstructured(layer, "weight", -1), RangeError, "share"),
        (lambda layer: prune.l1_unstructured(layer, "weight", 49), RangeError, "smaller than"),
        (lambda layer: prune.l1_unstructured(layer, "weight", layer), ArgumentError, "amount"),
        (lambda layer: prune.ln_structured(layer, "bias", 1, 2, 0), ArgumentError, "multidimensional"),
        (
            lambda layer: prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1, n=2),
            ArgumentError,
            "unstructured",
        ),
    ],
)
def test_what_is_refused(call, error, text):
    layer: Any = layers("cpu")[0]
    before = list(layer.state_dict())
    with pytest.raises(error, match=text):
        call(layer)
    assert list(layer.state_dict()) == before
