"""What makes a call run eagerly again: each change takes effect at the very next call."""

import sys
import warnings

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from op.jit.probe import bits, replays, settle, some
from pellucid import nn
from pellucid.op.kernel.autotune import measured as tuned
from pellucid.op.plan_cache import forget_plans

pytestmark = pytest.mark.gpu


@pytest.fixture
def model(rng):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).eval()


def served(compiled, *arguments):
    """Whether a call was replayed, and what it returned."""
    before = replays(compiled)
    result = compiled(*arguments)
    return replays(compiled) == before + 1, result


def test_a_measurement_takes_effect_at_the_next_call(rng, monkeypatch):
    """What is replayed would go on with the kernels of before."""
    monkeypatch.setenv("PELLUCID_TUNING", "")
    info = torch.webgpu.get_device_properties()
    a, b = some(rng, 40, 64), some(rng, 64, 40)
    compiled = torch.compile(torch.matmul)
    settle(compiled, (a, b))
    assert served(compiled, a, b)[0]
    try:
        tuned.use(info, {"float32 nn 1x48x48x64": "direct"})
        forget_plans()
        assert not served(compiled, a, b)[0]
        settle(compiled, (a, b))
        assert served(compiled, a, b)[0]
    finally:
        tuned.reread()
        forget_plans()
    assert not served(compiled, a, b)[0]


def test_numbers_and_texts_are_part_of_the_call(rng):
    def f(x, factor, mode="double", *, shift=0):
        return (x * 2 if mode == "double" else x) * factor + shift

    compiled = torch.compile(f)
    calls = [((2,), {}), ((2.0,), {}), ((True,), {}), ((2,), {"mode": "single"}), ((2,), {"shift": 3})]
    for _ in range(4):
        for args, kwargs in calls:
            x = some(rng, 5)
            assert bits(compiled(x, *args, **kwargs)) == bits(f(x, *args, **kwargs))
    assert replays(compiled) == 2 * len(calls)


def test_containers_are_compared_by_what_is_in_them(rng):
    compiled = torch.compile(lambda x, given: x * sum(given))
    x, entries, chosen = some(rng, 3), [1, 2], {1}
    for k in range(8):
        entries[0] = k // 4
        chosen.clear()
        chosen.add(k // 4)
        for given in (entries, chosen, frozenset(chosen)):
            assert bits(compiled(x, given)) == bits(x * sum(given))
    assert replays(compiled) > 0


def test_zero_has_a_sign_and_nan_is_equal_to_itself(rng):
    compiled = torch.compile(lambda x, y: x * y)
    x = some(rng, 3)
    for value in (0.0, -0.0, float("nan"), float("nan"), 0.0, -0.0, float("inf")):
        assert bits(compiled(x, value)) == bits(x * value)
    assert replays(compiled) == 3


def test_shapes_dtypes_and_strides_are_part_of_the_call(rng):
    compiled = torch.compile(lambda x: x.reshape(-1)[:4] + 1)
    for _ in range(4):
        for x in (some(rng, 4), some(rng, 5), some(rng, 2, 3), some(rng, 3, 2).t(), some(rng, 4).int()):
            assert bits(compiled(x)) == bits(x.reshape(-1)[:4] + 1)
    assert replays(compiled) == 2 * 5


def test_modes_are_part_of_the_call(rng):
    compiled = torch.compile(lambda x: torch.zeros(2) + x.sum())
    x = some(rng, 3)
    for _ in range(3):
        assert compiled(x).dtype is torch.float32
        torch.set_default_dtype(torch.float16)
        try:
            # The sum has no axes: the type of the zeros counts.
            assert compiled(x).dtype is torch.float16
        finally:
            torch.set_default_dtype(torch.float32)
        with torch.no_grad():
            compiled(x)
        with torch.webgpu.fusion(True):
            compiled(x)
    assert len(compiled.explain().lines) == 4
    made = torch.compile(lambda: torch.ones(2) * 3)
    for _ in range(3):
        assert made().device.type == "webgpu"
        with torch.device("cpu"):
            assert made().device.type == "cpu"


def test_switching_training_on_and_off(rng, model):
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    wanted = bits(model(x).detach())
    with torch.no_grad():
        for _ in range(4):
            for _ in range(3):
                assert bits(compiled(x)) == wanted
            compiled.train()
            for _ in range(3):
                state = torch.get_rng_state()
                got = compiled(x)
                torch.set_rng_state(state)
                assert bits(got) == bits(model(x))
            compiled.eval()
    assert replays(compiled) >= 8


def test_values_of_parameters_are_read_anew(rng, model):
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        model[0].weight.mul_(2)
        was, got = served(compiled, x)
        assert was
        assert bits(got) == bits(model(x))
        model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()})
        assert bits(compiled(x)) == bits(model(x))


