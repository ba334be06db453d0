"""scatter_reduce and index_reduce of extremes against PyTorch: many sources in one pass, without a sort."""

import numpy as np
import pytest
import torch

import pellucid
from ops.each_variant import dispatches
from ops.oracle import check, normal

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 3e38, -3e38], np.float32)
ENDS = np.array([-(2**31), 2**31 - 1, 0, -1, 1], np.int64)
# Axis, shape of the input and of the sources: more than 16 of a line, or they are looked at one by one.
WAYS = [
    (0, (6, 4), (200, 4)),
    (1, (3, 7, 2), (3, 60, 2)),
    (-1, (2, 1), (2, 90)),
    (0, (900,), (40,)),
    (0, (1,), (3000,)),
]


def values(dtype: str, *shape: int) -> np.ndarray:
    """Numbers with many that are equal, and the ends of the type."""
    found = np.round(9 * normal(*shape))
    some = np.random.random(shape) < 0.05
    ends = ENDS if dtype == "int32" else SPECIAL if "float" in dtype else np.zeros(1)
    return np.where(some, np.random.choice(ends, shape), found)


def made(module, a: np.ndarray, dtype: str, **where):
    """The same values in a module's type of that name."""
    kept = np.abs(a) if dtype == "uint8" else a
    held = kept.astype(np.int64) if "int" in dtype else kept.astype(np.float32)
    return module.tensor(held, **where).to(getattr(module, dtype))


def same(ours, theirs) -> bool:
    """Whether all values are equal; NaN is NaN."""
    a, b = ours.cpu().to(pellucid.float64), theirs.to(torch.float64)
    return np.array_equal(a.numpy(), b.numpy(), equal_nan=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("how", ["amax", "amin"])
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int32", "int8", "uint8", "int64", "bool"]
)
def test_extremes_of_many_sources(dtype, how, own, way):
    dim, shape, sources = way
    x, src = values(dtype, *shape), values(dtype, *sources)
    # The last place gets nothing, where there are several.
    index = np.random.randint(0, max(shape[dim] - 1, 1), sources)
    where = {"device": "webgpu"}
    ours = made(pellucid, x, dtype, **where).scatter_reduce(
        dim, pellucid.tensor(index, **where), made(pellucid, src, dtype, **where), how, include_self=own
    )
    theirs = made(torch, x, dtype).scatter_reduce(
        dim, torch.tensor(index), made(torch, src, dtype), how, include_self=own
    )
    assert same(ours, theirs)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("how", ["amax", "amin"])
def test_lines_of_an_axis(how):
    x, src, index = values("float32", 5, 6), values("float32", 50, 6), np.random.randint(0, 4, 50)
    where = {"device": "webgpu"}
    ours = made(pellucid, x, "float32", **where).index_reduce(
        0, pellucid.tensor(index, **where), made(pellucid, src, "float32", **where), how
    )
    assert same(ours, torch.tensor(x).float().index_reduce(
        0, torch.tensor(index), torch.tensor(src).float(), how
    ))  # fmt: skip


@pytest.mark.parametrize("how", ["amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_gradients_of_what_is_equal_are_shared(how, own):
    # Input that takes no part still counts in PyTorch where it has the value: here it never has.
    x, src = np.round(2 * normal(4, 5)) + (0 if own else 0.25), np.round(2 * normal(70, 5))
    index = np.random.randint(0, 3, (70, 5))
    check(
        lambda t, x, i, s: t.scatter_reduce(x, 0, i, s, how, include_self=own),
        x.astype(np.float32),
        index,
        src,
    )


@pytest.mark.parametrize("how", ["amax", "amin"])
def test_minus_zero_is_a_zero(how):
    zeros = np.array([0.0, -0.0] * 20, np.float32)
    x = pellucid.tensor(zeros[:2], device="webgpu")
    index = pellucid.tensor(np.arange(40) // 20, device="webgpu")
    out = x.scatter_reduce(0, index, pellucid.tensor(zeros, device="webgpu"), how)
    # As amax and amin of whole tensors: of two zeros the one without sign is the larger.
    assert np.signbit(out.numpy()).tolist() == [how == "amin"] * 2


@pytest.mark.parametrize("bad", [5, -1, 2**32])
def test_a_bad_index_among_many_is_raised_by_the_next_read(bad):
    index = np.arange(40) % 5
    index[17] = bad
    out = pellucid.zeros(5, device="webgpu").scatter_reduce(
        0, pellucid.tensor(index, device="webgpu"), pellucid.ones(40, device="webgpu"), "amax"
    )
    with pytest.raises(IndexError, match=f"index {bad} is out of range"):
        out.numpy()


def test_many_sources_take_three_dispatches():
    x, src = pellucid.zeros(50, device="webgpu"), pellucid.ones(40_000, device="webgpu")
    index = pellucid.tensor(np.arange(40_000) % 50, device="webgpu")
    assert dispatches(lambda: x.scatter_reduce(0, index, src, "amax")) == 3
