"""Cases of views, copies, indexing, writing in place, creation and random numbers."""

import numpy as np
from case import Case, below, normal, positive, whole

DTYPES = ("float32", "int64", "int32", "int16", "uint8", "bool")


def views() -> list[Case]:
    x = normal(3, 4, 5)
    calls = {
        "reshape": lambda t, x: (x.reshape(4, -1), x.reshape(60), x.flatten(1), x.unflatten(2, (5, 1))),
        "permute": lambda t, x: (x.permute(2, 0, 1), x.transpose(0, 2), x.movedim(0, -1)),
        "expand": lambda t, x: (x[:, :1].expand(3, 4, 5), t.broadcast_to(x, (2, 3, 4, 5))),
        "squeeze": lambda t, x: (x.unsqueeze(1).squeeze(1), x[:1].squeeze(0), x.unsqueeze(-1)),
        "narrow": lambda t, x: (x.narrow(1, 1, 2), x.select(2, 3), x[..., -1]),
        "slices": lambda t, x: (x[1:], x[:, ::2], x[0, 1:3, 4], x[None, ..., 2:]),
        "negative steps": lambda t, x: (x[::-1], x[:, ::-2, 1::3], x[2:0:-1] * 2),
        "diagonal": lambda t, x: (t.diagonal(x), t.diagonal(x, 1, 1, 2), t.diagonal(x, -1)),
        "split": lambda t, x: (*x.split(2, 1), *x.chunk(2, 2), *x.unbind(0), *x.split([1, 4], 2)),
        "as_strided": lambda t, x: t.as_strided(x.contiguous().detach(), (3, 2), (5, 2), 1),
    }
    return [Case(name, call, (x,)) for name, call in calls.items()]


def copies() -> list[Case]:
    x, y, matrix = normal(3, 4), normal(2, 4), normal(5, 5)
    made = [
        Case("cat", lambda t, x, y: (t.cat([x, y]), t.cat([x, x * 2, x], 1)), (x, y)),
        Case("cat of many", lambda t, x: t.cat([x * k for k in range(12)], 1), (x,)),
        Case("cat with nothing", lambda t, x, y: t.cat([x, y[:0], y]), (x, y)),
        Case(
            "stack",
            lambda t, x: (
                t.stack([x, x + 1], 1),
                t.hstack([x, x]),
                t.vstack([x, x]),
                t.dstack([x, x]),
                t.column_stack([x, x]),
            ),
            (x,),
        ),
        Case("repeat", lambda t, x: (x.repeat(2, 3), t.tile(x, (2,)), x.repeat_interleave(2, 1)), (x,)),
        Case("flip and roll", lambda t, x: (t.flip(x, (0,)), t.roll(x, 1, 1), x.flip(0, 1)), (x,)),
        Case("tril and triu", lambda t, x: (x.tril(), x.triu(1), x.tril(-1), t.triu(x, -2)), (matrix,)),
        Case("clone and contiguous", lambda t, x: (x.clone(), x.t().contiguous(), x[::2, 1:].clone()), (x,)),
        Case("copy_", lambda t, x, y: (t.zeros(3, 4).copy_(x), t.zeros(3, 4).copy_(y[0])), (x, y)),
    ]
    for d in DTYPES:
        array = (whole(d) if d in ("int64", "int32", "int16", "uint8", "bool") else normal(12)).reshape(3, 4)
        made += [
            Case(
                f"pieces of {d}",
                lambda t, x: (x[1:, ::2].clone(), t.cat([x, x[:, 1:3]], 1)),
                (array,),
                grad=False,
            ),
            Case(
                f"turned {d}",
                lambda t, x: (x.t().contiguous(), x[:, ::-1].clone(), x.tril()),
                (array,),
                grad=False,
            ),
        ]
    return made


def _written(t, x):
    """Writes through views, steps and masks into one tensor."""
    y = x.clone()
    y[0] = 7
    y[:, 1] = y[:, 2] * 2
    y[1:, ::2] += 1
    y[::-1][0] = -1
    y[y > 1.5] = 0.25
    y[[0, 2], [1, 3]] = t.tensor([5.0, 6.0])
    return y


def in_place() -> list[Case]:
    x, y = normal(3, 4), positive(3, 4)
    whole8 = np.arange(12, dtype=np.uint8).reshape(3, 4)
    return [
        Case("writes", _written, (x,)),
        Case("arithmetic", lambda t, x, y: x.clone().add_(y).mul_(y).sub_(1).pow_(2).div_(y), (x, y)),
        Case(
            "functions",
            lambda t, x: (x.clone().sin_().exp_(), x.clone().clamp_(-1, 0.5).neg_(), x.clone().relu_()),
            (x,),
        ),
        Case("an operand that is itself", lambda t, x: (x.clone().mul_(x), _doubled(x)), (x,)),
        Case("overlap", _overlapping, (x,), grad=False),
        Case("fill and zero", lambda t, x: (x.clone().fill_(2.5), x.clone()[1:].zero_()), (x,)),
        Case("masked_fill_", lambda t, x, y: x.clone().masked_fill_(y > 1, 9.0), (x, y)),
        Case("packed", lambda t, x: _packed(x), (whole8,)),
        Case("index_put", lambda t, x: _put(t, x), (x,)),
    ]


