"""Recurrent layers and their single steps as functions of weights: `lstm`, `gru`, `rnn_tanh`, `rnn_relu` and
the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, ShapeError
from ...op.arguments import boolean, describe, number, wrong
from ...op.families import called
from ...op.public import function, name_overloads
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..matmul.linear import linear
from ..random.dropouts import dropout as dropped
from ..shape.joining import cat, stack
from .packing import packed, padded
from .recurrent_steps import gru_steps, lstm_steps, rnn_steps

# How many gates are one below the other in the weights.
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def run_steps(
    mode: str, x: Tensor, states: Sequence[Tensor], weights: Sequence[Any], mask: Tensor | None = None
) -> Tensor:
    """All steps of one layer in one direction: its states, an LSTM's hidden and cell states side by side.

    Args:
        mode: a key of `GATES`.
        x: (time, batch, columns).
        states: the first ones, (batch, columns).
        weights: of input and state, their biases, an LSTM's projection; None for those that it has not.
        mask: (time, batch, 1), which steps count; None: all.
    """
    from_input, from_state, bias, state_bias, projection = weights
    if mode == "GRU":
        return gru_steps(linear(x, from_input, bias), states[0], from_state, state_bias, mask)
    if bias is not None and state_bias is not None:
        bias = bias + state_bias
    gates = linear(x, from_input, state_bias if bias is None else bias)
    if mode == "LSTM":
        return lstm_steps(gates, *states, from_state, projection, mask)
    return rnn_steps(gates, states[0], from_state, mode == "RNN_RELU", mask)


def run_layers(
    mode: str,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Sequence[Any]],
    directions: int,
    dropout: float,
    mask: Tensor | None,
) -> tuple[Tensor, list[Tensor]]:
    """All layers, in 1 or 2 directions: states of the last layer at all steps, and the last states of all
    layers. The first states are each (layers * directions, batch, columns), the weights for each layer and
    direction as those of `run_steps`, which explains the others; dropout is between layers."""
    columns, last = states[0].shape[-1], []
    seen: list[Tensor] = []
    backwards = None if mask is None else mask.flip(0)
    for k, own in enumerate(weights):
        if k % directions == 0:
            if k and dropout:
                x = dropped(x, dropout)
            seen.clear()
        is_second = k % directions == 1
        given, counts = (x.flip(0), backwards) if is_second else (x, mask)
        steps = run_steps(mode, given, [s[k] for s in states], own, counts)
        last.append(steps[-1])
        shown = steps[..., :columns]
        seen.append(shown.flip(0) if is_second else shown)
        if len(seen) == directions:
            x = seen[0] if directions == 1 else cat(seen, -1)
    ends = stack(last)
    return x, [ends] if len(states) == 1 else [ends[..., :columns], ends[..., columns:]]


def counting(sizes: Sequence[int], device: Any) -> Tensor | None:
    """Which steps of padded sequences count, (time, batch, 1); None where all do."""
    if sizes[-1] == sizes[0]:
        return None
    rows = [[k < n for k in range(sizes[0])] for n in sizes]
    return tensor(rows, dtype=dt.bool_, device=device).unsqueeze(-1)


def _grouped(name: str, params: Sequence[Tensor], has_biases: bool, count: int, mode: str) -> list[list[Any]]:
    """The weights of each layer and direction, as those of `run_steps`."""
    if not isinstance(params, (list, tuple)) or not all(hasattr(p, "_meta") for p in params):
        raise ArgumentError(f"{name}: params must be a list of tensors, not {describe(params)}.")
    each = len(params) // max(count, 1)
    plain = 4 if has_biases else 2
    if count < 1 or len(params) != each * count or each - plain not in ((0, 1) if mode == "LSTM" else (0,)):
        raise ShapeError(
            f"{name}: there are {len(params)} params. For each of {count} layers and directions "
            f"give {plain}: weights of input and state{', and their biases' if has_biases else ''}."
        )
    groups = []
    for start in range(0, len(params), each):
        own: list[Any] = list(params[start : start + each])
        biases = own[2:4] if has_biases else [None, None]
        groups.append([*own[:2], *biases, own[plain] if each > plain else None])
    return groups


def _fitting(name: str, x: Tensor, states: Sequence[Tensor], groups: list[list[Any]], mode: str) -> None:
    """Refuse shapes that do not fit."""
    wanted = 2 if mode == "LSTM" else 1
    if len(states) != wanted or not all(hasattr(s, "_meta") for s in states):
        raise ArgumentError(f"{name}: hx must be {'a pair of tensors' if wanted == 2 else 'a tensor'}.")
    for weight in (w for own in groups for w in (*own[:2], own[4]) if w is not None):
        if weight.dim() != 2:
            raise ShapeError(f"{name}: a weight has shape {tuple(weight.shape)}; it must be a matrix.")
    for w_ih, w_hh in (own[:2] for own in groups):
        if w_ih.shape[0] != w_hh.shape[0] or w_hh.shape[0] % GATES[mode]:
            raise ShapeError(
                f"{name}: weights have {w_ih.shape[0]} and {w_hh.shape[0]} rows; give both as many, "
                f"{GATES[mode]} times the columns of the state."
            )
    if x.dim() != 3 or not len(x):
        raise ShapeError(
            f"{name}: the input has shape {tuple(x.shape)}; give (time, batch, columns) with steps in it."
        )
    if x.shape[-1] != groups[0][0].shape[-1]:
        raise ShapeError(
            f"{name}: the input has {x.shape[-1]} columns, and its weight takes {groups[0][0].shape[-1]}."
        )
    rows = groups[0][1].shape[0] // GATES[mode]
    columns = [groups[0][1].shape[1], rows]
    for s, c in zip(states, columns, strict=False):
        if tuple(s.shape) != (len(groups), x.shape[1], c):
            raise ShapeError(
                f"{name}: hx has shape {tuple(s.shape)}; it must have {(len(groups), x.shape[1], c)}."
            )


def _run(
    mode: str, x: Tensor, sizes: list[int] | None, hx: Any, params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A layer over (time, batch, columns), or over packed rows of these sizes."""
    name = mode.lower()
    if not hasattr(x, "_meta"):
        raise wrong(f"{name}: input", "Tensor", x)
    states: Any = hx if mode == "LSTM" else [hx]
    if not isinstance(states, (list, tuple)):
        raise ArgumentError(f"lstm: hx must be a pair of tensors, not {describe(hx)}.")
    for word, flag in (("has_biases", has_biases), ("train", train), ("bidirectional", bidirectional)):
        boolean(flag, f"{name}: {word}")
    directions = 2 if bidirectional else 1
    count = index(num_layers, f"{name}: num_layers") * directions
    groups = _grouped(name, params, has_biases, count, mode)
    mask = None
    if sizes is not None:
        x, mask = padded(x, sizes), counting(sizes, x.device)
    _fitting(name, x, states, groups, mode)
    left_out = float(number(dropout, f"{name}: dropout"))
    out, last = run_layers(mode, x, states, groups, directions, left_out if train else 0.0, mask)
    return out if sizes is None else packed(out, sizes), *last


