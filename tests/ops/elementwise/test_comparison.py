"""Comparisons, logic and selection against PyTorch, with NaN and every pair of types."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, FLOATS, equal, ours, pairs

ORDER = ("eq", "ne", "lt", "le", "gt", "ge")
LOGIC = ("logical_and", "logical_or", "logical_xor")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ORDER, *LOGIC])
def test_every_pair_of_edge_values(name, dtype):
    a, b = pairs(dtype)
    for device in DEVICES:
        equal(
            getattr(pellucid, name)(ours(a, device), ours(b, device)), getattr(torch, name)(a, b), what=device
        )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("int64", "float32"),
        ("int32", "int64"),
        ("uint8", "int8"),
        ("bool", "float16"),
        ("float16", "bfloat16"),
    ],
)
def test_types_are_promoted_first(first, second):
    a, b = pairs(first, second)
    for device in DEVICES:
        for name in ("eq", "lt", "ge"):
            equal(
                getattr(pellucid, name)(ours(a, device), ours(b, device)),
                getattr(torch, name)(a, b),
                what=f"{name} on {device}",
            )


def test_numbers_are_compared_in_the_tensors_type():
    half, byte = torch.tensor([0.1, 0.2], dtype=torch.float16), torch.tensor([44, 1, 255], dtype=torch.uint8)
    for device in DEVICES:
        equal(ours(half, device) == 0.1, half == 0.1)
        for value in (300, -1, 256, 1.5):
            equal(ours(byte, device) == value, byte == value)
            equal(ours(byte, device) < value, byte < value)
    assert (pellucid.tensor([1, 2]) == "x") is False
    assert (pellucid.tensor([1, 2]) != "x") is True


def test_kinds_of_floats():
    x = torch.tensor(FLOATS)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.bool):
        for device in DEVICES:
            for name in ("isnan", "isinf", "isfinite", "logical_not"):
                equal(
                    getattr(pellucid, name)(
                        ours(
                            x.nan_to_num(0).to(dtype) if not dtype.is_floating_point else x.to(dtype), device
                        )
                    ),
                    getattr(torch, name)(
                        x.nan_to_num(0).to(dtype) if not dtype.is_floating_point else x.to(dtype)
                    ),
                    what=name,
                )


def test_where():
    check(lambda p, a, b: p.where(a > 0, a, b), normal(3, 5), normal(3, 5))
    check(lambda p, a, b: p.where(a > b, a, b), normal(3, 1), normal(5))
    check(lambda p, a: (p.where(a > 0, a, 0.0), p.where(a > 0, 1.0, a)), normal(3, 5))
    for dtype in DTYPES:
        a, b = pairs(dtype)
        condition = torch.arange(len(a)) % 3 == 0
        for device in DEVICES:
            mine = pellucid.where(ours(condition, device), ours(a, device), ours(b, device))
            equal(mine, torch.where(condition, a, b), what=f"{dtype} on {device}")


def test_where_lets_no_nan_of_the_other_branch_through():
    check(lambda p, x: p.where(x > 0, x, x * float("nan")), np.abs(normal(4)) + 1, grad=False)
    for device in DEVICES:
        x = pellucid.tensor([1.0, -1.0], device=device, requires_grad=True)
        pellucid.where(x > 0, x, x.detach() * float("inf")).sum().backward()
        assert x.grad.tolist() == [1.0, 0.0]


def test_masked_fill():
    mask = np.arange(15).reshape(3, 5) % 2 == 0
    check(lambda p, x: x.masked_fill(p.tensor(mask, device=x.device), 2.5), normal(3, 5))
    check(lambda p, x: x.masked_fill(p.tensor(mask, device=x.device), float("-inf")), normal(3, 5))
    check(lambda p, x, v: x.masked_fill(p.tensor(mask, device=x.device), v), normal(3, 5), normal())
    for dtype in ("int64", "uint8", "bool", "float16"):
        x = torch.ones(3, 5, dtype=getattr(torch, dtype))
        for device in DEVICES:
            equal(
                ours(x, device).masked_fill(ours(torch.tensor(mask), device), 0),
                x.masked_fill(torch.tensor(mask), 0),
            )
    with pytest.raises(TypeError, match=r"mask must be bool, not pellucid.float32"):
        pellucid.ones(2, device="cpu").masked_fill(pellucid.ones(2, device="cpu"), 0)


def test_close_and_equal():
    a = torch.tensor([1.0, 2.0, np.nan, np.inf, -np.inf, 0.0])
    b = torch.tensor([1.0 + 1e-6, 2.1, np.nan, np.inf, np.inf, 1e-9])
    for device in DEVICES:
        x, y = ours(a, device), ours(b, device)
        for same in (False, True):
            equal(pellucid.isclose(x, y, equal_nan=same), torch.isclose(a, b, equal_nan=same))
        assert pellucid.allclose(x[:1], y[:1]) is True
        assert pellucid.allclose(x, y) is False
        assert pellucid.equal(x[:2], x[:2].clone()) is True
        assert pellucid.equal(x[:2], y[:2]) is False
        assert pellucid.equal(x[:2], x[:1]) is False
