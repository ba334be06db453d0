"""Modules: registration, names, modes, moving, copying and printing behave as PyTorch's."""

import copy
import pickle

import pytest
import torch

import pellucid
from nn.twins import floats, state_of


def block(lib):
    """A module with every kind of attribute, in either library."""

    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", lib.zeros(2, device="cpu"))
            self.scale = lib.nn.Parameter(lib.ones(2, device="cpu"))
            self.inner = lib.nn.Sequential(lib.nn.Linear(2, 3, device="cpu"), lib.nn.ReLU())
            self.register_parameter("shift", None)
            self.register_buffer("scratch", lib.ones(1, device="cpu"), persistent=False)
            self.tied = self.inner[0]
            self.nothing = None
            self.add_module("absent", None)

        def forward(self, x):
            return self.inner(x * self.scale)

        def extra_repr(self):
            return "one\ntwo"

    return Block()


def names(module):
    return {
        "parameters": [n for n, _ in module.named_parameters()],
        "own": [n for n, _ in module.named_parameters(recurse=False)],
        "all": [n for n, _ in module.named_parameters(remove_duplicate=False)],
        "prefixed": [n for n, _ in module.named_parameters(prefix="a.b")],
        "buffers": [n for n, _ in module.named_buffers()],
        "modules": [n for n, _ in module.named_modules()],
        "children": [n for n, _ in module.named_children()],
        "state": list(module.state_dict()),
        "state below": list(module.state_dict(prefix="x.")),
        "counts": [
            len(list(f())) for f in (module.parameters, module.buffers, module.modules, module.children)
        ],
    }


def test_names_are_pytorchs():
    assert names(block(pellucid)) == names(block(torch))


def test_prints_as_pytorch():
    assert repr(block(pellucid)) == repr(block(torch))
    nested = [lib.nn.Sequential(block(lib), lib.nn.ModuleList([lib.nn.Tanh()])) for lib in (pellucid, torch)]
    assert repr(nested[0]) == repr(nested[1])


def assignments(lib):
    """What happens on each way to assign; class names of errors, or the kinds afterwards."""
    seen = []

    def attempt(change):
        module = block(lib)
        try:
            change(module)
        except Exception as error:
            seen.append(type(error).__name__)
        else:
            seen.append(
                [n for n, _ in module.named_parameters()]
                + [n for n, _ in module.named_buffers()]
                + list(module._modules)
            )

    tensor = lib.ones(2, device="cpu")
    attempt(lambda m: setattr(m, "scale", tensor))
    attempt(lambda m: setattr(m, "scale", None))
    attempt(lambda m: setattr(m, "scale", lib.nn.Parameter(tensor)))
    attempt(lambda m: setattr(m, "table", tensor))
    attempt(lambda m: setattr(m, "table", 3))
    attempt(lambda m: setattr(m, "table", lib.nn.Parameter(tensor)))
    attempt(lambda m: setattr(m, "inner", tensor))
    attempt(lambda m: setattr(m, "inner", lib.nn.Tanh()))
    attempt(lambda m: setattr(m, "inner", None))
    attempt(lambda m: setattr(m, "nothing", lib.nn.Parameter(tensor)))
    attempt(lambda m: setattr(m, "plain", tensor))
    attempt(lambda m: delattr(m, "scale"))
    attempt(lambda m: delattr(m, "inner"))
    attempt(lambda m: delattr(m, "missing"))
    attempt(lambda m: m.register_parameter("scale", lib.nn.Parameter(tensor)))
    attempt(lambda m: m.register_parameter("a.b", None))
    attempt(lambda m: m.register_parameter("", None))
    attempt(lambda m: m.register_parameter("forward", None))
    attempt(lambda m: m.register_parameter("p", tensor))
    attempt(lambda m: m.register_buffer("b", 3))
    attempt(lambda m: m.register_buffer("late", tensor))
    attempt(lambda m: m.add_module("m", 3))
    attempt(lambda m: m.add_module("forward", lib.nn.Tanh()))
    return seen


