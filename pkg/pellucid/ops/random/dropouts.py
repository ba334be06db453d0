"""Dropout: elements or whole channels left out at random, plainly or so that mean and variance stay."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from ...autograd.batching import levels
from ...errors import RangeError, ShapeError
from ...op.arguments import boolean, number
from ...op.declaration import docstring, elementwise, function, op
from ...op.families import called
from ...op.rules import as_input, same
from ...tensors.tensor import Tensor
from ..norm.softmax import softmax
from ..shape.creation import zeros_like
from .distributions import STATE, WORDS, rand, uniform
from .generator import default_generator

# Where SELU ends for numbers that go to minus infinity: alpha dropout puts it in the place of what it leaves
# out.
_ALPHA = 1.7580993408473766


def _kept(input, p, scale, seed_low, seed_high, offset_low, offset_high):
    drawn = uniform(input.shape, seed_low, seed_high, offset_low, offset_high)
    with np.errstate(invalid="ignore"):
        return (input * np.where(drawn < np.float32(p), 0.0, scale)).astype(input.dtype)


def _kept_gradient(g, p, scale, seed_low, seed_high, offset_low, offset_high):
    """What was kept is drawn again."""
    return kept_block(g, p, scale, seed_low, seed_high, offset_low, offset_high)


@op(
    public="dropout",
    dtype=same,
    shape=as_input,
    kernel=elementwise(f"input * select(scale, 0.0, uniform_of({STATE}) < p)", own={**WORDS, "p": "f32"}),
    reference=_kept,
    grad={"input": _kept_gradient},
)
def kept_block(
    input: Tensor, p: float, scale: float, seed_low: float, seed_high: float, offset_low: float,
    offset_high: float,
) -> Tensor:  # fmt: skip
    """``input * scale`` where numbers from a place in a generator's stream are not below ``p``, else 0."""


def _dropped(name: str, input: Tensor, p: float, training: bool, channels: bool, alpha: bool) -> Tensor:
    if type(p) is not float:
        p = number(p, "p")
    if not 0.0 <= p <= 1.0:
        raise RangeError(f"{name}: p must lie between 0 and 1, not {p}.")
    m = input._meta
    if not boolean(training, "training") or p == 0:
        return input
    if p == 1:
        return input * 0.0
    if channels and m.rank < 2:
        raise ShapeError(f"{name}: the input has shape {tuple(m.shape)}; it needs (batch, channels, ...).")
    if m.dtype.is_floating_point and not (channels or alpha or levels()):
        return kept_block(input, p, 1 / (1 - p), *default_generator.take(max(m.numel, 0)))
    shape = (*m.shape[:2], *[1] * (m.rank - 2)) if channels else m.shape
    kept = (rand(*shape, device=m.device) >= p).to(m.dtype)
    if not alpha:
        return input * kept * (1 / (1 - p))
    scale = 1 / sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    return input * (kept * scale) + ((kept - 1) * (_ALPHA * scale) + _ALPHA * scale * p)


def _dropout(
    name: str,
    sentence: str,
    *,
    channels: bool = False,
    alpha: bool = False,
    ranks: tuple[int, int] | None = None,
    aten: str | None = None,
    ours: str = "",
) -> Callable[..., Tensor]:
    """Declare a function that leaves out while training.

    Args:
        name, sentence: as families have them.
        channels: whether whole channels are left out.
        alpha: whether what is left out becomes the number that keeps mean and variance.
        ranks: how many axes inputs have without and with a batch, if not any number.
        aten: its operator, or
        ours: why there is none; then only `nn.functional` has it.
    """

    def call(input: Tensor, p: float = 0.5, training: bool = not alpha, inplace: bool = False) -> Tensor:
        x = input
        if ranks is not None and x.dim() not in ranks:
            raise ShapeError(
                f"{name}: the input has shape {tuple(x.shape)}; it must have {ranks[0]} or {ranks[1]} axes."
            )
        bare = ranks is not None and x.dim() == ranks[0]
        out = _dropped(name, x.unsqueeze(0) if bare else x, p, training, channels, alpha)
        out = out.squeeze(0) if bare else out
        return input.copy_(out) if inplace and out is not input else out

    def plain(input: Tensor, p: float, train: bool) -> Tensor:
        return _dropped(name, input, p, train, channels, alpha)

    def told(training: str, **more: str) -> str:
        known = {"input": f"floating point{', (batch, channels, ...)' * channels}.", "p": "the probability."}
        known |= {training: "whether anything is left out.", **more}
        return docstring(sentence, {"Args": known, "Raises": {"RangeError": "``p`` is not a probability."}})

    if aten:
        called(name, told("train"), plain, aten=aten)
        ours = f"the form of nn.functional; `pellucid.{name}` is that of ATen"
    doc = told("training", inplace="write the result over the input.")
    return called(name, doc, call, exports="nn.functional", ours=ours)


_COMPOSED = "PyTorch composes it of feature_dropout, in Python"
dropout = _dropout(
    "dropout", "Elements zeroed with probability ``p``, the others divided by ``1 - p``.",
    aten="dropout.default",
)  # fmt: skip
dropout1d = _dropout(
    "dropout1d", "Whole channels of (batch, channels, length) zeroed; see `dropout`.",
    channels=True, ranks=(2, 3), ours=_COMPOSED,
)  # fmt: skip
dropout2d = _dropout(
    "dropout2d", "Whole channels of (batch, channels, height, width) zeroed; see `dropout`.",
    channels=True, ours=_COMPOSED,
)  # fmt: skip
dropout3d = _dropout(
    "dropout3d", "Whole channels of (batch, channels, depth, height, width) zeroed; see `dropout`.",
    channels=True, ranks=(4, 5), ours=_COMPOSED,
)  # fmt: skip
alpha_dropout = _dropout(
    "alpha_dropout",
    "Elements replaced with probability ``p`` by the end of SELU, so that mean 0 and variance 1 stay.",
    alpha=True, aten="alpha_dropout.default",
)  # fmt: skip
feature_alpha_dropout = _dropout(
    "feature_alpha_dropout", "`alpha_dropout` of whole channels.",
    alpha=True, channels=True, aten="feature_alpha_dropout.default",
)  # fmt: skip


@function(exports="nn.functional", ours="PyTorch composes it in Python")
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random category, as weights: the softmax of ``(logits + noise) / tau`` with noise of Gumbel's law.

    Args:
        logits: unnormalized logarithms of probabilities.
        tau: the temperature.
        hard: 1 at the largest and 0 elsewhere; the derivative stays that of the softmax.
        eps: without effect, as in PyTorch.
        dim: the axis of categories.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html; Jang, Gu and
        Poole 2017
    """
    m = logits._meta
    # The smallest number that 1 - rand is from 1.
    waits = -(1 - rand(*m.shape, device=m.device)).log().clamp(max=-(2.0**-25))
    soft = softmax((logits - waits.log().to(m.dtype)) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    return (zeros_like(logits).scatter(dim, best, 1.0) - soft.detach()) + soft
