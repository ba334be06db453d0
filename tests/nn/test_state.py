"""State dictionaries: round trips, and every mismatch named at once."""

from collections import OrderedDict

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, state_of
from pellucid.errors import WeightError


def net(lib, device="cpu"):
    with lib.device(device):
        return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.LayerNorm(4), lib.nn.Linear(4, 2))


def test_round_trip(device):
    one, two = net(pellucid, device), net(pellucid, device)
    state = one.state_dict()
    assert isinstance(state, OrderedDict)
    assert not any(t.requires_grad for t in state.values())
    result = two.load_state_dict(state)
    assert result.missing_keys == result.unexpected_keys == []
    assert repr(result) == "<All keys matched successfully>"
    for name, value in two.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())
        assert value.data_ptr() != state[name].data_ptr()


def test_state_shares_memory_with_the_module(device):
    m = net(pellucid, device)
    m.state_dict()["2.bias"].zero_()
    assert m[2].bias.tolist() == [0.0, 0.0]


def test_takes_pytorchs_values(device):
    theirs, ours = net(torch), net(pellucid, device)
    ours.load_state_dict(state_of(theirs))
    x = floats(5, 3)
    same(ours(pellucid.tensor(x, device=device)), theirs(torch.tensor(x)))


def test_converts_dtype_and_device(device):
    ours = pellucid.nn.Linear(3, 2, device=device)
    given = {"weight": pellucid.ones(2, 3, dtype=pellucid.float16, device="cpu"), "bias": np.zeros(2)}
    ours.load_state_dict(given)
    assert ours.weight.dtype is pellucid.float32
    assert ours.weight.sum().item() == 6.0


def test_lists_every_mismatch_and_changes_nothing(device):
    m = net(pellucid, device)
    before = {k: v.numpy().copy() for k, v in m.state_dict().items()}
    given = {k: np.zeros_like(v) for k, v in before.items()}
    del given["0.bias"], given["1.weight"]
    given |= {"3.weight": np.zeros(1), "head": np.zeros(1), "2.weight": np.zeros((5, 4), np.float32)}
    with pytest.raises(WeightError) as caught:
        m.load_state_dict(given)
    assert str(caught.value) == (
        "load_state_dict of Sequential: 2 missing: 0.bias, 1.weight. 2 unexpected: 3.weight, head. "
        "1 misshapen: 2.weight: (5, 4) given, (2, 4) in the module. "
        "Build the module with the sizes of the weights, or give strict=False to ignore missing and "
        "unexpected names."
    )
    for name, value in m.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    with pytest.raises(WeightError, match="1 misshapen"):
        m.load_state_dict(given, strict=False)
    del given["2.weight"]
    result = m.load_state_dict(given, strict=False)
    theirs = net(torch).load_state_dict({k: torch.tensor(v) for k, v in given.items()}, strict=False)
    assert result.missing_keys == theirs.missing_keys == ["0.bias", "1.weight", "2.weight"]
    assert result.unexpected_keys == theirs.unexpected_keys
    assert not m[2].bias.any().item()


def test_counts_of_batches_may_be_missing_where_no_version_is_said():
    """As in dictionaries that a program chose from one: before version 2 there were no counts."""
    for lib in (torch, pellucid):
        m = lib.nn.Sequential(lib.nn.BatchNorm1d(2))
        m[0].num_batches_tracked.fill_(3)
        state = m.state_dict()
        chosen = {k: v for k, v in state.items() if "num_batches" not in k}
        assert repr(m.load_state_dict(chosen)) == "<All keys matched successfully>"
        assert m[0].num_batches_tracked.item() == 3
        del chosen["0.weight"]
        result = m.load_state_dict(chosen, strict=False)
        assert repr(result) == "_IncompatibleKeys(missing_keys=['0.weight'], unexpected_keys=[])"
        assert state._metadata["0"] == {"version": 2}
        del state["0.num_batches_tracked"]
        assert m.load_state_dict(state, strict=False).missing_keys == ["0.num_batches_tracked"]