def test_assignment_is_pytorchs():
    assert assignments(pellucid) == assignments(torch)


def test_init_must_be_called_first():
    class Early(pellucid.nn.Module):
        def __init__(self):
            self.weight = pellucid.nn.Parameter(pellucid.ones(1, device="cpu"))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()


def test_errors_name_the_attribute():
    m = block(pellucid)
    with pytest.raises(
        TypeError, match=r"cannot assign Tensor as parameter 'scale' \(nn.Parameter or None expected\)"
    ):
        m.scale = pellucid.ones(2, device="cpu")
    with pytest.raises(NotImplementedError, match="Module: define forward"):
        pellucid.nn.Module()(1)
    with pytest.raises(AttributeError, match="'Block' object has no attribute 'weights'"):
        m.weights  # noqa: B018
    with pytest.raises(
        AttributeError, match=r"Sequential has no submodule '5' .of 'inner.5.x'.. There are: 0, 1"
    ):
        m.get_submodule("inner.5.x")
    with pytest.raises(AttributeError, match="Linear has no parameter 'w'"):
        m.get_parameter("inner.0.w")
    with pytest.raises(ValueError, match="mode must be True or False, not 1"):
        m.train(1)
    with pytest.raises(TypeError, match=r"must be floating point, not pellucid.int64"):
        m.to(pellucid.int64)


def test_finds_by_path():
    m = block(pellucid)
    assert m.get_submodule("") is m
    assert m.get_submodule("inner.0") is m.inner[0] is m.tied
    assert m.get_parameter("inner.0.bias") is m.inner[0].bias
    assert m.get_buffer("table") is m.table


def test_modes_reach_everything():
    m = block(pellucid)
    assert m.training
    assert m.eval() is m
    assert not any(x.training for x in m.modules())
    m.train()
    assert all(x.training for x in m.modules())
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    m.requires_grad_()
    m(pellucid.ones(2, device="cpu")).sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    m.zero_grad(set_to_none=False)
    assert all(not p.grad.any().item() for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())


def test_apply_visits_children_first():
    seen = {}
    for lib in (pellucid, torch):
        visited = []
        block(lib).apply(lambda m, visited=visited: visited.append(type(m).__name__))
        seen[lib] = visited
    assert seen[pellucid] == seen[torch]


def test_moves_and_converts_in_place(device):
    """P-057: parameters keep their values on the way to another device and back."""
    m = block(pellucid)
    m.register_buffer("count", pellucid.tensor([3], device="cpu"))
    scale, optimizer_view = m.scale, list(m.parameters())
    m.scale.grad = pellucid.ones(2, device="cpu")
    assert m.to(device) is m
    assert m.scale is scale
    assert all(p.device.type == device for p in [*optimizer_view, m.table, m.scratch, m.scale.grad])
    m.half()
    assert {p.dtype for p in m.parameters()} == {pellucid.float16}
    assert m.table.dtype is pellucid.float16
    assert m.count.dtype is pellucid.int64
    m.float().cpu()
    assert m.scale.tolist() == [1.0, 1.0]
    assert m.scale.device.type == m.count.device.type == "cpu"
    assert m.scale.requires_grad


def test_a_shared_buffer_stays_shared(device):
    m = pellucid.nn.ModuleList([pellucid.nn.Identity(), pellucid.nn.Identity()])
    table = pellucid.ones(3, device="cpu")
    for layer in m:
        layer.register_buffer("table", table)
    m.to(device).half()
    assert m[0].table is m[1].table
    assert m[0].table.dtype is pellucid.float16


def test_parameters_are_leaves_and_are_accounted():
    before = pellucid.webgpu.memory_stats()["parameter_bytes"]
    m = pellucid.nn.Linear(64, 64, device="webgpu")
    assert m.weight.is_leaf
    assert m.weight.requires_grad
    assert isinstance(m.weight, pellucid.Tensor)
    assert not isinstance(m.weight * 2, pellucid.nn.Parameter)
    assert pellucid.webgpu.memory_stats()["parameter_bytes"] - before == 4 * (64 * 64 + 64)
    del m
    assert pellucid.webgpu.memory_stats()["parameter_bytes"] == before


