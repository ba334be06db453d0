"""Functions with a backward of their own, hooks of saved tensors, anomalies, checkpoints, as in PyTorch."""

import gc

import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid.utils.checkpoint import checkpoint, checkpoint_sequential


def both(program, **expected):
    """What a program of either library returns."""
    theirs = program(torch)
    with pellucid.device("cpu"):
        mine = program(pellucid)
    assert mine == theirs
    return mine


def scaled(p):
    class Scaled(p.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, flag=None):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * factor, (x > 0).sum()

        @staticmethod
        def backward(ctx, g, _):
            (x,) = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False, False)
            return g * ctx.factor * x, None, None

    return Scaled


def test_a_function_and_its_gradients():
    def program(p):
        x = p.tensor([1.0, -2.0], requires_grad=True)
        y, count = scaled(p).apply(x, 3.0, None)
        (first,) = p.autograd.grad((y * 2).sum(), x, create_graph=True)
        second = p.autograd.grad(first.sum(), x)[0]
        return (
            y.tolist(),
            count.item(),
            count.requires_grad,
            first.tolist(),
            second.tolist(),
            y.grad_fn.name(),
        )

    both(program)


def test_setup_context_results_and_zeros_for_what_is_unused():
    def program(p):
        class Pair(p.autograd.Function):
            @staticmethod
            def forward(x):
                return x.sin(), x.cos(), x.argmax()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*output[:2])
                ctx.mark_non_differentiable(output[2])

            @staticmethod
            def backward(ctx, g, h, _):
                sin, cos = ctx.saved_tensors
                return g * cos - h * sin

        x = p.tensor([0.5, 1.0], requires_grad=True)
        first = p.autograd.grad(Pair.apply(x)[0].sum(), x)[0]
        second = p.autograd.grad(Pair.apply(x)[1].sum(), x)[0]
        return [round(v, 4) for t in (first, second) for v in t.tolist()]

    both(program)


