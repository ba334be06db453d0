"""Recurrent operators, whose state outlives a call."""

from __future__ import annotations

from .....errors import ArgumentError
from .....tensors.tensor import Tensor
from ...onnx.operators.elementwise import ops
from ..table import operator


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM", options="UnidirectionalSequenceLSTM", fixed=False)
def unidirectional_sequence_lstm(
    x: Tensor, wi: Tensor, wf: Tensor, wc: Tensor, wo: Tensor, ri: Tensor, rf: Tensor, rc: Tensor,
    ro: Tensor, peep_i: Tensor | None, peep_f: Tensor | None, peep_o: Tensor | None, bi: Tensor, bf: Tensor,
    bc: Tensor, bo: Tensor, projection: Tensor | None, projection_bias: Tensor | None, hidden: Tensor,
    cell: Tensor, *norms: Tensor | None, cell_activation: int = 0, cell_clip: float = 0.0,
    proj_clip: float = 0.0, time_major: bool = False, diagonal_recurrent_tensors: bool = False,
):  # fmt: skip
    """Gates are sigmoids, what goes into the cell and out of it is a tanh."""
    left = [peep_i, peep_f, peep_o, projection, projection_bias, *norms]
    if any(t is not None for t in left) or diagonal_recurrent_tensors or proj_clip or cell_activation != 4:
        raise ArgumentError(
            "peepholes, projections, norms, diagonal weights, activations other than tanh: not computed."
        )
    steps = x if time_major else x.transpose(0, 1)
    given = ops.matmul(steps, ops.cat([wi, wf, wc, wo]).T) + ops.cat([bi, bf, bc, bo])
    recurrent = ops.cat([ri, rf, rc, ro]).T
    h, c, out = hidden, cell, []
    for k in range(steps.shape[0]):
        i, f, g, o = ops.chunk(given.select(0, k) + ops.matmul(h, recurrent), 4, -1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        c = ops.clamp(c, -cell_clip, cell_clip) if cell_clip else c
        h = ops.sigmoid(o) * ops.tanh(c)
        out.append(h)
    hidden.copy_(h)
    cell.copy_(c)
    return ops.stack(out, 0 if time_major else 1)