_PAGE = "\n\n    Source: https://pytorch.org/docs/stable/generated/torch.nn."


def _layer(mode: str, page: str, doc: str) -> Callable[..., Any]:
    """Declare a layer: ATen's two operators as one function."""
    name = mode.lower()

    def of_padded(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        boolean(batch_first, f"{name}: batch_first")
        turned = batch_first and hasattr(input, "_meta") and input.dim() > 1
        x = input.transpose(0, 1) if turned else input
        settings = has_biases, num_layers, dropout, train, bidirectional
        out, *last = _run(mode, x, None, hx, params, *settings)
        return out.transpose(0, 1) if batch_first else out, *last

    def of_packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        if not isinstance(batch_sizes, Tensor) or batch_sizes.dim() != 1 or not len(batch_sizes):
            raise wrong(f"{name}: batch_sizes", "a tensor of integers", batch_sizes)
        sizes = [int(n) for n in batch_sizes.tolist()]
        return _run(mode, data, sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

    def either(*args, **kwargs):
        has_sizes = len(args) > 1 and isinstance(args[1], Tensor) and not args[1].dtype.is_floating_point
        return (of_packed if has_sizes or "batch_sizes" in kwargs else of_padded)(*args, **kwargs)

    for form, kind in ((of_padded, "input"), (of_packed, "data")):
        form.__name__ = name
        name_overloads(form, f"{name}.{kind}", "")
    states = ", Tensor" if mode == "LSTM" else ""
    either.__annotations__["return"] = f"tuple[Tensor, Tensor{states}]"
    ours = "ATen has it as two operators, of padded and of packed sequences"
    return called(name, f"{doc}{_PAGE}{page}.html", either, ours=ours)


lstm = _layer(
    "LSTM", "LSTM",
    """A long short-term memory of given weights: what `nn.LSTM` computes.

    ``lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or of
    packed sequences ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional)``.

    Args:
        input: (time, batch, columns), with ``batch_first`` (batch, time, columns).
        data, batch_sizes: as a `PackedSequence` has them.
        hx: the first hidden and cell states, each (layers * directions, batch, columns).
        params: for each layer and direction ``weight_ih, weight_hh``, with ``has_biases`` ``bias_ih,
            bias_hh``, and ``weight_hr`` where hidden states are projected.
        has_biases, num_layers, bidirectional, batch_first: see `nn.LSTM`.
        dropout: probability, between layers if ``train``.

    Returns:
        The states of the last layer at all steps, and the last hidden and cell states of all layers.

    Raises:
        ArgumentError: arguments are missing, or of a wrong type.
        ShapeError: shapes or the number of parameters do not fit.""",
)  # fmt: skip
_AS_LSTM = "computes; arguments as `lstm`, with one tensor of\n    first states."
gru = _layer("GRU", "GRU", f"A gated recurrent unit of given weights: what `nn.GRU` {_AS_LSTM}")
rnn_tanh = _layer("RNN_TANH", "RNN", f"A recurrent layer of given weights: what `nn.RNN` {_AS_LSTM}")
rnn_relu = _layer("RNN_RELU", "RNN", "`rnn_tanh` with relu in the place of tanh.")


def _cell(mode: str, input: Tensor, states: Sequence[Tensor], *weights: Tensor | None) -> Tensor:
    """The states after one step, as those of `run_steps`."""
    name = f"{mode.lower()}_cell"
    if input.dim() != 2:
        raise ShapeError(f"{name}: the input has shape {tuple(input.shape)}; give (batch, columns).")
    own, x = [*weights, None], input.unsqueeze(0)
    _fitting(name, x, [s.unsqueeze(0) for s in states], [own], mode)
    return run_steps(mode, x, states, own)[0]


@function()
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of `lstm`: the next hidden and cell state.

    Args:
        input: (batch, columns).
        hx: hidden and cell state, each (batch, hidden).
        w_ih, w_hh: (4 * hidden, columns) and (4 * hidden, hidden), of input and state.
        b_ih, b_hh: (4 * hidden,), or None.

    Raises:
        ArgumentError: ``hx`` is no pair.
        ShapeError: shapes do not fit.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html
    """
    if not isinstance(hx, (list, tuple)) or len(hx) != 2:
        raise ArgumentError(f"lstm_cell: hx must be a pair of tensors, not {describe(hx)}.")
    hidden, cell = _cell("LSTM", input, hx, w_ih, w_hh, b_ih, b_hh).chunk(2, -1)
    return hidden, cell


def _cell_of(mode: str, page: str, doc: str) -> Callable[..., Tensor]:
    """Declare a step of a layer with one state."""

    def step(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        return _cell(mode, input, [hx], w_ih, w_hh, b_ih, b_hh)

    doc = f"{doc}\n\n    Raises:\n        ShapeError: shapes do not fit.{_PAGE}{page}.html"
    return called(f"{mode.lower()}_cell", doc, step)


_BY = "(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``."
gru_cell = _cell_of(
    "GRU", "GRUCell",
    "One step of `gru`: the next state, from one of shape (batch, hidden); weights as those of `lstm_cell`,\n"
    "    of three gates.",
)  # fmt: skip
rnn_tanh_cell = _cell_of("RNN_TANH", "RNNCell", f"One step of `rnn_tanh`: ``tanh{_BY}")
rnn_relu_cell = _cell_of("RNN_RELU", "RNNCell", f"One step of `rnn_relu`: ``relu{_BY}")
