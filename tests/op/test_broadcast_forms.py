"""How elementwise kernels find what is broadcast: by a quotient, a remainder, both, or a walk over axes."""

import random

import numpy as np
import pytest
import torch

import pellucid
from pellucid.op.expression import dense_form, quotient

pytestmark = pytest.mark.gpu

# Shapes of an operand within (4, 3, 5), and the form that finds it.
SHAPES = [
    ((4, 1, 1), "rows"), ((4, 3, 1), "rows"), ((5,), "columns"), ((3, 5), "columns"), ((3, 1), "channels"),
    ((4, 1, 5), ""), ((4, 3, 5), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "form"),
    [((1, 0), "rows"), ((0, 1), "columns"), ((0, 1, 0), "channels"), ((0, 5, 1, 0), "channels"),
     ((1, 0, 0), "rows"), ((2, 0), ""), ((-1, 0), ""), ((1, 0, 1), ""), ((15, 5, 1), ""), ((0, 0), "")],
)  # fmt: skip
def test_forms(steps, form):
    shape = {2: (3, 5), 3: (4, 3, 5), 4: (2, 3, 5, 7)}[len(steps)]
    assert dense_form(shape, steps) == form


def test_what_has_more_elements_than_a_factor_divides_is_walked():
    assert dense_form((1 << 15, 1 << 16), (1, 0)) == "rows"
    assert dense_form((1 << 16, 1 << 16), (1, 0)) == ""


def test_factors_divide_all_that_is_below_two_to_the_31():
    chance = random.Random(0)
    lengths = [*range(1, 70), *(2**k + d for k in range(7, 32) for d in (-1, 0, 1) if 2**k + d <= 1 << 31)]
    for length in [*lengths, *(chance.randrange(1, 1 << 31) for _ in range(500))]:
        factor, shift = quotient(length)
        assert factor < 1 << 32
        assert shift < 32
        most = (1 << 31) - 1
        around = [length - 1, length, length + 1, most, most // length * length, most // length * length - 1]
        for i in [0, *around, *(chance.randrange(1 << 31) for _ in range(9))]:
            if 0 <= i <= most:
                assert (2 * i * factor >> 32) >> shift == i // length


@pytest.mark.parametrize("shape", [shape for shape, _ in SHAPES])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "bool", "int64", "complex64"])
def test_values_of_every_type(shape, dtype):
    """Also where a word has several elements, at an odd offset, of none, and fused."""
    chance = np.random.default_rng(1)

    def operand(size):
        made = chance.integers(0, 2 if dtype == "bool" else 9, size)
        return made.astype(dtype)

    for whole in ((4, 3, 5), (4, 3, 0), (1, 3, 5), (40, 30, 50)):
        part = tuple(whole[k - len(shape)] if n > 1 else 1 for k, n in enumerate(shape))
        a, b = operand(whole), operand(part)
        flat = np.concatenate([operand(3), b.reshape(-1)])  # so that it begins in the middle of a word
        ours, theirs = pellucid.tensor(a, device="webgpu"), torch.tensor(a)
        small = pellucid.tensor(flat, device="webgpu")[3:].reshape(part)
        for op in ("eq", "where", "add"):
            if op == "add" and dtype == "bool":
                continue
            results = [
                t.where(x == y, x, y) if op == "where" else getattr(t, op)(x, y)
                for t, x, y in ((pellucid, ours, small), (torch, theirs, torch.tensor(b)))
            ]
            np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())
        fused = [(x == y) & (y == y) for x, y in ((ours, small), (theirs, torch.tensor(b)))]
        np.testing.assert_array_equal(fused[0].numpy(), fused[1].numpy())
