"""Recurrent layers and packed sequences against PyTorch's: outputs, states, first and second derivatives."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, state_of

LIBRARIES = ((pellucid, "device"), (torch, "cpu"))
LENGTHS = [2, 4, 1]
LAYERS = {
    "RNN": {"bidirectional": True, "bias": False, "nonlinearity": "relu"},
    "LSTM": {"num_layers": 2, "bidirectional": True, "proj_size": 2},
    "GRU": {"num_layers": 2, "batch_first": True},
}


def twins(name, device, **settings):
    """The same layer in both libraries, with PyTorch's names of parameters."""
    theirs = getattr(torch.nn, name)(3, 4, **settings)
    ours = getattr(pellucid.nn, name)(3, 4, **settings, device=device)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict(state_of(theirs))
    return ours, theirs


def flat(x):
    """Tensors of nested results, in order."""
    return [t for part in x for t in flat(part)] if isinstance(x, tuple) else [x]


@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences(name, device):
    """P-026, P-027, P-088: of different lengths, unsorted, with first states: values and gradients."""
    settings = LAYERS[name]
    count = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
    columns = [settings.get("proj_size", 4), *([4] if name == "LSTM" else [])]
    seen = []
    for model, (lib, where) in zip(twins(name, device, **settings), LIBRARIES, strict=True):
        given = [floats(4, 3, 3), *(floats(count, 3, c, seed=c) for c in columns)]
        where = device if where == "device" else where
        x, *hx = (lib.tensor(a, device=where, requires_grad=True) for a in given)
        pack = lib.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        out, last = model(pack, tuple(hx) if len(hx) == 2 else hx[0])
        whole, lengths = lib.nn.utils.rnn.pad_packed_sequence(out, total_length=5, padding_value=0.5)
        assert lengths.tolist() == LENGTHS
        results = flat((whole, last))
        sum(r.sin().sum() for r in results).backward()
        seen.append([*results, x.grad, *(h.grad for h in hx), *(p.grad for p in model.parameters())])
    for ours, theirs in zip(*seen, strict=True):
        same(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("are_packed", [False, True])
def test_second_derivatives(name, are_packed):
    seen = []
    settings = {"proj_size": 2} if name == "LSTM" else {}
    for model, lib in zip(twins(name, "cpu", **settings), (pellucid, torch), strict=True):
        model.double()
        x = lib.tensor(floats(3, 2, 3).astype(np.float64), device="cpu", requires_grad=True)
        rnn = lib.nn.utils.rnn
        pack = rnn.pack_padded_sequence(x, [3, 1]) if are_packed else x
        out, _ = model(pack)
        wanted = [x, *model.parameters()]
        total = (out.data if are_packed else out).sin().sum()
        first = lib.autograd.grad(total, wanted, create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), wanted)
        seen.append([*first, *second])
    for ours, theirs in zip(*seen, strict=True):
        same(ours, theirs, rtol=1e-9, atol=1e-11)


def test_a_step_is_few_dispatches():
    """An LSTM: a product and two kernels for each step, and a few for all."""
    model = pellucid.nn.LSTM(3, 4, device="webgpu")
    counts = []
    for time in (4, 12):
        x = pellucid.tensor(floats(time, 2, 3), device="webgpu")
        for _ in range(2):
            before = pellucid.webgpu.memory_stats()["dispatches"]
            with pellucid.no_grad():
                model(x)[0].sum().item()
            after = pellucid.webgpu.memory_stats()["dispatches"]
        counts.append(after - before)
    assert counts[1] - counts[0] <= 3 * 8 + 4


def test_dropout_between_layers_while_training():
    model = pellucid.nn.GRU(3, 4, 2, dropout=0.9, device="cpu")
    x = pellucid.tensor(floats(3, 2, 3), device="cpu")
    assert (model(x)[0] != model(x)[0]).any().item()
    model.eval()
    assert (model(x)[0] == model(x)[0]).all().item()
    with pytest.warns(UserWarning, match="dropout is between layers"):
        pellucid.nn.GRU(3, 4, dropout=0.5, device="cpu")