def test_writing_in_place_and_inputs_that_are_results():
    def program(p):
        class Doubled(p.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, g):
                return g * 2

        class Same(p.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x, x

            @staticmethod
            def backward(ctx, g, h):
                return (g if h is None else h) * 10

        x = p.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        z = Doubled.apply(y)
        same = Same.apply(y)
        (same[0] * y).sum().backward()
        return z is y, x.grad.tolist(), same[0] is y, y.tolist()

    both(program)


def test_errors_of_functions():
    def failing(result, **more):
        def program(p):
            body = {
                "forward": staticmethod(lambda ctx, x, n: x * n),
                "backward": staticmethod(result(p)),
                **more,
            }
            made = type("F", (p.autograd.Function,), body)
            x = p.ones(2, requires_grad=True)
            try:
                made.apply(x, 2).sum().backward()
            except RuntimeError as error:
                return str(error).split(":")[0].split(" but ")[0][:60]
            return "nothing"

        return program

    for result in (
        lambda p: lambda ctx, g: g,
        lambda p: lambda ctx, g: (g, g),
        lambda p: lambda ctx, g: (p.ones(3), None),
        lambda p: lambda ctx, g: (g, None, None),
    ):
        both(failing(result))
    x = pellucid.ones(2, requires_grad=True, device="cpu")

    class Once(pellucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @pellucid.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    (g,) = pellucid.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        g.sum().backward()
    y = Once.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    y = Once.apply(x)
    with pellucid.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="apply"):
        Once()


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_keeps_nothing_alive(device):
    x = pellucid.ones(4, requires_grad=True, device=device)
    y = scaled(pellucid).apply(x, 2.0, None)[0]
    gc.collect()
    gc.disable()
    try:
        node = pellucid.autograd.graph.Node
        before = sum(isinstance(o, node) for o in gc.get_objects())
        del y
        assert sum(isinstance(o, node) for o in gc.get_objects()) < before
    finally:
        gc.enable()


@pytest.mark.parametrize("device", DEVICES)
def test_hooks_of_saved_tensors(device):
    seen = []
    x = pellucid.tensor([1.0, 2.0], requires_grad=True, device=device)
    with pellucid.autograd.graph.saved_tensors_hooks(
        lambda t: (seen.append("pack"), t * 2)[1], lambda t: (seen.append("unpack"), t / 2)[1]
    ):
        y = (x.exp() * x).sum()
    y.backward()
    theirs = torch.tensor([1.0, 2.0], requires_grad=True)
    (theirs.exp() * theirs).sum().backward()
    assert x.grad.tolist() == pytest.approx(theirs.grad.tolist(), rel=1e-5)
    assert seen.count("pack") == seen.count("unpack") == 3
    with pellucid.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    assert pellucid.autograd.grad(y, x)[0].tolist() == [2.0, 4.0]
    with pellucid.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = (x * x).sum()
    with pytest.raises(RuntimeError, match="shape"):
        y.backward()


def test_hooks_after_gradients_are_added():
    def program(p):
        x = p.ones(2, requires_grad=True)
        seen = []
        handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
        (x * 3).sum().backward()
        (x * 2).sum().backward(inputs=[x])
        handle.remove()
        x.sum().backward()
        return seen

    both(program)
    with pytest.raises(RuntimeError, match="leaf"):
        (pellucid.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize("device", DEVICES)
def test_anomalies_name_the_op_and_the_line(device):
    x = pellucid.tensor([0.0], requires_grad=True, device=device)
    with pytest.warns(UserWarning, match="which is slow"):
        search = pellucid.autograd.detect_anomaly()
    with search:
        y = x.sqrt() * 0  # the forward call
        with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan.*the forward call"):
            y.sum().backward(retain_graph=True)
        assert pellucid.autograd.is_anomaly_enabled()
    y.sum().backward()
    assert x.grad.isnan().item()
    assert not pellucid.autograd.is_anomaly_enabled()
    with pellucid.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).sum().backward()


@pytest.mark.parametrize("device", DEVICES)
def test_checkpoints_keep_nothing_and_compute_the_same(device):
    """P-086: checkpoints of activations hold less and compute the same."""
    with pellucid.device(device):
        pellucid.manual_seed(0)
        model = pellucid.nn.Sequential(pellucid.nn.Linear(3, 4), pellucid.nn.Tanh(), pellucid.nn.Dropout(0.5))
        x = pellucid.randn(5, 3)
        found = []
        for call in (model, lambda x: checkpoint(model, x, use_reentrant=False),
                     lambda x: checkpoint_sequential(model, 2, x)):  # fmt: skip
            pellucid.manual_seed(1)
            y = call(x)
            drawn = pellucid.rand(1).item()
            y.square().sum().backward()
            found.append([y.tolist(), model[0].weight.grad.tolist(), drawn, pellucid.rand(1).item()])
            model.zero_grad()
        assert found[0] == found[1] == found[2]
        turns = []

        def changing(x):
            turns.append(1)
            return x.exp() if len(turns) == 1 else x * 2

        y = checkpoint(changing, pellucid.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match="the same at every call"):
            y.sum().backward()


def test_checkpoints_lower_the_most_memory_that_is_held():
    """P-086: of 16 layers in four parts, seven outputs are held at most: three ends, and a part."""
    pellucid.manual_seed(0)
    nn, webgpu = pellucid.nn, pellucid.webgpu
    net = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(16)])
    x, peaks, slopes = pellucid.randn(2048, 16), [], []
    for call in (net, lambda x: checkpoint_sequential(net, 4, x, use_reentrant=False)):
        net.zero_grad()
        webgpu.synchronize()
        webgpu.reset_peak_memory_stats()
        before = webgpu.memory_allocated()
        out = call(x).square().sum()
        webgpu.flush()  # what is alive is looked at when a window ends
        out.backward()
        webgpu.synchronize()
        peaks.append(webgpu.max_memory_allocated() - before)
        slopes.append([p.grad for p in net.parameters()])
        del out
    assert peaks[1] < 0.5 * peaks[0]
    for a, b in zip(*slopes, strict=True):
        assert (a == b).all()


def test_functions_by_an_older_name():
    class Clamped(pellucid.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x.clamp(0, 1)

        @staticmethod
        def backward(ctx, g):
            return g

    x = pellucid.tensor([2.0], requires_grad=True, device="cpu")
    Clamped.apply(x).sum().backward()
    assert x.grad.item() == 1


def test_what_programs_import_beside_checkpoint():
    checkpoints = pellucid.utils.checkpoint
    x = pellucid.ones(2, requires_grad=True, device="cpu")
    found, rest = checkpoints.detach_variable((x * 2, "text"))
    assert found.is_leaf
    assert found.requires_grad
    assert rest == "text"
    with pytest.warns(UserWarning, match="none of the inputs require grad"):
        checkpoints.check_backward_validity([x.detach()])
    checkpoints.check_backward_validity([x, 1])
    assert checkpoints.get_device_states(x) == ([], [])
    checkpoints.set_device_states([], [])
    policy = checkpoints.CheckpointPolicy.MUST_SAVE
    out = checkpoint(
        lambda x: x.exp(),
        x,
        use_reentrant=False,
        context_fn=lambda: checkpoints.create_selective_checkpoint_contexts(lambda *a, **k: policy),
    )
    out.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.718282] * 2)
    with pytest.raises(TypeError, match="takes a function or a list"):
        checkpoints.create_selective_checkpoint_contexts(3)
    with pytest.raises(TypeError, match="takes a tuple"):
        checkpoints.detach_variable([x])
    with pytest.raises(ValueError, match="no device here"):
        checkpoints.set_device_states([0], [1])
