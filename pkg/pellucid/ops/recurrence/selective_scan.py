"""Selective scan: the recurrence of state-space models (Mamba) over time, in chunks beside each other.

A chunk first makes its last state of nothing, a short scan over the chunks then gives each its first state,
and all chunks compute their outputs from these. So memory and work are linear in the time.
"""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...errors import ShapeError
from ...op.declaration import Call, function, op
from ...op.kernel import Launch, flag
from ...op.rules import float_only
from ...tensors.tensor import Tensor
from ..elementwise.activations import silu, softplus
from ..elementwise.functions import exp
from ..reduce.reductions import sum
from ..shape.creation import zeros_like
from ..shape.joining import stack

# Positions of a chunk. The derivatives keep theirs in registers, so there are fewer.
CHUNK, GRADIENT_CHUNK = 32, 16
# Channels whose derivatives with respect to B and C a workgroup adds up.
BLOCK = 64
# States that an invocation holds in registers, at most.
HELD = 16


def _sizes(call: Call) -> dict[str, int]:
    """batch, time, channels, groups and states.

    Raises:
        ShapeError: tensors do not fit each other.
    """
    shapes = {name: tuple(m.shape) for name, m in call.tensors()}
    if "along" in shapes:  # both, one behind the other
        shapes["B"] = shapes.pop("along")[1:]
    if len(shapes["u"]) != 3 or len(shapes["A"]) != 2 or len(shapes["B"]) != 4:
        raise ShapeError(
            f"u {shapes['u']}, A {shapes['A']}, B {shapes['B']}: give (batch, time, channels), (channels, "
            "states) and (batch, time, groups, states)."
        )
    (batch, time, channels), states, groups = shapes["u"], shapes["A"][1], shapes["B"][2]
    along = batch, time, groups, states
    wanted = {
        "delta": (batch, time, channels), "g": (batch, time, channels), "A": (channels, states), "B": along,
        "C": along, "initial": (batch, channels, states), "g_last": (batch, channels, states),
    }  # fmt: skip
    for name, shape in shapes.items():
        if shape != wanted.get(name, shape):
            raise ShapeError(
                f"{name} has shape {shape}, and beside u of {shapes['u']} it must be {wanted[name]}."
            )
    if not states or not groups or channels % groups:
        raise ShapeError(f"{channels} channels, {groups} groups and {states} states: groups divide channels.")
    return {"batch": batch, "time": time, "channels": channels, "groups": groups, "states": states}


def _held(states: int) -> int:
    """States that an invocation holds at a time: they divide all."""
    return next(held for held in range(min(states, HELD), 0, -1) if states % held == 0)


