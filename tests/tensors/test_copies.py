"""Copies and pickles beside PyTorch: what shares memory, strides, gradients, attributes and types."""

import copy
import io
import pickle

import pytest
import torch

import pellucid
from pellucid.quant.weight import weight_from_blocks

both = pytest.mark.parametrize("device", ["cpu", "webgpu"])
COPIERS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


def saved(x):
    """PyTorch's way to pickle that keeps memory shared: its storages are written apart."""
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def counted(p):
    return p.arange(6.0).reshape(2, 3)


def leaf(p):
    x = counted(p).requires_grad_()
    (x * 2).sum().backward()
    x.note = ["kept"]
    return x


def parameter(p):
    x = p.nn.Parameter(counted(p))
    (x * 2).sum().backward()
    x.note = ["kept"]
    return x


def tied(p):
    m = p.nn.ModuleDict({"embed": p.nn.Embedding(3, 2), "head": p.nn.Linear(2, 3, bias=False)})
    m["head"].weight = m["embed"].weight
    m["embed"].register_buffer("table", counted(p).t())
    m["embed"].register_buffer("first", m["embed"].table[0])
    return m


def trained(p):
    x = parameter(p)
    optimizer = p.optim.SGD([x], lr=0.5, momentum=0.9)
    optimizer.step()
    return {"x": x, "optimizer": optimizer, "schedule": p.optim.lr_scheduler.StepLR(optimizer, 3)}


ONE = {
    "whole": counted,
    "transposed": lambda p: counted(p).t(),
    "sliced": lambda p: counted(p)[:, 1:],
    "a column": lambda p: counted(p)[:, 1],
    "expanded": lambda p: counted(p).expand(2, 2, 3),
    "an axis of length 1": lambda p: counted(p).as_strided((2, 1, 3), (3, 6, 1)),
    "no axes": lambda p: p.tensor(3.0),
    "empty": lambda p: p.zeros(0, 3),
    "bytes": lambda p: p.tensor([1, 2, 3], dtype=p.int8)[1:],
    "halves": lambda p: p.tensor([1, 2, 3], dtype=p.bfloat16)[1:],
    "flags": lambda p: p.tensor([True, False]),
    "a leaf": leaf,
    "a result": lambda p: leaf(p) * 2,
    "a parameter": parameter,
    "a parameter transposed": lambda p: p.nn.Parameter(counted(p).t()),
    "a parameter with an axis of length 1": lambda p: p.nn.Parameter(
        counted(p).as_strided((2, 1, 3), (3, 6, 1))
    ),
    "a parameter of a column": lambda p: p.nn.Parameter(counted(p)[:, 1]),
    "a parameter expanded": lambda p: p.nn.Parameter(counted(p).expand(2, 2, 3)),
    "a parameter without axes": lambda p: p.nn.Parameter(p.tensor(3.0)),
    "a parameter that is fixed": lambda p: p.nn.Parameter(p.tensor([3]), requires_grad=False),
    "on meta": lambda p: p.empty(2, 3, device="meta").t(),
}


def looks(x, of):
    """All that a program sees of a tensor beside the one that it is a copy of."""
    return {
        "type": type(x).__name__,
        "values": x.tolist() if x.device.type != "meta" else None,
        "dtype": str(x.dtype).split(".")[1],
        "device": x.device == of.device,
        "place": (tuple(x.shape), x.stride(), x.storage_offset()),
        "graph": (x.requires_grad, x.is_leaf, x.grad.tolist() if x.grad is not None else None),
        "note": (getattr(x, "note", None), getattr(x, "note", None) is getattr(of, "note", 0)),
        "shares": x.device.type != "meta" and x.data_ptr() == of.data_ptr() and x.numel() > 0,
    }


def outcome(p, copier, make):
    x = make(p)
    try:
        return looks(copier(x), x)
    except RuntimeError as error:
        return type(error).__mro__[-3:]


@both
@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("case", ONE)
@pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS)
def test_one_tensor(device, copier, case):
    with pellucid.device(device):
        assert outcome(pellucid, copier, ONE[case]) == outcome(torch, copier, ONE[case])


def shared_views(p, copier):
    x = counted(p)
    found = copier([x, x[1:], x.t(), x.detach()])
    for k, y in enumerate(found):
        y += 10**k
    return [y.tolist() for y in found], x.tolist()


