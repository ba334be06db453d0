"""What programs see of the graph: its nodes with their hooks, and several gradients at once."""

import pytest
import torch

import pellucid

LIBRARIES = [pellucid, torch]


def both(program):
    logs = [program(lib) for lib in LIBRARIES]
    assert logs[0] == logs[1]
    return logs[0]


def leaf(lib, *values):
    return lib.tensor(list(values), requires_grad=True, device="cpu")


def listed(value):
    if isinstance(value, (list, tuple)):
        return [listed(v) for v in value]
    return None if value is None else value.tolist()


def test_a_node_shows_where_gradients_go():
    def program(lib):
        x, y = leaf(lib, 1.0, 2.0), lib.ones(2, device="cpu")
        z = x.exp()
        nodes = {
            "one": (x * y).grad_fn, "number": (z * 2).grad_fn, "two": (x + z).grad_fn, "leaf": z.grad_fn,
            "cat": lib.cat([x, y, z]).grad_fn,
        }  # fmt: skip
        return {
            name: [None if n is None else (n.name(), k) for n, k in node.next_functions]
            for name, node in nodes.items()
        }

    both(program)


def test_hooks_of_a_node():
    def program(lib):
        log = []
        x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0)
        out = x * y
        node = out.grad_fn
        node.metadata["seen"] = 1
        assert isinstance(node, lib.autograd.graph.Node)
        assert out.grad_fn.metadata == {"seen": 1}
        node.register_prehook(lambda g: (g[0] * 2,))
        node.register_prehook(lambda g: log.append(("before", listed(g))))
        node.register_hook(lambda i, o: (i[0] * 10, i[1]))
        gone = node.register_hook(lambda i, o: log.append("never"))
        node.register_hook(lambda i, o: log.append(("after", listed(i), listed(o))))
        gone.remove()
        out.sum().backward()
        return log, x.grad.tolist(), y.grad.tolist()

    both(program)


def test_hooks_of_a_node_with_one_gradient():
    def program(lib):
        log = []
        x = leaf(lib, 1.0, 2.0)
        out = x * lib.ones(2, device="cpu")
        out.grad_fn.register_hook(lambda i, o: log.append((listed(i), listed(o))))
        parts = lib.stack([out, x]).unbind(0)
        parts[0].grad_fn.register_prehook(lambda g: log.append(listed(g)))
        parts[1].sum().backward()
        return log, x.grad.tolist()

    both(program)


def test_hooks_where_gradients_are_added():
    def program(lib):
        log = []
        x = leaf(lib, 1.0, 2.0)
        end = x.expand_as(x).grad_fn.next_functions[0][0]
        assert end.variable is x
        end.register_hook(lambda i, o: log.append((listed(i), x.grad.tolist())))
        end.register_prehook(lambda g: (g[0] * 3,))
        (x * 2).sum().backward()
        return log, x.grad.tolist()

    both(program)


@pytest.mark.parametrize("wanted", ["all", "one", "other"])
def test_hooks_of_leaves_that_nobody_wants_stay_quiet(wanted):
    def program(lib):
        log = []
        x, y = leaf(lib, 1.0), leaf(lib, 2.0)
        x.register_hook(lambda g: log.append(("x", g.tolist())))
        y.register_hook(lambda g: log.append(("y", g.tolist())))
        out = (x * y).sum()
        if wanted == "all":
            out.backward()
        else:
            lib.autograd.grad(out, x if wanted == "one" else y)
        return sorted(log)

    both(program)


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("part", ["whole", "left", "named"])
def test_several_gradients_at_once(mode, part):
    def program(lib):
        log = []
        x, y, unused = leaf(lib, 1.0), leaf(lib, 2.0), leaf(lib, 3.0)
        inner = x * 3
        tensors = (inner, inner.exp()) if part == "named" else (x, inner, y, unused)
        handle = lib.autograd.graph.register_multi_grad_hook(
            tensors, lambda grads: log.append(listed(grads) if mode == "all" else 1), mode=mode
        )

        if part == "named":  # PyTorch refuses leaves here
            out = (inner * y).sum()
            lib.autograd.grad(out, [inner], retain_graph=True)
        else:
            (inner * y if part == "whole" else inner * 2).sum().backward()
        handle.remove()
        inner = x * 3
        (inner * y).sum().backward()
        return log

    both(program)


