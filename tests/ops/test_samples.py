"""Every public op against PyTorch, as the table of samples says: values, dtypes, first and second derivatives
in every layout, the forms that the op table declares (methods, aliases, in place, ``out=``), and errors.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from pellucid.op.plan_cache import forget_plans
from pellucid.op.public import EXPORTS, IN_PLACE, METHODS
from samples import SAMPLES
from samples.outcome import Value, arguments, differences, find, flat, in_place, on, outcome, read
from samples.sample import Sample, arrays_of
from turns import are_named, in_turn

DEVICES = ("webgpu", "cpu")
import_module("pellucid.nn")
PLACES = {"" if place == "torch" else f"{place}.": names for place, names in EXPORTS.items()}
PLACES["Tensor."] = METHODS


def declared(function: Any) -> Any:
    """What is behind a public function."""
    return getattr(function, "declared", function)


def public_names() -> dict[str, Callable]:
    """Each public function by the name of the first place that has it."""
    names = {}
    for prefix, place in PLACES.items():
        for name, function in place.items():
            function = declared(function)
            # What copies a result over its argument is a form of what makes it.
            is_form = getattr(function, "__wrapped__", None) is declared(METHODS.get(name[:-1], 0))
            if function not in names.values() and not is_form:
                names[prefix + name] = function
    return names


FUNCTIONS = public_names()
VARIANTS = sorted({(key, variant) for key, rows in SAMPLES.items() for s in rows for variant in s.variants})
# PyTorch's in-place forms and methods whose names ours have too.
FORMS = {
    key: (
        [
            n
            for n, f in METHODS.items()
            if declared(f) is function and n.removesuffix("_") not in METHODS.keys() - {n}
        ],
        [n for n, o in IN_PLACE.items() if o is getattr(function, "op", 0)]
        + [f"{n}_" for n, f in METHODS.items() if declared(f) is function and f"{n}_" in METHODS],
    )
    for key, function in FUNCTIONS.items()
}


@pytest.mark.parametrize(("what", "found"), [("result 1", 1), ("gradient 0", 1), ("gradient 1", 0)])
def test_more_than_pytorch_has_is_a_difference(what, found):
    """But a gradient of zeros, which need not be there."""
    own, more = Value("result 0", np.ones(2), "float32"), np.zeros(2) + (what != "gradient 1")
    assert len(differences([own, Value(what, more, "float32")], [own], Sample(()))) == found
    assert not differences([own], [own], Sample(()))


def attempt(call: Callable, *args) -> list[Value] | Exception:
    try:
        return call(*args)
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as error:
        return error


def compared(sample: Sample, ours, theirs) -> list[str]:
    """What is not the same, errors too: ours is one that PyTorch's users catch, and says where."""
    if isinstance(theirs, Exception):
        if not (sample.maybe or sample.refused is not None):
            raise theirs
        wanted = type(theirs) if sample.error is None else sample.error
        if not isinstance(ours, wanted | RuntimeError if sample.maybe else wanted):
            return [f"{ours!r}, PyTorch: {theirs!r}"]
        return (
            [] if re.search(sample.refused or "", str(ours)) and len(str(ours)) > 20 else [f"the text {ours}"]
        )
    if isinstance(ours, Exception):
        raise ours
    return differences(ours, theirs, sample)


def of_the_cpu(function: Callable, sample: Sample, layout: str, theirs: list[Value]) -> list[Value]:
    """Random numbers of our cpu device, which are of PyTorch's shapes and dtypes."""
    made = outcome(pellucid, function, sample, layout, "cpu")
    assert [(v.array.shape, v.dtype) for v in made] == [(v.array.shape, v.dtype) for v in theirs]
    return made


def refused(key: str, sample: Sample, device: str) -> list[str]:
    ours = attempt(outcome, pellucid, FUNCTIONS[key], sample, "contiguous", device)
    if sample.error is not None:
        theirs = sample.error()
    else:
        theirs = attempt(outcome, torch, find(torch, key), sample, "contiguous")
    if not isinstance(theirs, Exception):
        return ["PyTorch takes this"]
    return compared(sample, ours, theirs)


