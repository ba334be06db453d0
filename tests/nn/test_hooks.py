"""Hooks run in PyTorch's order with its arguments: one program in both libraries leaves the same log."""

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, state_of


def shapes(value):
    """Tensors as shapes, so that logs of both libraries compare."""
    if isinstance(value, (tuple, list)):
        return tuple(shapes(v) for v in value)
    if isinstance(value, dict):
        return {k: shapes(v) for k, v in value.items()}
    return tuple(value.shape) if hasattr(value, "shape") else value


class Scale:
    """Made per library: ``forward(x, by=...)``."""

    def __new__(cls, lib):
        class Layer(lib.nn.Module):
            def forward(self, x, by=2.0):
                return x * by

        return Layer()


def run(program):
    logs = []
    for lib in (pellucid, torch):
        log = []
        program(lib, log)
        logs.append(log)
    assert logs[0] == logs[1]
    assert logs[0]
    return logs[0]


def test_order_and_arguments():
    def program(lib, log):
        m = Scale(lib)
        m.register_forward_hook(lambda m, a, o: log.append(("post 1", shapes(a), shapes(o))))
        m.register_forward_pre_hook(lambda m, a: log.append(("pre 1", shapes(a))))
        m.register_forward_pre_hook(
            lambda m, a, k: log.append(("pre 2", shapes(a), shapes(k))), prepend=True, with_kwargs=True
        )
        m.register_forward_hook(
            lambda m, a, k, o: log.append(("post 2", shapes(a), shapes(k))), prepend=True, with_kwargs=True
        )
        m(lib.ones(3, device="cpu"), by=4.0)

    log = run(program)
    assert [name for name, *_ in log] == ["pre 2", "pre 1", "post 2", "post 1"]


def test_replacement():
    def program(lib, log):
        m = Scale(lib)
        m.register_forward_pre_hook(lambda m, a: a[0] + 1)
        m.register_forward_pre_hook(lambda m, a: (a[0] * 10,))
        m.register_forward_pre_hook(lambda m, a, k: (a, {"by": k["by"] + 1}), with_kwargs=True)
        m.register_forward_hook(lambda m, a, o: o + 0.5)
        m.register_forward_hook(lambda m, a, o: log.append(o.tolist()))
        log.append(m(lib.ones(2, device="cpu"), by=2.0).tolist())

    assert run(program)[-1] == [60.5, 60.5]


def test_removal_and_context():
    def program(lib, log):
        m = Scale(lib)
        handle = m.register_forward_hook(lambda m, a, o: log.append("first"))
        with m.register_forward_hook(lambda m, a, o: log.append("second")):
            m(lib.ones(1, device="cpu"))
        m(lib.ones(1, device="cpu"))
        handle.remove()
        handle.remove()
        m(lib.ones(1, device="cpu"))
        log.append("end")

    assert run(program) == ["first", "second", "first", "end"]


def test_a_hook_may_remove_itself():
    def program(lib, log):
        m = Scale(lib)

        def once(m, a, o):
            log.append("once")
            handle.remove()

        handle = m.register_forward_hook(once)
        m.register_forward_hook(lambda m, a, o: log.append("always"))
        m(lib.ones(1, device="cpu"))
        m(lib.ones(1, device="cpu"))

    assert run(program) == ["once", "always", "always"]


def test_always_call_sees_a_failed_call():
    def program(lib, log):
        class Fails(lib.nn.Module):
            def forward(self, x):
                raise ArithmeticError("no")

        m = Fails()
        m.register_forward_hook(lambda m, a, o: log.append("never"))
        m.register_forward_hook(lambda m, a, o: log.append(("always", o)), always_call=True)
        try:
            m(lib.ones(1, device="cpu"))
        except ArithmeticError:
            log.append("raised")

    assert run(program) == [("always", None), "raised"]


def test_a_pre_hook_with_kwargs_must_return_both():
    m = Scale(pellucid)
    m.register_forward_pre_hook(lambda m, a, k: a[0], with_kwargs=True)
    with pytest.raises(TypeError, match=r"returns None or \(args, kwargs\), not Tensor"):
        m(pellucid.ones(1, device="cpu"))


