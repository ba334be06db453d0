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


small = scan(1, 3, 2, 2)
given = {
    "D": normal(3), "z": normal(2, 5, 3), "delta_bias": normal(3), "delta_softplus": True,
    "initial_state": normal(2, 3, 2),
}  # fmt: skip
SAMPLES: dict[str, list[Sample]] = {
    "nn.functional.selective_scan": [
        scan(2, 5, 3, 2, **given).but(second=True),
        small.but(layouts=("strided", "offset")),
        scan(2, 70, 4, 3, 2),
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
