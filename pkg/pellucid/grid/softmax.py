"""Softmax in ten kinds: standard, of a grid's rows, hierarchical, with a temperature, Gumbel, masked,
sparsemax, entmax, with an adaptive temperature, and mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..autograd.function import Function
from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.functional import gumbel_softmax, softmax
from ..nn.modules.module import Module
from ..ops.elementwise.comparison import where
from ..ops.index.sort import sort
from ..ops.reduce.scan import cumsum
from ..ops.shape.creation import arange
from ..tensors import dtypes as dt
from ..tensors.shape import index
from ..tensors.tensor import Tensor


def _positive(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{what} must be a number, not {type(value).__name__}.")
    if not 0 < value < float("inf"):
        raise RangeError(f"{what} must be positive and finite, not {value}.")
    return float(value)


def _length(input: Tensor, name: str) -> int:
    if not input.dim():
        raise ShapeError(f"{name}: the input has no axis. Give at least one.")
    return input.shape[-1]


def grid_softmax(input: Tensor, rows: int, columns: int) -> Tensor:
    """Softmax of each row of a grid that the last axis holds row by row.

    ``out[r * columns + c] = exp(x[r, c]) / sum_k exp(x[r, k])``: each row sums to 1.

    Args:
        input: (..., rows * columns), floating point.
        rows, columns: the grid.

    Returns:
        The input's shape.

    Raises:
        ShapeError: the last axis is not ``rows * columns`` long.

    Example:
        >>> import pellucid
        >>> pellucid.grid.grid_softmax(pellucid.zeros(4, device="cpu"), 2, 2).tolist()
        [0.5, 0.5, 0.5, 0.5]
    """
    rows, columns = index(rows, "grid_softmax: rows"), index(columns, "grid_softmax: columns")
    length = _length(input, "grid_softmax")
    if rows < 1 or columns < 1 or rows * columns != length:
        raise ShapeError(
            f"grid_softmax: a grid of {rows} rows and {columns} columns holds {rows * columns} values, but "
            f"the last axis has {length}."
        )
    return softmax(input.unflatten(-1, (rows, columns)), -1).flatten(-2)


def hierarchical_softmax(input: Tensor, levels: Sequence[int]) -> Tensor:
    """Softmax along the paths of a tree whose leaves are the last axis.

    ``P(leaf) = prod_l P(node_l | node_(l-1))``, where the probability of a node among its siblings is the
    softmax of the mean of the values of its leaves. A tree of one level is the softmax.

    Args:
        input: (..., prod(levels)), floating point; leaves in the order of the tree.
        levels: how many children a node has, from the root down.

    Returns:
        The input's shape; sums to 1.

    Raises:
        ShapeError: the last axis does not have as many values as the tree has leaves.

    Source: Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model", for the product
        along the path; the mean as a node's value is this library's.

    Example:
        >>> import pellucid
        >>> pellucid.grid.hierarchical_softmax(pellucid.zeros(6, device="cpu"), [2, 3]).sum().item()
        1.0
    """
    sizes = [index(n, "hierarchical_softmax: levels") for n in levels]
    length = _length(input, "hierarchical_softmax")
    if not sizes or min(sizes) < 1 or prod(sizes) != length:
        raise ShapeError(
            f"hierarchical_softmax: a tree with levels {sizes} has {prod(sizes)} leaves, but the last axis "
            f"has {length} values."
        )
    tree = input.unflatten(-1, sizes)
    out: Tensor | None = None
    for level in range(len(sizes)):
        below = tuple(range(level + 1 - len(sizes), 0))
        values = tree.mean(below, keepdim=True) if below else tree
        chosen = softmax(values, level - len(sizes))
        out = chosen if out is None else out * chosen
    assert out is not None
    return out.expand(tree.shape).flatten(-len(sizes))


def temperature_softmax(input: Tensor, temperature: float = 1.0) -> Tensor:
    """``softmax(input / temperature)`` along the last axis: sharper below 1, flatter above.

    Args:
        input: (..., n), floating point.
        temperature: positive.

    Raises:
        RangeError: the temperature is not positive and finite.

    Example:
        >>> import pellucid
        >>> pellucid.grid.temperature_softmax(pellucid.zeros(2, device="cpu"), 0.5).tolist()
        [0.5, 0.5]
    """
    return softmax(input / _positive(temperature, "temperature_softmax: temperature"), -1)


def masked_softmax(input: Tensor, mask: Tensor) -> Tensor:
    """Softmax of the values that a mask keeps; the others are exactly 0.

    Args:
        input: (..., n), floating point.
        mask: bool, broadcast with the input; True where a value takes part.

    Returns:
        The input's shape. A row that the mask empties is 0, and so is its gradient.

    Raises:
        ArgumentError: the mask is not a bool tensor.

    Example:
        >>> import pellucid
        >>> mask = pellucid.tensor([True, False, True], device="cpu")
        >>> pellucid.grid.masked_softmax(pellucid.zeros(3, device="cpu"), mask).tolist()
        [0.5, 0.0, 0.5]
    """
    if not isinstance(mask, Tensor) or mask.dtype is not dt.bool_:
        found = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ArgumentError(f"masked_softmax: the mask must be a bool tensor, not {found}.")
    mask = mask.expand(input.shape)
    # Rows that nothing is left of are computed as rows of zeros, so that no NaN meets a gradient.
    left = mask.any(-1, keepdim=True)
    values = where(mask, input, where(left, -float("inf"), 0.0).to(input.dtype))
    return where(mask, softmax(values, -1), 0.0)


def _on_simplex(values: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """The values from large to small, their running sums, and 1, 2, ... beside them."""
    n = _length(values, name)
    ordered = sort(values, -1, True)[0]
    return ordered, cumsum(ordered, -1), arange(1, n + 1, device=values.device, dtype=values.dtype)


class _Sparse(Function):
    """A map onto the simplex ``p = max((alpha - 1) x - t, 0)^(1 / (alpha - 1))``, from large alpha to zeros.

    Its Jacobian is ``diag(s) - s s^T / sum(s)`` with ``s = p^(2 - alpha)`` where p is positive.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        input, alpha = args
        highest = input.amax(-1, keepdim=True)
        x = (input - highest) * (alpha - 1)
        if alpha == 2:
            out = (x - _sparsemax_threshold(x)).clamp(min=0)
        elif alpha == 1.5:
            out = (x - _entmax15_threshold(x)).clamp(min=0) ** 2
        else:
            out = _bisected(x, alpha)
        ctx.save_for_backward(out)
        ctx.alpha = alpha
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (g,), (out,) = grad_outputs, ctx.saved_tensors
        s = where(out > 0, out.clamp(min=1e-30) ** (2 - ctx.alpha), 0.0)
        return s * (g - (s * g).sum(-1, keepdim=True) / s.sum(-1, keepdim=True)), None


