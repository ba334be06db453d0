"""`vmap`: a function of one example, over a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.pytree import flatten, unflatten
from ..op.schema import OPS
from ..tensors.tensor import Tensor
from .batching import Batched, Level, levels, of_level, running, whole_of


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The function that calls ``func``, written for one example, for all examples of a batch at once.

    Ops of families (elementwise, reductions, products, views, gathers, norms, convolutions with one weight)
    become one call for the batch. Every other op runs for one example after the other.

    Args:
        func: of tensors, or of lists, tuples and dictionaries of them; returns tensors.
        in_dims: the axis of the batch in each argument, None for those that are the same for all examples.
        out_dims: where it goes in the results.
        randomness: what examples draw: the "same" numbers, "different" ones, or "error".
        chunk_size: so many examples at once.

    Raises:
        RangeError: the batch has another length in another argument, or an axis is out of range.
        ArgumentError: arguments do not fit ``in_dims``, or ``func`` reads values or returns no tensors.

    Source: https://pytorch.org/docs/stable/generated/torch.func.vmap.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> torch.vmap(torch.dot)(x, x).tolist()
        [5.0, 25.0]
    """
    if randomness not in ("error", "same", "different"):
        raise RangeError(f"vmap: randomness must be 'error', 'same' or 'different', not {randomness!r}.")

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        structure = flatten((args, kwargs), leaves)
        dims = [*_dims(in_dims, args, "in_dims"), *_dims(0, tuple(kwargs.values()), "in_dims")]
        moved = [_to_front(t, d) for t, d in zip(leaves, dims, strict=True)]
        sizes = [t.shape[0] for t, d in zip(moved, dims, strict=True) if d is not None]
        if not sizes:
            raise RangeError("vmap: in_dims is None for all arguments. Give at least one an axis.")
        if len(set(sizes)) > 1:
            raise RangeError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{sizes} for the mapped dimension"
            )

        def run(begin: int, end: int) -> Any:
            given = [
                t if d is None else t.narrow(0, begin, end - begin) if end - begin < sizes[0] else t
                for t, d in zip(moved, dims, strict=True)
            ]
            return _run(func, structure, given, dims, end - begin, randomness)

        step = chunk_size or sizes[0] or 1
        results = [run(k, min(k + step, sizes[0])) for k in range(0, max(sizes[0], 1), step)]
        found, (form, of_batch) = [result for result, *_ in results], results[0][1:]
        outs = [
            OPS["cat"].call(list(p), 0) if len(found) > 1 else next(iter(p)) for p in zip(*found, strict=True)
        ]
        made = unflatten(form, iter(outs))
        placed = []
        for t, d, batched in zip(outs, _dims(out_dims, (made,), "out_dims"), of_batch, strict=True):
            if d is None and batched:
                raise RangeError("vmap: out_dims is None for a result that differs between examples.")
            placed.append(t.select(0, 0) if d is None else t.movedim(0, d) if d else t)
        return unflatten(form, iter(placed))

    return mapped


def _dims(dims: Any, given: Any, name: str) -> list[int | None]:
    """An axis, or None, for each leaf of a value."""
    if isinstance(dims, int) and not isinstance(dims, bool):
        leaves: list[Any] = []
        flatten(given, leaves)
        return [dims for _ in leaves]
    if dims is None:
        leaves = []
        flatten(given, leaves)
        return [None for _ in leaves]
    parts: Any = given
    if isinstance(dims, (tuple, list)):
        if name == "out_dims" and len(given) == 1 and isinstance(parts[0], (tuple, list)):
            given = parts[0]
        if isinstance(given, (tuple, list)) and len(given) == len(dims):
            return [d for one, part in zip(dims, given, strict=True) for d in _below(one, part)]
    if isinstance(dims, dict) and isinstance(given, dict) and dims.keys() == given.keys():
        return [d for key, part in given.items() for d in _below(dims[key], part)]
    raise RangeError(
        f"vmap: {name or 'in_dims'} is not compatible with the structure of what is given: {dims!r}."
    )


def _below(dims: Any, part: Any) -> list[int | None]:
    return _dims(dims, part if isinstance(dims, (tuple, list, dict)) else (part,), "")


def _to_front(t: Any, d: int | None) -> Any:
    if d is None:
        return t
    if not isinstance(t, Tensor):
        raise RangeError(f"vmap: Got in_dim={d} for an input but the input is of type {type(t)}, no Tensor.")
    if not -t.dim() <= d < t.dim():
        raise RangeError(f"vmap: Got in_dim={d} for an input of {t.dim()} axes.")
    return t.movedim(d, 0) if d else t


def _run(
    func: Callable, structure: Any, given: list, dims: list, size: int, randomness: str
) -> tuple[list, Any, list[bool]]:
    """The results of one call, as batches along their first axes, and their structure."""
    level = Level(len(levels()) + 1, size, randomness)
    wrapped = [t if d is None else Batched(t, level) for t, d in zip(given, dims, strict=True)]
    args, kwargs = unflatten(structure, iter(wrapped))
    out = running(level, func, args, kwargs)
    leaves: list[Any] = []
    form = flatten(out, leaves)
    for t in leaves:
        if not isinstance(t, Tensor):
            raise ArgumentError(
                f"vmap: the function must only return Tensors, got type {type(t)} as a return."
            )
    return [whole_of(t, level) for t in leaves], form, [of_level(t, level) for t in leaves]


__all__ = ["vmap"]
