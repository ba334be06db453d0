"""Gradients that users give, assign or return from hooks: what PyTorch refuses is refused here, too."""

import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import GradientError, PellucidError

pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]

# What takes the place of a gradient of shape (4,), float32, on the tensor's device.
GIVEN = {
    "like it": lambda p, options: p.ones(4, **options),
    "transposed": lambda p, options: p.ones(4, 2, **options)[:, 0],
    "nothing": lambda p, options: None,
    "longer": lambda p, options: p.ones(5, **options),
    "broadcast": lambda p, options: p.ones(1, **options),
    "with an axis more": lambda p, options: p.ones(1, 4, **options),
    "half": lambda p, options: p.ones(4, dtype=p.float16, **options),
    "integers": lambda p, options: p.ones(4, dtype=p.int64, **options),
    "elsewhere": lambda p, options: p.ones(4, device="meta"),
    "a number": lambda p, options: 1.0,
}


def assigned(p, x, y, g):
    x.grad = g
    return x.grad


def assigned_inside(p, x, y, g):
    y.grad = g
    return y.grad


def of_backward(p, x, y, g):
    y.backward(g)
    return x.grad


def of_backward_function(p, x, y, g):
    p.autograd.backward([y], [g])
    return x.grad


def of_grad(p, x, y, g):
    return p.autograd.grad(y, x, g)[0]


def from_a_hook_of_a_leaf(p, x, y, g):
    x.register_hook(lambda _: g)
    y.sum().backward()
    return x.grad


def from_a_hook_inside(p, x, y, g):
    y.register_hook(lambda _: g)
    y.sum().backward()
    return x.grad


def from_a_hook_of_an_input(p, x, y, g):
    y.register_hook(lambda _: g)
    return p.autograd.grad((y * 3).sum(), y)[0]


WAYS = [
    assigned, assigned_inside, of_backward, of_backward_function, of_grad, from_a_hook_of_a_leaf,
    from_a_hook_inside, from_a_hook_of_an_input,
]  # fmt: skip


def outcome(p, way, name, device):
    """The gradient that comes out, or the class of the error."""
    options = {} if p is torch else {"device": device}
    x = p.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True, **options)
    try:
        found = way(p, x, x * 2, GIVEN[name](p, options))
    except (TypeError, RuntimeError) as error:
        return error
    if found is None:
        return None
    assert found.device == x.device
    return found.tolist(), str(found.dtype).rpartition(".")[2]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_given_fits_or_is_refused(way, device):
    for name in GIVEN:
        theirs, ours = outcome(torch, way, name, None), outcome(pellucid, way, name, device)
        if not isinstance(theirs, Exception):
            assert ours == theirs, name
            continue
        assert isinstance(ours, PellucidError | TypeError), f"{name}: PyTorch says {theirs}, here {ours}"
        if not isinstance(theirs, TypeError):
            assert isinstance(ours, RuntimeError | TypeError), name
        assert len(str(ours)) > 30


def test_a_leaf_keeps_its_gradient_where_it_is(device):
    other = "cpu" if device == "webgpu" else "webgpu"
    x = pellucid.ones(2, requires_grad=True, device=device)
    x.register_hook(lambda g: g.to(other))
    with pytest.raises(GradientError, match=rf"the hook .* returned a gradient of device {other}"):
        (x * 2).sum().backward()
    assert x.grad is None


def through_a_module(p, device, name, register):
    """The gradient behind a layer whose backward hook returns something else."""
    options = {} if p is torch else {"device": device}
    layer = p.nn.Linear(4, 4, bias=False)
    layer = layer if p is torch else layer.to(device)
    x = p.ones(2, 4, requires_grad=True, **options)
    given = GIVEN[name](p, options)
    given = given.expand(2, 4).clone() if name == "like it" else given
    getattr(layer, register)(lambda *_: (given,))
    try:
        (layer(x) * 2).sum().backward()
    except (TypeError, RuntimeError) as error:
        return error
    return tuple(x.grad.shape)


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_modules_hooks_return_what_fits(register, device):
    for name in ("like it", "longer", "elsewhere", "a number", "half"):
        ours = through_a_module(pellucid, device, name, register)
        if name == "like it":
            assert ours == through_a_module(torch, None, name, register)
        else:
            assert isinstance(ours, PellucidError | TypeError), f"{name}: {ours!r}"
            assert "backward hook of Linear" in str(ours)


def test_own_and_foreign_gradients(device):
    x = pellucid.ones(2, requires_grad=True, device=device)
    with pytest.raises(GradientError, match="its own gradient"):
        x.grad = x
    with pytest.raises(GradientError, match="2 gradients for 1 tensors"):
        pellucid.autograd.grad([x * 2], [x], [x.detach(), x.detach()])
    with pytest.raises(TypeError, match=r"inputs must be Tensors, not float 2\.0"):
        pellucid.autograd.grad((x * 2).sum(), [2.0])
    with pytest.raises(GradientError, match="'inputs' is empty"):
        (x * 2).sum().backward(inputs=[])
    with pytest.raises(GradientError, match="does not require grad"):
        (x * 2).sum().backward(inputs=[pellucid.ones(2, device=device)])
    integers = pellucid.ones(2, dtype=pellucid.int64, device=device)
    with pytest.raises(GradientError, match=r"a gradient of dtype pellucid\.float32, where pellucid\.int64"):
        integers.grad = pellucid.ones(2, device=device)
