"""Recurrent layers: RNN, LSTM and GRU, of several layers and both directions."""

from __future__ import annotations

from math import sqrt
from typing import Any

from ...errors import ArgumentError, RangeError, ShapeError, warn
from ...op.arguments import boolean, describe
from ...ops.recurrence.packing import packed, padded
from ...ops.recurrence.recurrent import GATES, counting, run_layers
from ...ops.shape.creation import empty, zeros
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


class RNNBase(Module):
    """Base of recurrent layers.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: columns of the input.
        hidden_size: columns of the state.
        num_layers: layers, each of which takes the states of the one before.
        bias: whether there are two biases.
        batch_first: inputs and outputs are (batch, time, columns) instead of (time, batch, columns).
        dropout: probability, between layers while training.
        bidirectional: a second direction, from the end, whose states are beside those of the first.
        proj_size: columns of an LSTM's projected hidden state, 0 for none.
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: of layer 0; "_reverse" after them is the second
            direction; all uniform within ``1 / sqrt(hidden_size)``.

    Raises:
        RangeError: a size is out of range.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        if mode not in GATES:
            raise RangeError(f"{name}: mode must be one of {', '.join(GATES)}, not {mode!r}.")
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        for key, value in sizes.items():
            sizes[key] = index(value, f"{name}: {key}")
            if sizes[key] <= 0:
                raise RangeError(f"{name}: {key} must be greater than zero, not {value}.")
        for key, flag in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            boolean(flag, f"{name}: {key}")
        proj_size = index(proj_size, f"{name}: proj_size")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise RangeError(f"{name}: dropout should be a number in range [0, 1], not {dropout!r}.")
        if not 0 <= proj_size < hidden_size or (proj_size and mode != "LSTM"):
            raise RangeError(
                f"{name}: proj_size has to be smaller than hidden_size {hidden_size}, and is the "
                f"LSTM's alone; it is {proj_size}."
            )
        if dropout and num_layers == 1:
            warn(f"{name}: dropout is between layers, and there is one.")
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = sizes.values()
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout, self.proj_size = float(dropout), proj_size
        directions, state = 2 if bidirectional else 1, proj_size or hidden_size
        rows = GATES[mode] * hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                columns = input_size if layer == 0 else state * directions
                shapes = [(rows, columns), (rows, state)]
                shapes += [(rows,)] * 2 if bias else []
                known = [*PARAMETERS[: len(shapes)], *(["weight_hr"] if proj_size else [])]
                shapes += [(proj_size, hidden_size)] if proj_size else []
                names = [f"{key}_l{layer}{suffix}" for key in known]
                for key, shape in zip(names, shapes, strict=True):
                    setattr(self, key, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need not lie together."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        usual |= {"bidirectional": False}
        others = [f"{k}={getattr(self, k)}" for k, v in usual.items() if getattr(self, k) != v]
        return ", ".join([str(self.input_size), str(self.hidden_size), *others])

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """All steps.

        Args:
            input: (time, batch, input_size), with ``batch_first`` (batch, time, input_size), (time,
                input_size), or a `PackedSequence`.
            hx: the first states, (layers * directions, batch, hidden_size), zeros if None; an LSTM's are a
                pair, hidden and cell states.

        Returns:
            The states of the last layer at all steps, shaped or packed as the input, and the last states
            of all layers, as ``hx``.

        Raises:
            ShapeError: shapes do not fit.
        """
        name, sizes, mask, order = type(self).__name__, None, None, None
        batched, first = True, 0 if self.batch_first else 1
        if isinstance(input, PackedSequence):
            sizes, order = input.batch_sizes.tolist(), input
            x = padded(input.data, sizes)
            mask = counting(sizes, x.device)
        else:
            if input.dim() not in (2, 3):
                raise ShapeError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead.")
            batched = input.dim() == 3
            x = input if batched else input.unsqueeze(first)
            x = x.transpose(0, 1) if self.batch_first else x
        if x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{x.shape[-1]}."
            )
        if len(x) == 0:
            raise ShapeError(f"{name}: Expected sequence length to be larger than 0.")
        states = self._first(hx, x, batched)
        if order is not None and order.sorted_indices is not None:
            states = [s.index_select(1, order.sorted_indices) for s in states]
        weights = [{key.split("_l")[0]: getattr(self, key) for key in names} for names in self._all_weights]
        out, last = run_layers(
            self.mode,
            x,
            states,
            [[own.get(key) for key in PARAMETERS] for own in weights],
            2 if self.bidirectional else 1,
            self.dropout if self.training else 0.0,
            mask,
        )
        if order is not None:
            if order.unsorted_indices is not None:
                last = [s.index_select(1, order.unsorted_indices) for s in last]
            assert sizes is not None
            out = PackedSequence(
                packed(out, sizes), order.batch_sizes, order.sorted_indices, order.unsorted_indices
            )
        else:
            out = out.transpose(0, 1) if self.batch_first else out
            if not batched:
                out, last = out.squeeze(first), [s.squeeze(1) for s in last]
        return out, tuple(last) if self.mode == "LSTM" else last[0]

    def _first(self, hx: Any, x: Tensor, batched: bool) -> list[Tensor]:
        """The first states, each (layers * directions, batch, columns)."""
        name, count = type(self).__name__, self.num_layers * (2 if self.bidirectional else 1)
        columns = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        shapes = [(count, x.shape[1], c) for c in columns]
        if hx is None:
            return [zeros(s, dtype=x.dtype, device=x.device) for s in shapes]
        states = list(hx) if self.mode == "LSTM" else [hx]
        if len(states) != len(shapes) or not all(isinstance(s, Tensor) for s in states):
            raise ArgumentError(
                f"{name}: hx must be {'a pair of tensors' if len(shapes) == 2 else 'a tensor'}, not "
                f"{describe(hx)}."
            )
        if any(s.dim() != (3 if batched else 2) for s in states):
            raise ShapeError(
                f"{name}: for {'batched 3-D' if batched else 'unbatched 2-D'} input, hx should also be "
                f"{3 if batched else 2}-D but got {', '.join(f'{s.dim()}-D' for s in states)}."
            )
        states = states if batched else [s.unsqueeze(1) for s in states]
        for s, shape in zip(states, shapes, strict=True):
            if tuple(s.shape) != shape:
                raise ShapeError(f"{name}: Expected hidden size {shape}, got {list(s.shape)}.")
        return states


class RNN(RNNBase):
    """``h_t = tanh(x_t @ weight_ih.T + bias_ih + h_(t-1) @ weight_hh.T + bias_hh)``, or relu.

    Args:
        input_size, hidden_size, num_layers: see `RNNBase`.
        nonlinearity: "tanh" or "relu".
        bias, batch_first, dropout, bidirectional, device, dtype: see `RNNBase`.

    Raises:
        RangeError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.RNN.html; Elman 1990, "Finding structure in
        time"
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype: DType | None = None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise RangeError(f"RNN: nonlinearity must be 'tanh' or 'relu', not {nonlinearity!r}.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class _Gated(RNNBase):
    """A layer whose cells have gates.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first: see `RNNBase`.
        dropout, bidirectional, proj_size, device, dtype: see `RNNBase`.

    Raises:
        RangeError: a setting is out of range.
    """

    cells: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(
            self.cells, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip


class LSTM(_Gated):
    """Long short-term memory: gates of input, forgetting, candidate and output, and a cell state.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.LSTM.html; Hochreiter and Schmidhuber 1997

    Example:
        >>> import pellucid as torch
        >>> out, (hidden, cell) = torch.nn.LSTM(3, 4, device="cpu")(torch.ones(5, 2, 3, device="cpu"))
        >>> out.shape, cell.shape
        (Size([5, 2, 4]), Size([1, 2, 4]))
    """

    cells = "LSTM"


class GRU(_Gated):
    """A gated recurrent unit: gates of resetting and keeping, and a candidate.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.GRU.html; Cho et al. 2014
    """

    cells = "GRU"


__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]