def test_one_walk_after_the_other():
    def program(lib):
        log = []
        x, y = leaf(lib, 1.0), leaf(lib, 2.0)
        lib.autograd.graph.register_multi_grad_hook((x, y), lambda grads: log.append(listed(grads)))
        (x * y).sum().backward()
        (x * 2).sum().backward()
        (x * y * y).sum().backward()
        return log

    assert len(both(program)) == 3


def test_saved_tensors_hooks_are_refused():
    def program(lib):
        graph, log = lib.autograd.graph, []
        x = leaf(lib, 1.0)
        with graph.disable_saved_tensors_hooks("not now"):
            try:
                with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    x.exp()
            except RuntimeError as error:
                log.append(str(error))
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            try:
                with graph.disable_saved_tensors_hooks("not now"):
                    x.exp()
            except RuntimeError as error:
                log.append(type(error).__name__ and "RuntimeError")
            x.exp().sum().backward()
        return log, x.grad.shape

    both(program)


def test_a_version_that_a_program_counts():
    def program(lib):
        x = lib.ones(2, device="cpu")
        a = lib.ones(2, device="cpu", requires_grad=True)
        out = (a * x).sum()
        lib.autograd.graph.increment_version(x)
        with pytest.raises(RuntimeError):
            out.backward()
        lib.autograd.graph.increment_version([x, a.detach()])
        return x._version

    both(program)


def test_arguments_are_checked():
    for lib in LIBRARIES:
        graph = lib.autograd.graph
        with pytest.raises(ValueError, match="mode"):
            graph.register_multi_grad_hook((leaf(lib, 1.0),), print, mode="some")
        with pytest.raises((RuntimeError, AssertionError)):
            graph.register_multi_grad_hook((lib.ones(1, device="cpu"),), print)


def test_saved_tensors_may_be_changed_in_place():
    for lib in (torch, pellucid):
        a = lib.ones(3, requires_grad=True, device="cpu")
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            b = a.clone()
            out = b**2 * b.sin()
            b.mul_(5)
            out.sum().backward()
        if lib is torch:
            wanted = a.grad.tolist()
        else:
            assert a.grad.tolist() == pytest.approx(wanted)


def test_a_walk_behind_the_context_is_refused():
    for lib in (torch, pellucid):
        a = lib.ones(3, requires_grad=True, device="cpu")
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            out = (a.clone() ** 2).sum()
        with pytest.raises((RuntimeError, AssertionError)):
            out.backward()


def test_contexts_of_changes_are_not_nested():
    for lib in (torch, pellucid):
        changes = lib.autograd.graph.allow_mutation_on_saved_tensors
        with pytest.raises(RuntimeError, match="nested"), changes(), changes():
            pass
        with changes():
            pass


def test_multithreading_is_accepted():
    with pellucid.autograd.set_multithreading_enabled(False):
        x = pellucid.ones(1, requires_grad=True, device="cpu")
        (x * 2).sum().backward()
    assert x.grad.item() == 2
    assert pellucid.autograd.set_multithreading_enabled(True).clone().mode


