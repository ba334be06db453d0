"""What stands where an integer, a shape, an axis, a flag or a number is expected: it works as the plain
number does, or is refused by a typed error, and either way the device goes on."""

import gc
import random

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import PellucidError

F = {pellucid: pellucid.nn.functional, torch: torch.nn.functional}

INTEGERS = {
    "sum": lambda p, x, v: x.sum(v),
    "sum of several": lambda p, x, v: x.sum((v, 0)),
    "mean": lambda p, x, v: x.mean(v),
    "prod": lambda p, x, v: x.prod(v),
    "any": lambda p, x, v: x.any(v),
    "var": lambda p, x, v: x.var(v),
    "amax": lambda p, x, v: x.amax(v),
    "max": lambda p, x, v: p.max(x, v, True),
    "argmin": lambda p, x, v: x.argmin(v),
    "logsumexp": lambda p, x, v: x.logsumexp(v),
    "norm": lambda p, x, v: x.norm(2, v),
    "softmax": lambda p, x, v: x.softmax(v),
    "cumsum": lambda p, x, v: x.cumsum(v),
    "sort": lambda p, x, v: x.sort(v),
    "topk": lambda p, x, v: x.topk(v),
    "topk dim": lambda p, x, v: x.topk(1, v),
    "view": lambda p, x, v: x.view(v, -1),
    "view of a tuple": lambda p, x, v: x.view((v, -1)),
    "reshape": lambda p, x, v: x.reshape(v, -1),
    "flatten": lambda p, x, v: x.flatten(v),
    "unflatten": lambda p, x, v: x.unflatten(2, (v, -1)),
    "permute": lambda p, x, v: x.permute(v, 0, 2),
    "transpose": lambda p, x, v: x.transpose(v, 0),
    "movedim": lambda p, x, v: x.movedim(v, 0),
    "expand": lambda p, x, v: x[0].expand(v, 3, 4),
    "broadcast_to": lambda p, x, v: x[0].broadcast_to((v, 3, 4)),
    "squeeze": lambda p, x, v: x.squeeze(v),
    "unsqueeze": lambda p, x, v: x.unsqueeze(v),
    "as_strided": lambda p, x, v: x.as_strided((v, 2), (4, 1)),
    "as_strided stride": lambda p, x, v: x.as_strided((2, 2), (v, 1)),
    "as_strided offset": lambda p, x, v: x.as_strided((2, 2), (2, 1), v),
    "narrow": lambda p, x, v: x.narrow(1, 0, v),
    "narrow start": lambda p, x, v: x.narrow(1, v, 1),
    "narrow dim": lambda p, x, v: x.narrow(v, 0, 1),
    "select": lambda p, x, v: x.select(1, v),
    "x[v]": lambda p, x, v: x[v],
    "x[..., v]": lambda p, x, v: x[..., v],
    "x[v:]": lambda p, x, v: x[v:],
    "x[:, :v]": lambda p, x, v: x[:, :v],
    "diagonal": lambda p, x, v: x.diagonal(v),
    "chunk": lambda p, x, v: x.chunk(v),
    "split": lambda p, x, v: x.split(v),
    "split into": lambda p, x, v: x.split([v, 1], 1),
    "unbind": lambda p, x, v: x.unbind(v),
    "cat": lambda p, x, v: p.cat([x, x], v),
    "stack": lambda p, x, v: p.stack([x, x], v),
    "repeat": lambda p, x, v: x.repeat(v, 1, 1),
    "tile": lambda p, x, v: x.tile((v,)),
    "repeat_interleave": lambda p, x, v: x.repeat_interleave(v),
    "repeat_interleave dim": lambda p, x, v: x.repeat_interleave(2, v),
    "flip": lambda p, x, v: x.flip(v),
    "roll": lambda p, x, v: x.roll(v, 0),
    "roll dims": lambda p, x, v: x.roll(1, v),
    "tril": lambda p, x, v: x.tril(v),
    "gather": lambda p, x, v: x.gather(v, p.zeros(1, 1, 1, dtype=p.int64)),
    "index_select": lambda p, x, v: x.index_select(v, p.tensor([0])),
    "size": lambda p, x, v: p.tensor(x.size(v)),
    "stride": lambda p, x, v: p.tensor(x.stride(v)),
    "zeros": lambda p, x, v: p.zeros(v, 2),
    "zeros of a tuple": lambda p, x, v: p.zeros((2, v)),
    "ones": lambda p, x, v: p.ones(v),
    "empty": lambda p, x, v: p.empty(v, 2) * 0,
    "full": lambda p, x, v: p.full((v, 2), 1.5),
    "new_zeros": lambda p, x, v: x.new_zeros(v),
    "eye": lambda p, x, v: p.eye(v),
    "linspace": lambda p, x, v: p.linspace(0, 1, v),
    "rand": lambda p, x, v: p.rand(v) * 0,
    "randn": lambda p, x, v: p.randn(2, v) * 0,
    "randint": lambda p, x, v: p.randint(v, (2,)) * 0,
    "randint size": lambda p, x, v: p.randint(1, (v,)),
    "randperm": lambda p, x, v: p.randperm(v) * 0,
    "one_hot": lambda p, x, v: F[p].one_hot(p.tensor([0]), v),
    "glu": lambda p, x, v: F[p].glu(x.transpose(1, 2), v),
    "avg_pool1d": lambda p, x, v: F[p].avg_pool1d(x, v),
    "max_pool2d stride": lambda p, x, v: F[p].max_pool2d(x, 2, v),
    "adaptive_avg_pool1d": lambda p, x, v: F[p].adaptive_avg_pool1d(x, v),
    "conv1d stride": lambda p, x, v: F[p].conv1d(x, p.ones(1, 3, 2), stride=v),
    "conv1d padding": lambda p, x, v: F[p].conv1d(x, p.ones(1, 3, 2), padding=v),
    "conv1d groups": lambda p, x, v: F[p].conv1d(x, p.ones(1, 3, 2), groups=v),
    "conv_transpose1d dilation": lambda p, x, v: F[p].conv_transpose1d(x, p.ones(3, 1, 2), dilation=v),
    "pad": lambda p, x, v: F[p].pad(x, (v, 0)),
    "layer_norm": lambda p, x, v: F[p].layer_norm(x[..., :1], (v,)),
    "rms_norm": lambda p, x, v: F[p].rms_norm(x[..., :1], (v,)),
    "normalize": lambda p, x, v: F[p].normalize(x, 2.0, v),
    "embedding": lambda p, x, v: F[p].embedding(p.tensor([0]), x[0], v),
    "cross_entropy": lambda p, x, v: F[p].cross_entropy(x[0], p.tensor([0, 1, 2]), ignore_index=v),
    "nn.Linear": lambda p, x, v: p.nn.Linear(4, v)(x) * 0,
    "nn.Linear in": lambda p, x, v: p.nn.Linear(v, 4).weight * 0,
    "nn.Embedding": lambda p, x, v: p.nn.Embedding(v, 2).weight * 0,
    "nn.Conv1d": lambda p, x, v: p.nn.Conv1d(3, v, 2)(x) * 0,
    "nn.Conv1d kernel": lambda p, x, v: p.nn.Conv1d(3, 2, v)(x) * 0,
    "nn.LayerNorm": lambda p, x, v: p.nn.LayerNorm(v)(x[..., :1]),
    "nn.Flatten": lambda p, x, v: p.nn.Flatten(v)(x),
    "nn.Softmax": lambda p, x, v: p.nn.Softmax(v)(x),
    "nn.MultiheadAttention": lambda p, x, v: p.nn.MultiheadAttention(4, v)(x, x, x)[0] * 0,
}

