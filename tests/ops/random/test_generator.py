"""Generators: seeds and states that PyTorch takes are taken, others are refused by its classes of errors."""

import pytest
import torch

import pellucid
from pellucid.errors import PellucidError

SEEDS = (0, -1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 2**70, 1.5, "12", "a", None, True, float("nan"),
    float("inf"), [], [1])  # fmt: skip
CALLS = {
    "Generator().manual_seed": lambda p, seed: p.Generator().manual_seed(seed).initial_seed(),
    "manual_seed": lambda p, seed: p.manual_seed(seed).initial_seed(),
}


def outcome(call, p, seed):
    try:
        return call(p, seed)
    except Exception as error:  # whatever it is, the test looks at it
        return error


@pytest.mark.parametrize("seed", SEEDS, ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_seeds_are_pytorchs(name, seed):
    mine, theirs = (outcome(CALLS[name], p, seed) for p in (pellucid, torch))
    if isinstance(theirs, Exception):
        assert isinstance(mine, PellucidError), mine
        assert isinstance(mine, type(theirs)), (mine, theirs)
        assert str(mine).startswith("manual_seed")
    else:
        assert mine == theirs


@pytest.mark.parametrize("device", ["nope", 5])
def test_devices_that_do_not_exist(device):
    for p in (torch, pellucid):
        with pytest.raises(RuntimeError):
            p.Generator(device)
    with pytest.raises(PellucidError, match="device"):
        pellucid.Generator(device)


@pytest.mark.parametrize(
    "state", [None, "a", [1, 2], (1, 2), torch.zeros(16), pellucid.zeros(16, device="cpu")]
)
def test_states_that_are_none(state):
    before = pellucid.get_rng_state()
    for call in (pellucid.set_rng_state, pellucid.Generator().set_state):
        with pytest.raises(
            TypeError, match=r"^set_state\(\): argument 'new_state' must be a uint8 tensor on"
        ):
            call(state)
        with pytest.raises(RuntimeError, match=r"^set_state: a state has shape \(16,\), not \(3,\)"):
            call(before[:3])
    assert pellucid.get_rng_state().tolist() == before.tolist()


def test_a_state_is_a_tensor_that_can_be_cloned():
    g = pellucid.Generator().manual_seed(2**64 - 1)
    pellucid.rand(5, generator=g)
    state = g.get_state()
    assert (state.dtype, state.device.type, state.is_contiguous()) == (pellucid.uint8, "cpu", True)
    drawn = pellucid.rand(5, generator=g).tolist()
    other = pellucid.Generator().set_state(pellucid.stack([state.clone(), state], 1)[:, 1])
    assert other.initial_seed() == 2**64 - 1
    assert pellucid.rand(5, generator=other).tolist() == drawn


@pytest.mark.parametrize("given", [5, "a", [], 1.5])
def test_what_is_no_generator(given):
    x = pellucid.ones(3, device="cpu")
    calls = {
        "rand": lambda: pellucid.rand(3, generator=given),
        "randperm": lambda: pellucid.randperm(3, generator=given),
        "bernoulli": lambda: pellucid.bernoulli(x, generator=given),
        "normal_": lambda: x.normal_(generator=given),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'generator' must be a Generator, not"):
            call()


def test_a_generator_is_moved_and_copied():
    g = pellucid.Generator().manual_seed(3)
    assert g.get_offset() == 0
    pellucid.rand(8, generator=g, device="cpu")
    at = g.get_offset()
    twin = g.clone_state()
    following = pellucid.rand(4, generator=g, device="cpu").tolist()
    assert pellucid.rand(4, generator=twin, device="cpu").tolist() == following
    assert pellucid.rand(4, generator=g.set_offset(at), device="cpu").tolist() == following
    with pytest.raises(RuntimeError, match="a multiple of 4"):
        g.set_offset(3)