def test_nodes_are_called_as_pytorchs():
    """By the name of their class, by ``name()``, where a tensor is printed and where the graph is walked."""
    calls = [
        lambda t, x: x + 1, lambda t, x: 1 - x, lambda t, x: x.detach() - x, lambda t, x: x**2,
        lambda t, x: 2**x, lambda t, x: x**x, lambda t, x: x.sum(), lambda t, x: x[0].sum(0),
        lambda t, x: x.mean(1), lambda t, x: x.max(), lambda t, x: x.max(0)[0], lambda t, x: x.clamp(0, 1),
        lambda t, x: x.clamp(x, x), lambda t, x: x.clamp(x.detach(), 1 + x.detach()), lambda t, x: x @ x,
        lambda t, x: x @ x.detach(), lambda t, x: x.detach() @ x, lambda t, x: x.detach() @ x[0],
        lambda t, x: x[0] @ x.detach()[0], lambda t, x: x**x.detach(), lambda t, x: x.detach() ** x,
        lambda t, x: x.detach().clamp(x), lambda t, x: t.nn.functional.linear(x.detach(), x),
        lambda t, x: x.prod(0), lambda t, x: x[0] @ x[0], lambda t, x: x @ x[0],
        lambda t, x: x[None].bmm(x[None]), lambda t, x: x[None, None] @ x, lambda t, x: x.t(),
        lambda t, x: x.mT,
        lambda t, x: t.nn.functional.linear(x, x, x[0]), lambda t, x: t.nn.functional.linear(x, x),
        lambda t, x: t.nn.functional.linear(x[None], x, x[0]), lambda t, x: t.stack([x, x]),
        lambda t, x: t.nn.functional.linear(x.detach(), x, x[0].detach()),
        lambda t, x: t.nn.functional.linear(x, x.detach(), x[0].detach()),
        lambda t, x: t.nn.functional.linear(x[None], x, x[0].detach()),
        lambda t, x: t.nn.functional.linear(x[None], x), lambda t, x: t.nn.functional.linear(x[0], x),
        lambda t, x: t.nn.functional.linear(x[0], x, x[0]),
        lambda t, x: t.nn.functional.mse_loss(x, x.detach()), lambda t, x: x[x > 0], lambda t, x: x[[0, 1]],
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 1])), lambda t, x: x.log1p(),
        lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(x, x.detach()), lambda t, x: x.half(),
        lambda t, x: t.nn.functional.smooth_l1_loss(x, x.detach()), lambda t, x: x.norm(),
        lambda t, x: t.nn.functional.conv2d(x[None, None], x[None, None]), lambda t, x: x.clone().copy_(x),
        lambda t, x: t.nn.functional.max_pool2d(x[None], 2), lambda t, x: x.square(),
        lambda t, x: t.nn.functional.layer_norm(x, (2,)), lambda t, x: t.linalg.inv(x),
        lambda t, x: t.linalg.eigh(x)[0],
    ]  # fmt: skip
    for k, call in enumerate(calls):
        found = []
        for lib in (torch, pellucid):
            with lib.device("cpu"):
                x = lib.tensor([[0.5, 0.25], [0.125, 0.75]], requires_grad=True)
                out = call(lib, x)
                name = type(out.grad_fn).__name__
                assert isinstance(out.grad_fn, lib.autograd.graph.Node)
                assert repr(out.grad_fn).startswith(f"<{name} object at 0x")
                assert f"grad_fn=<{name}>" in repr(out)
                after = out.exp().grad_fn.next_functions[0][0]
                found.append((name, out.grad_fn.name(), type(after).__name__))
                out.sum().backward()  # which frees what the nodes keep
                assert (type(out.grad_fn).__name__, name in repr(out)) == (name, True)
        assert found[0] == found[1], k


