"""The oracle forgives a device that flushes subnormal numbers, and nothing else."""

import numpy as np
import pytest
import torch

import pellucid
from ops import oracle
from ops.oracle import agree, flushed

X = torch.tensor([1e-40, -1e-40, 0.0, 1.0, 2e-38, np.nan])


def refused(values, function=torch.sign):
    with pytest.raises(AssertionError, match=r"Mismatched elements|nan location"):
        agree(pellucid.tensor(values, device="cpu"), function, X, device="cpu")


def test_only_subnormal_numbers_are_flushed():
    out = flushed(np.array([1e-40, -1e-40, 1.1754944e-38, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(out, np.array([0, 0, 1.1754944e-38, -np.inf, np.nan], np.float32))
    assert np.signbit(out[:2]).tolist() == [False, True]


def test_a_device_that_keeps_them_is_held_to_pytorch(monkeypatch):
    monkeypatch.setattr(oracle, "flushes", lambda device: False)
    agree(pellucid.sign(pellucid.tensor(X.numpy(), device="cpu")), torch.sign, X, device="cpu")
    refused([0.0, -1, 0, 1, 1, 0])


def test_a_device_that_flushes_may_do_so_in_each_element(monkeypatch):
    monkeypatch.setattr(oracle, "flushes", lambda device: True)
    for first in (0.0, 1.0):
        agree(pellucid.tensor([first, -1, 0, 1, 1, 0], device="cpu"), torch.sign, X, device="cpu")
    for wrong in ([0.5, 0, 0, 1, 1, 0], [0.0, 0, 0, 1, 0, 0], [0.0, 0, 0, 0, 1, 0]):
        refused(wrong)
    for root in (np.nan, -0.0):
        agree(
            pellucid.tensor([0.0, root, 0, 1, 2e-38**0.5, np.nan], device="cpu"),
            torch.sqrt, X, device="cpu", rtol=1e-6
        )  # fmt: skip
    # The result of a half of 2e-38 is subnormal, though the number is not.
    agree(pellucid.tensor([0.0, -0.0, 0, 0.5, 0, np.nan], device="cpu"), lambda x: x / 2, X, device="cpu")
    refused([0.0, -0.0, 0, 0, 0, np.nan], lambda x: x / 2)


@pytest.mark.gpu
def test_what_a_device_does_is_asked_of_it():
    kept = pellucid.tensor([1e-40], device="webgpu") * 1
    assert oracle.flushes("webgpu") or kept.item() != 0
    assert not oracle.flushes("cpu")