@pytest.mark.parametrize("keep", [False, True])
def test_rebound_parameters(rng, model, keep):
    """Whether somebody keeps the old ones or not."""
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        old = [model[0].weight.data, model[0].weight] if keep else []
        model[0].weight.data = some(rng, 8, 6)
        was, got = served(compiled, x)
        assert not was
        assert bits(got) == bits(model(x))
        settle(compiled, (x,))
        model[0].weight.data = model[0].weight.data[:, [5, 4, 3, 2, 1, 0]]
        assert bits(compiled(x)) == bits(model(x))
        settle(compiled, (x,))
        model[0].weight.data = model[0].weight.data.t().contiguous().t()
        assert bits(compiled(x)) == bits(model(x))
        settle(compiled, (x,))
        model[0].weight = nn.Parameter(some(rng, 8, 6))
        assert bits(compiled(x)) == bits(model(x))
        settle(compiled, (x,))
        model[3] = nn.Linear(8, 2)
        assert compiled(x).shape == (4, 2)
    del old


def test_a_tensor_that_the_function_finds_is_another_one(rng):
    found = {"w": some(rng, 3)}
    compiled = torch.compile(lambda x: x * found["w"])
    x = some(rng, 3)
    settle(compiled, (x,))
    found["w"] = some(rng, 3)
    assert bits(compiled(x)) == bits(x * found["w"])


@pytest.mark.parametrize("is_view", [False, True])
def test_a_tensor_that_the_function_finds_enters_and_leaves_a_graph(rng, is_view):
    base = some(rng, 6)
    found = base[2:] if is_view else base
    x = some(rng, 4 if is_view else 6)
    first, second = torch.compile(lambda x: x * found), torch.compile(lambda x: x * found)
    settle(first, (x,))
    w = some(rng, 6).requires_grad_()
    base.mul_(w)
    y = first(x)
    assert y.requires_grad
    y.sum().backward()
    assert w.grad.numpy().any()
    found.detach_()
    settle(second, (x,))
    found.requires_grad_()
    second(x).sum().backward()
    np.testing.assert_array_equal(found.grad.numpy(), x.numpy())
    found.requires_grad = False
    for compiled in (first, second):
        assert not compiled(x).requires_grad
        assert bits(compiled(x)) == bits(x * found)


@pytest.mark.parametrize("is_module", [True, False])
def test_hooks_run_at_every_call_until_they_are_removed(rng, model, is_module):
    compiled = torch.compile(model if is_module else lambda x: model(x))
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        seen = []
        handle = model[1].register_forward_hook(lambda m, a, out: seen.append(out.shape))
        for k in range(3):
            assert not served(compiled, x)[0]
            assert len(seen) == k + 1
        changing = model[0].register_forward_hook(lambda m, a, out: out * 0)
        assert bits(compiled(x)) == bits(model(x))
        handle.remove()
        assert not served(compiled, x)[0]
        changing.remove()
        settle(compiled, (x,))
        assert bits(compiled(x)) == bits(model(x))
        assert "hooks" in str(compiled.explain())


def test_a_tap_sees_the_next_call(rng, model):
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        with torch.lens.capture(model, "0") as seen:
            compiled(x)
        assert bits(seen["0"]) == bits(model[0](x))
        del seen
        with torch.lens.patch(model, {"1": lambda h: h * 0}):
            got = compiled(x)
        assert bits(got) == bits(model[3].bias.expand(4, 3).contiguous())
        settle(compiled, (x,))