def test_the_node_of_a_function_is_called_after_it():
    for lib in (torch, pellucid):

        class Doubled(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        out = Doubled.apply(lib.ones(1, requires_grad=True, device="cpu"))
        assert type(out.grad_fn).__name__ == out.grad_fn.name() == "DoubledBackward"
        out.backward()
        x = lib.ones(1, requires_grad=True, device="cpu")
        leaf = (x * 2).grad_fn.next_functions[0][0]
        assert (type(leaf).__name__, leaf.name()) == ("AccumulateGrad", "torch::autograd::AccumulateGrad")


def test_what_several_ops_make_has_pytorchs_node():
    kinds = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    modes = (
        ("nearest", 1),
        ("nearest-exact", 2),
        ("linear", 1),
        ("bilinear", 2),
        ("bicubic", 2),
        ("area", 2),
    )
    calls = [
        *(lambda t, x, name=kind + end: getattr(t.fft, name)(x) for kind in kinds for end in ("", "2", "n")),
        *(
            lambda t, x, mode=mode, n=n, s=s: t.nn.functional.interpolate(
                x[None, None] if n == 2 else x[None], scale_factor=s, mode=mode
            )
            for mode, n in modes
            for s in (2, 0.5)
        ),
        *(
            lambda t, x, mode=mode, pad=pad: t.nn.functional.pad(x[None] * 1, pad, mode=mode)
            for mode in ("constant", "reflect", "replicate", "circular")
            for pad in ((1, 1), (0, 0), (-1, 0))
        ),
        lambda t, x: x.repeat(2, 1), lambda t, x: x.tile(2), lambda t, x: (x * 1).tile(1),
        lambda t, x: x.flip(0),
        lambda t, x: x.roll(1), lambda t, x: x.logsumexp(0), lambda t, x: t.logsumexp(x, (0, 1)),
        lambda t, x: t.nn.functional.group_norm(x[None], 1), lambda t, x: t.nn.GroupNorm(2, 2)(x),
        lambda t, x: t.addmm(x, x, x), lambda t, x: x.addmm(x, x), lambda t, x: t.addmv(x[0], x, x[0]),
        lambda t, x: x.cumsum(0), lambda t, x: x.cumprod(0), lambda t, x: x.sort(0)[0],
        lambda t, x: x.msort(),
        lambda t, x: x.topk(1, 0)[0], lambda t, x: x.kthvalue(1)[0], lambda t, x: x.mode()[0],
        lambda t, x: x.trace(),
        lambda t, x: x.cummax(0)[0], lambda t, x: x.logcumsumexp(0), lambda t, x: x.median(0)[0],
        lambda t, x: x.index_add(0, t.tensor([0]), x[:1]), lambda t, x: x.take(t.tensor([0])),
        lambda t, x: x.scatter(0, t.tensor([[0]]), x), lambda t, x: x.index_fill(0, t.tensor([0]), 1.0),
        lambda t, x: x.masked_scatter(x > 0, x), lambda t, x: x.select_scatter(x[0], 0, 0),
        lambda t, x: x.rot90(),
        lambda t, x: t.cdist(x, x), lambda t, x: t.block_diag(x, x), lambda t, x: t.linalg.lu(x)[1],
        lambda t, x: t.nn.functional.avg_pool2d(x[None], 2), lambda t, x: t.nn.functional.glu(x),
        lambda t, x: t.nn.functional.adaptive_avg_pool2d(x[None], 1), lambda t, x: x[None].squeeze(0),
        lambda t, x: t.nn.functional.adaptive_avg_pool2d(x[None], 2), lambda t, x: x[None].squeeze((0,)),
        lambda t, x: t.nn.functional.pixel_shuffle(x.reshape(4, 1, 1), 2), lambda t, x: x[None].squeeze(),
        lambda t, x: t.nn.functional.unfold(x[None, None], 1), lambda t, x: t.nn.functional.selu(x),
        lambda t, x: t.nn.functional.logsigmoid(x), lambda t, x: 2 / x, lambda t, x: x.t().reshape(-1),
        lambda t, x: t.lerp(x, x, x), lambda t, x: x % x, lambda t, x: t.linalg.eig(x)[0].real,
        lambda t, x: x[0].diag(), lambda t, x: t.nn.functional.soft_margin_loss(x, t.ones(2, 2)),
        lambda t, x: t.linalg.solve_triangular(x, x, upper=True), lambda t, x: t.linalg.lu_factor(x)[0],
    ]  # fmt: skip
    for k, call in enumerate(calls):
        found = []
        for lib in (torch, pellucid):
            with lib.device("cpu"):
                x = lib.tensor([[0.5, 0.25], [0.125, 0.75]], requires_grad=True)
                found.append(call(lib, x).grad_fn.name())
        assert found[0] == found[1], k


def test_a_result_that_is_an_argument_keeps_its_node():
    x = pellucid.ones(2, requires_grad=True, device="cpu") * 2
    assert (
        pellucid.nn.functional.interpolate(x[None, None], size=2).grad_fn.name()
        == "UpsampleNearest1DBackward0"
    )
    pellucid.atleast_1d(x)
    assert x.grad_fn.name() == "MulBackward0"
