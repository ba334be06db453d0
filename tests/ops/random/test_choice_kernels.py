"""Choosing among many, in every variant: the best of a row, a token by chance, penalties."""

import numpy as np
import pytest

import pellucid
from ops.each_variant import device, dispatches, variant  # noqa: F401
from ops.oracle import normal
from pellucid.op.kernel.variants import is_direct
from pellucid.ops.random.token_sampling import draw, repetition_penalty, sample


@pytest.mark.parametrize("columns", [1, 31, 33, 300, 1025, 5000, 70000])
@pytest.mark.parametrize("k", [1, 7, 40, 200, 256, 257])
def test_topk_with_ties(columns, k):
    k = min(k, columns)
    # Few different values, so that ties are many: equal ones stay in the order of their places.
    x = np.random.randint(0, 400, (3, columns)).astype(np.float32)
    x[1, columns // 2] = np.nan
    x[2] = 5
    order = np.argsort(-np.where(np.isnan(x), np.inf, x), -1, kind="stable")[:, :k]
    values, indices = pellucid.topk(device(x), k)
    assert np.array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, -1))
    whole = (x[:, ::-1] == 5).astype(np.int64) * 3 - (np.arange(columns) << 34)
    values, indices = pellucid.topk(device(whole), k, largest=False)
    order = np.argsort(whole, -1, kind="stable")[:, :k]
    assert np.array_equal(indices.numpy(), order)
    assert np.array_equal(values.numpy(), np.take_along_axis(whole, order, -1))


@pytest.mark.parametrize("step", [1, 16, 256, 1024])
@pytest.mark.parametrize("k", [40, 64, 250])
def test_topk_where_the_best_lie_together(step, k):
    # Lanes look at entries that lie 256 apart: all of the best may belong to few of them.
    x = normal(1, 40 * 1024)
    best = 100 + np.random.permutation(40 * 1024 // step)[:250]
    x[0, step * np.arange(len(best))] = best
    order = np.argsort(-x, -1, kind="stable")[:, :k]
    assert np.array_equal(pellucid.topk(device(x), k)[1].numpy(), order)


@pytest.mark.parametrize("columns", [1, 40, 257, 4096, 4097, 49152])
@pytest.mark.parametrize("top_p", [1.0, 0.7, 0.01])
def test_draws(columns, top_p):
    # Sorted downwards, as a nucleus needs; the weights are powers of two.
    powers = np.sort(np.random.randint(-10, 1, (9, columns)), 1)[:, ::-1]
    x = (powers * np.log(2)).astype(np.float32)
    x[4, columns // 2 + 1 :] = -np.inf
    uniforms = np.array([0, 1 - 2**-24, 0.25, 0.5, 0.999, 0.1, 0.6, 0.75, 0.3], np.float32)
    weights = np.exp2(np.round(x / np.log(2))).astype(np.float64)
    after = weights.cumsum(1)
    enough = np.float64(np.float32(top_p)) * after[:, -1:]
    for row, column in enumerate(draw(device(x), device(uniforms), 1.0, top_p).tolist()):
        kept = np.flatnonzero((after[row] - weights[row] < enough[row]) & (weights[row] > 0))
        mass = after[row, kept[-1]]
        place = min(float(uniforms[row]), 1 - 2**-24) * mass
        before = after[row, column] - weights[row, column]
        assert weights[row, column] > 0
        assert before - 1e-5 * mass <= place <= after[row, column] + 1e-5 * mass
        assert column <= kept[-1] + (1e-5 * mass > weights[row, column])


@pytest.mark.parametrize("columns", [5, 1024, 3000])
def test_penalties_of_tokens_in_every_block(columns):
    logits, seen = normal(3, columns), np.random.randint(-3, columns + 3, (3, 300))
    expected = logits.copy()
    for row, ids in zip(expected, seen, strict=True):
        ids = np.unique(ids[(ids >= 0) & (ids < columns)])
        row[ids] = np.where(row[ids] > 0, row[ids] / np.float32(1.3), row[ids] * np.float32(1.3))
    ours = repetition_penalty(device(logits), device(seen), 1.3).numpy()
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_a_vocabulary_takes_two_dispatches_at_most():
    for columns in (49152, 151936):
        logits = device(normal(1, columns))
        logits.softmax(-1)  # whether subgroups can be used is found out at the first need
        assert dispatches(lambda x=logits: x.argmax(-1)) == (2 if is_direct() else 1)
        assert dispatches(lambda x=logits: x.topk(40)) == (3 if is_direct() else 2)
        assert dispatches(lambda x=logits: x.softmax(-1)) == 2


def test_a_token_from_the_best_takes_three_dispatches():
    logits, chance = device(normal(1, 151936)), device(np.array([0.5], np.float32))
    assert dispatches(lambda: sample(logits, chance, top_k=40, top_p=0.9)) == (4 if is_direct() else 3)
    assert dispatches(lambda: sample(logits, chance)) == 2