def twice(p, copier):
    x = parameter(p)
    found = copier({"a": x, "b": [x]})
    return found["a"] is found["b"][0], found["a"].grad


def of_a_module(p, copier):
    m = tied(p)
    m["embed"].weight.data.fill_(1.0)
    found = copier(m)
    embed = found["embed"]
    embed.table[0] = 7
    with p.no_grad():
        found["head"].weight.add_(1)
    return (
        found["head"].weight is embed.weight,
        len(list(found.parameters())),
        embed.table.stride(),
        embed.first.tolist(),
        m["embed"].first.tolist(),
        m["embed"].weight.tolist(),
        [(name, x.tolist()) for name, x in found.state_dict().items()],
    )


def of_a_training(p, copier):
    found = copier(trained(p))
    x, optimizer, schedule = found["x"], found["optimizer"], found["schedule"]
    before = optimizer.param_groups[0]["params"][0] is x and next(iter(optimizer.state)) is x
    (x * 3).sum().backward()
    for _ in range(3):
        optimizer.step()
        schedule.step()
    return before, schedule.optimizer is optimizer, optimizer.param_groups[0]["lr"], x.tolist()


def of_a_state(p, copier):
    optimizer = trained(p)["optimizer"]
    found = copier(optimizer.state_dict())
    optimizer.state_dict()["state"][0]["momentum_buffer"].zero_()
    return found["state"][0]["momentum_buffer"].tolist(), found["param_groups"][0]["lr"]


MANY = {f.__name__: f for f in (shared_views, twice, of_a_module, of_a_training, of_a_state)}


@both
@pytest.mark.filterwarnings("ignore:Seems like `optimizer.step")
@pytest.mark.parametrize("case", MANY)
@pytest.mark.parametrize("copier", ["deepcopy", "pickle"])
def test_what_shares_memory_shares_it_again(device, copier, case):
    theirs = saved if copier == "pickle" else COPIERS[copier]
    with pellucid.device(device):
        assert MANY[case](pellucid, COPIERS[copier]) == MANY[case](torch, theirs)


@pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS)
def test_what_is_no_tensor(copier):
    for p in (torch, pellucid):
        for value in (p.float32, p.device("cpu"), counted(p).shape):
            found = copier(value)
            assert type(found) is type(value)
            assert found == value
        g = p.Generator().manual_seed(7)
        p.rand(5, generator=g, device="cpu")
        found = copier(g)
        wanted = p.rand(3, generator=g, device="cpu").tolist()
        assert p.rand(3, generator=found, device="cpu").tolist() == wanted


@both
def test_a_quantized_weight(device):
    weight = pellucid.nn.Parameter(
        weight_from_blocks(bytes(range(40)), "q4_1", (1, 64), device=device),
        requires_grad=False,
    )
    wanted = weight.dequantize().tolist()
    for copier in COPIERS.values():
        found = copier(weight)
        assert (type(found), found.dtype) == (pellucid.nn.Parameter, weight.dtype)
        assert found.dequantize().tolist() == wanted


@both
def test_copies_of_a_captured_function(device):
    def f(x):
        return copy.deepcopy(x.detach()) + pickle.loads(pickle.dumps(x * 2))

    compiled = pellucid.compile(f)
    for k in range(4):
        x = pellucid.arange(3.0, device=device) + k
        assert compiled(x).tolist() == f(x).tolist()


def test_the_memory_of_a_copy_is_that_of_its_kind():
    before = pellucid.webgpu.memory_stats()["parameter_bytes"]
    for copier in (copy.deepcopy, COPIERS["pickle"]):
        layer = pellucid.nn.Linear(32, 32, bias=False, device="webgpu")
        found = copier(layer)
        assert pellucid.webgpu.memory_stats()["parameter_bytes"] == before + 2 * 4 * 32 * 32
        del layer, found
    assert pellucid.webgpu.memory_stats()["parameter_bytes"] == before


@pytest.mark.parametrize("name", ["mode", "sort", "median", "cummax", "aminmax", "max"])
def test_several_results_are_pickled(name):
    out = getattr(pellucid.tensor([[2.0, 1.0]], device="cpu"), name)(dim=1)
    again = pickle.loads(pickle.dumps(out))
    assert type(again) is type(out)
    assert [t.tolist() for t in again] == [t.tolist() for t in out]