NUMBERS = {
    "x + v": lambda p, x, v: x + v,
    "v - x": lambda p, x, v: v - x,
    "x > v": lambda p, x, v: x > v,
    "add alpha": lambda p, x, v: p.add(x, x, alpha=v),
    "clamp": lambda p, x, v: x.clamp(v),
    "pow": lambda p, x, v: x**v,
    "where": lambda p, x, v: p.where(x > 1, x, v),
    "masked_fill": lambda p, x, v: x.masked_fill(x > 1, v),
    "fill_": lambda p, x, v: x.clone().fill_(v),
    "lerp": lambda p, x, v: p.lerp(x, x + 1, v),
    "addcmul": lambda p, x, v: p.addcmul(x, x, x, value=v),
    "full": lambda p, x, v: p.full((2,), v),
    "full_like": lambda p, x, v: p.full_like(x, v),
    "arange": lambda p, x, v: p.arange(v),
    "arange end": lambda p, x, v: p.arange(-1, v),
    "arange step": lambda p, x, v: p.arange(0, 3, v),
    "linspace": lambda p, x, v: p.linspace(0, v, 3),
    "var": lambda p, x, v: x.var(0, correction=v),
    "norm": lambda p, x, v: x.norm(v),
    "leaky_relu": lambda p, x, v: F[p].leaky_relu(x, v),
    "elu": lambda p, x, v: F[p].elu(x, v),
    "softplus": lambda p, x, v: F[p].softplus(x, v),
    "hardtanh": lambda p, x, v: F[p].hardtanh(x, -9, v),
    "dropout": lambda p, x, v: F[p].dropout(x, v) * 0,
    "layer_norm": lambda p, x, v: F[p].layer_norm(x, (4,), eps=v),
    "rms_norm": lambda p, x, v: F[p].rms_norm(x, (4,), eps=v),
    "normalize": lambda p, x, v: F[p].normalize(x, eps=v),
    "huber_loss": lambda p, x, v: F[p].huber_loss(x, x + 1, delta=v),
    "smooth_l1_loss": lambda p, x, v: F[p].smooth_l1_loss(x, x + 1, beta=v),
    "label smoothing": lambda p, x, v: F[p].cross_entropy(x[0], p.tensor([0, 1, 2]), label_smoothing=v),
    "attention": lambda p, x, v: F[p].scaled_dot_product_attention(x, x, x, scale=v),
    "setitem": lambda p, x, v: _with_item(x.clone(), v),
    "scatter": lambda p, x, v: x.scatter(0, p.zeros(1, 1, 1, dtype=p.int64), v),
    "SGD": lambda p, x, v: p.optim.SGD([p.ones(1, requires_grad=True)], lr=v).defaults["lr"] * p.ones(1),
    "AdamW": lambda p, x, v: (
        p.optim.AdamW([p.ones(1, requires_grad=True)], eps=v).defaults["eps"] * p.ones(1)
    ),
}

