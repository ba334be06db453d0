"""Parametrized weights, their older forms, and layers fused for inference, against PyTorch."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, state_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of PyTorch, about the older forms
MAKERS = {
    "weight": lambda u, m: u.parametrizations.weight_norm(m),
    "weight, one length": lambda u, m: u.parametrizations.weight_norm(m, dim=None),
    "spectral": lambda u, m: u.parametrizations.spectral_norm(m, n_power_iterations=2),
    "older weight": lambda u, m: u.weight_norm(m, dim=1),
    "older spectral": lambda u, m: u.spectral_norm(m),
}


def layer(lib, kind="Linear"):
    return lib.nn.Linear(4, 3) if kind == "Linear" else lib.nn.ConvTranspose1d(2, 3, 2)


@pytest.mark.parametrize("kind", ["Linear", "ConvTranspose1d"])
@pytest.mark.parametrize("name", MAKERS)
def test_norms_of_weights(name, kind, device):
    theirs = MAKERS[name](torch.nn.utils, layer(torch, kind))
    with pellucid.device(device):
        ours = MAKERS[name](pellucid.nn.utils, layer(pellucid, kind))
    assert type(ours).__name__ == type(theirs).__name__
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    ours.load_state_dict(state_of(theirs))
    x = floats(5, 4) if kind == "Linear" else floats(1, 2, 3)
    for _ in range(2):  # singular vectors move
        mine, other = ours(pellucid.tensor(x, device=device)), theirs(torch.tensor(x))
        same(mine, other)
    (mine * mine).sum().backward()
    (other * other).sum().backward()
    given = dict(theirs.named_parameters())
    for path, p in ours.named_parameters():
        same(p.grad, given[path].grad)
    same(ours.eval()(pellucid.tensor(x, device=device)), theirs.eval()(torch.tensor(x)))


@pytest.mark.parametrize("name", ["older weight", "older spectral"])
def test_older_norms_end(name):
    layers = []
    for lib in (pellucid, torch):
        with lib.device("cpu"):
            m = MAKERS[name](lib.nn.utils, layer(lib))
            before = m.weight.detach().numpy().copy()
            end = lib.nn.utils.remove_weight_norm if "weight" in name else lib.nn.utils.remove_spectral_norm
            end(m)
        if "weight" in name:
            np.testing.assert_allclose(m.weight.detach().numpy(), before, rtol=1e-3, atol=1e-5)
        layers.append(sorted(m.state_dict()))
        with pytest.raises(ValueError, match="weight"):
            end(m)
    assert layers[0] == layers[1]


def parametrized(lib):
    """A chain of two, assigned, cached and removed."""

    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    class Doubled(lib.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    p, seen = lib.nn.utils.parametrize, []
    with lib.device("cpu"):
        m = lib.nn.Linear(2, 2)
        original = m.weight
        p.register_parametrization(m, "weight", Symmetric())
        p.register_parametrization(m, "weight", Doubled())
        m.weight = lib.tensor([[1.0, 2.0], [2.0, 4.0]])
        with p.cached():
            seen += [m.weight is m.weight, m.weight is m.weight]
        seen += [m.weight.tolist(), list(m.state_dict()), p.is_parametrized(m), type(m).__name__]
        seen += [m.parametrizations.weight.original is original, p.is_parametrized(m, "bias")]
        seen += [p.type_before_parametrizations(m) is lib.nn.Linear, len(list(m.parameters()))]
        p.remove_parametrizations(m, "weight")
        seen += [m.weight is original, m.weight.tolist(), list(m.state_dict()), type(m) is lib.nn.Linear]
        return seen


def test_a_chain_of_parametrizations():
    assert parametrized(pellucid) == parametrized(torch)


def test_a_copy_loses_its_parametrization_alone():
    m = pellucid.nn.utils.parametrizations.spectral_norm(pellucid.nn.Linear(2, 3, device="cpu"))
    other = copy.deepcopy(m)
    pellucid.nn.utils.parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    assert type(other) is pellucid.nn.Linear
    np.testing.assert_array_equal(other.weight.detach(), m.parametrizations.weight.original.detach())
    assert m.eval().weight.shape == (3, 2)


def test_what_parametrizations_refuse():
    p, m = pellucid.nn.utils.parametrize, pellucid.nn.Linear(2, 3, device="cpu")
    with pytest.raises(ValueError, match="Give unsafe=True"):
        p.register_parametrization(m, "weight", pellucid.nn.Flatten(0))
    with pytest.raises(ValueError, match="no parameter or buffer 'other'"):
        p.register_parametrization(m, "other", pellucid.nn.ReLU())
    with pytest.raises(ValueError, match="not parametrized"):
        p.remove_parametrizations(m, "weight")
    with pytest.raises(TypeError, match="is not a Module"):
        p.register_parametrization(m, "weight", len)
    with pytest.raises(ValueError, match="begins with several"):
        p.remove_parametrizations(pellucid.nn.utils.parametrizations.weight_norm(m), "weight", False)


@pytest.mark.parametrize("kind", ["Conv1d", "ConvTranspose1d", "Linear"])
def test_fused_with_batch_norm(kind, device):
    made = (3, 4) if kind == "Linear" else (3, 4, 2)
    theirs = torch.nn.Sequential(getattr(torch.nn, kind)(*made), torch.nn.BatchNorm1d(4))
    x = floats(6, 3) if kind == "Linear" else floats(6, 3, 5)
    theirs(torch.tensor(x))
    theirs.eval()
    with pellucid.device(device):
        ours = pellucid.nn.Sequential(getattr(pellucid.nn, kind)(*made), pellucid.nn.BatchNorm1d(4)).eval()
    ours.load_state_dict(state_of(theirs))
    u = pellucid.nn.utils
    more = {"transpose": True} if "Transpose" in kind else {}
    fused = u.fuse_linear_bn_eval(*ours) if kind == "Linear" else u.fuse_conv_bn_eval(*ours, **more)
    same(fused(pellucid.tensor(x, device=device)), theirs(torch.tensor(x)))
    with pytest.raises(ValueError, match="must be in eval"):
        u.fuse_conv_bn_eval(*ours.train())


def test_modules_made_without_values_and_gradients_scaled_by_a_known_norm():
    m = pellucid.nn.utils.skip_init(pellucid.nn.Linear, 2, 3, device="cpu")
    assert m.weight.device.type == "cpu"
    m.weight.grad = pellucid.full((3, 2), 2.0, device="cpu")
    pellucid.nn.utils.clip_grads_with_norm_(m.weight, 1.0, pellucid.tensor(4.0, device="cpu"))
    np.testing.assert_allclose(m.weight.grad.numpy(), 0.5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["orthogonal", "weight_norm"])
def test_parametrized_tensors_of_another_module(kind):
    for lib in (torch, pellucid):
        first, second = (lib.nn.Linear(3, 3, device="cpu") for _ in range(2))
        getattr(lib.nn.utils.parametrizations, kind)(first)
        moved = lib.nn.utils.parametrize.transfer_parametrizations_and_params(first, second)
        assert moved is second
        assert lib.nn.utils.parametrize.is_parametrized(second, "weight")
        assert second.weight.flatten().tolist() == pytest.approx(first.weight.flatten().tolist())
        names = {n for n, _ in first.named_parameters()}
        assert {n for n, _ in second.named_parameters()} == names
        plain = lib.nn.Linear(3, 3, device="cpu")
        assert lib.nn.utils.parametrize.transfer_parametrizations_and_params(plain, plain) is plain