def test_parameter_prints_and_refuses_integers():
    p = pellucid.nn.Parameter(pellucid.ones(2, device="cpu"))
    assert repr(p).startswith("Parameter containing:\ntensor([1., 1.]")
    assert pellucid.nn.Parameter().shape == (0,)
    integers = pellucid.tensor([1, 2], device="cpu")
    assert not pellucid.nn.Parameter(integers, requires_grad=False).requires_grad
    with pytest.raises(TypeError, match=r"pellucid\.int64 has no gradients"):
        pellucid.nn.Parameter(integers)


def test_a_copy_of_a_module_is_its_own(device):
    m = block(pellucid).to(device)
    m.register_forward_hook(lambda *_: None)
    twin = copy.deepcopy(m)
    assert twin.tied is twin.inner[0]
    assert isinstance(twin.scale, pellucid.nn.Parameter)
    assert twin.scale.requires_grad
    with pellucid.no_grad():
        twin.scale.zero_()
    assert m.scale.tolist() == [1.0, 1.0]
    shallow = copy.copy(m)
    shallow.extra = pellucid.nn.Parameter(pellucid.ones(1, device=device))
    assert shallow.scale is m.scale
    assert [n for n, _ in m.named_parameters()] == [n for n, _ in block(torch).named_parameters()]
    assert len(shallow._hooks) == 1


def test_modules_and_states_pickle(device):
    layer = pellucid.nn.Linear(3, 2, device=device)
    again = pickle.loads(pickle.dumps(layer))
    assert again.weight.tolist() == layer.weight.tolist()
    assert isinstance(again.weight, pellucid.nn.Parameter)
    assert again.weight.device.type == device
    state = pickle.loads(pickle.dumps(layer.state_dict()))
    assert state["bias"].tolist() == layer.bias.tolist()


def test_memory_goes_with_the_last_reference():
    """P-057: what left a device leaves no memory there."""
    before = pellucid.webgpu.memory_allocated()
    m = pellucid.nn.Sequential(*[pellucid.nn.Linear(32, 32, device="webgpu") for _ in range(3)])
    assert pellucid.webgpu.memory_allocated() > before
    del m
    assert pellucid.webgpu.memory_allocated() == before


def test_version_counts_what_may_change_a_call():
    from pellucid.nn.modules import module

    m = pellucid.nn.Linear(2, 2, device="cpu")
    changes = [
        lambda: setattr(m, "scale", 2),
        lambda: m.register_forward_hook(lambda *_: None).remove(),
        lambda: m.eval(),
        lambda: m.register_buffer("b", None),
        lambda: delattr(m, "b"),
        lambda: m.to("cpu"),
        lambda: m.load_state_dict(m.state_dict()),
    ]
    for change in changes:
        before = module.version
        change()
        assert module.version > before
    before = module.version
    m(pellucid.ones(2, device="cpu"))
    list(m.named_parameters())
    assert module.version == before


def test_a_meta_module_gets_its_weights_by_loading(device):
    theirs = torch.nn.Linear(4, 3)
    with pellucid.device("meta"):
        m = pellucid.nn.Linear(4, 3)
    assert m.weight.device.type == "meta"
    given = {k: pellucid.tensor(v, device=device) for k, v in state_of(theirs).items()}
    weight = m.weight
    m.load_state_dict(given)
    assert m.weight is weight
    assert m.weight.data_ptr() == given["weight"].data_ptr()
    assert m.weight.requires_grad
    assert tuple(m(pellucid.tensor(floats(2, 4), device=device)).shape) == (2, 3)
    with pellucid.device("meta"):
        empty = pellucid.nn.Linear(4, 3)
    assert empty.to_empty(device=device).weight.device.type == device
