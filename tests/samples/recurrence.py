"""Samples of recurrences along time, beside their loops in PyTorch."""

import numpy as np

from samples.sample import S, Sample, bad, each, normal, nothing, uniform


def stepwise(t, u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None):
    """The definition, position after position."""
    if delta_bias is not None:
        delta = delta + delta_bias
    if delta_softplus:
        delta = t.nn.functional.softplus(delta)
    B, C = (x if x.dim() == 4 else x.unsqueeze(2) for x in (B, C))
    B, C = (x.repeat_interleave(u.shape[2] // x.shape[2], 2) for x in (B, C))
    state = u.new_zeros((u.shape[0], *A.shape)) if initial_state is None else initial_state
    out = []
    for k in range(u.shape[1]):
        step = delta[:, k].unsqueeze(-1)
        state = t.exp(step * A) * state + step * B[:, k] * u[:, k].unsqueeze(-1)
        out.append((state * C[:, k]).sum(-1))
    out = t.stack(out, 1) if out else u * 0
    out = out if D is None else out + D * u
    return (out if z is None else out * t.nn.functional.silu(z)), state


def scan(batch: int, time: int, channels: int, states: int, *groups: int, **options) -> Sample:
    """A scan of these sizes."""
    u, along = normal(batch, time, channels), (batch, time, *groups, states)
    steps, A = uniform(0.01, 1, batch, time, channels), -uniform(0.1, 2, channels, states)
    return S(u, steps, A, normal(*along), normal(*along), **options).but(
        theirs=stepwise, rtol=1e-4, atol=1e-4, layouts=("contiguous",), second=False
    )


def by_position(t, query, key, value, g, beta, scale=None, initial_state=None):
    """The gated delta rule, position after position."""
    share, columns = value.shape[2] // query.shape[2], query.shape[3]
    query, key = (x.repeat_interleave(share, 2) for x in (query, key))
    state = value.new_zeros((len(value), *value.shape[2:3], columns, value.shape[3]))
    state, out = state if initial_state is None else initial_state, []
    for k in range(value.shape[1]):
        state = state * t.exp(g[:, k])[..., None, None]
        new = (value[:, k] - t.einsum("bhkv,bhk->bhv", state, key[:, k])) * beta[:, k].unsqueeze(-1)
        state = state + key[:, k].unsqueeze(-1) * new.unsqueeze(-2)
        out.append(t.einsum("bhkv,bhk->bhv", state, query[:, k]))
    return (t.stack(out, 1) if out else value) * (columns**-0.5 if scale is None else scale), state


def rule(batch: int, time: int, key_heads: int, heads: int, **options) -> Sample:
    """A gated delta rule of these sizes."""
    key = normal(batch, time, key_heads, 3)
    key /= np.sqrt((key * key).sum(-1, keepdims=True))
    fading, beta = -uniform(0, 1, batch, time, heads), uniform(0, 1, batch, time, heads)
    given = normal(*key.shape), key, normal(batch, time, heads, 2), fading, beta
    return S(*given, **options).but(
        theirs=by_position, rtol=1e-4, atol=1e-4, layouts=("contiguous",), second=False
    )


def none(text: str, *args, **options) -> Sample:
    """A call that has no meaning."""
    return bad(text, *args, **options).but(error=Exception)


def weights(gates: int, columns: int, hidden: int, biases: bool = True, state: int = 0) -> list:
    """Those of a layer of one direction."""
    made = [normal(gates * hidden, columns), normal(gates * hidden, state or hidden)]
    return [
        *made,
        *([normal(gates * hidden)] * 2 if biases else []),
        *([normal(state, hidden)] if state else []),
    ]


def layer(first: list, hx, params: list, *settings, **named) -> Sample:
    """A layer as a function. Settings are: biases, layers, dropout, training, both directions and, unless
    sequences are packed, the batch first."""
    return S(*first, hx, params, *settings, **named).but(
        rtol=1e-4, atol=1e-4, layouts=("contiguous",), second=False
    )


def steps(gates: int) -> list[Sample]:
    """Of one state: one layer, two of both directions, packed sequences, and what does not fit."""
    one = weights(gates, 3, 4)
    several = [w for columns in (3, 3, 8, 8) for w in weights(gates, columns, 4, False)]
    return [
        layer([normal(5, 2, 3)], normal(1, 2, 4), one, True, 1, 0.0, False, False, False),
        layer([normal(2, 5, 3)], normal(4, 2, 4), several, False, 2, 0.3, False, True, True),
        layer([normal(7, 3), LENGTHS], normal(1, 3, 4), one, True, 1, 0.0, True, False),
        none("params", normal(5, 2, 3), normal(1, 2, 4), one, False, 1, 0.0, False, False, False),
        none("hx has shape", normal(5, 2, 3), normal(1, 3, 4), one, True, 1, 0.0, False, False, False),
        none("columns", normal(5, 2, 4), normal(1, 2, 4), one, True, 1, 0.0, False, False, False),
        none("with steps", normal(0, 2, 3), normal(1, 2, 4), one, True, 1, 0.0, False, False, False),
        none("missing", normal(5, 2, 3), normal(1, 2, 4), one, True),
    ]


def cell(gates: int) -> list[Sample]:
    """One step, with biases and without."""
    plain = {"layouts": ("contiguous", "strided"), "second": False}
    return [
        S(normal(2, 3), normal(2, 4), *weights(gates, 3, 4)).but(**plain),
        S(normal(2, 3), normal(2, 4), *weights(gates, 3, 4, False)).but(**plain),
        none("hx has shape", normal(2, 3), normal(3, 4), *weights(gates, 3, 4)),
        none("columns", normal(2, 5), normal(2, 4), *weights(gates, 3, 4)),
        none("give both as many", normal(2, 3), normal(2, 4), normal(gates * 2, 3), normal(gates * 4, 4)),
    ]


LENGTHS = np.array([3, 2, 1, 1])
states = [normal(1, 2, 4), normal(1, 2, 4)]
small = scan(1, 3, 2, 2)
given = {
    "D": normal(3), "z": normal(2, 5, 3), "delta_bias": normal(3), "delta_softplus": True,
    "initial_state": normal(2, 3, 2),
}  # fmt: skip
SAMPLES: dict[str, list[Sample]] = {
    "rnn_tanh": steps(1),
    "rnn_relu": steps(1),
    "gru": steps(3),
    "lstm": [
        layer([normal(5, 2, 3)], states, weights(4, 3, 4), True, 1, 0.0, False, False, False),
        layer(
            [normal(5, 2, 3)],
            [normal(1, 2, 2), states[0]],
            weights(4, 3, 4, True, 2),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=False,
            bidirectional=False,
            batch_first=False,
        ),
        layer(
            [normal(5, 2, 3)],
            [normal(1, 2, 2), states[0]],
            weights(4, 3, 4, False, 2),
            False,
            1,
            0.0,
            False,
            False,
            False,
        ),
        layer(
            [normal(7, 3), LENGTHS],
            [normal(1, 3, 4), normal(1, 3, 4)],
            weights(4, 3, 4),
            True,
            1,
            0.0,
            False,
            False,
        ),
        none(
            "a pair of tensors",
            normal(5, 2, 3),
            states[:1],
            weights(4, 3, 4),
            True,
            1,
            0.0,
            False,
            False,
            False,
        ),
        none("params must be a list", normal(5, 2, 3), states, 4, True, 1, 0.0, False, False, False),
    ],
    "rnn_tanh_cell": cell(1),
    "rnn_relu_cell": cell(1),
    "gru_cell": cell(3),
    "lstm_cell": [
        S(normal(2, 3), [normal(2, 4), normal(2, 4)], *weights(4, 3, 4)).but(second=False),
        none("a pair of tensors", normal(2, 3), [normal(2, 4)], *weights(4, 3, 4)),
        none("give .batch, columns", normal(3), [normal(2, 4), normal(2, 4)], *weights(4, 3, 4)),
    ],
    "nn.functional.selective_scan": [
        scan(2, 5, 3, 2, **given).but(second=True),
        small.but(layouts=("strided", "offset")),
        scan(2, 70, 4, 3, 2),
        scan(1, 37, 3, 18),
        scan(1, 33, 70, 2, 2, initial_state=normal(1, 70, 2)).but(paged=False),
        *[s.but(theirs=stepwise, rtol=1e-2) for s in each(("float16",), *small.args)],
        scan(2, 0, 3, 2, initial_state=normal(2, 3, 2)).but(second=False),
        none("groups divide channels", *scan(1, 3, 3, 2, 2).args),
        none("give", nothing(2, 3), *small.args[1:]),
        none("delta has shape", small.args[0], nothing(1, 3, 1), *small.args[2:]),
        none("floating", *[np.int64(a) for a in small.args]),
    ],
    "nn.functional.gated_delta_rule": [
        rule(2, 4, 1, 2, initial_state=normal(2, 2, 3, 2), scale=0.5).but(second=True),
        rule(1, 70, 2, 2),
        rule(1, 0, 1, 1).but(grad=False),
        none("must be", normal(1, 2, 3), *rule(1, 2, 1, 1).args[1:]),
        none("evenly", *rule(1, 2, 2, 3).args),
        none("g has shape", *rule(1, 2, 1, 1).args[:3], normal(1, 2), normal(1, 2)),
        none("initial_state has", *rule(1, 2, 1, 1).args, initial_state=normal(1, 1, 2, 2)),
    ],
}
