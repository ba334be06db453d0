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


def test_older_functional_call():
    layer = pellucid.nn.Linear(2, 1, device="cpu")
    weights = {"weight": pellucid.ones(1, 2, device="cpu")}
    with pytest.warns(FutureWarning, match="functional_call is deprecated"):
        out = pellucid.nn.utils.stateless.functional_call(layer, weights, pellucid.ones(2, device="cpu"))
    assert out.item() == pytest.approx(2 + layer.bias.item())


@pytest.mark.parametrize(("name", "rank"), [("conv2d", 2), ("conv3d", 3)])
def test_weights_in_a_memory_format(name, rank):
    def strides(library):
        kind = getattr(library.nn, f"Conv{rank}d")
        model = library.nn.Sequential(kind(2, 3, 2, device="cpu"), library.nn.Linear(2, 2, device="cpu"))
        layout = library.channels_last if rank == 2 else library.channels_last_3d
        convert = getattr(library.nn.utils, f"convert_{name}_weight_memory_format")
        return convert(model, layout)[0].weight.stride()

    assert strides(pellucid) == strides(torch)


def test_packed_sequences_of_other_types():
    rnn = pellucid.nn.utils.rnn
    packed = rnn.pack_sequence([pellucid.ones(2, device="cpu"), pellucid.ones(1, device="cpu")])
    for name in ("long", "int", "short", "char", "byte"):
        wanted = getattr(torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)]), name)()
        assert str(getattr(packed, name)().data.dtype).split(".")[1] == str(wanted.data.dtype).split(".")[1]
    assert packed.cpu().data.device.type == "cpu"
    assert not packed.is_cuda
    assert not packed.is_pinned()
    assert packed.pin_memory() is packed
    with pytest.raises(RuntimeError, match="there is no cuda device here"):
        packed.cuda()
