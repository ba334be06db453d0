"""What stands where an integer, a shape, an axis, a flag or a number is expected: it works as the plain
number does, or is refused by a typed error, and either way the device goes on."""

import gc
import random
import re

import numpy as np
import pytest
import torch

import pellucid
from ops.test_samples import FUNCTIONS
from pellucid.errors import PellucidError
from samples import SAMPLES
from samples.outcome import find, typed
from samples.sample import arrays_of, map_arrays

# What no sample of an op has: indexing, modules, optimizers, and lists of numbers.
OTHERS = {
    "sum of several": lambda p, x, v: x.sum((v, 0)), "split into": lambda p, x, v: x.split([v, 1], 1),
    "view": lambda p, x, v: x.view(v, -1), "permute": lambda p, x, v: x.permute(v, 0, 2),
    "flip": lambda p, x, v: x.flip(v), "zeros": lambda p, x, v: p.zeros((2, v)),
    "expand": lambda p, x, v: x[0].expand(v, 3, 4),
    "x[v]": lambda p, x, v: x[v], "x[..., v]": lambda p, x, v: x[..., v], "x[v:]": lambda p, x, v: x[v:],
    "x[:, :v]": lambda p, x, v: x[:, :v], "setitem": lambda p, x, v: _with_item(x.clone(), v),
    "size": lambda p, x, v: p.tensor(x.size(v)), "stride": lambda p, x, v: p.tensor(x.stride(v)),
    "new_zeros": lambda p, x, v: x.new_zeros(v), "v - x": lambda p, x, v: v - x,
    "fill_": lambda p, x, v: x.clone().fill_(v),
    "nn.Linear": lambda p, x, v: p.nn.Linear(4, v)(x) * 0,
    "nn.Linear in": lambda p, x, v: p.nn.Linear(v, 4).weight * 0,
    "nn.Embedding": lambda p, x, v: p.nn.Embedding(v, 2).weight * 0,
    "nn.Conv1d": lambda p, x, v: p.nn.Conv1d(3, v, 2)(x) * 0,
    "nn.Conv1d kernel": lambda p, x, v: p.nn.Conv1d(3, 2, v)(x) * 0,
    "nn.LayerNorm": lambda p, x, v: p.nn.LayerNorm(v)(x[..., :1]),
    "nn.Flatten": lambda p, x, v: p.nn.Flatten(v)(x), "nn.Softmax": lambda p, x, v: p.nn.Softmax(v)(x),
    "nn.MultiheadAttention": lambda p, x, v: p.nn.MultiheadAttention(4, v)(x, x, x)[0] * 0,
    "SGD": lambda p, x, v: p.optim.SGD([p.ones(1, requires_grad=True)], lr=v).defaults["lr"] * p.ones(1),
    "AdamW": lambda p, x, v: p.optim.AdamW([p.ones(1, requires_grad=True)],
        eps=v).defaults["eps"] * p.ones(1),
}  # fmt: skip


def of_a_sample(key, sample, place):
    """The call with another value for one argument, which is counted or named."""

    def call(p, x, v):
        args, kwargs = map_arrays(lambda a: p.tensor(a), (sample.args, sample.kwargs))
        if "dtype" in kwargs:
            kwargs["dtype"] = typed(p, kwargs["dtype"])
        if isinstance(place, str):
            kwargs[place] = v
        else:
            args = (*args[:place], v, *args[place + 1 :])
        out = find(p, key)(*args, **kwargs)
        return out.new_zeros(out.shape) if sample.random else out

    return call


def of_samples():
    """Every argument that is a number or flag in a sample of an op."""
    calls = {}
    for key, rows in SAMPLES.items():
        for s in rows:
            plain = s.rtol < 1e-3 and not (s.call or s.maybe or s.refused is not None or s.theirs)
            if plain and sum(a.size for a in arrays_of(s.args, s.kwargs)) < 1000:
                for place, value in [*enumerate(s.args), *s.kwargs.items()]:
                    # Functions of ops take flags by their truth, as Python does.
                    if type(value) in (int, float) or (type(value) is bool and hasattr(FUNCTIONS[key], "op")):
                        calls.setdefault(f"{key}, {place}", of_a_sample(key, s, place))
    return calls


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


# PyTorch makes what has 2**31 elements, in memory that a test has not. Polynomials leave float32 there.
_TOO_LARGE = re.compile(
    "zeros|ones|empty|full|eye|arange|linspace|rand|repeat|tile|one_hot|pad|conv|pool|nn[.][A-Z]|vander|_indices"
    "|bincount|histc|histogram|nonzero_static|diag|combinations|tensor_split|windows|_window|resample|upsample"
    "|interpolate|fold|shuffle|fft|stft|logspace|multinomial|randint|matrix_power|pixel|grid|interp"
)
# A number that is NaN bounds nothing in some of PyTorch's code, and makes NaN in other.
_EITHER = {
    ("linspace, 0", "nan"),
    ("clamp, 1", "nan"),
    ("clamp, 2", "nan"),
    ("clamp, min", "nan"),
    ("clamp, max", "nan"),
    ("nn.functional.multi_margin_loss, 3", "nan"),
    ("special.zeta, 0", "2**63"),
    # Roundings are inverted, since nothing is cut off; of fewer than no samples PyTorch has one frequency.
    ("linalg.pinv, rtol", "-1"),
    ("fft.rfftfreq, 0", "-1"),
}
CASES = [*of_samples().items(), *OTHERS.items()]
GROUPS = 10


@pytest.mark.turns(3)
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
        for name, call in CASES[group::GROUPS]:
            ours, oracles = _values(pellucid), _values(torch)
            for what in {"tensor(1)", "int64(1)", *draw.sample(sorted(ours), 3 if device == "webgpu" else 6)}:
                is_large = (what == "2**31" and _TOO_LARGE.search(name)) or (
                    "**" in what and "polynomial" in name
                )
                if not is_large and (name, what) not in _EITHER:
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
    if isinstance(out, bool):
        return np.asarray(out)
    if out.numel() > 1 << 16:  # an expanded view: as large as it says only where it is read
        return np.asarray(out.shape, np.float64)
    return np.asarray(out.detach().tolist(), np.complex128)
