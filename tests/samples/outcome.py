"""Runs a sample: results and gradients of one call, in PyTorch or on a device of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from samples.sample import Sample, arrays_of, map_arrays


class Value(NamedTuple):
    """A result or gradient: which, its elements, its dtype, how much wider its tolerance is."""

    what: str
    array: np.ndarray
    dtype: str
    wider: int = 1


def find(t: Any, name: str) -> Any:
    """The public function of that name, as `SAMPLES` writes it; None where the module has none."""
    prefix, _, plain = name.rpartition(".")
    places = (attrgetter(prefix)(t),) if prefix else (t, t.nn.functional)
    return next((getattr(place, plain) for place in places if hasattr(place, plain)), None)


def typed(t: Any, name: str) -> Any:
    """The module's dtype."""
    return getattr(t, "bool_" if name == "bool" and hasattr(t, "bool_") else name)


def laid_out(t: Any, array: np.ndarray, layout: str, dtype: str | None, grad: bool) -> tuple[Any, Any]:
    """(what the call sees, the leaf behind it)."""
    if layout == "strided" and array.ndim:
        held = np.swapaxes(array, 0, -1) if array.ndim > 1 else array.repeat(2)
    elif layout == "offset" and array.size:
        held = np.concatenate([np.resize(array, 3), array.reshape(-1)])
    else:
        held = array
    leaf = t.tensor(np.ascontiguousarray(held).reshape(held.shape))
    if dtype and array.dtype.kind == "f":
        leaf = leaf.to(typed(t, dtype))
    if grad and array.dtype.kind in "fc":
        leaf.requires_grad_()
    if held is array:
        return leaf, leaf
    if layout == "offset":
        return leaf[3:].reshape(array.shape), leaf
    return (leaf.transpose(0, -1) if array.ndim > 1 else leaf[::2]), leaf


def on(t: Any, device: str | None) -> Any:
    """Where tensors are made; PyTorch's stay on its own cpu device."""
    return t.device(device) if device else nullcontext()


def flat(value: Any) -> Iterator[Any]:
    """Results one after the other."""
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from flat(v)
    else:
        yield value


def read(what: str, value: Any, wider: int = 1) -> Value:
    """A tensor's elements, bfloat16 widened; Python's values as they are."""
    if not hasattr(value, "detach"):
        return Value(what, np.asarray(value), type(value).__name__, wider)
    dtype = str(value.dtype).split(".")[1]
    t = value.detach()
    if hasattr(t, "_is_zerotensor"):  # PyTorch's
        t = t.float() if dtype == "bfloat16" else t
        t = (t.clone() if t._is_zerotensor() else t).resolve_conj()
    return Value(what, t.numpy(), dtype, wider)


def arguments(t: Any, sample: Sample, layout: str, grad: bool) -> tuple[tuple, dict, list, list]:
    """The call's arguments and keywords with tensors in them, these tensors, and the leaves behind them."""
    pairs = [laid_out(t, a, layout, sample.dtype, grad) for a in arrays_of(sample.args, sample.kwargs)]
    seen = [tensor for tensor, _ in pairs]
    given = iter(seen)
    args, kwargs = map_arrays(lambda _: next(given), (sample.args, sample.kwargs))
    if isinstance(kwargs.get("dtype"), str):
        kwargs["dtype"] = typed(t, kwargs["dtype"])
    return args, kwargs, seen, [leaf for _, leaf in pairs]


def outcome(
    t: Any, function: Callable, sample: Sample, layout: str, device: str | None = None
) -> list[Value]:
    """Every result and gradient of a call.

    Args:
        t: the module, PyTorch or pellucid.
        function: what is called, where the sample does not say it.
        sample: the call.
        layout: how its arrays lie in memory.
        device: a device of ours.
    """
    call = (sample.theirs if device is None else None) or sample.call
    random = np.random.default_rng(4)

    def parts(g: Any) -> Any:
        """A gradient as real numbers, whose squares have a real sum."""
        return t.view_as_real(g.resolve_conj()) if g is not None and g.is_complex() else g

    with on(t, device):
        t.manual_seed(3)
        args, kwargs, _, leaves = arguments(t, sample, layout, sample.grad)
        out = list(flat(call(t, *args, **kwargs) if call else function(*args, **kwargs)))
        found = [read(f"result {k}", o) for k, o in enumerate(out)]
        roots = [o for o in out if hasattr(o, "detach") and o.requires_grad]
        if not (sample.grad and roots):
            return found
        seeds = [
            t.tensor(random.standard_normal(tuple(o.shape)).astype(np.float32)).to(o.dtype) for o in roots
        ]
        of = [(k, leaf) for k, leaf in enumerate(leaves) if leaf.requires_grad]
        again = sample.second and layout == "contiguous"
        first = t.autograd.grad(roots, [leaf for _, leaf in of], seeds, create_graph=again, allow_unused=True)
        found += [read(f"gradient {k}", g, 10) for (k, _), g in zip(of, first, strict=True) if g is not None]
        squares = [(p * p).sum() for p in map(parts, first) if again and p is not None and p.requires_grad]
        if squares:
            second = t.autograd.grad(
                sum(squares[1:], squares[0]), [leaf for _, leaf in of], allow_unused=True
            )
            named = zip(of, second, strict=True)
            found += [read(f"second derivative {k}", g, 100) for (k, _), g in named if g is not None]
        return found


def in_place(t: Any, name: str, sample: Sample, layout: str, device: str | None = None) -> list[Value]:
    """All elements of the memory that the in-place form writes into, also those beside its tensor."""
    with on(t, device):
        args, kwargs, _, leaves = arguments(t, sample, layout, False)
        result = getattr(args[0], name)(*args[1:], **kwargs)
        assert result is args[0]
        return [read("the memory", leaves[0])]


def differences(ours: list[Value], theirs: list[Value], sample: Sample, least: float = 0.0) -> list[str]:
    """What is not the same.

    Args:
        least: the relative tolerance that is always left.
    """
    mine, found = {v.what: v for v in ours}, []
    known = {v.what for v in theirs}
    found += [
        f"{v.what} is more than PyTorch has"
        for v in ours
        if v.what not in known and (v.what.startswith("result") or np.any(v.array))
    ]
    for what, b, b_type, wider in theirs:
        a, a_type = (mine[what].array, mine[what].dtype) if what in mine else (np.zeros_like(b), b_type)
        if what not in mine and not what.startswith("second"):  # a derivative that is 0 need not be there
            found.append(f"{what} is missing")
        if a.shape != b.shape or a_type != b_type:
            found.append(f"{what}: {a_type}{a.shape} and not {b_type}{b.shape}")
            continue
        size = np.abs(b[np.isfinite(b)]).max(initial=1) if what.startswith("second") else 1
        rtol, atol = wider * max(sample.rtol, least), wider * sample.atol * max(1, size)
        try:
            if "float" in b_type or "complex" in b_type:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
            else:
                np.testing.assert_array_equal(a, b)
        except AssertionError as error:
            found.append(f"{what}: {' '.join(str(error).split())[:600]}")
    return found
