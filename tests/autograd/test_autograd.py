"""The graph and the walk through it, beside PyTorch's."""

import asyncio
import gc
import weakref

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from pellucid.errors import DTypeError, GradientError, ShapeError

pytestmark = pytest.mark.parametrize("device", DEVICES)


def leaf(values, device, module=pellucid):
    options = {"device": device} if module is pellucid else {}
    return module.tensor(values, requires_grad=True, **options)


def test_accumulation(device):
    x = leaf([1.0, 2.0], device)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    y = x * 2
    (y * y + y).sum().backward()
    assert x.grad.tolist() == [5.0 + 10, 7.0 + 18]
    x.grad = None
    (x + x).backward(pellucid.tensor([1.0, 10.0], device=device))
    assert x.grad.tolist() == [2.0, 20.0]


def test_two_leaves_never_share_a_gradient(device):
    x, y = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    g = pellucid.ones(2, device=device)
    (x + y).backward(g)
    x.grad.mul_(5)
    assert y.grad.tolist() == g.tolist() == [1.0, 1.0]
    z = leaf([[1.0, 2.0]], device)
    z.t().backward(pellucid.ones(2, 1, device=device))
    assert z.grad.is_contiguous()


def test_backward_twice(device):
    x = leaf([1.0, 2.0], device)
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(
        GradientError, match=r"backward a second time .* Give retain_graph=True to the first backward\."
    ):
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (np.exp([1, 2]) * [2, 3]), rtol=1e-5)


def test_refused(device):
    x = leaf([1.0, 2.0], device)
    with pytest.raises(
        GradientError,
        match=r"backward: grad can be created implicitly only for one element, and shape is \(2,\)",
    ):
        (x * 2).backward()
    with pytest.raises(ShapeError, match=r"backward: the gradient has shape \(3,\), the tensor \(2,\)"):
        (x * 2).backward(pellucid.ones(3, device=device))
    with pytest.raises(GradientError, match="does not require grad and has no grad_fn"):
        pellucid.ones(1, device=device).backward()
    with pytest.raises(
        DTypeError, match=r"only floating-point and complex tensors have gradients, not pellucid\.int64"
    ):
        pellucid.tensor([1], device=device, requires_grad=True)
    with pytest.raises(GradientError, match="only a leaf can be switched off"):
        (x * 2).requires_grad_(False)
    with pytest.raises(GradientError, match=r"numpy: the tensor requires grad. Use x\.detach\(\)\.numpy\(\)"):
        x.numpy()
    with pytest.raises(GradientError, match="did not take part"):
        pellucid.autograd.grad((x * 2).sum(), leaf([1.0], device))
    assert pellucid.autograd.grad((x * 2).sum(), leaf([1.0], device), allow_unused=True) == (None,)


def test_versions(device):
    x = leaf([1.0, 2.0], device)
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(
        GradientError,
        match=r"mul: '\w+', needed for the gradient, was changed in place after it was used "
        r"\(version 1, expected 0\)",
    ):
        z.backward()
    y = x * 1
    z = y.exp()
    z.mul_(2)
    with pytest.raises(GradientError, match=r"exp: 'out', needed for the gradient, was changed in place"):
        z.sum().backward()
    y = x * 1
    z = (y + 1).sum()
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_grad_modes(device):
    x = leaf([1.0], device)
    with pellucid.no_grad():
        assert not (x * 2).requires_grad
        assert not pellucid.is_grad_enabled()
        with pellucid.enable_grad():
            assert (x * 2).requires_grad
        with pytest.raises(ZeroDivisionError), pellucid.enable_grad():
            raise ZeroDivisionError
        assert not pellucid.is_grad_enabled()
    assert (x * 2).requires_grad

    @pellucid.no_grad()
    def f(v):
        return v * 2

    @pellucid.no_grad
    def g(v):
        return v * 2

    assert not f(x).requires_grad
    assert not g(x).requires_grad
    with pellucid.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert pellucid.is_grad_enabled()
    with pellucid.inference_mode():
        assert not (x * 2).requires_grad


def test_a_grad_mode_decorates_what_pauses(device):
    x = leaf([1.0], device)

    @pellucid.no_grad()
    def twice():
        sent = yield (x * 2).requires_grad
        try:
            yield (x * sent).requires_grad
        except KeyError:
            yield (x * 4).requires_grad
        return 7

    def whole():
        return (yield from twice())

    steps = whole()
    assert next(steps) is False
    assert pellucid.is_grad_enabled()
    assert steps.send(3) is False
    assert steps.throw(KeyError()) is False
    assert (x * 2).requires_grad
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == 7

    @pellucid.no_grad()
    async def awaited():
        await asyncio.sleep(0)
        return (x * 2).requires_grad

    assert asyncio.run(awaited()) is False

    @pellucid.set_grad_enabled(False)
    def f():
        return (x * 2).requires_grad

    assert pellucid.is_grad_enabled()
    assert f() is False
    assert pellucid.is_grad_enabled()