FLAGS = {
    "sum keepdim": lambda p, x, v: x.sum(0, v),
    "max keepdim": lambda p, x, v: p.max(x, 0, v),
    "sort": lambda p, x, v: x.sort(0, v),
    "topk": lambda p, x, v: x.topk(1, 0, v),
    "std": lambda p, x, v: x.std(0, v),
    "attention": lambda p, x, v: F[p].scaled_dot_product_attention(x, x, x, is_causal=v),
    "avg_pool1d": lambda p, x, v: F[p].avg_pool1d(x, 2, ceil_mode=v),
}


def _with_item(x, v):
    x[0] = v
    return x


def _values(p):
    return {
        "tensor(1)": p.tensor(1),
        "tensor(True)": p.tensor(True),
        "tensor(1.5)": p.tensor(1.5),
        "tensor([1])": p.tensor([1]),
        "tensor([1, 2])": p.tensor([1, 2]),
        "int64(1)": np.int64(1),
        "bool_": np.bool_(True),
        "float64(1.5)": np.float64(1.5),
        "float32(1.5)": np.float32(1.5),
        "array([1, 2])": np.array([1, 2]),
        "1": 1,
        "1.0": 1.0,
        "2.5": 2.5,
        "'2'": "2",
        "None": None,
        "2**31": 2**31,
        "2**63": 2**63,
        "-1": -1,
        "True": True,
        "nan": float("nan"),
        "object": object(),
        "[1]": [1],
        "complex": 1j,
    }


def _alive() -> None:
    assert (pellucid.ones(2) + 1).tolist() == [2.0, 2.0]


