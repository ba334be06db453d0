"""Memory of training and of decoding, known before any weight is loaded: `estimate_memory`."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ..autograd.grad_mode import under
from ..autograd.graph import saved_tensors_hooks
from ..device import device as Device
from ..errors import ArgumentError, RangeError
from ..models.config import Config
from ..models.pretrained import REGISTRIES
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..op.arguments import describe
from ..ops.shape.creation import empty, zeros
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from .arguments import TrainingArguments
from .memory import checkpointed_layers
from .optimizers import create_optimizer

_META = Device("meta")


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes on the device.

    Attributes:
        weights: parameters and buffers.
        cache: keys and values, or states, of decoding.
        activations: what a forward keeps for its backward.
        gradients: of the parameters that require grad.
        optimizer: its state.
    """

    weights: int
    cache: int
    activations: int
    gradients: int
    optimizer: int

    @property
    def decoding(self) -> int:
        """What stays while tokens are generated."""
        return self.weights + self.cache

    @property
    def training(self) -> int:
        """What is alive when a backward begins, and the gradients that it makes."""
        return self.weights + self.activations + self.gradients + self.optimizer

    def __str__(self) -> str:
        names = ("weights", "cache", "activations", "gradients", "optimizer", "decoding", "training")
        return "\n".join(f"{name:<12}{getattr(self, name):>18,}" for name in names)


def estimate_memory(
    model: Module | Config,
    args: TrainingArguments | None = None,
    *,
    length: int,
    batch_size: int | None = None,
) -> MemoryEstimate:
    """How much memory a language model takes to decode and to be trained, without a weight of it.

    The model runs on the device ``meta``, where tensors have shapes and no numbers: forward, backward and a
    step of the optimizer. Nothing is computed and nothing is on the GPU, so a model that would not fit can be
    asked for, too. Kernels need some more for a moment, and blocks of memory are rounded up.

    Args:
        model: a language model, also with adapters, on any device; or its configuration, whose weights are
            counted as float32. `pellucid.inspect` tells what those of a file take.
        args: of the `Trainer`: batch size, optimizer, checkpointing of activations. Half types are not looked
            at, with which activations take less.
        length: positions of a sequence.
        batch_size: sequences at a time; that of ``args`` if None.

    Raises:
        ArgumentError: it is no language model, nor the configuration of one.
        RangeError: a length or batch size is no number from 1 on.

    Source: https://huggingface.co/docs/accelerate/usage_guides/model_size_estimator

    Example:
        >>> from pellucid.models import MambaConfig
        >>> from pellucid.train import estimate_memory
        >>> config = MambaConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2)
        >>> one, two = (estimate_memory(config, length=n, batch_size=1) for n in (256, 512))
        >>> one.optimizer == 2 * one.gradients, two.cache == one.cache  # moments; states of one size
        (True, True)
        >>> 1.9 < two.activations / one.activations < 2.1
        True
    """
    args = TrainingArguments() if args is None else args
    batch = args.per_device_train_batch_size if batch_size is None else batch_size
    for name, count in (("length", length), ("batch_size", batch)):
        if not isinstance(count, int) or count < 1:
            raise RangeError(f"estimate_memory: {name} must be a whole number from 1 on, not {count!r}.")
    model = _of_config(model) if isinstance(model, Config) else _without_numbers(model)
    base: Any = getattr(model, "get_base_model", lambda: model)()
    if not hasattr(base, "new_cache") or not hasattr(base, "decoder"):
        raise ArgumentError(
            "estimate_memory: takes a language model that decodes, or its configuration, not "
            f"{describe(model)}."
        )
    cache = under(False, base.new_cache, batch, length).memory
    trained = [p for p in model.parameters() if p.requires_grad]
    kept = under(True, _trained, model, args, batch, length) if trained else (0, 0)
    return MemoryEstimate(
        weights=_bytes([*model.parameters(), *model.buffers()]),
        cache=_bytes(cache),
        activations=kept[0],
        gradients=_bytes(trained),
        optimizer=kept[1],
    )


def _bytes(tensors: Any) -> int:
    return sum(t.nbytes for t in {id(t): t for t in tensors}.values())


def _of_config(config: Config) -> Module:
    known = REGISTRIES["AutoModelForCausalLM"].model_types.values()
    for model in known:
        if model.config_class is type(config):
            with _META:
                return model(config)
    raise ArgumentError(f"estimate_memory: {type(config).__name__} is of no model that continues text.")


def _without_numbers(model: Any) -> Module:
    """A model like another on the device ``meta``; the other stays as it is."""
    if not isinstance(model, Module):
        raise ArgumentError(f"estimate_memory: takes a Module or a Config, not {describe(model)}.")
    twins: dict[int, Any] = {}
    for t in [*model.parameters(), *model.buffers()]:
        twin = empty(*t.shape, dtype=t.dtype, device=_META)
        is_trained = isinstance(t, Parameter)
        twins[id(t)] = Parameter(twin, requires_grad=t.requires_grad) if is_trained else twin
    return deepcopy(model, twins)


def _trained(model: Module, args: TrainingArguments, batch: int, length: int) -> tuple[int, int]:
    """Bytes that a forward keeps, and those of the optimizer's state after a step."""
    model.train()
    kept: dict[int, tuple[Any, int]] = {}

    def keep(t: Tensor) -> Tensor:
        size = max(t.nbytes, kept[id(t._storage)][1] if id(t._storage) in kept else 0)
        kept[id(t._storage)] = t._storage, size
        return t

    ids = zeros(batch, length, dtype=dt.int64, device=_META)
    with checkpointed_layers(model) if args.gradient_checkpointing else nullcontext():
        with saved_tensors_hooks(keep, lambda t: t):
            loss = model(ids, labels=ids).loss
        for t in [*model.parameters(), *model.buffers()]:
            kept.pop(id(t._storage), None)
        activations = sum(size for _, size in kept.values())
        loss.backward()
    optimizer = create_optimizer(model, args)
    optimizer.step()
    state = [x for s in optimizer.state.values() for x in s.values() if isinstance(x, Tensor)]
    return activations, _bytes(state)


__all__ = ["MemoryEstimate", "estimate_memory"]
