"""Functions of one number: special values, accuracy over the whole range, halves."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pellucid
from ops.oracle import DEVICES, agree, flushes, normal
from ops.values import equal, ours
from pellucid.ops.elementwise import activations
from samples import elementwise, special
from samples.outcome import find
from samples.sample import arrays_of, map_arrays

SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 1e-45, -1e-45, 1e-40, 1e-38, 1.1754944e-38,
     1e-30, 1e30, -1e30, 3.4e38, -3.4e38, 88.7, 88.8, -88, -100, -103.9, -104.1, 89.5, 127, 128, 128.5,
     -126, -130, -149, -150, 1e5, -1e5, 1e4, 3e6, 1e9, 20, 20.1, 9, 9.2, 10, 0.99999994, 1.0000001, 2.5,
     -2.5, 0.49999997, 8388609, 16777216, -0.49999997, 1.5, 3.5, -1.5, 1e-8, 1e-4, -1e-4, 1000, 2.0**-20],
    np.float32
)  # fmt: skip
# At zeros of sinc, as of PyTorch's, the rounding of pi is left.
EXACT = (*[name for name in elementwise.UNARY if name not in ("neg", "positive", "logit", "sinc")],)


@pytest.mark.parametrize("name", [*EXACT, "logit", "sinc", "silu", "softplus", "logsigmoid"])
def test_edges(name):
    """NaN, infinities, both zeros, subnormals, overflow and huge angles give what PyTorch gives, signs of
    zeros included."""
    x = torch.tensor(SPECIAL)
    single = getattr(torch, name, None) or getattr(F, name)
    # PyTorch's float32 sinh and cosh overflow too early.
    function = (lambda x: single(x.double()).float()) if name in ("sinh", "cosh") else single
    theirs = function(x).numpy()
    for device in DEVICES:
        mine = (getattr(pellucid, name, None) or getattr(activations, name))(ours(x, device))
        # silu(-88) is normal, and what a compiler may make of it, x * (e^44x * e^44x), is not.
        atol = 1e-36 if name == "silu" and flushes(device) else 1e-37
        agree(mine, function, x, device=device, rtol=2e-6, atol=atol, what=device)
        zero = (SPECIAL == 0) & (theirs == 0)
        signs = np.signbit(mine.numpy()[zero])
        np.testing.assert_array_equal(signs, np.signbit(theirs[zero]), err_msg=device)


# Poles, where PyTorch's digits make a large number; and an infinite degree, which is none.
UNLIKE = {"polygamma": {-1, -2, -3, -100}, "nn.functional.gelu": {np.inf}}
POINTS = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 7.5, -7.5, 20.5, -20.5, 100, -100],
    np.float32,
)


def calls_of_one():
    """The calls among the samples that make a float of each of some floats."""
    found = {}
    for key, samples in {**elementwise.SAMPLES, **special.SAMPLES}.items():
        for s in samples:
            (x, *more) = [a for a in arrays_of(s.args, s.kwargs) if a.ndim] or [None]
            args, kwargs = map_arrays(lambda a: "_", (s.args, s.kwargs))
            is_plain = not (s.call or s.maybe or s.theirs or "dtype" in s.kwargs) and s.refused is None
            if x is None or more or x.dtype != np.float32 or not is_plain or "complex" in key:
                continue
            if not ("polynomial" in key and args[0] != "_"):
                found[f"{key} {args} {kwargs}"] = key, s
    return found


CALLS = calls_of_one()


@pytest.mark.parametrize("name", CALLS)
def test_not_a_number_and_infinities(name):
    key, s = CALLS[name]
    kept = ~np.isin(POINTS, [*UNLIKE.get(key, ())])
    results = []
    for p, device in ((torch, "cpu"), *((pellucid, d) for d in s.devices)):
        args, kwargs = map_arrays(
            lambda a, p=p, device=device: p.tensor(POINTS if a.ndim else a, device=device), (s.args, s.kwargs)
        )
        made = find(p, key)(*args, **kwargs)
        made = [t.detach().numpy()[kept] for t in (made if isinstance(made, (tuple, list)) else [made])]
        results.append([np.where(np.isfinite(a), 0, a) for a in made])
    for mine in results[1:]:
        for a, b in zip(mine, results[0], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", EXACT)
def test_relative_error_below_one_in_a_million(name):
    """Against float64: PyTorch's own float32 kernels may be the less exact ones."""
    rng = np.random.default_rng(5)
    parts = [rng.standard_normal(4000) * scale for scale in (0.01, 1, 10, 50, 1e6)]
    x = np.concatenate([*parts, np.linspace(-1, 1, 2001)]).astype(np.float32)
    exact = getattr(torch, name)(torch.tensor(x).double()).numpy()
    counted = np.isfinite(exact) & (np.abs(exact) < 3e38) & ((np.abs(exact) > 1e-37) | (exact == 0))
    mine = getattr(pellucid, name)(pellucid.tensor(x, device="webgpu")).numpy()
    np.testing.assert_allclose(mine[counted], exact[counted], rtol=1e-6, atol=0)


def test_powers_of_two_and_ten_are_exact():
    k = np.arange(-126, 128)
    powers = pellucid.tensor((2.0**k).astype(np.float32), device="webgpu")
    assert powers.log2().tolist() == k.tolist()
    assert pellucid.tensor(k.astype(np.float32), device="webgpu").exp2().tolist() == (2.0**k).tolist()
    tens = pellucid.tensor([1.0, 10.0, 100.0, 1000.0], device="webgpu")
    np.testing.assert_allclose(tens.log10().numpy(), [0, 1, 2, 3], rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "sin", "floor", "square"])
def test_halves_are_computed_in_float32_and_rounded_once(name, dtype):
    x = torch.tensor(np.abs(normal(300)) * 3).to(getattr(torch, dtype))
    rounded = getattr(torch, name)(x.float()).to(x.dtype)
    for device in DEVICES:
        mine = getattr(pellucid, name)(ours(x, device))
        # A float32 result that is off by its last bit may round to the other neighbour.
        different = mine.float().numpy() != rounded.float().numpy()
        assert different.mean() < 0.01
        equal(mine, rounded, 2e-3 if dtype == "float16" else 1e-2)


def test_angles_of_sides_of_any_size():
    """Of the largest sides, whose reciprocals vanish, and of subnormal ones, which count."""
    rng = np.random.default_rng(4)
    size, beside = rng.uniform(-149, 127.9, 40_000), rng.uniform(-8, 8, 40_000)
    x = (np.exp2(size) * rng.choice([-1, 1], size.size)).astype(np.float32)
    y = np.exp2(np.where(beside < 0, rng.permutation(size), np.minimum(size + beside, 127.9))).astype(
        np.float32
    )
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    for device in DEVICES:
        kept = slice(None) if not flushes(device) else (np.abs(x) > 1.2e-38) & (y > 1.2e-38)
        out = pellucid.atan2(pellucid.tensor(y, device=device), pellucid.tensor(x, device=device)).numpy()
        np.testing.assert_allclose(out[kept], exact[kept], rtol=2.5e-7, atol=1.2e-38, err_msg=device)
