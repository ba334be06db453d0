"""Random programs that read values give the same captured as eagerly, whichever way they go.

All numbers are small integers, so fused kernels give the bits of plain ones.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pellucid as torch
from op.jit.probe import bits, replays

pytestmark = pytest.mark.gpu

STEPS = {
    "sum": lambda v, a, b, n: v[a] + v[b] + n,
    "difference": lambda v, a, b, n: v[a] * 2 - v[b],
    "relu": lambda v, a, b, n: v[a].relu(),
    "rows": lambda v, a, b, n: v[a] + v[b].sum(0).clamp(-9, 9),
    "least": lambda v, a, b, n: v[a].clamp(-20, 20).minimum(v[b] - n),
    "turned": lambda v, a, b, n: v[a].flip(0),
    "view": lambda v, a, b, n: v[a].t().contiguous().t(),
    "noise": lambda v, a, b, n: v[a].clamp(-50, 50) + (torch.rand(*v[a].shape) * 4).floor(),
    "added": lambda v, a, b, n: v[a].add_(v[b].clamp(-3, 3)),
    "row": lambda v, a, b, n: v[a].__setitem__(0, v[b][1]),
}
# What is read: what comes of it is a number from 0 to 2.
READS = {
    "any": lambda x: int((x > 4).any()),
    "all": lambda x: 2 if (x > -1).all() else 0,
    "count": lambda x: (x > 0).sum().item() % 3,
    "first": lambda x: int(x[0, 0].clamp(-1, 1)) + 1,
    "list": lambda x: sum((x[:, 0] > 0).tolist()) % 3,
    "array": lambda x: int((x > 2).sum(1).numpy().max()) % 3,
}
step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5), st.integers(0, 5), st.integers(-2, 3))
blocks = st.recursive(
    st.lists(step, max_size=3),
    lambda inner: st.lists(
        st.one_of(
            step,
            st.tuples(st.sampled_from(sorted(READS)), st.integers(0, 5), st.tuples(inner, inner, inner)),
            st.tuples(st.just("while"), st.integers(0, 5), inner),
        ),
        min_size=1,
        max_size=4,
    ),
    max_leaves=8,
)


def run(block, values, n, shape):
    """Run a block on a list of tensors, to which it appends."""
    for entry in block:
        name, at = entry[0], entry[1] % len(values)
        if name in STEPS:
            made = STEPS[name](values, at, entry[2] % len(values), entry[3] + n)
            values.append(made if made is not None and made.shape == shape else values[at] + 1)
        elif name == "while":
            turns = 0
            while turns < 2 and (values[at].sum() > turns).item():
                run(entry[2], values, n, shape)
                turns += 1
        else:
            run(entry[2][READS[name](values[at])], values, n, shape)
        del values[2:-4]


def function(block, held, state):
    """The block as a function of two tensors and a number, which also has a third tensor."""

    def f(x, y, n):
        values = [x, y, x + 1, state]
        run(block, values, n, x.shape)
        return [values[k % len(values)] for k in held]

    return f


def outcome(f, calls, state):
    """Results, arguments, state and generator after every call, as bits."""
    torch.manual_seed(7)
    found, kept = [], []
    for x, y, n in calls:
        results = f(x, y, n)
        kept.append(results)
        found.append([bits(t) for t in (*results, x, y, state, torch.get_rng_state())])
    return found, [[bits(t) for t in results] for results in kept]


def values_of(seed):
    """Arguments of some calls, of which several have the same values and begin elsewhere in their memory."""
    rng = np.random.default_rng(seed)
    shape, calls = (3, 4), []
    kinds = [rng.integers(low, high, shape) for low, high in ((-3, 4), (1, 6), (-5, 0))]
    for k in range(14):
        whole = np.zeros((5, 4), np.float32)
        start = max(0, k - 10) % 3
        whole[start : start + 3] = kinds[k % 3]
        x = torch.tensor(whole)[start : start + 3]
        y = torch.tensor(kinds[k // 7].astype(np.float32))
        calls.append((x, y, 1 + max(0, k - 11)))
    return calls, torch.tensor(rng.integers(-2, 3, shape).astype(np.float32))


@pytest.mark.parametrize("fused", [False, True])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks, st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(0, 9))
def test_same_captured_and_eagerly(fused, block, held, seed):
    calls, state = values_of(seed)
    wanted = outcome(function(block, held, state), calls, state)
    calls, state = values_of(seed)
    compiled = torch.compile(function(block, held, state), dynamic=("n",))
    with warnings.catch_warnings(), torch.webgpu.fusion(fused):
        warnings.simplefilter("ignore", RuntimeWarning)
        got = outcome(compiled, calls, state)
    assert got == wanted, str(compiled.explain())


def test_most_of_them_are_replayed():
    """The test above compares replays, not eager calls with eager calls."""
    block = [
        ("sum", 0, 1, 0),
        ("any", -1, ([("relu", -1, 0, 0)], [("noise", -1, 0, 0), ("while", -1, [("least", -1, 0, 1)])], [])),
        ("difference", -1, 0, 0),
    ]
    calls, state = values_of(0)
    wanted = outcome(function(block, [-1, 2], state), calls * 2, state)
    calls, state = values_of(0)
    compiled = torch.compile(function(block, [-1, 2], state), dynamic=("n",))
    assert outcome(compiled, calls * 2, state) == wanted
    assert replays(compiled) > 8, str(compiled.explain())