def _chunked(sizes: dict[str, int], chunk: int) -> tuple[int, dict[str, Any]]:
    """Workgroups of kernels that have an invocation for each chunk and channel, and their parameters."""
    params = {name: sizes[name] for name in ("time", "channels", "groups", "states")}
    params["chunks"] = max(-(-sizes["time"] // chunk), 1)
    params["count"] = sizes["batch"] * params["chunks"] * sizes["channels"]
    return -(-params["count"] // 64), params


def _carry(
    call: Call,
    sizes: dict[str, int],
    chunk: int,
    initial: str | None,
    starts: str,
    x: str,
    back: bool = False,
) -> list[Launch]:
    """Launches that give each chunk the state that it goes on with."""
    groups, params = _chunked(sizes, chunk)
    chunks, states = params["chunks"], params["states"]
    batch, channels = sizes["batch"], sizes["channels"]
    made, along = {"ends": f"ends_{back}", "spans": f"spans_{back}"}, "along" if "along" in call.args else "B"
    call.temporary(made["ends"], (batch, chunks, states, channels))
    call.temporary(made["spans"], (batch, chunks, channels))
    count = batch * channels * states
    carried = {"count": count, "chunks": chunks, "states": states, "channels": channels}
    of_chunk = {"BACK": flag(back), "CHUNK": f"{chunk}u", "HELD": f"{_held(states)}u"}
    passed_on = {"BACK": flag(back), "HAS_INITIAL": flag(bool(initial))}
    given = {**made, "initial": initial or "A", "starts": starts}
    return [
        Launch("recurrence/chunk_state", groups, params, of_chunk, {**made, "x": x, "along": along}),
        Launch("recurrence/chunk_carry", -(-count // 64), carried, passed_on, given),
    ]


def _scan_launches(call: Call) -> list[Launch]:
    sizes = _sizes(call)
    groups, params = _chunked(sizes, CHUNK)
    initial = None if call["initial"] is None else "initial"
    before, start = [], initial
    if params["chunks"] > 1:
        start = "starts"
        call.temporary(start, (1, sizes["batch"], params["chunks"], sizes["states"], sizes["channels"]))
        before = _carry(call, sizes, CHUNK, initial, start, "u")
    held = _held(sizes["states"])
    holes = {"HAS_START": flag(bool(start)), "HELD": f"{held}u", "ALL_HELD": flag(held == sizes["states"])}
    bind = {"x": "u", "starts": start or "A"}
    return [*before, Launch("recurrence/chunk_output", groups, params, holes, bind)]


def _rates(delta, A):
    """What states decay by: (batch, time, channels, states)."""
    return np.exp(delta[..., None] * A)


def _by_channel(x, channels):
    """(batch, time, groups, states) as (batch, time, channels, states)."""
    return np.repeat(x, channels // x.shape[2], 2)


def _states(u, delta, A, B, initial):
    """States before and at every position: (batch, time + 1, channels, states)."""
    (batch, time, channels), states = u.shape, A.shape[1]
    found = np.zeros((batch, time + 1, channels, states), np.result_type(u, np.float32))
    found[:, 0] = 0 if initial is None else initial
    decay, added = _rates(delta, A), (delta * u)[..., None] * _by_channel(B, channels)
    for t in range(time):
        found[:, t + 1] = decay[:, t] * found[:, t] + added[:, t]
    return found


def _scan_reference(u, delta, A, B, C, initial):
    states = _states(u, delta, A, B, initial)
    return (states[:, 1:] * _by_channel(C, u.shape[2])).sum(-1), states[:, -1]


def _gradient_shapes(call: Call):
    s = _sizes(call)
    chunks, blocks = max(-(-s["time"] // GRADIENT_CHUNK), 1), -(-s["channels"] // s["groups"] // BLOCK)
    batch, time, channels, groups, states = s.values()
    of_rows, of_chunks = (2, batch, time, channels), (2, batch, chunks, states, channels)
    return of_rows, of_chunks, (2, blocks, batch, time, groups, states)


def _gradient_launches(call: Call) -> list[Launch]:
    sizes = _sizes(call)
    _, params = _chunked(sizes, GRADIENT_CHUNK)
    initial = None if call["initial"] is None else "initial"
    blocks = -(-sizes["channels"] // sizes["groups"] // BLOCK)
    workgroups = sizes["batch"] * params["chunks"] * sizes["groups"] * blocks
    params |= {"count": workgroups, "batch": sizes["batch"]}
    return [
        *_carry(call, sizes, GRADIENT_CHUNK, initial, "carried", "u"),
        *_carry(call, sizes, GRADIENT_CHUNK, "g_last", "carried", "g", back=True),
        Launch("recurrence/scan_gradient", workgroups, params, bind={"x": "u"}),
    ]


def _gradient_reference(g, g_last, u, delta, A, along, initial):
    (batch, time, channels), states, (B, C) = u.shape, A.shape[1], along
    h, decay = _states(u, delta, A, B, initial), _rates(delta, A)
    wide_B, wide_C = _by_channel(B, channels), _by_channel(C, channels)
    rows = np.zeros((2, batch, time, channels), h.dtype)
    carried = np.zeros((2, batch, max(-(-time // GRADIENT_CHUNK), 1), states, channels), h.dtype)
    of_B = np.zeros((batch, time, channels, states), h.dtype)
    behind = g_last
    carried[1, :, -1] = behind.swapaxes(1, 2)
    for t in reversed(range(time)):
        d, past = g[:, t, :, None] * wide_C[:, t] + behind, decay[:, t] * h[:, t]
        behind = decay[:, t] * d
        summed = (d * wide_B[:, t]).sum(-1)
        rows[0, :, t] = delta[:, t] * summed
        rows[1, :, t] = u[:, t] * summed + (d * A * past).sum(-1)
        carried[0, :, t // GRADIENT_CHUNK] += (d * delta[:, t, :, None] * past).swapaxes(1, 2)
        carried[1, :, t // GRADIENT_CHUNK] = behind.swapaxes(1, 2)
        of_B[:, t] = d * (delta[:, t] * u[:, t])[..., None]
    parts = []
    for each in (of_B, g[..., None] * h[:, 1:]):
        grouped = each.reshape(batch, time, B.shape[2], -1, states)
        blocks = np.add.reduceat(grouped, np.arange(0, grouped.shape[3], BLOCK), 3)
        parts.append(np.moveaxis(blocks, 3, 0))
    return rows, carried, np.stack(parts)


@op(
    dtype=lambda call: ((float_only(call)[0],) * 3, float_only(call)[1]),
    shape=_gradient_shapes,
    kernel=_gradient_launches,
    reference=_gradient_reference,
    grad=None,
    outputs=("rows", "carried", "parts"),
    exports=None,
    ours="the derivative of selective_scan, which PyTorch does not have",
)
def scan_gradient(
    g: Tensor,
    g_last: Tensor,
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    along: Tensor,
    initial: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivatives of `scan_states`, where ``g`` and ``g_last`` are those with respect to its results, and
    ``along`` is (2, batch, time, groups, states), B and C.

    Returns:
        (2, batch, time, channels), those of u and delta; (2, batch, chunks, states, channels), of each chunk
        what it adds to that of A, and that of the state before it; (2, blocks, batch, time, groups, states),
        what blocks of channels add to those of B and C.

    Source: Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2,
        differentiated
    """


def _stepwise(u, delta, A, B, C, initial):
    """The scan by ops that have derivatives, position after position: states before and at every position."""
    share = u.shape[2] // B.shape[2]
    B = B.repeat_interleave(share, 2)
    decay, added = exp(delta.unsqueeze(-1) * A), (delta * u).unsqueeze(-1) * B
    found = [zeros_like(added[:, 0]) if initial is None else initial]
    for t in range(u.shape[1]):
        found.append(decay[:, t] * found[-1] + added[:, t])
    return found, decay, B, C.repeat_interleave(share, 2)


def _recorded_gradients(g, g_last, u, delta, A, B, C, initial):
    """The derivatives by ops that have derivatives themselves."""
    found, decay, wide_B, wide_C = _stepwise(u, delta, A, B, C, initial)
    behind, back, pasts = g_last, [], []
    for t in reversed(range(u.shape[1])):
        d = g[:, t].unsqueeze(-1) * wide_C[:, t] + behind
        behind = decay[:, t] * d
        back.append(d)
        pasts.append(decay[:, t] * found[t])
    d, past = stack(back[::-1], 1), stack(pasts[::-1], 1)
    along, step = sum(d * wide_B, -1), delta.unsqueeze(-1)
    groups, states = B.shape[2:]

    def shared(x: Tensor) -> Tensor:
        return sum(x.reshape(*x.shape[:2], groups, -1, states), 3)

    return {
        "u": delta * along,
        "delta": u * along + sum(d * A * past, -1),
        "A": sum(d * step * past, (0, 1)),
        "B": shared(d * step * u.unsqueeze(-1)),
        "C": shared(g.unsqueeze(-1) * stack(found[1:], 1)),
        "initial": behind,
    }


def _gradients(grads, u, delta, A, B, C, initial):
    g = zeros_like(u) if grads[0] is None else grads[0]
    g_last = u.new_zeros((u.shape[0], *A.shape)) if grads[1] is None else grads[1]
    if not u.shape[1]:
        zero = {"u": u, "delta": delta, "A": A, "B": B, "C": C}
        return {**{name: zeros_like(x) for name, x in zero.items()}, "initial": g_last}
    if is_grad_enabled():
        return _recorded_gradients(g, g_last, u, delta, A, B, C, initial)
    rows, carried, parts = scan_gradient(g, g_last, u, delta, A, stack([B, C]), initial)
    of_B, of_C = sum(parts, 1)
    return {
        "u": rows[0], "delta": rows[1], "A": sum(carried[0], (0, 1)).T, "B": of_B, "C": of_C,
        "initial": carried[1][:, 0].transpose(1, 2),
    }  # fmt: skip


@op(
    public="selective_scan",
    dtype=lambda call: ((float_only(call)[0],) * 2, float_only(call)[1]),
    shape=lambda call: (call["u"].shape, tuple(_sizes(call)[n] for n in ("batch", "channels", "states"))),
    kernel=_scan_launches,
    reference=_scan_reference,
    grad=dict.fromkeys(("u", "delta", "A", "B", "C", "initial"), _gradients),
    outputs=("out", "last"),
)
def scan_states(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The scan alone: ``u`` and ``delta`` (batch, time, channels), A (channels, states), B and C (batch,
    time, groups, states), the initial state and the last one (batch, channels, states)."""


@function(exports="nn.functional", ours="a loop over time in PyTorch")
def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    initial_state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Selective scan of Mamba: ``h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * B[t] * u[t]``
    and ``out[t] = (C[t] * h[t] + D * u[t]) * silu(z[t])``, products with C summed over the states.

    Work and memory grow with the time, not with its square. Derivatives of second order go position after
    position.

    Args:
        u: (batch, time, channels), floating point.
        delta: (batch, time, channels), the length of each step.
        A: (channels, states); negative where states fade.
        B, C: (batch, time, states), or (batch, time, groups, states), where neighbouring channels share
            a group.
        D: (channels,), what the input adds to the output; nothing if None.
        z: (batch, time, channels), a gate; none if None.
        delta_bias: (channels,), added to delta first.
        delta_softplus: whether delta then goes through softplus.
        initial_state: (batch, channels, states); zeros if None.

    Returns:
        The output, of the shape of u, and the state after the last position, (batch, channels, states), with
        which a later call goes on.

    Raises:
        ShapeError: shapes do not fit.
        DTypeError: a tensor is not floating point.

    Source: Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", algorithm 2

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(1, 3, 1, device="cpu")
        >>> out, last = torch.nn.functional.selective_scan(x, x, -x[0, :1], x, x)
        >>> [round(v, 3) for v in out.flatten().tolist()]
        [1.0, 1.368, 1.503]
    """
    if delta_bias is not None:
        delta = delta + delta_bias
    if delta_softplus:
        delta = softplus(delta)
    B, C = (x.unsqueeze(2) if x.dim() == 3 else x for x in (B, C))
    out, last = scan_states(u, delta, A, B, C, initial_state)
    if D is not None:
        out = out + D * u
    return (out if z is None else out * silu(z)), last
