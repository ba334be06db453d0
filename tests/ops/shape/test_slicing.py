"""Views of parts against PyTorch."""

import pytest
import torch

import pellucid
from ops.each_variant import dispatches
from ops.oracle import DEVICES, check, normal, same
from ops.values import DTYPES, equal, ours
from pellucid.errors import DimensionError, ShapeError

MOVES = {
    "narrow": lambda p, x: (x.narrow(1, 1, 2), x.narrow(-1, -3, 2)),
    "select": lambda p, x: (x.select(1, 2), x.select(-1, -1)),
    "diagonal": lambda p, x: (x.diagonal(), x.diagonal(1, 1, 2), x.diagonal(-1, 2, 0), x.diagonal(7)),
    "split": lambda p, x: (*x.split(2, 2), *x.split([1, 2], 1), *p.split(x, 3, -1)),
    "chunk": lambda p, x: (*x.chunk(2), *x.chunk(3, 2), *p.chunk(x, 7, 1)),
    "unbind": lambda p, x: (*x.unbind(1), *p.unbind(x)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_and_gradients(name):
    check(MOVES[name], normal(2, 3, 4))


PARTS = {
    "one of three": lambda p, x: x.split(1, 1)[1] * 2,
    "the first": lambda p, x: x.split(3, 2)[0].exp(),
    "the last, shorter": lambda p, x: x.split(3, 2)[1].exp(),
    "all but one": lambda p, x: x.split([1, 1, 2], 2)[0] * x.split([1, 1, 2], 2)[1],
    "two that meet": lambda p, x: [parts[0] * parts[2] for parts in [x.chunk(3, 1)]],
    "one twice": lambda p, x: [parts[1] * parts[1].sin() for parts in [x.chunk(2, 0)]],
    "empty ones": lambda p, x: [x.split([0, 1, 0, 2], 1)[k] for k in (0, 2, 3)],
    "only an empty one": lambda p, x: x.split([0, 3], 1)[0],
    "the whole": lambda p, x: x.split(7, 1)[0].exp(),
    "parts of a part": lambda p, x: x.chunk(2, 0)[1].split(2, 2)[0].unbind(1)[2] * 3,
    "one position": lambda p, x: x.unbind(-1)[2] * 2,
    "some positions": lambda p, x: [rows[0] * rows[2] for rows in [x.unbind(1)]],
    "all positions": lambda p, x: p.stack([row * (k + 1) for k, row in enumerate(x.unbind(2))], 0),
    "rows": lambda p, x: sum(row.exp() for row in x),
    "expanded": lambda p, x: [a.sum() + 2 * b.sum() for a, b in [x.split([1, 3], 2)]],
}


@pytest.mark.parametrize("name", PARTS)
def test_gradients_of_some_parts(name):
    check(PARTS[name], normal(2, 3, 4))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PARTS)
def test_second_derivatives_of_some_parts(name, device):
    values, found = normal(2, 3, 4), []
    for module, options in ((pellucid, {"device": device}), (torch, {})):
        x = module.tensor(values, requires_grad=True, **options)
        out = PARTS[name](module, x)
        loss = sum((t**3).sum() for t in (out if isinstance(out, list) else [out]))
        (first,) = module.autograd.grad(loss, x, create_graph=True)
        (first * first).sum().backward()
        found.append((first.detach(), x.grad))
    for mine, theirs in zip(*found, strict=True):
        same(mine, theirs, 1e-4, 1e-4, name)


@pytest.mark.parametrize("device", DEVICES)
def test_the_node_of_parts(device):
    for module, options in ((pellucid, {"device": device}), (torch, {})):
        x = module.ones(2, 4, requires_grad=True, **options)
        named = {
            "SplitBackward0": x.split(2, 1),
            "SplitWithSizesBackward0": x.split([1, 3], 1),
            "UnbindBackward0": x.unbind(0),
        }
        for name, parts in named.items():
            assert [part.grad_fn.name() for part in parts] == [name] * 2
        assert x.chunk(2)[1].grad_fn.name() == "SplitBackward0"
        # The node saves nothing, so the parts may be walked through one after the other.
        a, b = x.split([1, 3], 1)
        (a * 2).sum().backward()
        (b * 3).sum().backward()
        assert x.grad.tolist() == [[2.0, 3.0, 3.0, 3.0]] * 2
        x.grad = None
        a, b = (x * 1).chunk(2, 1)
        a.register_hook(lambda g: g * 10)
        b.retain_grad()
        (a + b).sum().backward()
        assert x.grad.tolist() == [[10.0, 10.0, 1.0, 1.0]] * 2
        assert b.grad.tolist() == [[1.0, 1.0]] * 2
    x = pellucid.ones(2, 4, requires_grad=True, device=device)
    with pellucid.no_grad():
        assert not any(part.requires_grad for part in (*x.split(1), *x.unbind(1)))
    assert all(part.requires_grad for part in (*x.split(1), *x.unbind(1)))


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_shows_in_the_parts(device):
    # PyTorch refuses to write what was split, and takes slices.
    takes = {
        pellucid: lambda y: (*y.split([1, 3], 1), y.unbind(0)[0]),
        torch: lambda y: (y[:, :1], y[:, 1:], y[0]),
    }
    results = []
    for module, options in ((pellucid, {"device": device}), (torch, {})):
        x = module.arange(8.0, **options).reshape(2, 4).requires_grad_()
        y = x * 1
        a, b, row = takes[module](y)
        y.mul_(3)
        loss = (a * a).sum() + (b * row[1:]).sum()
        loss.backward()
        results.append((a.tolist(), b.tolist(), row.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_that_is_written(device):
    x = pellucid.arange(8.0, device=device).reshape(2, 4).requires_grad_()
    y = x * 1
    a, b = y.split(2, 1)
    a.mul_(3)
    ((y * y).sum() + b.sum()).backward()
    assert b.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert x.grad.tolist() == [[0.0, 18.0, 5.0, 7.0], [72.0, 90.0, 13.0, 15.0]]


def test_a_gradient_of_small_parts_takes_one_dispatch():
    x = pellucid.ones(4, 6, device="webgpu", requires_grad=True)
    with pellucid.webgpu.fusion(False):
        for take, seeds, expected in (
            (lambda: x.split(2, 1), 3, 1),
            (lambda: x.split(2, 1), 1, 2),  # zeros, and the part in them
            (lambda: x.unbind(0), 4, 1),
        ):
            parts = take()[:seeds]
            given = [pellucid.ones(part.shape, device="webgpu") for part in parts]
            assert dispatches(lambda p=parts, g=given: pellucid.autograd.grad(p, x, g)) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(dtype):
    x = (torch.arange(24) % (2 if dtype == "bool" else 100)).reshape(2, 3, 4).to(getattr(torch, dtype))
    for device in DEVICES:
        y = ours(x, device)
        for name in ("diagonal", "split"):
            mine, theirs = MOVES[name](pellucid, y), MOVES[name](torch, x)
            for m, t in zip(mine, theirs, strict=True):
                equal(m.contiguous(), t, what=f"{name} on {device}")


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            DimensionError,
            r"narrow: start 2 and length 2 do not lie within axis 1 of length 3",
            lambda: x.narrow(1, 2, 2),
        ),
        (ShapeError, r"split: lengths \[1, 1\] must add up to 3", lambda: x.split([1, 1], 1)),
        (ShapeError, r"chunk: chunks must be positive, not 0", lambda: x.chunk(0)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
