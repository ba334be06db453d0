"""Recurrent operators: RNN, GRU and LSTM, step after step, with their activations and both directions."""

from __future__ import annotations

from collections.abc import Callable

from .....errors import ArgumentError
from .....nn import functional as F
from .....tensors.tensor import Tensor
from ...rows import one_of
from ..table import operator
from .elementwise import ops

# By name: the function of (value, alpha, beta), and the defaults of these.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor, float, float], Tensor], float, float]] = {
    "relu": (lambda x, a, b: ops.relu(x), 0, 0),
    "tanh": (lambda x, a, b: ops.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: ops.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: ops.threshold(x, a, 0.0), 1, 0),
    "scaledtanh": (lambda x, a, b: a * ops.tanh(b * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: ops.clamp(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: F.elu(x, a), 1, 0),
    "softsign": (lambda x, a, b: F.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: F.softplus(x), 0, 0),
}


class _Layer:
    """What the three operators share.

    Args:
        gates: rows of the weights, in hidden sizes.
        usual: activations where the node names none.
        settings: the node's attributes.
    """

    def __init__(self, gates: int, usual: tuple[str, ...], settings: dict):
        self.gates = gates
        self.directions = one_of(
            "direction", settings["direction"], {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
        )
        self.clip, self.layout = settings["clip"], settings["layout"]
        names = list(settings["activations"] or usual * len(self.directions))
        if len(names) != len(usual) * len(self.directions):
            raise ArgumentError(f"activations are {names}; {len(usual)} for each direction are needed.")
        alphas, betas = list(settings["activation_alpha"] or []), list(settings["activation_beta"] or [])
        made = []
        for name in names:
            function, alpha, beta = one_of("activation", name.lower(), _ACTIVATIONS)
            a = alphas.pop(0) if alphas and alpha else alpha
            b = betas.pop(0) if betas and (beta or name.lower() == "affine") else beta
            made.append(lambda x, function=function, a=a, b=b: function(self.clipped(x), a, b))
        each = len(usual)
        self.functions = [made[k * each : (k + 1) * each] for k in range(len(self.directions))]

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else ops.clamp(x, -self.clip, self.clip)

    def run(
        self, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
        states: list[Tensor | None], step: Callable,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """The outputs at all times, and the last states.

        Args:
            step: (what the input adds, states, weight, bias of the states, functions, number of direction) ->
                new states.
        """
        if self.layout:
            x = x.transpose(0, 1)
            states = [None if s is None else s.transpose(0, 1) for s in states]
        time, batch, _ = x.shape
        hidden = r.shape[-1]
        each: list[Tensor] = []
        finals: list[list[Tensor]] = []
        for k, way in enumerate(self.directions):
            own = [
                ops.zeros((batch, hidden), dtype=x.dtype, device=x.device) if s is None else s[k]
                for s in states
            ]
            added = ops.matmul(x, w[k].T)
            bias = None
            if b is not None:
                added = added + b[k, : self.gates * hidden]
                bias = b[k, self.gates * hidden :]
            outputs: list[Tensor] = []
            for t in range(time)[::way]:
                new = step(added[t], own, r[k], bias, self.functions[k], k)
                if lengths is not None:
                    alive = (lengths > t).reshape(-1, 1)
                    new = [ops.where(alive, a, c) for a, c in zip(new, own)]
                    outputs.append(ops.where(alive, new[0], ops.zeros_like(new[0])))
                else:
                    outputs.append(new[0])
                own = new
            each.append(ops.stack(outputs[::way]))
            finals.append(own)
        y = ops.stack(each, 1)
        last = [ops.stack([f[k] for f in finals]) for k in range(len(states))]
        if self.layout:
            y, last = y.permute(2, 0, 1, 3), [s.transpose(0, 1) for s in last]
        return y, *last


@operator("RNN", since=7)
def rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: list | None = None,
    activation_beta: list | None = None, activations: list | None = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int = 0, layout: int = 0,
):  # fmt: skip
    layer = _Layer(1, ("Tanh",), locals())

    def step(added, states, weight, bias, functions, k):
        y = added + ops.matmul(states[0], weight.T)
        return [functions[0](y if bias is None else y + bias)]

    return layer.run(x, w, r, b, sequence_lens, [initial_h], step)


@operator("GRU", since=7)
def gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: list | None = None,
    activation_beta: list | None = None, activations: list | None = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int = 0, layout: int = 0, linear_before_reset: int = 0,
):  # fmt: skip
    layer, size = _Layer(3, ("Sigmoid", "Tanh"), locals()), r.shape[-1]

    def step(added, states, weight, bias, functions, k):
        (h,) = states
        gate = added[:, : 2 * size] + ops.matmul(h, weight[: 2 * size].T)
        gate = functions[0](gate if bias is None else gate + bias[: 2 * size])
        z, reset = gate[:, :size], gate[:, size:]
        if linear_before_reset:
            inner = ops.matmul(h, weight[2 * size :].T)
            inner = reset * (inner if bias is None else inner + bias[2 * size :])
        else:
            inner = ops.matmul(reset * h, weight[2 * size :].T)
            inner = inner if bias is None else inner + bias[2 * size :]
        new = functions[1](added[:, 2 * size :] + inner)
        return [(1 - z) * new + z * h]

    return layer.run(x, w, r, b, sequence_lens, [initial_h], step)


@operator("LSTM", since=7)
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
    activation_alpha: list | None = None, activation_beta: list | None = None,
    activations: list | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int = 0, input_forget: int = 0, layout: int = 0,
):  # fmt: skip
    layer, size = _Layer(4, ("Sigmoid", "Tanh", "Tanh"), locals()), r.shape[-1]

    def step(added, states, weight, bias, functions, k):
        h, c = states
        y = added + ops.matmul(h, weight.T)
        y = y if bias is None else y + bias
        i, o, f, g = (y[:, n * size : (n + 1) * size] for n in range(4))
        if p is not None:  # peepholes, in the order i, o, f
            i, f = i + p[k, :size] * c, f + p[k, 2 * size :] * c
        i = functions[0](i)
        f = 1 - i if input_forget else functions[0](f)
        c = f * c + i * functions[1](g)
        if p is not None:
            o = o + p[k, size : 2 * size] * c
        return [functions[0](o) * functions[2](c), c]

    return layer.run(x, w, r, b, sequence_lens, [initial_h, initial_c], step)