def test_a_prefix_is_taken_off_names():
    from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present as theirs

    from pellucid.nn.state import consume_prefix_in_state_dict_if_present as ours

    for lib, consume in ((torch, theirs), (pellucid, ours)):
        state = lib.nn.ModuleDict({"module": lib.nn.Linear(1, 1)}).state_dict()
        consume(state, "module.")
        assert list(state) == ["weight", "bias"]
        assert list(state._metadata) == [""]
        consume(state, "module.")
        assert list(state) == ["weight", "bias"]


def test_a_long_list_is_cut():
    m = pellucid.nn.ModuleList([pellucid.nn.Linear(1, 1, device="cpu") for _ in range(20)])
    with pytest.raises(WeightError, match=r"40 missing: .* and 20 more"):
        m.load_state_dict({})


def test_takes_only_dictionaries():
    with pytest.raises(TypeError, match="takes a dictionary of tensors by name, not list"):
        net(pellucid).load_state_dict([1])


def test_assign_makes_the_given_tensor_the_modules_own(device):
    m = pellucid.nn.Linear(3, 2, device=device)
    weight = m.weight
    given = {"weight": pellucid.ones(2, 3, device=device), "bias": pellucid.ones(2, device=device)}
    m.load_state_dict(given, assign=True)
    assert m.weight is weight
    assert m.weight.data_ptr() == given["weight"].data_ptr()


def test_tied_weights_are_saved_under_both_names_and_stay_tied(device):
    class Tied(pellucid.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = pellucid.nn.Embedding(5, 3, device=device)
            self.head = pellucid.nn.Linear(3, 5, bias=False, device=device)
            self.head.weight = self.embed.weight

    m = Tied()
    assert list(m.state_dict()) == ["embed.weight", "head.weight"]
    assert [n for n, _ in m.named_parameters()] == ["embed.weight"]
    m.load_state_dict({k: floats(5, 3) for k in m.state_dict()}, assign=True)
    assert m.head.weight is m.embed.weight


def hooked(lib):
    """What hooks see and change while a tree is saved and loaded."""

    class Counted(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = lib.nn.Buffer(lib.ones(2))
            self.passing = lib.nn.Buffer(lib.ones(1), persistent=False)
            self.turns = 3

        def get_extra_state(self):
            return {"turns": self.turns}

        def set_extra_state(self, state):
            self.turns = state["turns"]

    seen = []
    with lib.device("cpu"):
        net = lib.nn.Sequential(lib.nn.Linear(1, 2), Counted())
        other = lib.nn.Sequential(lib.nn.Linear(1, 2), Counted())
    other[1].turns = 7
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    net[0].register_state_dict_post_hook(lambda m, state, prefix, known: state.update({"more": known}))
    state = net.state_dict(keep_vars=True)
    seen += [list(state), dict(state._metadata), state["0.weight"] is net[0].weight]

    def rename(m, state, prefix, known, strict, missing, unexpected, errors):
        seen.append((prefix, strict, list(state)))
        if prefix + "old" in state:
            state[prefix + "weight"] = state.pop(prefix + "old")

    handle = other[0].register_load_state_dict_pre_hook(rename)
    other[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    other.register_load_state_dict_post_hook(lambda m, keys: seen.append(tuple(keys)))
    state["0.old"] = state.pop("0.weight")
    seen += [tuple(other.load_state_dict(state, strict=False)), other[1].turns]
    handle.remove()
    other.load_state_dict(net.state_dict(), strict=False)
    return [*seen, [n for n, _ in net.named_buffers()]]


def test_hooks_of_saving_and_loading_and_extra_state():
    assert hooked(pellucid) == hooked(torch)


def test_set_submodule_and_what_modules_refuse():
    net = pellucid.nn.Sequential(pellucid.nn.Sequential(pellucid.nn.ReLU()))
    net.set_submodule("0.0", pellucid.nn.Tanh(), strict=True)
    assert repr(net.get_submodule("0.0")) == "Tanh()"
    with pytest.raises(AttributeError):
        net.set_submodule("0.1", pellucid.nn.Tanh(), strict=True)
    with pytest.raises(ValueError, match="names no submodule"):
        net.set_submodule("", pellucid.nn.Tanh())
    for refused in (net.cuda, net.share_memory):
        with pytest.raises(RuntimeError, match=r"Use \.webgpu|one process"):
            refused()
