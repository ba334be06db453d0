"""Gated delta rule: linear attention whose state forgets, and writes only what it does not say already.

Chunks of 64 positions are products and a triangular system each; a loop goes over the chunks.
"""

from __future__ import annotations

from ...errors import ShapeError
from ...op.public import function
from ...tensors.tensor import Tensor
from ..elementwise.functions import exp
from ..linalg.triangular import solve_triangular
from ..matmul.dense import matmul
from ..reduce.scan import cumsum
from ..shape.joining import cat

_CHUNK = 64


def _of_one(query, key, value, fading, beta, state) -> tuple[Tensor, Tensor]:
    """Output and next state of a chunk, axes (batch, heads, time, columns)."""
    total = cumsum(fading, -1)
    # What is left at position i of what was there at j; nothing of what comes later.
    later = total.new_ones((total.shape[-1],) * 2).triu(1) != 0
    left = exp((total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, 0.0)).masked_fill(later, 0.0)
    since = exp(total).unsqueeze(-1)
    written = key * beta.unsqueeze(-1)
    system = matmul(written, key.mT) * left
    wanted = value * beta.unsqueeze(-1) - matmul(written * since, state)
    new = solve_triangular(system, wanted, upper=False, unitriangular=True)
    out = matmul(query * since, state) + matmul(matmul(query, key.mT) * left, new)
    end = total[..., -1:]
    kept = state * exp(end).unsqueeze(-1)
    return out, kept + matmul((key * exp(end - total).unsqueeze(-1)).mT, new)


@function(exports="nn.functional", ours="a loop over time in PyTorch")
def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gated delta rule, a linear attention: ``S = exp(g[t]) * S``, then
    ``S = S + beta[t] * outer(k[t], v[t] - S^T k[t])`` and ``out[t] = scale * S^T q[t]``.

    Work and memory grow with the time, not with its square.

    Args:
        query: (batch, time, key heads, key columns), floating point.
        key: as the query; of length 1 at most, or the state grows.
        value: (batch, time, heads, value columns); neighbouring heads share a key head.
        g: (batch, time, heads), 0 or less: logarithms of what the state keeps.
        beta: (batch, time, heads), how much of a value is written.
        scale: factor of the output, ``1 / sqrt(key columns)`` if None.
        initial_state: (batch, heads, key columns, value columns); zeros if None.

    Returns:
        The output, of the shape of the value, and the state after the last position.

    Raises:
        ShapeError: shapes do not fit.

    Source: Yang, Kautz and Hatamizadeh 2024, "Gated Delta Networks", equation 10

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(1, 3, 1, 1, device="cpu")
        >>> out, last = torch.nn.functional.gated_delta_rule(x, x, x, -x[..., 0], x[..., 0] * 0.5)
        >>> [round(v, 3) for v in out.flatten().tolist()]
        [0.5, 0.592, 0.609]
    """
    if query.dim() != 4 or query.shape != key.shape or value.dim() != 4 or value.shape[:2] != key.shape[:2]:
        raise ShapeError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)} must be "
            "(batch, time, heads, columns)."
        )
    batch, time, heads, columns = value.shape
    if not query.shape[2] or heads % query.shape[2]:
        raise ShapeError(f"{heads} heads do not share {query.shape[2]} key heads evenly.")
    for name, x in (("g", g), ("beta", beta)):
        if x.shape != value.shape[:3]:
            raise ShapeError(f"{name} has shape {tuple(x.shape)}; it must be {tuple(value.shape[:3])}.")
    size = batch, heads, query.shape[3], columns
    state = value.new_zeros(size) if initial_state is None else initial_state
    if state.shape != size:
        raise ShapeError(f"initial_state has shape {tuple(state.shape)}; it must be {size}.")
    share = heads // query.shape[2]
    query = query * (query.shape[3] ** -0.5 if scale is None else scale)
    query, key = (x.repeat_interleave(share, 2).transpose(1, 2) for x in (query, key))
    value, g, beta = (x.transpose(1, 2) for x in (value, g, beta))
    out = []
    for first in range(0, time, _CHUNK):
        part = slice(first, first + _CHUNK)
        q, k, v, fading, written = (x[:, :, part] for x in (query, key, value, g, beta))
        found, state = _of_one(q, k, v, fading, written, state)
        out.append(found)
    return (cat(out, 2).transpose(1, 2) if out else value.transpose(1, 2)), state