def _sparsemax_threshold(x: Tensor) -> Tensor:
    ordered, sums, counts = _on_simplex(x, "sparsemax")
    support = (1 + counts * ordered > sums).sum(-1, keepdim=True)
    return (sums.gather(-1, support - 1) - 1) / support.to(x.dtype)


def _entmax15_threshold(x: Tensor) -> Tensor:
    ordered, sums, counts = _on_simplex(x, "entmax")
    mean = sums / counts
    spread = counts * (cumsum(ordered * ordered, -1) / counts - mean * mean)
    thresholds = mean - ((1 - spread) / counts).clamp(min=0).sqrt()
    support = (thresholds <= ordered).sum(-1, keepdim=True)
    return thresholds.gather(-1, support - 1)


def _bisected(x: Tensor, alpha: float) -> Tensor:
    """The threshold halved into place: float32 has no more than 24 bits to find."""
    power = 1 / (alpha - 1)
    low = x.amax(-1, keepdim=True) - 1
    width = 1 - (1 / x.shape[-1]) ** (alpha - 1)
    for _ in range(30):
        width /= 2
        middle = low + width
        low = where(((x - middle).clamp(min=0) ** power).sum(-1, keepdim=True) >= 1, middle, low)
    out = (x - low).clamp(min=0) ** power
    return out / out.sum(-1, keepdim=True)


def sparsemax(input: Tensor) -> Tensor:
    """The nearest point of the simplex: ``argmin_p |p - input|^2`` with p >= 0 and sum 1; many are exactly 0.

    Args:
        input: (..., n), floating point.

    Source: Martins and Astudillo 2016, "From Softmax to Sparsemax", algorithm 1

    Example:
        >>> import pellucid
        >>> pellucid.grid.sparsemax(pellucid.tensor([2.0, 1.5, 0.0], device="cpu")).tolist()
        [0.75, 0.25, 0.0]
    """
    _length(input, "sparsemax")
    return _Sparse.apply(input, 2)


def entmax(input: Tensor, alpha: float = 1.5) -> Tensor:
    """``argmax_p p . input + H_alpha(p)`` over the simplex, with Tsallis' entropy.

    It is softmax for alpha 1 and sparsemax for 2. Exact by sorting for 1.5 and 2; for others the threshold is
    found by bisection to float32's last bits.

    Args:
        input: (..., n), floating point.
        alpha: at least 1.

    Raises:
        RangeError: alpha is below 1 or not finite.

    Source: Peters, Niculae and Martins 2019, "Sparse Sequence-to-Sequence Models", algorithms 1 and 2

    Example:
        >>> import pellucid
        >>> pellucid.grid.entmax(pellucid.tensor([2.0, 0.0], device="cpu")).tolist()
        [1.0, 0.0]
    """
    _length(input, "entmax")
    alpha = _positive(alpha, "entmax: alpha")
    if alpha < 1:
        raise RangeError(f"entmax: alpha must be at least 1, not {alpha}.")
    return softmax(input, -1) if alpha == 1 else _Sparse.apply(input, alpha)


