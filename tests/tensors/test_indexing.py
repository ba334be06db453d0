"""``x[key]`` and ``x[key] = value`` against PyTorch and numpy, values and gradients."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import equal, ours
from pellucid.errors import DimensionError, ShapeError

BASIC = {
    "integer": lambda p: 1,
    "negative integer": lambda p: -2,
    "two integers": lambda p: (1, 2),
    "all integers": lambda p: (1, 2, -1),
    "slice": lambda p: slice(1, 3),
    "steps": lambda p: (slice(None, None, 2), slice(1, None, 3)),
    "nothing": lambda p: slice(2, 2),
    "past the end": lambda p: slice(2, 100),
    "none": lambda p: (None, 1, None),
    "ellipsis": lambda p: (Ellipsis, 1),
    "ellipsis in the middle": lambda p: (0, Ellipsis, slice(1, 3)),
    "only ellipsis": lambda p: Ellipsis,
    "empty tuple": lambda p: (),
    "true": lambda p: True,
    "false": lambda p: False,
}
ADVANCED = {
    "list": lambda p: [2, 0, 2],
    "list in the middle": lambda p: (slice(None), [1, 0]),
    "tensor": lambda p: p.tensor([[0, 1], [3, -1]]),
    "two tensors": lambda p: (p.tensor([0, 1, 3]), p.tensor([2, 0, 2])),
    "tensors that broadcast": lambda p: (p.tensor([[0], [3]]), p.tensor([2, 0, 2])),
    "tensors apart": lambda p: (p.tensor([0, 3]), slice(None), p.tensor([1, 2])),
    "tensor and integer": lambda p: (p.tensor([0, 3]), 1),
    "tensor and slice": lambda p: (slice(1, 3), p.tensor([0, 2, 2]), slice(None, None, 2)),
    "tensor and none": lambda p: (None, p.tensor([0, 3])),
    "zero-dim tensor": lambda p: p.tensor(2),
    "array": lambda p: np.array([1, 0]),
    "int32": lambda p: p.tensor([3, 1], dtype=p.int32),
    "empty list": lambda p: [],
    "mask of the first axis": lambda p: p.tensor([True, False, True, True]),
    "mask of two axes": lambda p: p.tensor(
        [[True, False, True], [False] * 3, [True] * 3, [False, True, False]]
    ),
    "mask in the middle": lambda p: (slice(None), p.tensor([True, False, True])),
    "list of bools": lambda p: [True, False, False, True],
    "mask of nothing": lambda p: p.tensor([False] * 4),
    "mask and integer": lambda p: (p.tensor([True, False, True, True]), 1),
}
KEYS = BASIC | ADVANCED


def key_on(module, device, make):
    """The key with tensors on the device."""
    if module is torch:
        return make(torch)
    with pellucid.device(device):
        return make(pellucid)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "key",
    [
        *({k: v for k, v in BASIC.items() if k != "nothing"}).values(),
        lambda p: p.tensor(True),
        lambda p: (0, p.tensor(True)),
        lambda p: (p.tensor(1), slice(1)),
        lambda p: [0, 1, 2, 3],
    ],
)
def test_what_shares_memory(key, device):
    """A bool copies, as a mask does."""

    def seen(p, **where):
        x = p.arange(24.0, **where).reshape(4, 3, 2)
        part = x[key(p)]
        x += 100
        return part.tolist()

    with pellucid.device(device):
        assert seen(pellucid) == seen(torch)


@pytest.mark.parametrize("name", KEYS)
def test_get(name):
    make = KEYS[name]
    check(lambda p, x: x[key_on(p, x.device if p is pellucid else None, make)], normal(4, 3, 5))


@pytest.mark.parametrize("name", KEYS)
def test_set(name):
    make = KEYS[name]
    # Where an index appears twice PyTorch leaves open which value stays, so here each place gets one value
    # only.
    for dtype in ("float32", "uint8", "int64"):
        x = torch.tensor(np.arange(60).reshape(4, 3, 5)).to(getattr(torch, dtype))
        for device in DEVICES:
            theirs, mine = x.clone(), ours(x, device)
            theirs[make(torch)] = 7
            mine[key_on(pellucid, device, make)] = 7
            equal(mine, theirs, what=f"number, {dtype} on {device}")
            value = theirs[make(torch)] * 0 + 9
            theirs[make(torch)] = value
            mine[key_on(pellucid, device, make)] = ours(value, device)
            equal(mine, theirs, what=f"tensor, {dtype} on {device}")


@pytest.mark.parametrize("name", [n for n in KEYS if n not in ("list", "tensors that broadcast")])
def test_gradients_of_set(name):
    make = KEYS[name]

    def function(p, x, v):
        y = x * 1
        y[key_on(p, x.device if p is pellucid else None, make)] = v[0] * 2
        return y * y

    check(function, normal(4, 3, 5), normal(2), layouts=("contiguous",))


@pytest.mark.parametrize("name", KEYS)
def test_values_with_more_axes_of_length_one_are_set(name):
    make = KEYS[name]
    shape = torch.zeros(4, 3, 5)[make(torch)].shape
    if 0 in shape:
        shape = torch.Size([1])

    def function(p, x, v):
        y = x * 1
        y[key_on(p, x.device if p is pellucid else None, make)] = v * 2
        return y * y

    check(function, normal(4, 3, 5), normal(1, 1, *shape[-1:]), layouts=("contiguous",))


def test_gradients_through_views_that_are_written():
    def function(p, x, v):
        y = x * 1
        y[1:3, ::2] = v
        y[0].mul_(2)
        return y.exp(), y[1] * y[2]

    check(function, normal(4, 3, 5), normal(2, 5), layouts=("contiguous",))


def test_negative_steps_share_memory():
    for device in DEVICES:
        x = pellucid.arange(10, device=device)
        y = x[8:2:-3]
        assert y.tolist() == [8, 5]
        assert y._storage is x._storage
        assert x[::-1][::-1].tolist() == list(range(10))
        y += 100
        assert x.tolist() == [0, 1, 2, 3, 4, 105, 6, 7, 108, 9]


slices = st.builds(
    slice,
    st.none() | st.integers(-8, 8),
    st.none() | st.integers(-8, 8),
    st.sampled_from([None, 1, 2, 3, -1, -2, -3]),
)
entries = st.one_of(slices, st.integers(-3, 2), st.none(), st.just(Ellipsis))


@given(
    st.lists(entries, max_size=4).filter(lambda k: sum(e is Ellipsis for e in k) < 2),
    st.lists(slices, max_size=2),
)
@settings(max_examples=150, deadline=None)
def test_any_basic_key_is_numpys(first, second):
    x = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    if sum(e is not None and e is not Ellipsis for e in first) > 3:
        return
    expected = x[tuple(first)]
    second = second[: expected.ndim]
    expected = expected[tuple(second)]
    for device in DEVICES:
        mine = pellucid.tensor(x, device=device)
        view = mine[tuple(first)][tuple(second)]
        assert view._storage is mine._storage
        np.testing.assert_array_equal(view.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(4, 3, device=device)
    with pytest.raises(IndexError, match=r"^index 4 is out of range for axis 0 of length 4"):
        x[4]
    with pytest.raises(IndexError, match="index -4 is out of range for axis 1 of length 3"):
        x[0, -4]
    with pytest.raises(IndexError, match="too many indices: 3 for a tensor of 2 axes"):
        x[0, 0, 0]
    with pytest.raises(IndexError, match="a tensor without axes has nothing to select"):
        pellucid.tensor(1.0, device=device)[0]
    with pytest.raises(DimensionError, match="one ellipsis"):
        x[..., ...]
    with pytest.raises(IndexError, match=r"mask of shape \(3,\) does not fit axes 0 to 0 of shape \(4,\)"):
        x[pellucid.tensor([True, False, True], device=device)]
    with pytest.raises(IndexError, match=r"must be int64, int32, uint8 or bool, not pellucid.float32"):
        x[pellucid.tensor([1.0, 2.0], device=device)]
    with pytest.raises(TypeError, match="not str"):
        x["a"]
    with pytest.raises(IndexError, match="not float"):
        x[1.5]
    with pytest.raises(TypeError, match="a list of integers"):
        x[["a"]]
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        x[::0]
    with pytest.raises(ShapeError, match=r"src of shape \(2,\) does not broadcast to \(3,\)"):
        x[0] = pellucid.zeros(2, device=device)
    with pytest.raises(IndexError):
        x[pellucid.tensor([0, 7], device=device)].numpy()
    assert x.sum().item() == 0


@pytest.mark.parametrize("device", DEVICES)
def test_values_are_converted_and_broadcast(device):
    x = pellucid.zeros(2, 3, dtype=pellucid.int64, device=device)
    x[0] = 2.9
    x[1, :2] = pellucid.tensor([[5.5]], device=device)
    x[1, 2] = np.int32(7)
    x[:, 0] = [8, 9]
    assert x.tolist() == [[8, 2, 2], [9, 5, 7]]


@pytest.mark.parametrize("device", DEVICES)
def test_augmented_assignment_of_a_part(device):
    x = pellucid.arange(12, device=device).reshape(3, 4)
    expected = torch.arange(12).reshape(3, 4)
    for y in (x, expected):
        y[1] += 10
        y[:, ::2] *= 2
        y[0, 0] -= 5
        y[[0, 2]] += 1
        y[y > 20] = 0
    equal(x, expected)


@pytest.mark.parametrize("device", DEVICES)
def test_gradient_of_an_assigned_value_with_more_axes_than_its_place(device):
    value = pellucid.ones(1, 1, 3, device=device, requires_grad=True)
    x = pellucid.zeros(2, 3, device=device)
    x[:] = value
    (x * 5).sum().backward()
    assert value.grad.tolist() == [[[10.0, 10.0, 10.0]]]


@pytest.mark.parametrize("device", DEVICES)
def test_an_index_that_changes_after_an_assignment_changes_no_gradient(device):
    scale = pellucid.tensor([1.0, 2.0, 3.0], device=device)
    for key, change in (
        (pellucid.tensor([0], device=device), lambda k: k.fill_(1)),
        (np.array([0]), lambda k: k.fill(1)),
        ([0], lambda k: k.__setitem__(0, 1)),
        ((pellucid.tensor([0], device=device),), lambda k: k[0].fill_(1)),
    ):
        value = pellucid.ones(1, device=device, requires_grad=True)
        x = pellucid.zeros(3, device=device)
        x[key] = value
        change(key)
        (x * scale).sum().backward()
        assert value.grad.tolist() == [1.0]


def keys(lib, x):
    """Keys that are not one tensor or one list of numbers."""
    t = lib.tensor
    return {
        "numbers": [t(1), t(2)], "vectors": [t([0, 1]), t([1, 2])], "vector and number": [t([0, 1]), 1],
        "slices": [slice(0, 2), slice(1, 3)], "plain": [0, 1], "lists": [[0, 1], [1, 2]],
        "new axis": [None, 0], "ellipsis": [..., 0], "one vector": [t([0, 1])],
        "bools": [True, False, True, False, True],
        "arrays": [np.array([0, 1]), np.array([1, 2])], "long": [[0]] * 33, "unlike": [[0], [1, 2]],
        "list of bools": [[True, False, False, True, True]], "tuples": ((0, 1), (1, 2)), "tuple": ((0, 1),),
        "matrix": np.array([[0, 1], [1, 2]]), "two truths": (True, True), "truth and not": (True, False),
        "truth and place": (True, 0), "truth and list": (True, [0, 1]), "list and truth": ([0, 1], True),
        "truth and slice": (True, slice(1, 3)), "tensor truths": (t(True), t(True)),
        "truth and mask": (True, x[:, 0, 0] > 30), "behind a slice": (slice(None), True, [0, 1]),
        "around a slice": (True, slice(None), [0, 1]), "nothing twice": (False, False),
        "bytes": t([1, 0, 1, 0, 1], dtype=lib.uint8), "matrix of bytes": lib.ones(5, 5, dtype=lib.uint8),
        "array of bytes": np.array([1, 0, 1, 0, 1], np.uint8), "one byte": t(1, dtype=lib.uint8),
        "int16": t([1, 0], dtype=lib.int16), "int8": t([1, 0], dtype=lib.int8),
        "place of int8": t(1, dtype=lib.int8), "int16 and list": (t(1, dtype=lib.int16), [0, 1]),
    }  # fmt: skip


def _assigned(x, key):
    out = x.clone()
    out[key] = out[key] * 2 + 1
    return out


def _gradient(x, key):
    x = x.float().requires_grad_()
    x[key].sum().backward()
    return x.grad


def _told(x, key):
    found = []
    for call in (lambda x, key: x[key], _assigned, _gradient):
        try:
            found.append(call(x, key).tolist())
        except IndexError:
            found.append(IndexError)
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_keys_of_lists_truths_and_bytes(device):
    """A list of more than numbers is a tuple, truths share an axis with lists, bytes are masks."""
    x = torch.arange(125).reshape(5, 5, 5)
    with pellucid.device(device):
        y = pellucid.arange(125).reshape(5, 5, 5)
        mine = keys(pellucid, y)
        for name, key in keys(torch, x).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert _told(y, mine[name]) == _told(x, key), name
        with pytest.warns(UserWarning, match=r"x\[tuple\(indices\)\]"):
            _ = y[[[0, 1], [1, 2]]]
        with pytest.warns(UserWarning, match="uint8 is deprecated"):
            _ = y[mine["bytes"]]
