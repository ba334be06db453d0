"""What quantizing costs a language model: the error of its logits and its perplexity, by format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError
from .encoding import ENCODERS, encode_blocks
from .format import BLOCK_FORMATS
from .weight import weight_from_blocks


@dataclass(frozen=True)
class Quality:
    """A row of the table of `quality`.

    Args:
        format: of all matrices; ``"float32"`` for the model as it is.
        bits: of a weight, on average over the matrices that were encoded.
        logit_error: root of the mean square of what logits are off, as a part of that of the logits.
        perplexity: exp of the mean negative log likelihood of each id after those before it.
    """

    format: str
    bits: float
    logit_error: float
    perplexity: float


def quality(model: Any, input_ids: Any, formats: Sequence[str] = tuple(ENCODERS)) -> list[Quality]:
    """A model's logits on a text with its matrices in each format, one format after another.

    The model's float matrices are encoded, used once, and put back. Those whose columns are no whole blocks
    stay floats. Waits for the device.

    Args:
        model: returns an output with ``logits`` for ids; its matrices are floats.
        input_ids: int64 (batch, length), length at least 2.
        formats: names of `pellucid.quant.ENCODERS`.

    Returns:
        A row for the model as it is, and one for each format.

    Raises:
        ArgumentError: the model has no matrix of floats that a format fits.
        DTypeError: there is no encoder of a name.

    Example:
        >>> rows = quality(model, ids, ["q8_0", "q4_k"])  # doctest: +SKIP
    """
    ids = input_ids.numpy()
    expected = _logits(model, input_ids)
    rows = [Quality("float32", 32.0, 0.0, _perplexity(expected, ids))]
    for format in formats:
        with _encoded(model, format) as bits:
            logits = _logits(model, input_ids)
        error = float(np.sqrt(np.square(logits - expected).mean() / np.square(expected).mean()))
        rows.append(Quality(format, bits, error, _perplexity(logits, ids)))
    return rows


def _logits(model: Any, input_ids: Any) -> np.ndarray:
    with no_grad():
        return model(input_ids).logits.float().numpy().astype(np.float64)


def _perplexity(logits: np.ndarray, ids: np.ndarray) -> float:
    before, after = logits[:, :-1], ids[:, 1:, None]
    top = before.max(-1, keepdims=True)
    total = np.log(np.exp(before - top).sum(-1, keepdims=True)) + top
    return float(np.exp((total - np.take_along_axis(before, after, -1)).mean()))


@contextmanager
def _encoded(model: Any, format: str) -> Iterator[float]:
    """The model with its matrices in a format; what a weight takes in bits."""
    held: dict[int, tuple[Any, Any]] = {}
    places = []
    nbytes = count = 0
    try:
        for module in model.modules():
            for name, p in list(module._parameters.items()):
                if p is None or p.ndim != 2 or not p.dtype.is_floating_point:
                    continue
                if format in BLOCK_FORMATS and p.shape[1] % BLOCK_FORMATS[format].block:
                    continue
                if id(p) not in held:  # a tied head is encoded once
                    blocks = encode_blocks(p.detach().float().numpy(), format)
                    w = weight_from_blocks(blocks, format, tuple(p.shape), device=p.device)
                    held[id(p)] = p, type(p)(w, requires_grad=False)
                    nbytes, count = nbytes + blocks.nbytes, count + p.numel()
                places.append((module, name, p))
                setattr(module, name, held[id(p)][1])
        if not count:
            raise ArgumentError(f"quality: the model has no matrix of floats that fits {format}.")
        yield 8 * nbytes / count
    finally:
        for module, name, p in places:
            setattr(module, name, p)