def test_calls_without_listeners_take_the_short_way():
    m = Scale(pellucid)
    handle = m.register_forward_hook(lambda *_: None)
    assert m._hooks
    handle.remove()
    assert not m._hooks
    assert not pellucid.nn.Module._hooks


def network(lib, device):
    class Two(lib.nn.Module):
        def forward(self, x, y, factor):
            return x * y, x + factor, 3

    with lib.device(device):
        return lib.nn.Linear(3, 2), Two()


def backward_program(device):
    """Gradients that the hooks see, and those that arrive, in both libraries."""
    torch.manual_seed(0)
    theirs = network(torch, "cpu")[0]
    state, x, y = state_of(theirs), floats(4, 3), floats(4, 2, seed=1)

    def program(lib, log):
        where = device if lib is pellucid else "cpu"
        linear, two = network(lib, where)
        linear.load_state_dict(state if lib is pellucid else {k: torch.tensor(v) for k, v in state.items()})

        def note(name):
            def hook(module, *grads):
                log.append(
                    (name, [[None if g is None else g.detach().numpy() for g in part] for part in grads])
                )

            return hook

        linear.register_full_backward_hook(note("linear"))
        two.register_full_backward_hook(note("two"))
        two.register_full_backward_hook(lambda m, gi, go: tuple(None if g is None else g * 2 for g in gi))
        two.register_full_backward_pre_hook(lambda m, go: tuple(None if g is None else g * 3 for g in go))
        two.register_full_backward_pre_hook(note("two before"))
        a = lib.tensor(x, device=where, requires_grad=True)
        b = lib.tensor(y, device=where, requires_grad=True)
        product, shifted, three = two(linear(a), b, 5.0)
        assert three == 3
        (product.sum() + (shifted * shifted).sum()).backward()
        log.append(("end", [[t.grad.numpy() for t in (a, b, linear.weight, linear.bias)]]))

    return program


def test_full_backward_hooks(device):
    logs, program = [], backward_program(device)
    for lib in (pellucid, torch):
        log = []
        program(lib, log)
        logs.append(log)
    ours, theirs = logs
    assert (
        [name for name, _ in ours] == [name for name, _ in theirs] == ["two before", "two", "linear", "end"]
    )
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        for left, right in zip(mine, other, strict=True):
            assert [g is None for g in left] == [g is None for g in right]
            for a, b in zip(left, right, strict=True):
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_backward_hook_where_no_input_requires_grad(device):
    """It is called all the same, with None for each input, and a warning."""
    for lib, d in ((torch, "cpu"), (pellucid, device)):
        m = lib.nn.Bilinear(3, 3, 2, device=d)
        seen = []
        m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, shapes(go))))  # noqa: B023
        x = lib.ones(4, 3, device=d)
        with pytest.warns(UserWarning, match=r"no inputs? requires? grad"):
            m(x, x).sum().backward()
        assert seen == [((None, None), ((4, 2),))]


def test_backward_hooks_hold_no_memory():
    def step():
        m = pellucid.nn.Linear(3, 2, device="webgpu")
        m.register_full_backward_hook(lambda m, gi, go: None)
        m(pellucid.ones(4, 3, device="webgpu", requires_grad=True)).sum().backward()

    step()
    before = pellucid.webgpu.memory_allocated()
    step()
    m = pellucid.nn.Linear(3, 2, device="webgpu")
    m.register_full_backward_hook(lambda m, gi, go: None)
    m(pellucid.ones(4, 3, device="webgpu", requires_grad=True))
    del m
    assert pellucid.webgpu.memory_allocated() == before


def test_backward_hook_must_return_all_gradients(device):
    m = pellucid.nn.Linear(3, 2, device=device)
    m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    out = m(pellucid.ones(4, 3, device=device, requires_grad=True))
    with pytest.raises(RuntimeError, match="returned 2 gradients for 1"):
        out.sum().backward()
