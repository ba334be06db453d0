"""Numbers against the dtype that would hold them, what a number's type makes of a result, and the memory that
results lie in: as in PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, flushes
from pellucid.errors import DimensionError, PellucidError, RangeError, ShapeError

F = {pellucid: pellucid.nn.functional, torch: torch.nn.functional}


def on(device):
    return pellucid.device(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.zeros(1, dtype=p.uint8).fill_(300),
        lambda p: p.zeros(1, dtype=p.int32).fill_(2**31),
        lambda p: p.zeros(1, dtype=p.int64).fill_(float("inf")),
        lambda p: p.full((1,), float("nan"), dtype=p.int32),
        lambda p: p.full((1,), -129, dtype=p.int8),
        lambda p: p.tensor([2**31], dtype=p.int32),
        lambda p: p.tensor([256], dtype=p.uint8),
        lambda p: p.tensor([float("nan")], dtype=p.int64),
        lambda p: p.tensor([0.5, 1e19], dtype=p.int64),
        lambda p: p.zeros(1, dtype=p.uint8).clamp(min=300),
        lambda p: p.zeros(1, dtype=p.int8).masked_fill(p.tensor([True]), 200),
        lambda p: p.where(p.tensor([True]), 300, p.zeros(1, dtype=p.uint8)),
        lambda p: p.ones(1, dtype=p.int8) ** 300,
        lambda p: p.zeros(1, dtype=p.int16).new_full((1,), 1 << 16),
        lambda p: p.zeros(2, dtype=p.uint8).__setitem__(0, 256),
        lambda p: p.add(p.ones(1, dtype=p.int8), p.ones(1, dtype=p.int8), alpha=200),
        lambda p: p.ones(1, dtype=p.float16) ** 65505.0,
        lambda p: p.ones(1, dtype=p.float16).clamp(max=1e30),
        lambda p: p.zeros(2, dtype=p.float16).fill_(-1e9),
        lambda p: p.full((2,), 3.4e38, dtype=p.bfloat16),
        lambda p: p.zeros(1, dtype=p.float16).masked_fill(p.tensor([True]), -1e9),
        lambda p: p.add(p.ones(1, dtype=p.float16), p.ones(1, dtype=p.float16), alpha=1e5),
        lambda p: p.full((2,), 1e39),
        lambda p: p.zeros(2).fill_(-1e39),
        lambda p: p.zeros(2).__setitem__(0, 1e39),
        lambda p: p.zeros(2).clamp(max=1e39),
        lambda p: p.zeros(1).masked_fill(p.tensor([True]), 1e39),
        lambda p: p.where(p.tensor([True]), p.zeros(1), 1e39),
        lambda p: p.add(p.ones(1), p.ones(1), alpha=1e39),
        lambda p: p.lerp(p.ones(1), p.ones(1), 1e39),
        lambda p: p.linspace(0, 1e39, 3),
        lambda p: F[p].elu(p.ones(1), 1e39),
        lambda p: F[p].leaky_relu(p.ones(1), 1e39),
        lambda p: p.tensor([1]) + 2**64,
        lambda p: p.tensor([1]) * (-(2**63) - 1),
        lambda p: p.tensor([1], dtype=p.int32) == 2**64,
        lambda p: p.tensor([5]) % 2**64,
        lambda p: p.tensor([True]) + 2**64,
        lambda p: p.ones(1) + 2**64,
        lambda p: p.ones(1) < 10**400,
        lambda p: p.ones(2).expand(-5, 2),
        lambda p: p.broadcast_to(p.ones(2), (-5, 2)),
        lambda p: F[p].one_hot(p.tensor([5]), 3).tolist(),
        lambda p: F[p].one_hot(p.tensor([0, -1])).tolist(),
    ],
)
def test_a_number_that_does_not_fit_is_refused(call, device):
    with pytest.raises((RuntimeError, ValueError, OverflowError, IndexError)):
        call(torch)
    with on(device), pytest.raises((RangeError, ShapeError, DimensionError), match=r".{20}"):
        call(pellucid)


# C leaves conversions of these to integers open: PyTorch's on x86.
PAST = [300.0, -1e10, np.nan, np.inf, -np.inf, -1.0, 255.9, 1e10, 2.0**31, -(2.0**31), 2.0**32, 1e19, -1e19]

# What is compared: both ways of writing are run on both libraries.
KEPT = {
    "negative in unsigned": lambda p: p.full((1,), -1, dtype=p.uint8),
    "fractions are cut": lambda p: p.full((2,), -1.5, dtype=p.int8),
    "numbers wrap in arithmetic": lambda p: p.ones(1, dtype=p.uint8) + 300,
    "numbers wrap in comparisons": lambda p: p.ones(1, dtype=p.int8) < 300,
    "infinite and true": lambda p: p.zeros(1, dtype=p.bool).fill_(float("inf")),
    "a tensor without axes >=": lambda p: p.tensor([255, 3], dtype=p.uint8) >= p.tensor(259),
    "a tensor without axes, max": lambda p: p.maximum(p.tensor([255, 3], dtype=p.uint8), p.tensor(-2)),
    "a tensor without axes, min": lambda p: p.minimum(p.tensor([5, -5], dtype=p.int8), p.tensor(172)),
    "a tensor without axes, +": lambda p: p.tensor([5, -5], dtype=p.int16) + p.tensor(1 << 16 | 3),
    **{
        f"a tensor without axes, {name}": lambda p, name=name: getattr(p, name)(
            p.tensor([0, 2, 255], dtype=p.uint8), p.tensor(-(2**63))
        )
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    "a tensor without axes, true": lambda p: p.logical_or(
        p.tensor([0.0, float("nan")], dtype=p.float16), p.tensor(1e-9)
    ),
    "a tensor with an axis, true": lambda p: p.tensor([0, 2], dtype=p.uint8).logical_xor_(p.tensor([256])),
    **{
        f"isclose of {d}": lambda p, d=d: p.isclose(
            p.tensor(integers(d), dtype=getattr(p, d))[:, None], p.tensor(integers(d), dtype=getattr(p, d))
        )
        for d in ("uint8", "int8", "int16", "int32", "int64")
    },
    "isclose of bools": lambda p: p.isclose(
        p.tensor([True, False]), p.tensor([False, False]), rtol=0, atol=1
    ),
    "isclose past a half": lambda p: p.isclose(
        p.tensor([6e4], dtype=p.float16), p.tensor([-6e4], dtype=p.float16), rtol=2.0
    ),
    "bools ** True": lambda p: p.tensor([True, False]) ** True,
    "bools ** False": lambda p: p.tensor([[True, False]] * 3).t()[1:].pow_(False),
    "no bools ** True": lambda p: p.zeros(0, dtype=p.bool) ** True,
    "bools ** integers": lambda p: p.tensor([True, False]) ** p.tensor([2, 0]),
    "a number ** bools": lambda p: 2 ** p.tensor([True, False]),
    "-inf ** a tensor without axes": lambda p: p.pow(float("-inf"), p.tensor(0.5)),
    "a power of one exponent": lambda p: (
        p.tensor([-np.inf, -0.0, 0.0, 4.0, np.nan, -1.0])[:, None] ** p.tensor([[0.5]])
    ),
    "infinite operands": lambda p: p.tensor([0.0, 2.0]) * 1e39,
    "variance of many halves": lambda p: (p.arange(1984) * 40 % 21 - 4).to(p.float16).var(correction=0),
    "deviation of many halves": lambda p: (
        (p.arange(1984) * 40 % 21 - 4).to(p.float16).std((0,), keepdim=True)
    ),
    "a power by NaN": lambda p: p.tensor([0.0, -0.0, 1.0, -1.0]) ** float("nan"),
    "an infinite exponent": lambda p: p.tensor([0.5, 2.0]) ** 1e39,
    "infinite numbers": lambda p: p.full((2,), float("-inf")).clamp(max=float("inf")),
    "an integer of 64 bits": lambda p: p.tensor([1]) + (2**64 - 1),
    "past int64 as a bool": lambda p: p.full((), 2**63, dtype=p.bool),
    "a half and a wide integer": lambda p: p.tensor([0.5], dtype=p.float16) * p.tensor([2049]),
    **{
        f"{name}, {d} and {n}": lambda p, name=name, d=d, n=n: getattr(p, name)(
            p.tensor([np.inf, 6e4, 1.0, -0.1], dtype=getattr(p, d)), p.tensor([[n]], dtype=p.int32)
        ).float()
        for name in ("add", "sub", "mul", "true_divide", "floor_divide", "fmod", "maximum", "eq")
        for d in ("float16", "bfloat16")
        for n in (2**31 - 1, -100000, 2049)
    },
    "square of bools": lambda p: p.tensor([True, False]).square(),
    "hardtanh of integers": lambda p: F[p].hardtanh(p.tensor([-5, 5]), -1.5, 2.5),
    "relu6 of integers": lambda p: F[p].relu6(p.tensor([1, 9], dtype=p.int16)),
    "a fraction for integers": lambda p: p.addcmul(p.tensor([1]), p.tensor([2]), p.tensor([3]), value=1.5),
    "arange of a tensor": lambda p: p.arange(p.tensor(3)),
    "arange of numpy's integer": lambda p: p.arange(np.int64(3)),
    "arange of numpy's float": lambda p: p.arange(np.float64(3)),
    "arange, cut": lambda p: p.arange(0, 2.5, dtype=p.int64),
    **{
        f"linspace {a}, {b}, {n}": lambda p, a=a, b=b, n=n: p.linspace(a, b, n)
        for a, b in ((np.nan, 2), (2, np.nan), (0, np.inf), (-np.inf, 1), (np.inf, np.inf), (3, -1))
        for n in (1, 2, 5)
    },
    "linspace of integers": lambda p: p.linspace(0, 2.5, 7, dtype=p.int8),
    "linspace down": lambda p: p.linspace(10, 2.5, 7, dtype=p.int64),
    "arange of halves": lambda p: p.arange(0, 1, 0.3, dtype=p.float16),
    "a list of tensors of one element": lambda p: p.tensor([p.tensor([1.0]), p.tensor([[2.0]]), 3]),
    "a list of small integers": lambda p: p.tensor(
        [[p.tensor([1], dtype=p.int8)], [p.tensor(2, dtype=p.int8)]]
    ),
    "a list of halves": lambda p: p.tensor([p.tensor(1.5, dtype=p.float16), True]),
    "a list of two integer types": lambda p: p.tensor(
        [p.tensor(200, dtype=p.uint8), p.tensor(-3, dtype=p.int8)]
    ),
    "a list of tensors and a float": lambda p: p.tensor([p.tensor(2**24 + 1), 1.5]),
    **{
        f"a list of numpy's {d}": lambda p, d=d: p.tensor([np.dtype(d).type(3)] * 2)
        for d in ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "bool")
    },
    "a list of numpy's integers and one of Python": lambda p: p.tensor([np.int8(3), 4]),
    "full of numpy's integer": lambda p: p.full((1,), np.int32(3)),
    "full of a tensor": lambda p: p.full((1,), p.tensor(True)),
    "a product of numpy's float": lambda p: p.tensor([1]) * np.float64(1.5),
    "addmm, alpha 0": lambda p: p.addmm(p.ones(2), *[p.full((2, 2), float("nan"))] * 2, alpha=0),
    "addmm, both 0": lambda p: p.addmm(p.ones(2), *[p.full((2, 2), float("inf"))] * 2, alpha=0.0, beta=0),
    "baddbmm, alpha 0": lambda p: p.baddbmm(p.ones(32), *[p.full((1, 32, 32), float("nan"))] * 2, alpha=0),
    **{
        f"floats past {d}": lambda p, d=d: p.tensor(PAST).to(getattr(p, d))
        for d in ("int64", "int32", "int16", "int8", "uint8", "bool")
    },
    "floats in uint32": lambda p: p.tensor([3e9, 4294967040.0, -1.0, 2.0**31, 7.9]).to(p.uint32),
    "layer_norm past float32": lambda p: F[p].layer_norm(p.tensor([1e20, 2e20, -3e20, 4e20]), (4,)),
    "rms_norm past float32": lambda p: F[p].rms_norm(p.tensor([[1e20, 2e20, -3e20, 4e20] * 9]), (36,)),
    "gradient of layer_norm past float32": lambda p: gradient(p, lambda x: F[p].layer_norm(x, (4,))),
    "gradient of rms_norm past float32": lambda p: gradient(p, lambda x: F[p].rms_norm(x, (4,))),
    "a mean past float32": lambda p: p.full((4,), 3e38).mean(),
    "a variance past float32": lambda p: p.tensor([1e20, 2e20, -3e20]).var(),
    "scores past float32": lambda p: F[p].scaled_dot_product_attention(
        *[p.tensor([[[[3e20, 1.0], [1.0, 2.0]]]])] * 3
    ),
    "equal scores in float32": lambda p: F[p].scaled_dot_product_attention(
        p.tensor([[[[1e10, 1.0]]]]), p.tensor([[[[1e10, 1.0], [1e10, 5.0]]]]), p.tensor([[[[1.0], [3.0]]]])
    ),
    "where with numpy's float": lambda p: p.where(p.tensor([True]), p.tensor([1]), np.float32(1.5)),
    "copy_ of a number": lambda p: p.zeros(2).copy_(5),
    "leaky_relu at 0": lambda p: F[p].leaky_relu(p.tensor([0.0, -0.0]), float("inf")),
    "counts for each": lambda p: p.repeat_interleave(p.tensor([4, 5, 6]), p.tensor([2, 0, 1])),
    "counts alone": lambda p: p.repeat_interleave(p.tensor([2, 0, 1])),
    "counts along an axis": lambda p: (
        p.arange(6).reshape(2, 3).repeat_interleave(p.tensor([1, 2]), 0, output_size=3)
    ),
    "one count for all": lambda p: p.arange(3).repeat_interleave(p.tensor(2)),
}


def integers(d):
    ends = np.iinfo(d)
    return [0, 1, 3, int(ends.max) - 2, int(ends.max), int(ends.min)]


def gradient(p, function):
    x = p.tensor([1e20, 2e20, -3e20, 4e20], requires_grad=True)
    return p.autograd.grad(function(x).sum(), x)[0]


def _added(p, x, n):
    x[p.tensor([0, 2])] += n
    return x


def _put(p, x, n):
    x[0] = n
    return x


ARITHMETIC = ["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod"]
# Which numbers meet halves in float32, and which are rounded to them first, is each op's own way.
IN_HALVES = {
    **{
        name: lambda p, x, n, name=name: getattr(p, name)(x, n)
        for name in (*ARITHMETIC, "rsub", "eq", "lt", "ge")
    },
    **{
        f"{name}, no axes": lambda p, x, n, name=name: getattr(p, name)(x, p.tensor(n))
        for name in (*ARITHMETIC, "pow", "atan2", "maximum")
    },
    **{
        f"{name}, no axes first": lambda p, x, n, name=name: getattr(p, name)(p.tensor(n), x)
        for name in ["add", "sub", "mul", "div", "remainder", "fmod", "pow", "atan2"]
    },
    **{f"{name}_": lambda p, x, n, name=name: getattr(x, name + "_")(n) for name in ARITHMETIC},
    "n + x": lambda p, x, n: n + x,
    "n - x": lambda p, x, n: n - x,
    "n * x": lambda p, x, n: n * x,
    "n / x": lambda p, x, n: n / x,
    "n % x": lambda p, x, n: n % x,
    "n ** x": lambda p, x, n: n**x,
    "where": lambda p, x, n: p.where(x > 0, x, n),
    "lerp": lambda p, x, n: p.lerp(x, x.flip(0), n),
    "addcmul": lambda p, x, n: p.addcmul(x, x, x.flip(0), value=n),
    "x[index] += n": _added,
    "x[0] = n": _put,
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", IN_HALVES)
def test_numbers_meet_halves_as_in_pytorch(name, device, dtype):
    def results(p):
        values = [-np.inf, np.inf, 1, 1000.0, 3, 0.1, 60000, -2.5, 0.0, -0.0]
        for n in (1e30, -1e30, 3.4e38, 65519.0, 65520.0, 1 / 3, 0.1, -0.7):
            yield IN_HALVES[name](p, p.tensor(values, dtype=getattr(p, dtype)), n).float().numpy()

    with on(device):
        mine = list(results(pellucid))
    lost = np.finfo(np.float32).tiny if flushes(device) else 0
    np.testing.assert_allclose(mine, list(results(torch)), rtol=3e-3 if name == "n ** x" else 0, atol=lost)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", KEPT)
def test_the_result_is_that_of_pytorch(name, device):
    theirs = KEPT[name](torch)
    with on(device):
        mine = KEPT[name](pellucid)
    assert str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


REFUSED = {
    "lerp of integers": lambda p: p.lerp(p.tensor([1]), p.tensor([2]), 0.5),
    "lerp of two dtypes": lambda p: p.lerp(p.tensor([1.0]), p.tensor([2.0], dtype=p.float16), 0.5),
    "isclose to a number": lambda p: p.isclose(p.ones(2), 1.0),
    "equal to a number": lambda p: p.equal(p.ones(2), 1.0),
    "isclose of two dtypes": lambda p: p.isclose(p.tensor([1.0]), p.tensor([1])),
    "isclose below nothing": lambda p: p.isclose(p.ones(1), p.ones(1), rtol=-1.0),
    "bools ** bools": lambda p: p.tensor([True, False]) ** p.tensor([True, True]),
    "bools ** a bool tensor without axes": lambda p: p.tensor([True, False]) ** p.tensor(True),
    "True ** bools": lambda p: True ** p.tensor([True, False]),
    "pow_ of bools": lambda p: p.tensor([True, False]).pow_(2),
    "frac of integers": lambda p: p.tensor([1]).frac(),
    "argmax of bools": lambda p: p.tensor([True]).argmax(),
    "topk of bools": lambda p: p.tensor([True]).topk(1),
    "abs of bools": lambda p: p.tensor([True]).abs(),
    "floor of bools": lambda p: p.tensor([True]).floor(),
    "gelu of integers": lambda p: F[p].gelu(p.tensor([1])),
    "relu6 of bools": lambda p: F[p].relu6(p.tensor([True])),
    "hardtanh, exchanged": lambda p: F[p].hardtanh(p.ones(1), 2.0, 1.0),
    "hardtanh of unsigned": lambda p: F[p].hardtanh(p.ones(1, dtype=p.uint8)),
    "masked_fill with an axis": lambda p: p.ones(2).masked_fill(p.tensor([True, False]), p.tensor([1.0])),
    "masked_fill, complex": lambda p: p.ones(2, dtype=p.int64).masked_fill(p.tensor([True, False]), 1j),
    "fill_ with an axis": lambda p: p.ones(2).fill_(p.tensor([1.0, 2.0])),
    "linspace with an axis": lambda p: p.linspace(p.tensor([0.0]), 1, 3),
    "movedim twice": lambda p: p.zeros(2, 3, 4).movedim((0, 0), (1, 2)),
    "movedim of other counts": lambda p: p.zeros(2, 3, 4).movedim((0,), (1, 2)),
    "addcdiv of integers": lambda p: p.addcdiv(p.ones(1), p.tensor([1]), p.tensor([2])),
    "a bool alpha": lambda p: p.add(p.ones(1), p.ones(1), alpha=True),
    "bitwise of floats": lambda p: p.bitwise_and(p.ones(1), 1),
    "a negative norm of nothing": lambda p: p.ones(2, 0).norm(-1, 1),
    "a list of tensors of two elements": lambda p: p.tensor([p.ones(2), p.ones(2)]),
    "a list of an empty tensor": lambda p: p.tensor([p.ones(0)]),
    "bernoulli of integers": lambda p: p.bernoulli(p.tensor([1])),
    "uniform_, exchanged": lambda p: p.zeros(2).uniform_(1, 0),
    "uniform_ of NaN": lambda p: p.zeros(2).uniform_(float("nan"), 1),
    "normal_ of a negative deviation": lambda p: p.zeros(2).normal_(0, -1),
    "normal_ of NaN": lambda p: p.zeros(2).normal_(0, float("nan")),
    "negative counts": lambda p: p.arange(2).repeat_interleave(p.tensor([1, -1])),
    "too few counts": lambda p: p.arange(3).repeat_interleave(p.tensor([1, 2])),
    "counts that are floats": lambda p: p.arange(2).repeat_interleave(p.tensor([1.0, 2.0])),
    "a wrong size": lambda p: p.arange(2).repeat_interleave(p.tensor([1, 2]), output_size=4),
    "a list for copy_": lambda p: p.zeros(2).copy_([1.0, 2.0]),
    "abs_, complex": lambda p: p.tensor([1j]).abs_(),
    "kl_div, complex": lambda p: F[p].kl_div(p.tensor([1j]), p.ones(1), reduction="sum"),
    "where, complex": lambda p: p.where(p.tensor([1j]), 1.0, p.ones(1)),
    "where, integers": lambda p: p.where(p.tensor([1]), 1.0, p.ones(1)),
    **{
        f"{name}, complex": lambda p, name=name: getattr(F[p], name)(p.tensor([1j]), p.ones(1))
        for name in ("mse_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy")
    },
    **{
        f"{name}, complex": lambda p, name=name: getattr(p, name)(p.tensor([1j]), p.ones(1))
        for name in ("lt", "le", "gt", "ge", "maximum", "clamp", "remainder", "fmod", "floor_divide", "atan2")
    },
    **{
        f"{name}, complex": lambda p, name=name: getattr(p, name)(p.tensor([1j, 2j]))
        for name in ("max", "argmin", "aminmax", "sort", "argsort", "floor", "round", "sign", "relu", "erf")
        if hasattr(pellucid, name)
    },
    **{
        f"a number first: {name}": lambda p, name=name: getattr(p, name)(2, p.ones(1))
        for name in ("eq", "lt", "ge", "fmod", "rsub", "maximum", "minimum", "max", "min")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_is_refused(name):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as theirs:
        REFUSED[name](torch)
    with on("cpu"), pytest.raises(PellucidError) as mine:
        REFUSED[name](pellucid)
    assert isinstance(mine.value, (TypeError, type(theirs.value)))


def _strided(p, layout):
    x = p.arange(24.0).reshape(2, 3, 4)
    return {"plain": x, "transposed": x.transpose(0, 2), "expanded": x[:1].expand(2, 3, 4)}[layout]


LAID = {
    "cumsum": lambda p, x: x.cumsum(0),
    "cumprod": lambda p, x: x.cumprod(1),
    "sort": lambda p, x: x.sort(0)[0],
    "argsort": lambda p, x: x.argsort(1),
    "topk": lambda p, x: x.topk(2, 1)[0],
    "x[:, index]": lambda p, x: x[:, p.tensor([0, -1, 1])],
    "x[:, :, index]": lambda p, x: x[:, :, p.tensor([[0, 1], [-1, 0]])],
    "x[:, index, index]": lambda p, x: x[:, p.tensor([0, 1]), p.tensor([1, 0])],
    "index_add": lambda p, x: x.index_add(1, p.tensor([0, 1]), p.ones(x.shape[0], 2, x.shape[2])),
    "index_put": lambda p, x: x.index_put((p.tensor([0, 1]),), p.tensor(1.0)),
}


@pytest.mark.parametrize("layout", ["plain", "transposed", "expanded"])
@pytest.mark.parametrize("name", LAID)
def test_what_pytorch_makes_contiguous_is(name, layout):
    theirs = LAID[name](torch, _strided(torch, layout))
    mine = LAID[name](pellucid, _strided(pellucid, layout))
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    assert mine.is_contiguous() or not theirs.is_contiguous()


@pytest.mark.parametrize(
    "made",
    [
        lambda p, x: x.to(p.complex64),
        lambda p, x: x.to(p.complex64).sum(),
        lambda p, x: (x.to(p.complex64) + p.tensor([1j, 2.0])).abs(),
        lambda p, x: (p.tensor([1j, 2.0]) - x).reshape(2, 1).abs() * x,
        lambda p, x: p.cat([x.to(p.complex64), p.tensor([0j])]).abs(),
    ],
)
def test_complex_results_keep_the_graph(made):
    def gradient(p):
        x = p.tensor([0.5, -2.0], requires_grad=True)
        out = made(p, x)
        assert out.requires_grad
        out.abs().sum().backward()
        return x.grad.numpy()

    for device in DEVICES:
        with on(device):
            mine = gradient(pellucid)
        np.testing.assert_allclose(mine, gradient(torch), rtol=1e-6)


def test_a_replay_looks_at_its_numbers():
    """A captured call whose number does not fit is refused as an eager one is."""
    x = pellucid.zeros(3, dtype=pellucid.uint8)
    fill = pellucid.compile(lambda x, n: x.fill_(n), dynamic=("n",))
    for n in (1, 2, 3, 4, 5):
        assert fill(x, n).tolist() == [n] * 3
    with pytest.raises(RangeError):
        fill(x, 300)
    assert fill(x, 6).tolist() == [6] * 3


@pytest.mark.parametrize("device", DEVICES)
def test_a_float_of_the_same_value_lets_no_integer_pass(device):
    with on(device):
        x = pellucid.ones(2)
        for _ in range(2):
            assert (x * 2.0**70).tolist() == [2.0**70] * 2
            with pytest.raises(RangeError, match="64 bits"):
                x * 2**70
