"""Cases of PyTorch's operator database: forward, gradients, other strides, and calls that must raise."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import pellucid

from .outcome import Counts, compare, flat
from .translate import MissingName, function, value

# What this library does not have by design, and what PyTorch has for its own compilers.
OUT_OF_SCOPE = (
    "sparse.", "torch.", "jiterator", "_chunk_cat", "_segment_reduce", "_native_batch_norm_legit",
    "_batch_norm_with_update", "_upsample_bilinear2d_aa", "_softmax_backward_data", "_unsafe_masked_index",
    "masked.", "to_sparse", "chalf", "hash_tensor", "slice", "native_dropout_backward",
    "max_pool2d_with_indices_backward",
)  # fmt: skip
# Values that nobody fixes: drawn from another generator, the memory's, places of equal values.
FREE = (
    "argsort", "bernoulli", "cauchy", "empty", "exponential", "geometric", "log_normal", "multinomial",
        "new_empty",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool", "nn.functional.rrelu", "normal", "pca_lowrank", "rand", "resize_",
    "svd_lowrank", "uniform",
)  # fmt: skip
# Indices of values that may be equal, as most integers of a sample are.
TIED = ("kthvalue", "mode", "sort", "topk")
DTYPES = torch.float32, torch.int64, torch.bool


def name_of(info: Any) -> str:
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def in_scope() -> dict[str, Any]:
    """The entries of the database that we mean to have, by name and variant."""
    return {name_of(info): info for info in op_db if not info.name.startswith(OUT_OF_SCOPE)}


def _spread(samples: Iterator, most: int) -> list:
    """At most so many of the first hundred samples, from all over them."""
    found = list(itertools.islice(samples, 100))
    return [found[k * len(found) // most] for k in range(most)] if len(found) > most else found


def _processed(info: Any, sample: Any, out: Any, ours: bool) -> Any:
    """What is compared of the results: not phases, signs, and places of equal values, which nothing fixes."""
    process = sample.output_process_fn_grad
    out = (function(process) if ours else process)(out)
    return out[0] if info.name in TIED and not sample.input.dtype.is_floating_point else out


def run(info: Any, most: int, seed: int, dtypes: tuple = DTYPES) -> dict[str, Counts]:
    """Run samples of one entry: counts of ``forward``, ``gradient``, ``strides`` and ``raises``."""
    counts = {kind: Counts() for kind in ("forward", "gradient", "strides", "raises")}
    values = not info.name.startswith(FREE)
    for d in dtypes:
        if d not in info.supported_dtypes("cpu"):
            continue
        grad = d is torch.float32 and info.supports_autograd and d in info.supported_backward_dtypes("cpu")
        torch.manual_seed(seed)
        for sample in _spread(info.sample_inputs("cpu", d, requires_grad=grad), most):
            _sample(info, sample, values, grad, counts)
            if d is torch.float32:
                _strides(info, sample, values, counts["strides"])
    _must_raise(info, counts["raises"], most)
    return counts


def _call(info: Any, sample: Any) -> Any:
    torch.manual_seed(7)
    return _processed(info, sample, info.op(sample.input, *sample.args, **sample.kwargs), False)


def _arguments(sample: Any) -> tuple[Any, list, dict]:
    return value(sample.input), value(list(sample.args)), value(sample.kwargs)


def leaves_of(*found: Any) -> list:
    """The tensors that require grad, in order."""
    return [t for t in flat(found) if hasattr(t, "requires_grad") and t.requires_grad]


def _sample(info: Any, sample: Any, values: bool, grad: bool, counts: dict[str, Counts]) -> None:
    given: Any
    values = values and not sample.kwargs.get("dropout_p")
    try:
        given = _arguments(sample)  # first: the call may write into its arguments
    except MissingName as error:
        given = error
    try:
        theirs = _call(info, sample)
    except (RuntimeError, NotImplementedError, TypeError):
        return  # PyTorch refuses its own sample on this machine

    def ours():
        if isinstance(given, MissingName):
            raise given
        first, args, kwargs = given
        pellucid.manual_seed(7)
        return _processed(info, sample, function(info.op)(first, *args, **kwargs), True)

    found = compare(counts["forward"], ours, theirs, values, f"{sample.summary()[:80]}: ")
    if not (grad and values):
        return
    leaves = leaves_of(sample.input, sample.args, sample.kwargs)
    places = [k for k, t in enumerate(flat(theirs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    roots = [t for k, t in enumerate(flat(theirs)) if k in places]
    if not leaves or not roots:
        return
    seeds = [torch.randn_like(r) for r in roots]
    try:
        wanted = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
    except RuntimeError:
        return
    wanted = [torch.zeros_like(x) if g is None else g for g, x in zip(wanted, leaves)]
    if found is None:
        counts["gradient"].add("missing", "the forward call failed")
        return

    def gradients():
        own = leaves_of(given)
        # A result whose derivative is zero need not require grad.
        tops = [
            (t, s)
            for t, s in zip([t for k, t in enumerate(flat(found)) if k in places], seeds)
            if t.requires_grad
        ]
        if not tops:
            return [pellucid.zeros_like(x) for x in own]
        grads = pellucid.autograd.grad(
            [t for t, _ in tops], own, [value(s).to(t.device) for t, s in tops], allow_unused=True
        )
        return [pellucid.zeros_like(x) if g is None else g for g, x in zip(grads, own)]

    compare(counts["gradient"], gradients, wanted)


def _strides(info: Any, sample: Any, values: bool, counts: Counts) -> None:
    values = values and not sample.kwargs.get("dropout_p")
    try:
        apart = sample.noncontiguous()
        kept = _arguments(apart)
        theirs = _call(info, apart)
    except (RuntimeError, NotImplementedError, TypeError, MissingName):
        return

    def ours():
        first, args, kwargs = kept
        pellucid.manual_seed(7)
        return _processed(info, apart, function(info.op)(first, *args, **kwargs), True)

    compare(counts, ours, theirs, values, "other strides: ")


def _must_raise(info: Any, counts: Counts, most: int) -> None:
    if info.error_inputs_func is None:
        return
    for case in itertools.islice(info.error_inputs("cpu"), most):
        sample = case.sample_input
        try:
            info.op(sample.input, *sample.args, **sample.kwargs)
            continue
        except Exception as error:
            theirs = error
        counts.add(*_raised(lambda s=sample: _called(info, s), theirs))


def _called(info: Any, sample: Any) -> list:
    first, args, kwargs = _arguments(sample)
    if "out" in kwargs:
        known = list(zip([sample.input, *sample.args], [first, *args], strict=True))
        several = isinstance(kwargs["out"], (list, tuple))
        outs = zip(sample.kwargs["out"], kwargs["out"], strict=True) if several else ()
        kwargs["out"] = (
            [_shared(t, out, known) for t, out in outs]
            if several
            else _shared(sample.kwargs["out"], kwargs["out"], known)
        )
    out = function(info.op)(first, *args, **kwargs)
    # Indices are checked on the device: a read brings what was wrong with them.
    return [t.tolist() for t in flat(out) if hasattr(t, "_meta")]


def _shared(theirs: Any, ours: Any, known: list[tuple[Any, Any]]) -> Any:
    """An ``out`` of ours in the memory of an argument where PyTorch's is."""
    for t, own in known:
        if (
            isinstance(t, torch.Tensor)
            and t.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr()
        ):
            return own.as_strided(tuple(theirs.shape), theirs.stride(), theirs.storage_offset())
    return ours


def _raised(call: Callable[[], Any], theirs: Exception) -> tuple[str, str]:
    try:
        call()
    except MissingName as error:
        return "missing", str(error)
    except AttributeError as error:
        return "missing", str(error)
    except Exception as error:
        if isinstance(error, type(theirs)):
            return "passed", ""
        return "error", f"{type(error).__name__}: {error}; PyTorch {type(theirs).__name__}"
    return "wrong", f"raised nothing; PyTorch: {theirs}"
