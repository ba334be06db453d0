"""Recurrences over time: RNN, LSTM and GRU layers of one direction, with derivatives of their own.

The input's products of all steps are made before, in one product. A step is the product of its state and a
kernel or two. Backward, gates and slopes of all steps are computed at once; the walk back through time is a
product and a few elementwise ops a step, and the derivatives of weights are one product for all steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...autograd.composed import composed
from ...op.declaration import elementwise, op
from ...op.families import formed
from ...op.rules import broadcast, promote
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.functions import stable_sigmoid
from ..matmul.linear import linear
from ..shape.joining import cat, stack


def _of_gates(
    first_x: Tensor,
    first_h: Tensor,
    second_x: Tensor,
    second_h: Tensor,
    new_x: Tensor,
    new_h: Tensor,
    state: Tensor,
) -> Tensor: ...


def _of_one(shown_x: Tensor, shown_h: Tensor, cell: Tensor) -> Tensor: ...


def _part(name: str, form: Callable, text: str, reference: Callable, doc: str) -> Callable[..., Tensor]:
    """Declare a part of a step, from gates' parts of input and state."""
    return op(
        dtype=promote,
        shape=broadcast,
        kernel=elementwise(text, i32=False),
        reference=reference,
        grad=None,
        exports=None,
        ours="a part of a recurrent step, which ATen has as a whole",
    )(formed(form, name, doc))


def _cell_reference(taken_x, taken_h, forget_x, forget_h, new_x, new_h, cell):
    taken, forget = stable_sigmoid(taken_x + taken_h), stable_sigmoid(forget_x + forget_h)
    return forget * cell + taken * np.tanh(new_x + new_h)


def _gru_reference(reset_x, reset_h, keep_x, keep_h, new_x, new_h, hidden):
    keep = stable_sigmoid(keep_x + keep_h)
    return (1 - keep) * np.tanh(new_x + stable_sigmoid(reset_x + reset_h) * new_h) + keep * hidden


_lstm_cell = _part(
    "_lstm_cell", _of_gates,
    "sigmoid_of(second_x + second_h) * state + sigmoid_of(first_x + first_h) * tanh_of(new_x + new_h)",
    _cell_reference, "The next cell state of an LSTM, whose gates take and forget.",
)  # fmt: skip
_lstm_hidden = _part(
    "_lstm_hidden", _of_one, "sigmoid_of(shown_x + shown_h) * tanh_of(cell)",
    lambda shown_x, shown_h, cell: stable_sigmoid(shown_x + shown_h) * np.tanh(cell),
    "What an LSTM shows of its cell state.",
)  # fmt: skip
_gru_hidden = _part(
    "_gru_hidden", _of_gates,
    "mix(tanh_of(new_x + sigmoid_of(first_x + first_h) * new_h), state, sigmoid_of(second_x + second_h))",
    _gru_reference, "The next state of a GRU, whose gates reset and keep.",
)  # fmt: skip


def _before(first: Tensor, states: Tensor) -> Tensor:
    """The state before each step."""
    return cat([first.unsqueeze(0), states[:-1]])


def _over_all(change: Tensor, states: Tensor) -> Tensor:
    """The derivative of a weight: a product over all steps and rows of the batch."""
    return change.flatten(0, 1).t() @ states.flatten(0, 1)


class Walk:
    """The way back through time: what a step's change of gates means for the state before.

    Args:
        g: the gradients of the states of all steps.
        weight: by which gates follow from the state.
        mask: (time, batch, 1), which steps count; the others keep the state. None: all.
    """

    def __init__(self, g: Tensor, weight: Tensor, mask: Tensor | None):
        self.g, self.weight = g, weight
        self.left = None if mask is None else 1 - mask.to(g.dtype)
        self.changes: list[Tensor] = []

    def step(self, t: int, change: Tensor, state: Tensor, rest: Tensor | None = None) -> Tensor:
        """The gradient of the state before step t, from those of its gates and of the state after it;
        ``rest`` is what goes from there to the state before beside the gates."""
        self.changes.append(change)
        before = change @ self.weight if rest is None else rest.addmm(change, self.weight)
        if self.left is not None and rest is None:
            before = before + state * self.left[t]
        return before + self.g[t - 1] if t else before

    def all(self) -> Tensor:
        """The changes of all steps."""
        return stack(self.changes[::-1])