def forms(key: str, sample: Sample, device: str) -> Iterator[str]:
    """Differences of the other forms of a call."""
    methods, written = FORMS[key]
    function, contiguous = FUNCTIONS[key], "contiguous"
    plain = sample.but(grad=False)
    first = sample.args and isinstance(sample.args[0], np.ndarray | np.generic)
    for name in methods if first else ():
        theirs = outcome(torch, getattr(torch.Tensor, name), plain, contiguous)
        yield from compared(
            plain, outcome(pellucid, getattr(pellucid.Tensor, name), plain, contiguous, device), theirs
        )
    for name in written if first else ():
        for layout in sample.layouts:
            theirs = attempt(in_place, torch, name, sample, layout)
            ours = attempt(in_place, pellucid, name, sample, layout, device)
            yield from [f"{name}, {layout}: {d}" for d in compared(sample.but(maybe=True), ours, theirs)]
    if takes_out(function):
        yield from into(function, plain, device)


def takes_out(function: Callable) -> bool:
    return "out" in inspect.signature(function, follow_wrapped=False).parameters


def into(function: Callable, sample: Sample, device: str) -> list[str]:
    """``out=``: rows of larger tensors, and tensors of no elements; as many as there are results."""
    expected = outcome(pellucid, function, sample, "contiguous", device)
    with on(pellucid, device):
        args, kwargs, *_ = arguments(pellucid, sample, "contiguous", False)
        result = function(*args, **kwargs)
        results = list(flat(result))
        wide = [pellucid.zeros(2, *r.shape, dtype=r.dtype) for r in results]
        for outs in ([w[1] for w in wide], [pellucid.zeros(0, dtype=r.dtype) for r in results]):
            given = tuple(outs) if isinstance(result, tuple) else outs[0]
            made = list(flat(function(*args, **kwargs, out=given)))
            assert [id(t) for t in made] == [id(t) for t in outs]
            found = [read(f"result {k}", out) for k, out in enumerate(outs)]
            yield from differences(found, expected, sample)
        assert not any(w[0].any() for w in wide)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("key", "variant"), VARIANTS)
def test_variant(key, variant, monkeypatch):
    """The other variants of an op's kernels, with new plans: its first sample, and those whose turn it is."""
    monkeypatch.setenv("PELLUCID_KERNELS", variant)
    forget_plans()
    wrong = []
    rows = [(k, sample) for k, sample in enumerate(SAMPLES[key]) if variant in sample.variants]
    for place, (k, sample) in enumerate(rows):
        if place == 0 or in_turn(place, 3):
            expected = outcome(torch, find(torch, key), sample, "contiguous")
            found = outcome(pellucid, FUNCTIONS[key], sample, "contiguous", "webgpu")
            wrong += [f"sample {k}: {d}" for d in differences(found, expected, sample)]
    forget_plans()
    assert not wrong, "\n".join(wrong[:20])


def types_of(sample: Sample) -> tuple[str, ...]:
    """What kernels of a sample are compiled for."""
    return str(sample.dtype), *sorted({a.dtype.name for a in arrays_of(sample.args, sample.kwargs)})


def waiting_types(key: str) -> set[tuple[str, ...]]:
    """Types whose turn is at another commit: every other one behind the op's first."""
    types = list(dict.fromkeys(types_of(sample) for sample in SAMPLES[key]))
    return {t for k, t in enumerate(types[1:]) if not in_turn(k, 2)}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("key", [*SAMPLES, *(key for key in FUNCTIONS if key not in SAMPLES)])
def test_op(key, device, request):
    """P-058, P-060: every kernel beside PyTorch, over shapes, layouts and types, of which some take turns on
    webgpu, where each costs a compiled kernel; where tests are chosen by name, all run.
    """
    assert key in SAMPLES, f"{key} has no samples: write them in the file of its group in tests/samples"
    assert key in FUNCTIONS, f"{key} has samples and is no public op: declare it, or take its samples away"
    ours, theirs, wrong = FUNCTIONS[key], find(torch, key), []
    waiting = set() if device == "cpu" or are_named(request.config) else waiting_types(key)
    for k, sample in enumerate(SAMPLES[key]):
        if device not in sample.devices:
            continue
        if sample.refused is not None or sample.error is not None:
            wrong += [f"sample {k}: {d}" for d in refused(key, sample, device)]
            continue
        if types_of(sample) in waiting:
            continue
        for layout in sample.layouts:
            expected = attempt(outcome, torch, theirs, sample, layout)
            if sample.random:
                expected = of_the_cpu(ours, sample, layout, expected)
            found = attempt(outcome, pellucid, ours, sample, layout, device)
            wrong += [f"sample {k}, {layout}: {d}" for d in compared(sample, found, expected)]
        if not (sample.call or sample.maybe or sample.random):
            wrong += [f"sample {k}: {d}" for d in forms(key, sample, device)]
    assert not wrong, "\n".join(wrong[:20])