def _doubled(x):
    y = x.clone()
    y += y
    return y


def _overlapping(t, x):
    y = x.clone().reshape(-1)
    y[1:] = y[:-1]
    y[:4] += y[2:6]
    return y


def _packed(x):
    y = x.clone()
    y[:, 1] = 200
    y[1, 1:3] += 3
    return y


def _put(t, x):
    y = x.clone()
    y[t.tensor([2, 0])] = y[t.tensor([0, 1])] * 2
    y[:, t.tensor([1, 1, 3])] = 4.0
    return y


def indexing() -> list[Case]:
    x = normal(5, 4, 3)
    i, j = below(5, 6), below(4, 6)
    mask = below(2, 5, 4).astype(bool)
    return [
        Case("by a list", lambda t, x, i: (x[i], x[:, [0, 2]], x[[1, -1]]), (x, i)),
        Case(
            "by several",
            lambda t, x, i, j: (x[i, j], x[i, :, [0] * 6], x[i.reshape(2, 3), j.reshape(2, 3)]),
            (x, i, j),
        ),
        Case("by a mask", lambda t, x, m: (x[m], t.masked_select(x[..., 0], m)), (x, mask), grad=False),
        Case("nonzero", lambda t, m: t.nonzero(m), (mask,)),
        Case("by a tensor of one element", lambda t, x, i: x[i[0]], (x, i)),
    ]


def creation() -> list[Case]:
    calls = {
        "zeros, ones, full": lambda t: (
            t.zeros(2, 3),
            t.ones(4),
            t.full((2,), 2.5),
            t.full((3,), 7),
            t.full((2,), True),
        ),
        "types": lambda t: tuple(
            t.full((5,), 3, dtype=d)
            for d in (t.int64, t.int32, t.int16, t.int8, t.uint8, t.float16, t.bfloat16, t.bool_)
        ),
        "arange": lambda t: (
            t.arange(7),
            t.arange(2, 9, 3),
            t.arange(0, 1, 0.25),
            t.arange(5, 0, -2),
            t.arange(5, dtype=t.int16),
        ),
        "linspace": lambda t: (t.linspace(-1, 1, 5), t.linspace(0, 10, 11), t.linspace(3, 3, 1)),
        "eye": lambda t: (t.eye(3), t.eye(2, 4), t.eye(3, dtype=t.int64)),
        "likes": lambda t: (
            t.zeros_like(t.ones(2, 2)),
            t.ones_like(t.arange(3)),
            t.full_like(t.zeros(2), 4.0),
            t.zeros(2).new_ones(3),
        ),
        "tensor": lambda t: (
            t.tensor([1, 2]),
            t.tensor([[1.5], [2]]),
            t.tensor(True),
            t.tensor(2**40),
            t.tensor([]),
        ),
    }
    return [Case(name, call, layouts=("contiguous",)) for name, call in calls.items()]


def random() -> list[Case]:
    calls = {
        "rand": lambda t: (t.rand(70), t.rand(3, 5), t.rand_like(t.zeros(4))),
        "randn": lambda t: (t.randn(70), t.randn(5, 3), t.randn_like(t.zeros(3))),
        "randint": lambda t: (
            t.randint(0, 10, (60,)),
            t.randint(-5, 2**31, (20,)),
            t.randint(3, (5,), dtype=t.int32),
        ),
        "halves": lambda t: (t.rand(40, dtype=t.float16), t.randn(40, dtype=t.bfloat16)),
        "randperm": lambda t: t.randperm(50),
        "bernoulli": lambda t: t.bernoulli(t.full((80,), 0.3)),
        "fillers": lambda t: (t.zeros(30).normal_(1, 2), t.zeros(30).uniform_(-1, 1)),
        "a generator": lambda t: t.rand(9, generator=t.Generator().manual_seed(7)),
    }
    made = [Case(name, call, layouts=("contiguous",)) for name, call in calls.items()]
    dropped = lambda t, x: (t.dropout(x, 0.4), t.dropout(x, 0.4, False))  # noqa: E731
    return [*made, Case("dropout", dropped, (positive(10, 9),))]


GROUPS = {
    "views": views, "copies": copies, "in place": in_place, "indexing": indexing, "creation": creation,
    "random": random,
}  # fmt: skip
