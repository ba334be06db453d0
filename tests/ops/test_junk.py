"""What is no argument at all in the place of each argument: a typed error that names the function, or what
PyTorch takes too; and the device goes on."""

import inspect
import re
import warnings
from contextlib import suppress

import pytest
import torch

import pellucid
from ops.test_samples import FUNCTIONS
from pellucid.errors import PellucidError
from samples import SAMPLES
from samples.outcome import find, typed
from samples.sample import arrays_of, map_arrays

OTHER = {"webgpu": "cpu", "cpu": "meta"}


class Anything:
    """No number, no tensor, no text."""

    def __repr__(self):
        return "<anything>"


ANYTHING = Anything()
JUNK = {
    "None": lambda p, other: None,
    "a text": lambda p, other: "a",
    "anything": lambda p, other: ANYTHING,
    "1.5": lambda p, other: 1.5,
    "1": lambda p, other: 1,
    "2**70": lambda p, other: 2**70,
    "nan": lambda p, other: float("nan"),
    "texts": lambda p, other: ["a"],
    "nothing": lambda p, other: [],
    "a tensor": lambda p, other: p.tensor([1.0, 2.0]),
    "elsewhere": lambda p, other: p.ones(2, device=other),
}
# What we take and PyTorch refuses: the argument, and what is given for it.
TAKEN = {
    # None stands for what is not given.
    ("prod", "dim", "None"), ("logsumexp", "dim", "None"), ("squeeze", "dim", "None"), ("eye", "m", "None"),
    ("scatter", "value", "None"), ("scatter", "reduce", "None"), ("arange", "step", "None"),
    *((name, argument, "None") for name in ("max", "min") for argument in ("dim", "other")),
    *((name, "unbiased", "None") for name in ("var", "std", "var_mean", "std_mean")),
    ("arange", "start", "None"), ("arange", "end", "None"), ("randint", "size", "None"),
    ("randint_like", "high", "None"), ("normal", "size", "1"), ("view_copy", "dtype", "None"),
    *(("normal", name, "a tensor") for name in ("mean", "std")),
    *((name, "out_dtype", "None") for name in ("mm", "bmm", "addmm", "baddbmm")),
    *((f"{name}split", "indices", "None") for name in ("tensor_", "h", "v", "d")),
    *((f"{name}split", "sections", "None") for name in ("tensor_", "h", "v", "d")),
    # No axes are all of them.
    ("logsumexp", "dim", "nothing"), ("aminmax", "dim", "nothing"),
    # None stands for the last axes, or for a tolerance that is not given.
    *((f"fft.{name}2", "dim", "None") for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    ("nuclear_norm", "dim", "None"), ("frobenius_norm", "dim", "None"), ("linalg.pinv", "rcond", "None"),
    *(("linalg.matrix_rank", "tol", junk) for junk in ("None", "1", "1.5", "nan", "a tensor")),
    ("linalg.matrix_rank", "atol", "a tensor"),
    # Settings of windows by name, whatever stands before them.
    *((f"{name}_window", setting, number)
        for name, settings in (("hamming", "alpha beta"), ("kaiser", "beta"))
        for setting in settings.split() for number in ("1", "1.5", "nan")),
    *((name, "dim", "nothing") for name in ("fft.fftshift", "fft.ifftshift", "linalg.norm")),
    # One number stands for a tuple of one.
    ("randint", "size", "1"), ("full", "size", "1"), ("tile", "*1", "1"), ("flip", "*1", "1"),
    # Numbers of any size, which are reduced or only compared.
    ("roll", "shifts", "2**70"), ("linspace", "start", "2**70"), ("linspace", "end", "2**70"),
    *((name, "correction", "2**70") for name in ("var", "std", "var_mean", "std_mean")),
    # One number stands for a tensor, and any object for its truth.
    *((name, argument, number) for name, arguments in {
        "ldexp": "input", "dist": "input other", "nn.functional.pairwise_distance": "x1 x2",
        "nn.functional.soft_margin_loss": "input target", "nn.functional.poisson_nll_loss": "target",
        "nn.functional.gaussian_nll_loss": "var",
    }.items() for argument in arguments.split() for number in ("1", "1.5", "nan")),
    *((name, flag, junk) for name, flags in {
        "isin": "assume_unique invert", "bucketize": "out_int32 right", "searchsorted": "out_int32 right",
        "nn.functional.poisson_nll_loss": "log_input full", "nn.functional.triplet_margin_loss": "swap",
        "rrelu": "training inplace",
    }.items() for flag in flags.split() for junk in JUNK),
    # Of all elements there is no axis to be kept, and the usual norm is that of 2.
    *((name, "keepdim", junk) for name in ("median", "nanmedian") for junk in JUNK),
    *((name, "dim", "None") for name in ("median", "nanmedian", "squeeze_copy")),
    *((name, "x", "None") for name in ("trapezoid", "cumulative_trapezoid")),
    *((f"nn.functional.{name}", "p", "None") for name in ("pairwise_distance", "triplet_margin_loss")),
    ("dist", "p", "None"),
    # No list of numbers, but an empty tensor.
    *((name, argument, "nothing") for name, argument in (
        ("bucketize", "input"), ("searchsorted", "input"), ("isin", "elements"), ("isin", "test_elements"))),
    *((name, "dx", "2**70") for name in ("trapezoid", "cumulative_trapezoid")),
    ("gradient", "spacing", "2**70"), ("rrelu", "upper", "2**70"),
    # Values are not read for it, and None is what is not given.
    ("bernoulli", "input", "a tensor"), ("bernoulli", "p", "None"),
}  # fmt: skip


def places(key):
    """The simplest sample of a function, and each of its arguments: where it stands, and its name."""
    plain = [s for s in SAMPLES[key] if not (s.call or s.refused is not None or s.theirs or s.maybe)]
    small = [s for s in plain if sum(a.size for a in arrays_of(s.args, s.kwargs)) < 5000]
    if not small:
        return None, []
    sample, function = small[0], FUNCTIONS[key]
    form = inspect.signature(getattr(getattr(function, "op", None), "function", function))
    names = [p.name for p in form.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    later = [p.name for p in form.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    given = [*range(key.startswith("Tensor."), len(sample.args)), *sample.kwargs]
    named = {*names[: len(sample.args)], *sample.kwargs}
    found = [(k, names[k] if isinstance(k, int) and k < len(names) else f"*{k}") for k in given]
    found = [(k, k if isinstance(k, str) else name) for k, name in found]
    return sample, [*found, *((name, name) for name in later if name not in named)]


def attempt(p, key, sample, place, junk, other):
    """What a call raises, or None."""
    try:
        args, kwargs = map_arrays(lambda a: p.tensor(a), (sample.args, sample.kwargs))
        if isinstance(kwargs.get("dtype"), str):
            kwargs["dtype"] = typed(p, kwargs["dtype"])
        value = JUNK[junk](p, other)
        if isinstance(place, str):
            kwargs[place] = value
        else:
            args = (*args[:place], value, *args[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = find(p, key)(*args, **kwargs)
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if hasattr(t, "tolist") and t.device.type != "meta":
                    t.tolist()
    except Exception as error:  # whatever it is, the test looks at it
        return error
    return None


def on_one_device():
    """Functions that take arguments, each with one of its devices: they take turns."""
    for k, key in enumerate(SAMPLES):
        sample, arguments = places(key)
        if arguments:
            yield key, sample.devices[k % len(sample.devices)]


@pytest.mark.turns(3)
@pytest.mark.parametrize(("key", "device"), on_one_device())
def test_junk_is_refused(key, device):
    sample, arguments = places(key)
    wrong = []
    with pellucid.device(device):
        x = pellucid.ones(3)
        for place, name in arguments:
            for junk in JUNK:
                mine = attempt(pellucid, key, sample, place, junk, OTHER[device])
                with suppress(IndexError):  # an op before the refused one may have met a bad index
                    (x + 1).tolist()
                assert (x + 1).tolist() == [2.0] * 3
                what = f"{name} is {junk}"
                if mine is None:
                    known = find(torch, key) is None or (key, name, junk) in TAKEN or junk == "elsewhere"
                    theirs = None if known else attempt(torch, key, sample, place, junk, "cpu")
                    # A float may be as large, which PyTorch does not take from an integer.
                    if theirs is not None and not (junk == "2**70" and isinstance(theirs, OverflowError)):
                        wrong.append(f"{what}: PyTorch says {type(theirs).__name__} {theirs}")
                elif not isinstance(mine, (PellucidError, NotImplementedError)):
                    wrong.append(f"{what}: a bare {type(mine).__name__}: {mine}")
                elif not re.match(r"[\w.]+(\(\))?: |device ", str(mine)):
                    wrong.append(f"{what}: no name before {mine}")
    assert not wrong, "\n".join(wrong)
