"""Functions of nn.functional that are no layer of their own, against PyTorch's."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, same_call


class Call:
    """A function in the shape of a module, for `same_call`."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)

    def named_parameters(self):
        return iter(())


def both(name, device, arrays, *args, **kwargs):
    ours, theirs = (getattr(lib.nn.functional, name) for lib in (pellucid, torch))
    same_call(
        Call(lambda *x: ours(*x, *args, **kwargs)),
        Call(lambda *x: theirs(*x, *args, **kwargs)),
        device,
        *arrays,
    )


@pytest.mark.parametrize(
    ("pad", "value"),
    [
        ((1, 2), None),
        ((0, 1, 2, 0), 3.5),
        ((-1, 1), 0.0),
        ((-2, -1, 1, 1, 0, 3), -1.0),
        ((0, 0), None),
        ((), None),
    ],
)
def test_pad(pad, value, device):
    both("pad", device, [floats(2, 3, 4)], pad, value=value)


@pytest.mark.parametrize(
    ("pad", "error", "message"),
    [
        ((1,), ValueError, "must be pairs"),
        ((1, 1) * 3, ValueError, "at most the 2 axes"),
        ((-3, 0), ValueError, "take more than the 2"),
    ],
)
def test_pad_says_what_is_wrong(pad, error, message):
    with pytest.raises(error, match=message):
        pellucid.nn.functional.pad(pellucid.zeros(2, 2, device="cpu"), pad)
    with pytest.raises(NotImplementedError, match="'mirror'"):
        pellucid.nn.functional.pad(pellucid.zeros(2, 2, device="cpu"), (1, 1), mode="mirror")


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("dim", [0, -1])
def test_normalize(p, dim, device):
    both("normalize", device, [floats(3, 4)], p=p, dim=dim)


def test_normalize_of_zeros_is_zero(device):
    out = pellucid.nn.functional.normalize(pellucid.zeros(2, 3, device=device), dim=1)
    assert out.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(dim, device):
    both("cosine_similarity", device, [floats(3, 4), floats(3, 4, seed=1)], dim=dim)


@pytest.mark.parametrize("classes", [-1, 7])
def test_one_hot(classes, device):
    given = np.array([[1, 0], [4, 2]])
    ours = pellucid.nn.functional.one_hot(pellucid.tensor(given, device=device), classes)
    theirs = torch.nn.functional.one_hot(torch.tensor(given), classes)
    assert ours.dtype is pellucid.int64
    assert ours.tolist() == theirs.tolist()
    with pytest.raises(TypeError, match="one_hot: classes must be int64"):
        pellucid.nn.functional.one_hot(pellucid.zeros(2, device=device))


@pytest.mark.parametrize("call", [
    lambda F, x: F.softsign(x), lambda F, x: F.one_hot(pellucid.tensor([3, 1], device="webgpu"), 4),
])  # fmt: skip
def test_what_is_one_launch(call):
    x = pellucid.ones(5, device="webgpu", requires_grad=True)
    call(pellucid.nn.functional, x)
    pellucid.webgpu.flush()
    with pellucid.webgpu.fusion(False), pellucid.debug.trace() as trace:
        call(pellucid.nn.functional, x)
        pellucid.webgpu.flush()
    assert len(trace) == 1


@pytest.mark.parametrize("causal", [False, True])
def test_scaled_dot_product_attention(causal, device):
    arrays = [floats(2, 3, 5, 8, seed=s) for s in range(3)]
    both("scaled_dot_product_attention", device, arrays, is_causal=causal)


def test_glu_needs_halves():
    with pytest.raises(ValueError, match="odd length"):
        pellucid.nn.functional.glu(pellucid.zeros(2, 3, device="cpu"))


def test_relu_in_place(device):
    x = pellucid.tensor([-1.0, 2.0], device=device)
    assert pellucid.nn.functional.relu(x, inplace=True) is x
    assert x.tolist() == [0.0, 2.0]


# Recurrences of state-space models and of linear attention, which PyTorch leaves to other packages.
_OURS = {"gated_delta_rule", "selective_scan"}


@pytest.mark.parametrize("name", pellucid.nn.functional.__all__)
def test_every_name_is_pytorchs(name):
    assert callable(getattr(torch.nn.functional, name, None)) != (name in _OURS)
    assert getattr(pellucid.nn.functional, name).__doc__


def test_embedding_takes_indices_first(device):
    weight, ids = floats(4, 3), np.array([2, 0])
    ours = pellucid.nn.functional.embedding(
        pellucid.tensor(ids, device=device), pellucid.tensor(weight, device=device)
    )
    same(ours, torch.nn.functional.embedding(torch.tensor(ids), torch.tensor(weight)))