def test_sequences_without_padding(device):
    rows = [pellucid.tensor(floats(n, 2), device=device, requires_grad=True) for n in (3, 2, 2)]
    theirs = [torch.tensor(r.detach().numpy()) for r in rows]
    rnn, other = pellucid.nn.utils.rnn, torch.nn.utils.rnn
    for side in ("left", "right"):
        same(rnn.pad_sequence(rows, True, 9, side), other.pad_sequence(theirs, True, 9, side))
    pack, wanted = rnn.pack_sequence(rows), other.pack_sequence(theirs)
    same(pack.data, wanted.data)
    assert pack.batch_sizes.tolist() == wanted.batch_sizes.tolist()
    for a, b in zip(rnn.unpack_sequence(pack), theirs, strict=True):
        same(a, b)
    pack.data.sum().backward()
    assert rows[2].grad.tolist() == [[1.0] * 2] * 2
    order = pellucid.tensor([2, 0, 1], device=device)
    assert rnn.invert_permutation(order).tolist() == [1, 2, 0]
    moved = rnn.pack_sequence(rows[::-1], enforce_sorted=False).cpu()
    assert moved.sorted_indices.device.type == "cpu"
    assert moved.half().data.dtype == pellucid.float16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n, x: n.LSTM(3, 4)(x[0, 0]), "Expected input to be 2D or 3D, got 1D"),
        (lambda n, x: n.LSTM(5, 4)(x), "must be equal to input_size. Expected 5, got 3"),
        (lambda n, x: n.GRU(3, 4)(x[:0]), "sequence length to be larger than 0"),
        (lambda n, x: n.GRU(3, 4)(x, x[0]), "batched 3-D input, hx should also be 3-D but got 2-D"),
        (lambda n, x: n.GRU(3, 4)(x, x), r"Expected hidden size \(1, 2, 4\), got \[5, 2, 3\]"),
        (lambda n, x: n.LSTM(3, 4)(x, x), "hx must be a pair of tensors"),
        (lambda n, x: n.GRU(3, 4, proj_size=2), "proj_size has to be"),
        (lambda n, x: n.GRU(0, 4), "input_size must be greater than zero"),
        (lambda n, x: n.GRU(3, 4, dropout=2), r"in range \[0, 1\], not 2"),
        (lambda n, x: n.RNN(3, 4, nonlinearity="x"), "'tanh' or 'relu'"),
        (lambda n, x: n.RNNBase("x", 3, 4), "mode must be one of LSTM"),
        (lambda n, x: n.RNNCell(3, 4, nonlinearity="x")(x[0]), "'tanh' or 'relu'"),
        (lambda n, x: n.GRUCell(3, 4)(x), "Expected input to be 1D or 2D, got 3D"),
        (lambda n, x: n.GRUCell(5, 4)(x[0]), "3 columns, not input_size 5"),
        (lambda n, x: n.GRUCell(3, 4)(x[0], x[0]), "Expected hidden size"),
        (lambda n, x: n.utils.rnn.pack_padded_sequence(x, [1, 2]), "must fall"),
        (lambda n, x: n.utils.rnn.pack_padded_sequence(x, [9, 2]), "between 1 and 5"),
        (lambda n, x: n.utils.rnn.pack_padded_sequence(x, [2]), "1 lengths for 2 sequences"),
        (lambda n, x: n.utils.rnn.pack_padded_sequence(x, 2), "must be a list or a tensor"),
        (lambda n, x: n.utils.rnn.pad_sequence([]), "no sequences"),
        (lambda n, x: n.utils.rnn.pad_sequence([x], padding_side="x"), "'right' or 'left'"),
        (
            lambda n, x: n.utils.rnn.pad_packed_sequence(n.utils.rnn.pack_sequence([x]), total_length=1),
            "total_length 1 is less",
        ),
        (lambda n, x: n.utils.rnn.PackedSequence(x, x), "batch_sizes must be on the cpu"),
    ],
)
def test_says_what_is_wrong(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(pellucid.nn, pellucid.ones(5, 2, 3))


@pytest.mark.parametrize("name", ["RNNCell", "GRUCell", "LSTMCell"])
def test_a_cell_of_one_vector_begins_with_zeros(name):
    cell = getattr(pellucid.nn, name)(2, 3, device="cpu")
    x = pellucid.tensor([0.5, -1.0], device="cpu")
    alone, batch = cell(x), cell(x[None])
    for a, b in zip(alone, batch, strict=True) if name == "LSTMCell" else [(alone, batch)]:
        assert a.shape == (3,)
        assert a.tolist() == pytest.approx(b[0].tolist())