def test_hooks(device):
    x = leaf([1.0, 2.0], device)
    seen = []
    y = x * 2
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [21.0, 21.0]
    handle.remove()
    handle.remove()
    y.sum().backward()
    assert len(seen) == 1


def test_retained_gradients(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    y.retain_grad()
    x.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 12.0]
    assert x.grad.tolist() == [18.0, 36.0]


def test_grad_of_inner_tensors(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3
    z = (y * y).sum()
    dy, dx = pellucid.autograd.grad(z, [y, x], retain_graph=True)
    assert dy.tolist() == [6.0, 12.0]
    assert dx.tolist() == [18.0, 36.0]
    assert x.grad is None
    (again,) = pellucid.autograd.grad([y, z], [x], [pellucid.ones(2, device=device), None])
    assert again.tolist() == [21.0, 39.0]
    z = (x * x).sum()
    w = leaf([1.0], device)
    (z * w).backward(inputs=[x])
    assert w.grad is None
    assert x.grad.tolist() == [2.0, 4.0]
    y = x * 3
    found = pellucid.autograd.grad((y * y).sum(), [x, y, x, y])
    assert [g.tolist() for g in found] == [[18.0, 36.0], [6.0, 12.0]] * 2


SECOND = {
    "cube": lambda p, x: (x**3).sum(),
    "exp of product": lambda p, x: (x * x.exp()).sum(),
    "tanh": lambda p, x: x.tanh().sum(),
    "division": lambda p, x: (1 / (1 + x * x)).sum(),
    "sqrt of sum": lambda p, x: (x * x).sum().sqrt(),
    "view": lambda p, x: (x.t()[1:] * x.t()[:-1]).exp().sum(),
    "log": lambda p, x: (x * x + 1).log().sum(),
    "matmul": lambda p, x: (x @ x.t()).sigmoid().sum(),
    "where": lambda p, x: p.where(x > 0, x * x * x, x.sin()).sum(),
    "setitem": lambda p, x: _written(x).exp().sum(),
    "in place": lambda p, x: (x * 1).mul_(2).exp().sum(),
    "in place in a view": lambda p, x: _scaled_row(x).exp().sum(),
    "softmax": lambda p, x: (p.softmax(x, -1) * x).sum(),
    "cat": lambda p, x: (p.cat([x, x * x], 1) ** 2).sum(),
}


def _written(x):
    y = x * 1
    y[0] = x[1] * x[1]
    return y


def _scaled_row(x):
    y = x * x
    y[0].mul_(3)
    return y


@pytest.mark.parametrize("name", SECOND)
def test_double_backward(device, name):
    values, weights = normal(3, 3), normal(3, 3)
    results = []
    for module in (torch, pellucid):
        x = leaf(values, device, module)
        (first,) = module.autograd.grad(SECOND[name](module, x), x, create_graph=True)
        w = module.tensor(weights) if module is torch else module.tensor(weights, device=device)
        (first * w).sum().backward()
        results.append((first.detach().numpy(), x.grad.numpy()))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-4, atol=1e-4)


def test_third_derivative(device):
    x = leaf(2.0, device)
    y = x**4
    for expected in (32.0, 48.0, 48.0):
        (y,) = pellucid.autograd.grad(y, x, create_graph=True)
        assert abs(y.item() - expected) < 1e-3


def test_broadcasting_is_undone(device):
    check(
        lambda p, a, b, c: (a * b + c, a / (b.abs() + 1)),
        normal(4, 1, 3),
        normal(2, 1),
        normal(),
        devices=(device,),
    )


def test_gradients_have_their_leafs_type(device):
    x = pellucid.ones(2, dtype=pellucid.float16, device=device, requires_grad=True)
    y = leaf([1.0, 2.0], device)
    (x * y).sum().backward()
    assert x.grad.dtype is pellucid.float16
    assert y.grad.dtype is pellucid.float32


def test_in_place_of_a_node(device):
    def function(p, x):
        y = x * 2
        y.add_(x)
        y += 1
        y.mul_(x.detach() + 3)
        return y.exp_() * y

    check(function, normal(3), devices=(device,))