def test_an_assigned_attribute_takes_effect(rng):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            return x * self.factor

    model = Scale()
    compiled = torch.compile(model)
    x = some(rng, 3)
    settle(compiled, (x,))
    model.factor = 5.0
    for _ in range(4):
        assert bits(compiled(x)) == bits(x * 5.0)
    assert compiled.factor == 5.0
    # An attribute of something else is looked at once, and changes nothing.
    Scale().factor = 3.0
    assert not served(compiled, x)[0]
    assert served(compiled, x)[0]


@unchecked("an eager call stands before each replay, and counts")
def test_a_module_that_counts_is_not_replayed(rng):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.scale = None

        def forward(self, x, counts):
            self.scale = 2.0
            if counts:
                self.count += 1
            return x * self.scale + self.count

    model = Counting()
    compiled = torch.compile(model)
    x = some(rng, 3)
    for k in range(1, 7):
        assert bits(compiled(x, True)) == bits(x * 2.0 + k)
    assert replays(compiled) == 0
    assert "assigns 'count' of a module" in str(compiled.explain())
    # What is assigned again and stays the same is no change.
    settle(compiled, (x, False))


def test_where_a_tensor_lies_is_not_asked_in_a_replay(rng):
    compiled = torch.compile(lambda x: x * x.storage_offset())
    whole = some(rng, 12)
    for k in (0, 1, 4, 8, 0):
        assert bits(compiled(whole[k : k + 3])) == bits(whole[k : k + 3] * k)
    assert "where a tensor lies" in str(compiled.explain())


_SCALE = 2.0


def _scaled(x):
    return x * _SCALE


def test_numbers_in_closures_and_globals_are_looked_at(rng, monkeypatch):
    shift, sizes = 1, (3, 2.5)

    def f(x):
        def inner():
            return _scaled(x) + shift

        return inner() * sizes[1]

    compiled = torch.compile(f)
    x = some(rng, 3)
    module = sys.modules[__name__]
    values = [(1, 2.0), (2, 2.0), (2, 0.0), (2, -0.0), (1000, 3.0), (1000, 3.0), (None, 3.0), (1, 2.0)]
    for shift, scale in values:
        monkeypatch.setattr(module, "_SCALE", scale)
        sizes = (3, float(scale))
        if shift is None:
            with pytest.raises(TypeError):
                compiled(x)
            continue
        for _ in range(3):
            assert bits(compiled(x)) == bits(f(x))
    assert replays(compiled) >= 6


def test_functions_of_no_module_are_looked_into(rng):
    scope = {"k": 2}
    exec("def f(x):\n    return x * k", scope)
    del scope["f"].__module__
    compiled = torch.compile(lambda x: scope["f"](x) + second(x))
    second, x = scope["f"], some(rng, 3)
    for scope["k"] in (2, 3):
        for _ in range(3):
            assert bits(compiled(x)) == bits(x * scope["k"] + x * scope["k"])
    assert replays(compiled) >= 2


def test_globals_of_a_modules_code_are_looked_at(rng, monkeypatch):
    class Inner(nn.Module):
        def forward(self, x):
            return _scaled(x) * _SCALE

    compiled = torch.compile(nn.Sequential(Inner(), nn.ReLU()))
    x = some(rng, 3)
    for scale in (2.0, 3.0, 2.0):
        monkeypatch.setattr(sys.modules[__name__], "_SCALE", scale)
        for _ in range(3):
            assert bits(compiled(x)) == bits((x * scale * scale).relu())
    assert replays(compiled) >= 3


def test_another_device(rng):
    x = some(rng, 3)
    w = [some(rng, 3)]
    compiled = torch.compile(lambda x: x * w[0])
    settle(compiled, (x,))
    torch.webgpu.reset()
    del x
    w[0] = some(rng, 3)
    settle(compiled, (some(rng, 3),))
    x = some(rng, 3)
    assert bits(compiled(x)) == bits(x * w[0])