# Of the polynomial in the entropy, from the fourth power down.
_ADAPTIVE = (-0.037, 0.481, -2.3, 4.917, -1.791)


def adaptive_softmax(input: Tensor) -> Tensor:
    """Softmax that is sharpened where its entropy is high: ``softmax(b * input)``.

    ``b = max(1, -0.037 H^4 + 0.481 H^3 - 2.3 H^2 + 4.917 H - 1.791)`` where the entropy H of
    ``softmax(input)`` is above 0.5 nats, else 1. The gradient takes b as a constant.

    Args:
        input: (..., n), floating point.

    Source: Velickovic, Perivolaropoulos, Barbero and Pascanu 2024, "softmax is not enough (for sharp
        out-of-distribution)", section 5

    Example:
        >>> import pellucid
        >>> pellucid.grid.adaptive_softmax(pellucid.zeros(2, device="cpu")).tolist()
        [0.5, 0.5]
    """
    _length(input, "adaptive_softmax")
    p = softmax(input.detach(), -1)
    entropy = -(p * p.clamp(min=1e-30).log()).sum(-1, keepdim=True)
    b: Tensor | float = 0.0
    for coefficient in _ADAPTIVE:
        b = b * entropy + coefficient
    assert isinstance(b, Tensor)
    return softmax(input * where(entropy > 0.5, b.clamp(min=1.0), 1.0), -1)


def mixture_softmax(input: Tensor, prior: Tensor) -> Tensor:
    """A weighted mean of softmaxes: ``sum_k softmax(prior)_k softmax(input_k)``.

    Args:
        input: (..., k, n), floating point: k sets of values.
        prior: (..., k): logarithms of the weights, up to a constant.

    Returns:
        (..., n); sums to 1.

    Raises:
        ShapeError: the prior has not one value for each set.

    Source: Yang, Dai, Salakhutdinov and Cohen 2018, "Breaking the Softmax Bottleneck"

    Example:
        >>> import pellucid
        >>> x = pellucid.zeros(3, 2, device="cpu")
        >>> pellucid.grid.mixture_softmax(x, x[:, 0]).sum().item()
        1.0
    """
    if input.dim() < 2 or not prior.dim() or prior.shape[-1] != input.shape[-2]:
        raise ShapeError(
            f"mixture_softmax: the input must be (..., k, n) and the prior (..., k), but they are "
            f"{tuple(input.shape)} and {tuple(prior.shape)}."
        )
    return (softmax(prior, -1).unsqueeze(-1) * softmax(input, -1)).sum(-2)


# Each kind of the layer `SoftmaxVariant`, and the settings that its function takes beside the input.
KINDS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "standard": (lambda input: softmax(input, -1), ()),
    "grid": (grid_softmax, ("rows", "columns")),
    "hierarchical": (hierarchical_softmax, ("levels",)),
    "temperature": (temperature_softmax, ("temperature",)),
    "gumbel": (gumbel_softmax, ("tau", "hard")),
    "masked": (masked_softmax, ("mask",)),
    "sparse": (sparsemax, ()),
    "adaptive": (adaptive_softmax, ()),
    "mixture": (mixture_softmax, ("prior",)),
    "entmax": (entmax, ("alpha",)),
}


class SoftmaxVariant(Module):
    """Softmax of a kind along the last axis, as a layer.

    Args:
        kind: standard, grid, hierarchical, temperature, gumbel, masked, sparse, adaptive, mixture or entmax.
        settings: what the kind's function takes beside the input, by name; a mask and a prior are buffers.

    Raises:
        RangeError: no such kind.
        ArgumentError: a setting that the kind does not have.

    Example:
        >>> import pellucid
        >>> layer = pellucid.grid.SoftmaxVariant("temperature", temperature=2.0)
        >>> layer(pellucid.zeros(2, device="cpu")).tolist()
        [0.5, 0.5]
    """

    def __init__(self, kind: str = "standard", **settings):
        super().__init__()
        if kind not in KINDS:
            raise RangeError(f"SoftmaxVariant: kind must be one of {', '.join(KINDS)}, not {kind!r}.")
        allowed = KINDS[kind][1]
        if unknown := sorted(set(settings) - set(allowed)):
            has = ", ".join(allowed) or "no settings"
            raise ArgumentError(
                f"SoftmaxVariant: the kind {kind!r} has {has}, but {', '.join(unknown)} was given."
            )
        self.kind = kind
        self.names = tuple(settings)
        for name, value in settings.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return KINDS[self.kind][0](input, **{name: getattr(self, name) for name in self.names})

    def extra_repr(self) -> str:
        plain = ((n, getattr(self, n)) for n in self.names)
        shown = [f"{n}={v!r}" for n, v in plain if not isinstance(v, Tensor)]
        return ", ".join([repr(self.kind), *shown])
