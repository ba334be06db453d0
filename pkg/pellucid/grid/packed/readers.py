"""Layers whose kernels unpack the weights that they read: which these are, and while they run."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from ...nn.hooks import for_recording
from ...nn.modules.conv import _ConvNd
from ...nn.modules.embedding import Embedding
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...nn.modules.rnn import RNNBase
from ...nn.modules.rnn_cell import RNNCellBase
from ...nn.utils.parametrize import is_caching

_KINDS = (Linear, Embedding, _ConvNd, RNNBase, RNNCellBase)
_RUNNING: ContextVar[Module | None] = ContextVar("running", default=None)


def unpacks(module: Module) -> bool:
    """Whether kernels of a layer can unpack its weights: it is one of PyTorch's, and not a class of one's own
    that computes with its weight otherwise."""
    if not isinstance(module, _KINDS):
        return False
    own = next(c for c in type(module).__mro__ if "forward" in vars(c))
    if not own.__module__.startswith(Linear.__module__.rpartition(".")[0]):
        return False
    if isinstance(module, Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq
    return True


def watch(module: Module) -> None:
    """Let it be known while a layer runs."""
    if _enter not in module._forward_pre_hooks.values():
        module.register_forward_pre_hook(_enter)
        module.register_forward_hook(_leave, prepend=True, always_call=True)


def is_read_by_kernels(parametrization: Module) -> bool:
    """Whether the layer runs, in this thread, whose parameter a parametrization is the last of."""
    running = _RUNNING.get()
    chains = getattr(running, "parametrizations", None)
    return chains is not None and any(chain[-1] is parametrization for chain in chains.values())


@for_recording
def _enter(module: Any, args: Any) -> None:
    # What is looked at once for several uses is a float: one of them may be no product.
    _RUNNING.set(None if is_caching() else module)


@for_recording
def _leave(module: Any, args: Any, output: Any) -> None:
    _RUNNING.set(None)