# PyTorch makes what has 2**31 elements, in memory that a test has not.
_TOO_LARGE = {
    *("zeros", "zeros of a tuple", "ones", "empty", "full", "new_zeros", "rand", "randn", "randint size"),
    *(
        "randperm",
        "linspace",
        "eye",
        "arange",
        "arange end",
        "one_hot",
        "repeat",
        "tile",
        "repeat_interleave",
    ),
    *("nn.Linear", "nn.Linear in", "nn.Embedding", "nn.Conv1d", "nn.Conv1d kernel", "nn.LayerNorm"),
    *("nn.MultiheadAttention", "adaptive_avg_pool1d", "pad", "conv1d padding", "conv_transpose1d dilation"),
}

# A number that is NaN bounds nothing in some of PyTorch's code, and makes NaN in other.
_EITHER = {("clamp", "nan")}

CASES = [
    *[(name, call, "int") for name, call in INTEGERS.items()],
    *[(name, call, "number") for name, call in NUMBERS.items()],
    *[(name, call, "flag") for name, call in FLAGS.items()],
]


GROUPS = 10


@pytest.mark.filterwarnings("ignore")  # what PyTorch thinks of some values
@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize("group", range(GROUPS))
def test_any_value_works_or_is_refused(group, device):
    """All arguments with a few of the values each: which they are is drawn."""
    draw = random.Random(group)
    with pellucid.device(device):
        x, theirs = pellucid.arange(24.0).reshape(2, 3, 4), torch.arange(24.0).reshape(2, 3, 4)
        _alive()
        gc.collect()
        before = pellucid.webgpu.memory_allocated()
        for name, call, _ in CASES[group::GROUPS]:
            ours, oracles = _values(pellucid), _values(torch)
            for what in {"tensor(1)", "int64(1)", *draw.sample(sorted(ours), 3 if device == "webgpu" else 6)}:
                if (what != "2**31" or name not in _TOO_LARGE) and (name, what) not in _EITHER:
                    _compare(f"{name}({what})", call, (x, ours[what]), (theirs, oracles[what]))
            del ours
        _alive()
        gc.collect()
        assert pellucid.webgpu.memory_allocated() == before


def _compare(what, call, ours, theirs):
    try:
        got = _plain(call(pellucid, *ours))
    except PellucidError:
        return
    except Exception as error:
        raise AssertionError(f"{what} raises a bare {type(error).__name__}: {error}") from error
    try:
        expected = _plain(call(torch, *theirs))
    except (TypeError, ValueError, RuntimeError, IndexError, OverflowError):
        return  # more is taken than there, but as what it says
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=what)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, t: x.repeat_interleave(t),
        lambda x, t: x.as_strided((t, 2), (4, 1)),
        lambda x, t: x[0].broadcast_to((t, 3, 4)),
        lambda x, t: x.diagonal(t),
        lambda x, t: pellucid.zeros(t, 2),
        lambda x, t: x.narrow(1, 0, t),
    ],
)
def test_an_integer_tensor_is_the_integer_that_it_holds(call):
    x = pellucid.arange(24.0).reshape(2, 3, 4)
    made = call(x, pellucid.tensor(2))
    assert made.tolist() == call(x, 2).tolist()
    assert all(type(n) is int for n in (*made.shape, *made.stride(), made.storage_offset()))
    _alive()


@pytest.mark.parametrize("dim", [True, 1.0, np.float64(1), np.bool_(True)])
def test_what_is_equal_to_an_integer_is_not_taken_for_it_once_there_is_a_plan(dim):
    x = pellucid.ones(2, 3, device="cpu")
    x.sum(1), x.softmax(1)
    for call in (x.sum, x.softmax, x.argmax):
        with pytest.raises(TypeError, match="dim must be an integer"):
            call(dim)


def _plain(out):
    out = out[0] if isinstance(out, (tuple, list)) else out
    if out.numel() > 1 << 16:  # an expanded view: as large as it says only where it is read
        return np.asarray(out.shape, np.float64)
    return np.asarray(out.detach().tolist(), np.float64)