def _rnn_grad(g, out, gates, hidden, weight, relu, mask):
    slope = (out > 0).to(g.dtype) if relu else 1 - out * out
    slope = slope if mask is None else slope * mask.to(g.dtype)
    walk, state = Walk(g, weight, mask), g[-1]
    for t in reversed(range(len(gates))):
        state = walk.step(t, state * slope[t], state)
    change = walk.all()
    return {"gates": change, "hidden": state, "weight": _over_all(change, _before(hidden, out))}


@composed(**dict.fromkeys(("gates", "hidden", "weight"), _rnn_grad))
def rnn_steps(gates: Tensor, hidden: Tensor, weight: Tensor, relu: bool, mask: Tensor | None) -> Tensor:
    """``h_t = tanh(gates_t + h_(t-1) @ weight.T)``, or relu in the place of tanh.

    Args:
        gates: (time, batch, hidden), the input's products with all biases.
        hidden: (batch, hidden), the first state.
        weight: (hidden, hidden).
        relu: see above.
        mask: (time, batch, 1), bool, or None: where it is False the state stays.

    Returns:
        The states, (time, batch, hidden).
    """
    states = []
    for t in range(len(gates)):
        new = gates[t] + linear(hidden, weight)
        new = new.relu() if relu else new.tanh()
        hidden = new if mask is None else where(mask[t], new, hidden)
        states.append(hidden)
    return stack(states)


def _lstm_grad(g, out, gates, hidden, cell, weight, projection, mask):
    size = hidden.shape[-1]
    states, cells = out[..., :size], out[..., size:]
    before, cells_before = _before(hidden, states), _before(cell, cells)
    taken, forget, new, shown = (gates + linear(before, weight)).chunk(4, -1)
    taken, forget, shown, new = taken.sigmoid(), forget.sigmoid(), shown.sigmoid(), new.tanh()
    inside = cells.tanh()
    by_cell = stack(
        [new * taken * (1 - taken), cells_before * forget * (1 - forget), taken * (1 - new * new)], -2
    )
    by_state, through, kept = inside * shown * (1 - shown), shown * (1 - inside * inside), forget
    m = None if mask is None else mask.to(g.dtype)
    if m is not None:
        by_cell, by_state, through = by_cell * m.unsqueeze(-1), by_state * m, through * m
        kept = kept * m + (1 - m)
    g_states, g_cells = g[..., :size], g[..., size:]
    walk, state, inner = Walk(g_states, weight, mask), g_states[-1], g_cells[-1]
    shown_changes = []
    for t in reversed(range(len(gates))):
        shown_change = state if projection is None else state @ projection
        inner = inner.addcmul(shown_change, through[t])
        change = cat([(by_cell[t] * inner.unsqueeze(1)).flatten(1), shown_change * by_state[t]], -1)
        if projection is not None:
            shown_changes.append(state if m is None else state * m[t])
        state = walk.step(t, change, state)
        inner = inner * kept[t] + g_cells[t - 1] if t else inner * kept[t]
    change = walk.all()
    found = {"gates": change, "hidden": state, "cell": inner, "weight": _over_all(change, before)}
    if projection is not None:
        found["projection"] = _over_all(stack(shown_changes[::-1]), shown * inside)
    return found


