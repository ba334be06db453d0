"""Single steps of recurrent layers: RNNCell, LSTMCell and GRUCell."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

from ...errors import RangeError, ShapeError
from ...ops.recurrence.recurrent import GATES, run_steps
from ...ops.shape.creation import empty, zeros
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module
from .rnn import PARAMETERS


class RNNCellBase(Module):
    """One step of a recurrent layer.

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: uniform within ``1 / sqrt(hidden_size)``.
    """

    _mode: ClassVar[str]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype: DType | None = None
    ):
        super().__init__()
        name = type(self).__name__
        self.input_size = index(input_size, f"{name}: input_size")
        self.hidden_size = index(hidden_size, f"{name}: hidden_size")
        self.bias = bias
        rows = GATES[self._mode] * self.hidden_size
        shapes = [(rows, self.input_size), (rows, self.hidden_size), (rows,), (rows,)]
        for k, shape in enumerate(shapes):
            made = Parameter(empty(shape, device=device, dtype=dtype)) if bias or k < 2 else None
            self.register_parameter(PARAMETERS[k], made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / sqrt(self.hidden_size) if self.hidden_size else 0.0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _step(self, input: Tensor, states: list[Tensor] | None, mode: str) -> tuple[Tensor, ...]:
        """The next states: the hidden one, and an LSTM's cell state."""
        name, count = type(self).__name__, 2 if mode == "LSTM" else 1
        for what, t in (("input", input), *(("hidden", s) for s in states or ())):
            if t.dim() not in (1, 2):
                raise ShapeError(f"{name}: Expected {what} to be 1D or 2D, got {t.dim()}D instead.")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if x.shape[1] != self.input_size:
            raise ShapeError(f"{name}: the input has {x.shape[1]} columns, not input_size {self.input_size}.")
        shape = (len(x), self.hidden_size)
        if states is None:
            states = [zeros(shape, dtype=x.dtype, device=x.device)] * count
        else:
            states = [s if batched else s.unsqueeze(0) for s in states]
        for s in states:
            if tuple(s.shape) != shape:
                raise ShapeError(f"{name}: Expected hidden size {shape}, got {list(s.shape)}.")
        weights = [getattr(self, key, None) for key in PARAMETERS]
        out = run_steps(mode, x.unsqueeze(0), states, weights)[0]
        out = out if batched else out[0]
        return out.chunk(count, -1)


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    Args:
        input_size: columns of the input.
        hidden_size: columns of the state.
        bias: whether there are two biases.
        nonlinearity: "tanh" or "relu".
        device, dtype: of the parameters; the defaults if None.
    """

    _mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (batch, hidden_size), from an input (batch, input_size); both without batch, too.

        Raises:
            RangeError: ``nonlinearity`` is unknown.
        """
        if self.nonlinearity not in ("tanh", "relu"):
            raise RangeError(f"RNNCell: nonlinearity must be 'tanh' or 'relu', not {self.nonlinearity!r}.")
        return self._step(input, None if hx is None else [hx], f"RNN_{self.nonlinearity.upper()}")[0]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`.

    Args:
        input_size: columns of the input.
        hidden_size: columns of the states.
        bias: whether there are two biases.
        device, dtype: of the parameters; the defaults if None.
    """

    _mode = "LSTM"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        """The next hidden and cell state, (batch, hidden_size), from an input (batch, input_size); all
        without batch, too."""
        return tuple(self._step(input, None if hx is None else list(hx), "LSTM"))


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Args:
        input_size: columns of the input.
        hidden_size: columns of the state.
        bias: whether there are two biases.
        device, dtype: of the parameters; the defaults if None.
    """

    _mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (batch, hidden_size), from an input (batch, input_size); both
        without batch, too."""
        return self._step(input, None if hx is None else [hx], "GRU")[0]


__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]
