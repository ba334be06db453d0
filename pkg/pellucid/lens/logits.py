"""The logit lens: what each layer would have said, had it been the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import ref

from ..autograd.grad_mode import under
from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..tensors.tensor import Tensor
from .capture import capture
from .looks import LogitLens, LookTap, Request, as_slice
from .paths import checked
from .seen import Seen


def logit_lens(
    model: Any,
    source: Tensor | Seen,
    pattern: str | None = None,
    *,
    top_k: int = 5,
    positions: slice | int | None = None,
    **forward,
) -> LogitLens:
    """What each layer would have said: final norm, unembedding, softmax, top k of its output.

    Who looks at every step of ``model.stream`` says so up front, with `watch`.

    Args:
        model: a causal language model with ``unembed(hidden)``.
        source: ids (1, time) to run, or what `capture` saw of a run.
        pattern: paths of the layers; the model's own if not given.
        top_k: candidates per cell.
        positions: which positions; all if not given.
        forward: further arguments of the model's call, such as ``past_key_values``.

    Returns:
        A `LogitLens`; its last row is the model's own prediction.

    Raises:
        WeightError: no module fits, or nothing that was captured does.
        ShapeError: several sequences, or outputs that are not hidden states.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens"
    """
    pattern = pattern or _layers(model)
    look = _request(model, (pattern,), top_k, positions).look
    if not isinstance(source, (Seen, Tensor)):
        raise ArgumentError(f"logit_lens: source must be ids or what was seen, not {describe(source)}.")
    if not isinstance(source, Seen):
        with capture(model, pattern) as seen:
            under(False, model, source, **forward)
    else:
        seen = source
    return LogitLens(*look(seen))


@contextmanager
def watch(
    model: Any, pattern: str | None = None, *, top_k: int = 5, positions: slice | int | None = None
) -> Iterator[Seen]:
    """Make a look of the logit lens a part of every call of a model while the context is open.

    It is computed, captured and replayed with the call. So a look at each id of ``model.stream`` is there
    with the id, where one that `logit_lens` is asked for afterwards stands behind the step that runs ahead.
    What `logit_lens` raises comes out of the call.

    Args:
        model: a causal language model with ``unembed(hidden)``.
        pattern: paths of the layers; the model's own if not given.
        top_k: candidates per cell.
        positions: which positions of each call; all if not given.

    Yields:
        A `Seen` of the layers, whose ``look`` is the `LogitLens` of the last call.

    Raises:
        WeightError: no module fits.

    Example:
        >>> from pellucid import lens
        >>> def tell(model, ids):
        ...     with lens.watch(model, positions=-1) as seen:
        ...         for token in model.stream(ids):
        ...             print(token, seen.look.table())
    """
    pattern = pattern or _layers(model)
    with capture(model, pattern) as seen, ExitStack() as stack:
        tap = look_at(model, seen, seen, (pattern,), top_k, positions)
        stack.callback(tap.end)
        stack.callback(model.register_forward_hook(tap).remove)
        yield seen


def _layers(model: Any) -> str:
    """The paths of a model's layers."""
    return getattr(model, "layers_path", "model.layers") + ".*"


def look_at(
    model: Any,
    seen: Seen,
    layers: dict[str, Tensor],
    names: tuple[str, ...],
    top_k: int,
    positions: slice | int | None,
) -> LookTap:
    """The tap that makes a look at some layers a part of each call; see `watch`.

    Args:
        model: whose call it is.
        seen: who gets the look.
        layers: where taps keep the layers.
        names: which of these.
        top_k, positions: as in `watch`.
    """
    return LookTap(layers, seen.looks, _request(model, names, top_k, positions), seen.begin)


def _request(model: Any, pattern: tuple[str, ...], top_k: int, positions: slice | int | None) -> Request:
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 1:
        raise RangeError(f"lens: top_k must be an integer of at least 1, not {describe(top_k)}.")
    checked(model, pattern)
    chosen = as_slice(positions)
    return Request(ref(model), pattern, top_k, chosen.start, chosen.stop, chosen.step)