def test_a_bounded_number_of_kinds_and_of_captures(rng):
    compiled = torch.compile(lambda x, k: x * k)
    x = some(rng, 3)
    for k in range(8):
        compiled(x, k)
    with pytest.warns(RuntimeWarning, match="runs eagerly from here on: it was captured for 8 other kinds"):
        compiled(x, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(9):
            assert bits(compiled(x, k)) == bits(x * k)
    found = {"k": 0}

    compiled = torch.compile(lambda x: x * found["k"])

    def call():
        found["k"] += 1
        np.testing.assert_allclose(compiled(x).numpy(), x.numpy() * found["k"], rtol=1e-6)

    for _ in range(16):
        call()
    with pytest.warns(RuntimeWarning, match="runs eagerly from here on: hardly two calls"):
        call()
    call()
    assert replays(compiled) == 0


def test_a_shape_that_comes_back_is_replayed(rng):
    compiled = torch.compile(lambda x: x.softmax(-1))
    for n in (3, 4, 5):
        settle(compiled, (some(rng, 2, n),), (some(rng, 2, n),))
    for n in (3, 4, 5):
        assert served(compiled, some(rng, 2, n))[0]


def test_looking_at_modules_stays_captured(rng, model):
    """What is seen is bit for bit what an eager call shows, at every replay; in the order of the run."""
    compiled = torch.compile(model)
    xs = [some(rng, 4, 6) for _ in range(8)]
    with torch.no_grad():
        settle(compiled, (xs[0],))
        for _ in range(2):  # the second context looks with other taps at the same modules
            with (
                torch.lens.capture(model, ["3", "0"]) as seen,
                torch.lens.capture(model, "1", inputs=True) as into,
            ):
                before = compiled.explain().replays
                for x in xs:
                    got = compiled(x)
                    first = nn.functional.linear(x, model[0].weight, model[0].bias)
                    assert list(seen) == ["0", "3"]
                    assert bits(seen["0"]) == bits(into["1"]) == bits(first)
                    assert bits(seen["3"]) == bits(got)
                held = seen["0"]
                assert compiled.explain().replays > before
            assert bits(held) == bits(first)
        before = compiled.explain().replays
        with torch.lens.capture(model, "1") as seen:
            seen_too = []
            handle = model[0].register_forward_hook(lambda module, args, out: seen_too.append(out))
            compiled(xs[0])
            assert len(seen_too) == 1
            assert "1" in seen
            handle.remove()
        assert compiled.explain().replays == before
        settle(compiled, (xs[0],))


def test_looks_that_come_and_go_leave_captures_alone(rng, model):
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        before = replays(compiled)
        for _ in range(20):
            compiled(x)
            with torch.lens.capture(model, "0") as seen:
                compiled(x)
            assert bits(seen["0"]) == bits(nn.functional.linear(x, model[0].weight, model[0].bias))
        assert replays(compiled) - before >= 37


def test_a_look_ends_with_its_context(rng, model):
    compiled = torch.compile(model)
    x = some(rng, 4, 6)
    with torch.no_grad():
        settle(compiled, (x,))
        with torch.lens.capture(model, "*") as seen:
            for _ in range(4):
                compiled(x)
        torch.webgpu.synchronize()
        before = torch.webgpu.memory_allocated()
        del seen
        assert torch.webgpu.memory_allocated() == before - 4 * 4 * (8 + 8 + 3)


def test_what_cannot_be_made_again_is_seen_eagerly(rng, model):
    compiled = torch.compile(lambda x: model(x).detach(), fullgraph=True)
    x = some(rng, 4, 6)
    settle(compiled, (x,))
    with torch.lens.capture(model, "0") as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            compiled(x)
            assert seen["0"].requires_grad
            assert bits(seen["0"].detach()) == bits(
                nn.functional.linear(x, model[0].weight, model[0].bias).detach()
            )


def test_a_module_that_does_not_run_keeps_what_was_seen(rng):
    pair = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    compiled = torch.compile(lambda x, k: pair[k](x))
    x = some(rng, 2, 3)
    with torch.no_grad(), torch.lens.capture(pair, "*") as seen:
        for _ in range(4):
            for k in (0, 1):
                compiled(x, k)
        assert sorted(seen) == ["0", "1"]
