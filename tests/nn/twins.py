"""The same model in PyTorch and in Pellucid: weights and inputs copied, outputs and gradients compared."""

import numpy as np
import torch

import pellucid

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def copied(theirs: torch.Tensor, device: str, grad: bool = False) -> pellucid.Tensor:
    """A PyTorch tensor's values on one of our devices."""
    return pellucid.tensor(theirs.detach().numpy(), device=device, requires_grad=grad)


def state_of(theirs: torch.nn.Module) -> dict[str, np.ndarray]:
    """The weights of a PyTorch module as arrays."""
    return {name: value.detach().numpy() for name, value in theirs.state_dict().items()}


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(ours: pellucid.Tensor, theirs: torch.Tensor, **tolerance: float) -> None:
    """Assert that shapes agree and values are close."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), **(tolerance or TOLERANCE))


def same_call(ours, theirs, device: str, *arrays: np.ndarray) -> None:
    """Assert that two modules agree on outputs, and on the gradients of all inputs and parameters."""
    mine = [pellucid.tensor(a, device=device, requires_grad=a.dtype == np.float32) for a in arrays]
    other = [torch.tensor(a, requires_grad=a.dtype == np.float32) for a in arrays]
    out, expected = ours(*mine), theirs(*other)
    same(out, expected)
    seed = floats(*expected.shape, seed=7)
    out.backward(pellucid.tensor(seed, device=device))
    expected.backward(torch.tensor(seed))
    for a, b in zip(mine, other, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            same(a.grad, b.grad)
    parameters = dict(theirs.named_parameters())
    assert [name for name, _ in ours.named_parameters()] == list(parameters)
    for name, p in ours.named_parameters():
        same(p.grad, parameters[name].grad)
