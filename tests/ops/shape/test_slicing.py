"""Views of parts against PyTorch."""

import pytest
import torch

import pellucid
from ops.each_variant import dispatches
from ops.oracle import DEVICES


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
