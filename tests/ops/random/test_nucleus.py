"""Drawing from the fewest likely tokens, in every variant: they are those that transformers keeps."""

import functools
from unittest import mock

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import TopPLogitsWarper

import pellucid
from ops.each_variant import device, dispatches, variant  # noqa: F401
from pellucid.ops.random.token_sampling import draw_nucleus, sample

# Of the whole mass: how near sums of 32-bit floats come to it.
NEAR = 3e-6


def kept_by_transformers(logits, temperature, top_p):
    """What is kept of a row, and the probabilities; of 64-bit floats, so that no rounding decides.

    Which of equal tokens are kept is up to the sort, in what order it leaves them: let it keep their order.
    """
    scores = torch.tensor(logits, dtype=torch.float64)[None] / temperature
    with mock.patch.object(torch, "sort", functools.partial(torch.sort, stable=True)):
        kept = TopPLogitsWarper(top_p)(None, scores)[0].isfinite().numpy()
    usual = TopPLogitsWarper(top_p)(None, scores)[0].isfinite().numpy()
    assert np.array_equal(np.sort(logits[kept]), np.sort(logits[usual]))
    return kept, scores.softmax(-1)[0].numpy()


def is_doubtful(logits, chances, top_p):
    """Whether the mass above a token lies so near to ``top_p`` that rounding may decide."""
    order = np.argsort(logits, kind="stable")[::-1]
    above = chances[order].cumsum() - chances[order]
    return np.abs(above - np.float32(top_p)).min() < NEAR


def check(logits, temperature, top_p, where="webgpu", most=400):
    """Draws in the middle of every kept token, or of some, and at both ends; False if rounding may decide."""
    kept, chances = kept_by_transformers(logits, temperature, top_p)
    if is_doubtful(logits, chances, top_p):
        return False
    ids = np.flatnonzero(kept)
    after = chances[ids].cumsum()
    mass = after[-1]
    middles = (after - chances[ids] / 2) / mass
    if len(ids) > most:
        middles = np.random.choice(middles, most, replace=False)
    uniforms = np.concatenate([[0, 1 - 2**-24], middles]).astype(np.float32)
    rows = np.broadcast_to(logits, (len(uniforms), len(logits)))
    if where == "webgpu":
        drawn = draw_nucleus(device(rows), device(uniforms), temperature, top_p)
    else:
        drawn = draw_nucleus(
            pellucid.tensor(rows.copy(), device=where),
            pellucid.tensor(uniforms, device=where),
            temperature,
            top_p,
        )
    place = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    for uniform, got in zip(uniforms.astype(np.float64), drawn.tolist(), strict=True):
        assert got in place, (got, uniform)
        end = after[place[got]] / mass
        assert end - chances[got] / mass - NEAR <= uniform <= end + NEAR
    return True


KINDS = {
    "normal": lambda n: np.random.randn(n) * 3,
    "flat": lambda n: np.random.randn(n) * 1e-3,
    "peaked": lambda n: np.where(np.arange(n) == n // 3, 30, np.random.randn(n)),
    "few peaks": lambda n: np.where(np.arange(n) % (n // 5 + 1) == 0, 12, np.random.randn(n)),
    "ties": lambda n: np.random.randint(-3, 4, n),
    "all equal": lambda n: np.full(n, 1.5),
    "two values": lambda n: np.random.randint(0, 2, n) * 0.25,
    "around zero": lambda n: np.random.randn(n) * 10.0 ** np.random.randint(-30, 1, n),
    "with impossible ones": lambda n: np.where(np.random.rand(n) < 0.5, -1e30, np.random.randn(n)),
}


@pytest.mark.parametrize("columns", [1, 7, 301, 4999])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_from_is_what_transformers_keeps(kind, columns):
    seen = 0
    for temperature, top_p in ((0.3, 0.9), (0.3, 0.05), (1.0, 0.613), (1.7, 0.9), (1.7, 0.05)):
        logits = KINDS[kind](columns).astype(np.float32)
        seen += check(logits, temperature, top_p, most=40)
    assert seen >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_keeps_the_same(kind):
    logits = KINDS[kind](200).astype(np.float32)
    assert any(check(logits, 0.8, top_p, "cpu") for top_p in (0.9, 0.613, 0.33))


@pytest.mark.parametrize("kind", ["normal", "ties", "peaked"])
def test_a_vocabulary(kind):
    logits = KINDS[kind](49152).astype(np.float32)
    assert any(check(logits, 0.7, top_p, most=40) for top_p in (0.9, 0.613, 0.33))


@pytest.mark.parametrize("kind", ["normal", "around zero", "two values"])
def test_temperatures_up_to_the_largest(kind):
    """Then all are as likely, and those that were largest are kept."""
    for temperature in (1e20, 3e38):
        assert check(KINDS[kind](301).astype(np.float32), temperature, 0.613, most=40)


def test_rows_are_drawn_from_by_themselves():
    logits = np.random.randn(5, 900).astype(np.float32) * np.array([[0.1], [1], [3], [9], [27]], np.float32)
    uniforms = np.random.rand(5).astype(np.float32)
    together = draw_nucleus(device(logits), device(uniforms), 1.1, 0.8).tolist()
    alone = [
        draw_nucleus(device(logits[k : k + 1]), device(uniforms[k : k + 1]), 1.1, 0.8).tolist()[0]
        for k in range(5)
    ]
    assert together == alone
    assert len(set(together)) > 1


def test_the_nucleus_of_a_vocabulary_takes_one_dispatch():
    logits, chance = device(np.random.randn(1, 49152).astype(np.float32)), device(np.array([0.5], np.float32))
    sample(logits, chance, top_p=0.9)  # whether subgroups can be used is found out at the first need
    assert dispatches(lambda: sample(logits, chance, top_p=0.9)) == 1
