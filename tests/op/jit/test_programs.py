"""Random programs give the same captured as eagerly: views, writes in place, shared memory, held results."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pellucid as torch
from op.jit.probe import bits, replays

pytestmark = pytest.mark.gpu

STEPS = {
    "sin": lambda v, a, b, n: v[a].sin(),
    "scaled": lambda v, a, b, n: v[a] * 0.5 + n,
    "softmax": lambda v, a, b, n: torch.softmax(v[a], -1),
    "sum": lambda v, a, b, n: v[a] + v[b].sum(0),
    "product": lambda v, a, b, n: v[a] @ v[b].t() @ v[b] * 0.1,
    "turned": lambda v, a, b, n: v[a].t().contiguous().t(),
    "half": lambda v, a, b, n: v[a].half().float(),
    "joined": lambda v, a, b, n: torch.cat([v[a][:, 1:], v[b][:, :1]], 1),
    "noise": lambda v, a, b, n: v[a] + torch.rand(*v[a].shape),
    "added": lambda v, a, b, n: v[a].add_(v[b] * 0.5),
    "written": lambda v, a, b, n: v[a][1:].mul_(2),
    "row": lambda v, a, b, n: v[a].__setitem__(0, v[b][1]),
    "view": lambda v, a, b, n: v[a].view(-1).view(v[a].shape) if v[a].is_contiguous() else v[a],
    "copied": lambda v, a, b, n: v[a].copy_(v[b]),
}
step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5), st.integers(0, 5), st.integers(-2, 3))
programs = st.lists(step, min_size=1, max_size=10)


def function(program, held, state):
    """The program as a function of two tensors and a number, which also reads and writes a third tensor."""

    def f(x, y, n):
        values = [x, y, state * 1.5, state]
        for name, a, b, k in program:
            made = STEPS[name](values, a % len(values), b % len(values), k + n)
            values.append(made if made is not None and made.shape == x.shape else values[a % len(values)] + 1)
            if len(values) > 7:
                del values[2]
        return [values[k % len(values)] for k in held]

    return f


def outcome(f, calls, state, seed):
    """Results, arguments and state after every call, as bits."""
    torch.manual_seed(seed)
    found, kept = [], []
    for x, y, n in calls:
        results = f(x, y, n)
        kept.append(results)
        found.append([bits(t) for t in (*results, x, y, state)])
    return found, [[bits(t) for t in results] for results in kept]


def values_of(shape, seed, aliased):
    """Arguments of some calls, which may share memory and may begin in the middle of it."""
    rng = np.random.default_rng(seed)
    calls = []
    for start, n in [(0, 0), (1, 0), (1, 1), (1, 2), (2, 3), (0, 1), (2, 2), (3, 3)]:
        whole = torch.tensor(rng.standard_normal((shape[0] + 3, shape[1])).astype(np.float32))
        x = whole[start : start + shape[0]]
        y = x if aliased else torch.tensor(rng.standard_normal(shape).astype(np.float32))
        calls.append((x, y, n))
    return calls, torch.tensor(rng.standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("fused", [False, True])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    programs,
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([(3, 5), (9, 33)]),
)
def test_same_captured_and_eagerly(fused, program, held, aliased, shape):
    calls, state = values_of(shape, 1, aliased)
    wanted = outcome(function(program, held, state), calls, state, 7)
    calls, state = values_of(shape, 1, aliased)
    compiled = torch.compile(function(program, held, state), dynamic=("n",))
    with torch.webgpu.fusion(fused):
        got = outcome(compiled, calls, state, 7)
    if not aliased:
        assert replays(compiled) >= 3 or compiled.explain().reasons, str(compiled.explain())
    if not fused:
        assert got == wanted, str(compiled.explain())
        return
    for one, other in zip(got[0], wanted[0], strict=True):
        for (a, *form), (b, *wanted_form) in zip(one, other, strict=True):
            assert form == wanted_form
            a, b = np.frombuffer(a, np.float32), np.frombuffer(b, np.float32)
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=str(program))
