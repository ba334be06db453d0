"""Diagnostics of Markov chains: R-hat and effective sample sizes of bulk and tails, by ranks."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..op.arguments import describe
from ..ops.elementwise.probability import ndtri
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor


def _draws(where: str, samples: Tensor) -> np.ndarray:
    """Draws as float64, (draws, chains, quantities)."""
    if not isinstance(samples, Tensor) or not samples.is_floating_point():
        raise ArgumentError(f"{where}: samples must be a floating-point Tensor, not {describe(samples)}.")
    if samples.ndim < 2 or samples.shape[0] < 8:
        raise ShapeError(
            f"{where}: samples of shape {tuple(samples.shape)} must be (draws, chains, ...), with eight "
            "draws at "
            "least."
        )
    x = samples.detach().numpy().astype(np.float64)
    return x.reshape(*x.shape[:2], -1)


def _split(x: np.ndarray) -> np.ndarray:
    """Each chain as its two halves, so that one that drifts does not look stationary."""
    half = len(x) // 2
    return np.concatenate([x[:half], x[-half:]], axis=1)


def _by_ranks(x: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks among all chains, ties at their mean rank."""
    flat = x.reshape(-1, x.shape[-1])
    ranks = np.empty_like(flat)
    for k, column in enumerate(flat.T):
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks[:, k] = (ends - (counts - 1) / 2)[place]
    shares = (ranks - 3 / 8) / (len(flat) + 1 / 4)
    return ndtri(tensor(shares, device="cpu")).numpy().reshape(x.shape)


def _ratio(x: np.ndarray) -> np.ndarray:
    """Gelman and Rubin's ratio of all variance to that within chains."""
    draws = len(x)
    within = x.var(0, ddof=1).mean(0)
    between = draws * x.mean(0).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(((draws - 1) / draws * within + between / draws) / within)


def _size(x: np.ndarray, alone: bool = True) -> np.ndarray:
    """Draws of all chains over their autocorrelation time, by Geyer's initial monotone sequence.

    With ``alone``, the even correlation after the last pair counts once if it is above 0, which is better
    where chains alternate. So do Stan and arviz, but not numpyro.
    """
    draws, chains, quantities = x.shape
    spectrum = np.fft.rfft(x - x.mean(0), 2 * draws, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, 2 * draws, axis=0)[:draws].mean(1) / draws
    within = covariance[0] * draws / (draws - 1)
    total = covariance[0] + (x.mean(0).var(0, ddof=1) if chains > 1 else 0)
    sizes = np.full(quantities, np.nan)
    for k in range(quantities):
        if not total[k] > 0:
            continue
        rho = 1 - (within[k] - covariance[:, k]) / total[k]
        rho[0] = 1.0
        pairs = rho[: draws // 2 * 2].reshape(-1, 2).sum(1)
        # Stan looks at no pair but the first that ends with the last two draws.
        counted = max((draws - 3) // 2, 1) if alone else len(pairs)
        below = np.flatnonzero(pairs[1:counted] <= 0)
        counted = below[0] + 1 if len(below) else counted
        time = 2 * np.minimum.accumulate(pairs[:counted]).sum() - 1
        if alone:
            time = max(time + max(rho[2 * counted], 0), 1 / np.log10(draws * chains))
        sizes[k] = draws * chains / time
    return sizes


def _shaped(values: np.ndarray, samples: Tensor) -> Tensor:
    return tensor(values.reshape(tuple(samples.shape[2:])), dtype=samples.dtype, device="cpu")


def r_hat(samples: Tensor, kind: str = "rank") -> Tensor:
    """How far chains disagree: 1 if they agree, and above 1.01 they did not run long enough.

    Args:
        samples: (draws, chains, ...).
        kind: ``"rank"`` is the larger of the ratios of variances among halves of chains, of ranks and of
            folded ranks, so that neither heavy tails nor scales hide anything; ``"split"`` that of the
            values of the halves, ``"plain"`` Gelman and Rubin's of whole chains.

    Returns:
        (...) on ``cpu``; NaN for what is the same at every draw.

    Raises:
        ShapeError: fewer than eight draws, or no axis of chains.
        ValueError: no such kind.

    Source: Vehtari et al. 2021, "Rank-normalization, folding, and localization: an improved R-hat"; Gelman
        and Rubin 1992, "Inference from iterative simulation using multiple sequences"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> x = torch.arange(40.0, device="cpu").reshape(10, 4, 1) % 7
        >>> physics.r_hat(x + torch.tensor([0.0, 0.0, 0.0, 9.0], device="cpu")[:, None]).item() > 1.2
        True
    """
    x = _draws("r_hat", samples)
    if kind == "plain":
        return _shaped(_ratio(x), samples)
    x = _split(x)
    if kind == "split":
        return _shaped(_ratio(x), samples)
    if kind != "rank":
        raise ArgumentError(f"r_hat: kind {kind!r} is none of 'rank', 'split', 'plain'.")
    folded = np.abs(x - np.median(x, axis=(0, 1)))
    return _shaped(np.maximum(_ratio(_by_ranks(x)), _ratio(_by_ranks(folded))), samples)


def effective_sample_size(samples: Tensor, kind: str = "bulk") -> Tensor:
    """How many independent draws say as much as these.

    Args:
        samples: (draws, chains, ...).
        kind: ``"bulk"`` by ranks, for the centre; ``"tail"`` for quantiles of 5 and 95 percent; ``"mean"``
            for the mean of the values as they are; ``"plain"`` for that without splitting chains in halves,
            by Geyer's pairs alone.

    Returns:
        (...) on ``cpu``; NaN for what is the same at every draw.

    Raises:
        ShapeError: fewer than eight draws, or no axis of chains.
        ValueError: no such kind.

    Source: Vehtari et al. 2021, "Rank-normalization, folding, and localization: an improved R-hat", section
        4; Geyer 1992, "Practical Markov chain Monte Carlo"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> x = torch.randn(500, 4, 1, device="cpu", generator=torch.Generator("cpu").manual_seed(0))
        >>> 1500 < physics.effective_sample_size(x).item() < 2600
        True
    """
    x = _draws("effective_sample_size", samples)
    if kind == "bulk":
        return _shaped(_size(_by_ranks(_split(x))), samples)
    if kind == "mean":
        return _shaped(_size(_split(x)), samples)
    if kind == "plain":
        return _shaped(_size(x, alone=False), samples)
    if kind == "tail":
        ends = (np.quantile(x, share, axis=(0, 1)) for share in (0.05, 0.95))
        return _shaped(np.fmin(*(_size(_split((x <= end).astype(float))) for end in ends)), samples)
    raise ArgumentError(f"effective_sample_size: kind {kind!r} is none of 'bulk', 'tail', 'mean', 'plain'.")
