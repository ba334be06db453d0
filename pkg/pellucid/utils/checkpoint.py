"""Checkpoints of activations: what a part of a model saves for its gradient is computed again when it is
asked for, instead of being kept.

Source: Chen et al. 2016, "Training deep nets with sublinear memory cost"
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum
from typing import Any

from ..autograd.grad_mode import is_grad_enabled, under
from ..autograd.graph import saved_tensors_hooks
from ..device.stream import stream
from ..errors import ArgumentError, GradientError, RangeError
from ..ops.random.generator import default_generator
from ..tensors.tensor import Tensor


class CheckpointError(GradientError):
    """The repetition of a checkpointed call saved other tensors than the call."""


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """The result of ``function(*args, **kwargs)``, whose graph keeps nothing: the backward calls it again.

    Args:
        function: computes the same at every call with the same arguments.
        args, kwargs: its arguments.
        use_reentrant: accepted; one way serves both, and needs no input that requires grad.
        context_fn: gives two contexts, for the call and for the repetition.
        determinism_check: "default", or "none" for no look at what the repetition saves.
        debug, early_stop: accepted.
        preserve_rng_state: let the repetition draw the random numbers of the call.

    Raises:
        CheckpointError: from a walk: the repetition saved other tensors.

    Source: https://pytorch.org/docs/stable/checkpoint.html

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.checkpoint import checkpoint
        >>> x = torch.tensor([2.0], requires_grad=True, device="cpu")
        >>> checkpoint(lambda x: x.exp().log() * x, x).sum().backward()
        >>> round(x.grad.item(), 4)
        4.0
    """
    if not callable(function):
        raise ArgumentError(f"checkpoint: function must be a function, not {type(function).__name__}.")
    first, again = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    if (capturing := stream().capturing) is not None:
        capturing.refuse("a checkpoint computes again in the backward what it did not keep")
    generator = default_generator
    state = generator.seed_value, generator.offset
    metas: list[Any] = []
    kept: dict[int, Tensor] = {}

    def pack(t: Tensor) -> int:
        metas.append(t._meta)
        return len(metas) - 1

    def repeat() -> None:
        found: list[Tensor] = []
        now = generator.seed_value, generator.offset
        if preserve_rng_state:
            generator.seed_value, generator.offset = state
        try:
            with again, saved_tensors_hooks(lambda t: found.append(t), lambda kept: kept):
                under(True, function, *args, **kwargs)
        finally:
            if preserve_rng_state:
                generator.seed_value, generator.offset = now
        same = [t._meta is m for t, m in zip(found, metas, strict=False)]
        if len(found) != len(metas) or not (all(same) or determinism_check == "none"):
            raise CheckpointError(
                f"checkpoint: the call saved {len(metas)} tensors and its repetition {len(found)}, or others."
                " The function must compute the same at every call."
            )
        kept.update(enumerate(found))

    def unpack(k: int) -> Tensor:
        if k not in kept:
            repeat()
        return kept.pop(k)

    with first, saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """The result of one module or function after the other, in segments that are checkpoints but for the
    last.

    Args:
        functions: a list of them, or an `nn.Sequential`.
        segments: how many.
        input: of the first.
        options: of `checkpoint`.

    Source: https://pytorch.org/docs/stable/checkpoint.html
    """
    parts = list(functions)
    if not isinstance(segments, int) or not 0 < segments <= max(len(parts), 1):
        raise RangeError(
            f"checkpoint_sequential: segments must lie between 1 and {len(parts)}, not {segments}."
        )

    def run(begin: int, end: int) -> Callable:
        def segment(x: Any) -> Any:
            for part in parts[begin:end]:
                x = part(x)
            return x

        return segment

    size = len(parts) // segments
    for k in range(segments - 1):
        input = checkpoint(run(k * size, (k + 1) * size), input, **options)
    return run((segments - 1) * size, len(parts))(input)


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: the ``context_fn`` of `checkpoint` unless another is given."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accepted and without effect: a segment is computed again as a whole."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted and without effect."""
    yield


class CheckpointPolicy(Enum):
    """What a policy of `create_selective_checkpoint_contexts` says of an operator."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Two contexts for the ``context_fn`` of `checkpoint`, of operators whose results are kept.

    Everything is computed again here, whatever the policy says: values and gradients are the same, and so is
    the memory of a checkpoint without a policy.

    Args:
        policy_fn_or_list: which operators' results PyTorch would keep.
        allow_cache_entry_mutation: accepted.

    Raises:
        ArgumentError: it is neither a function nor a list.

    Source: https://pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.create_selective_checkpoint_contexts
    """
    if not (callable(policy_fn_or_list) or isinstance(policy_fn_or_list, (list, tuple, set))):
        raise ArgumentError(
            "create_selective_checkpoint_contexts: takes a function or a list of operators, not "
            f"{type(policy_fn_or_list).__name__}."
        )
    return noop_context_fn()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs of a function, with tensors that are leaves of a new graph and require grad as before.

    Args:
        inputs: tensors and others.

    Raises:
        ArgumentError: it is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise ArgumentError(f"detach_variable: takes a tuple of Tensors, not {type(inputs).__name__}.")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warn where none of the inputs requires grad, so that a checkpoint has no gradients."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("checkpoint: none of the inputs require grad, so gradients will be None.", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The states of generators of the devices of some tensors: none, for one generator serves all devices."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Put back what `get_device_states` gave.

    Raises:
        RangeError: there are states, which no device here has.
    """
    if list(states):
        raise RangeError("set_device_states: no device here has a generator of its own. Use set_rng_state.")


__all__ = [
    "CheckpointError", "CheckpointPolicy", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