def test_writing_into_views_of_leaves_is_refused(device):
    x = leaf([[1.0, 2.0]], device)
    with pytest.raises(
        GradientError, match=r"add_: a view of a leaf that requires grad cannot be changed in place"
    ):
        x[0].add_(1)
    with pytest.raises(GradientError, match=r"setitem: a view of a leaf"):
        x[0][1] = 3
    with pellucid.no_grad():
        x[0].add_(1)
    x.detach()[0].add_(1)
    assert x.tolist() == [[3.0, 4.0]]


def test_writing_a_graph_into_zeros_through_views(device):
    def function(p, a, b):
        y = p.zeros(4, 3) if p is torch else p.zeros(4, 3, device=device)
        y[1].copy_(a)
        y[2:].add_(b)
        y.t()[0].mul_(a[0])
        y.reshape(2, 6)[0, 3:].sigmoid_()
        return y

    check(function, normal(3), normal(2, 3), layouts=("contiguous",), devices=(device,))


def doubled(y):
    y.mul_(2)


def first_written(y):
    y[0] = 7.0


def written_through_a_view(y):
    y[1:4].mul_(y[2:5].detach().sum())


@pytest.mark.parametrize("change", [doubled, first_written, written_through_a_view])
@pytest.mark.parametrize(
    "view",
    [
        lambda y: y[0:2],
        lambda y: y.reshape(2, 3).t()[1:],
        lambda y: y.reshape(1, 6).expand(2, 6),
        lambda y: y.reshape(2, 3).diagonal(),
    ],
)
def test_views_see_in_the_graph_what_is_written_later(device, view, change):
    found = []
    for module in (pellucid, torch):
        x = leaf([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], device, module)
        y = x * 1
        part = view(y)
        change(y)
        (part * part).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_a_view_of_a_constant_gets_a_gradient_once_one_is_written(device):
    z, x = pellucid.zeros(3, device=device), leaf([1.0, 1.0], device)
    part = z[0:2]
    z[1:] = x * 5
    assert part.requires_grad
    (part * part).sum().backward()
    assert x.grad.tolist() == [50.0, 0.0]


def test_gradient_of_strides_that_overlap(device):
    x = leaf([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], device)
    x.as_strided((3, 3), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0, 2.0, 1.0, 0.0]
    x = leaf([[1.0, 2.0], [3.0, 4.0]], device)
    (x.t().as_strided((2,), (1,)) * pellucid.tensor([2.0, 5.0], device=device)).sum().backward()
    assert x.grad.tolist() == [[2.0, 5.0], [0.0, 0.0]]


def test_the_view_that_was_written_goes_on(device):
    def function(p, x):
        y = x * 1
        row = y[1]
        row.mul_(x[0])
        row.add_(1)
        return row * 2, y * y

    check(function, normal(3, 4), layouts=("contiguous",), devices=(device,))


def test_a_tensor_and_the_views_that_it_knows_do_not_hold_each_other(device):
    y = leaf([1.0, 2.0], device) * 1
    part = y[0:1]
    y.mul_(2)
    watched = [weakref.ref(y), weakref.ref(part)]
    gc.disable()
    try:
        del y, part
        assert [w() for w in watched] == [None, None]
    finally:
        gc.enable()


def test_a_graph_dies_with_its_last_result(device):
    """Without the garbage collector: nodes, saved values and results form no cycle."""
    gc.collect()
    gc.disable()
    try:
        x = leaf(normal(10), device)
        y = x.exp().tanh() * x
        y[2:4].mul_(2)
        z = y.sum()
        nodes = [weakref.ref(y.grad_fn), weakref.ref(z.grad_fn)]
        z.backward(retain_graph=True)
        del y, z
        assert [n() for n in nodes] == [None, None]
    finally:
        gc.enable()


def test_deep_graphs_need_no_recursion(device):
    x = leaf([1.0], device)
    y = x
    for _ in range(3000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_names_of_nodes(device):
    x = leaf([1.0], device)
    assert repr((x + 1).grad_fn).startswith("<AddBackward0 object at 0x")
    (end, place), _ = (x + 1).grad_fn.next_functions
    assert end.variable is x
    assert (end.name(), end.next_functions, place) == ("torch::autograd::AccumulateGrad", (), 0)
    assert {end, (x * 2).grad_fn.next_functions[0][0]} == {end}
    assert x.grad_fn is None
    assert x.is_leaf
    assert not (x * 2).is_leaf
    assert (x * 2).detach().is_leaf


def test_a_quotient_may_be_changed_after_it_was_computed(device):
    a, b = (pellucid.tensor([v], requires_grad=True, device=device) for v in (3.0, 2.0))
    y = a / b
    y.mul_(2)
    y.sum().backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, -1.5)