@composed(**dict.fromkeys(("gates", "hidden", "cell", "weight", "projection"), _lstm_grad))
def lstm_steps(
    gates: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight: Tensor,
    projection: Tensor | None,
    mask: Tensor | None,
) -> Tensor:
    """An LSTM: ``i, f, n, o`` are the parts of ``gates_t + h_(t-1) @ weight.T``,
    ``c_t = sigmoid(f) * c_(t-1) + sigmoid(i) * tanh(n)`` and ``h_t = sigmoid(o) * tanh(c_t)``.

    Args:
        gates: (time, batch, 4 * cells), the input's products with all biases.
        hidden: (batch, states), the first hidden state.
        cell: (batch, cells), the first cell state.
        weight: (4 * cells, states).
        projection: (states, cells), by which hidden states are multiplied, or None.
        mask: (time, batch, 1), bool, or None: where it is False both states stay.

    Returns:
        Hidden and cell states side by side, (time, batch, states + cells).

    Source: Hochreiter and Schmidhuber 1997, "Long short-term memory"
    """
    states, cells = [], []
    for t in range(len(gates)):
        taken_x, forget_x, new_x, shown_x = gates[t].chunk(4, -1)
        taken_h, forget_h, new_h, shown_h = linear(hidden, weight).chunk(4, -1)
        inner = _lstm_cell(taken_x, taken_h, forget_x, forget_h, new_x, new_h, cell)
        state = _lstm_hidden(shown_x, shown_h, inner)
        state = state if projection is None else linear(state, projection)
        hidden = state if mask is None else where(mask[t], state, hidden)
        cell = inner if mask is None else where(mask[t], inner, cell)
        states.append(hidden)
        cells.append(cell)
    return cat([stack(states), stack(cells)], -1)


def _gru_grad(g, out, gates, hidden, weight, bias, mask):
    before = _before(hidden, out)
    reset_h, keep_h, new_h = linear(before, weight, bias).chunk(3, -1)
    reset_x, keep_x, new_x = gates.chunk(3, -1)
    reset, keep = (reset_x + reset_h).sigmoid(), (keep_x + keep_h).sigmoid()
    new = (new_x + reset * new_h).tanh()
    to_new = (1 - keep) * (1 - new * new)
    slopes = stack(
        [to_new * new_h * reset * (1 - reset), (before - new) * keep * (1 - keep), to_new * reset], -2
    )
    if mask is not None:
        m = mask.to(g.dtype)
        slopes, to_new, keep = slopes * m.unsqueeze(-1), to_new * m, keep * m + (1 - m)
    walk, state, after = Walk(g, weight, mask), g[-1], []
    for t in reversed(range(len(gates))):
        after.append(state)
        change = (slopes[t] * state.unsqueeze(1)).flatten(1)
        state = walk.step(t, change, state, state * keep[t])
    change, size = walk.all(), hidden.shape[-1]
    found = {
        "gates": cat([change[..., : 2 * size], stack(after[::-1]) * to_new], -1),
        "hidden": state,
        "weight": _over_all(change, before),
    }
    if bias is not None:
        found["bias"] = change.sum((0, 1))
    return found


@composed(**dict.fromkeys(("gates", "hidden", "weight", "bias"), _gru_grad))
def gru_steps(
    gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor | None
) -> Tensor:
    """A GRU: ``r, z, n`` are the parts of ``gates_t``, ``r', z', n'`` of ``h_(t-1) @ weight.T + bias``,
    ``new = tanh(n + sigmoid(r + r') * n')`` and ``h_t = new + sigmoid(z + z') * (h_(t-1) - new)``.

    Args:
        gates: (time, batch, 3 * hidden), the input's products with their bias.
        hidden: (batch, hidden), the first state.
        weight: (3 * hidden, hidden).
        bias: (3 * hidden,) or None.
        mask: (time, batch, 1), bool, or None: where it is False the state stays.

    Returns:
        The states, (time, batch, hidden).

    Source: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder"
    """
    states = []
    for t in range(len(gates)):
        reset_x, keep_x, new_x = gates[t].chunk(3, -1)
        reset_h, keep_h, new_h = linear(hidden, weight, bias).chunk(3, -1)
        new = _gru_hidden(reset_x, reset_h, keep_x, keep_h, new_x, new_h, hidden)
        hidden = new if mask is None else where(mask[t], new, hidden)
        states.append(hidden)
    return stack(states)
