"""Values at which functions and operators are compared with PyTorch: edges first, then a spread."""

import numpy as np
import torch

import pellucid

FLOATS = np.array(
    [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.1,
        3,
        -3,
        7.5,
        -7.5,
        1e30,
        -1e30,
        6,
        1e10,
        2.5,
        16777217,
        0.3,
        -0.3,
    ],
    np.float32,
)
INTEGERS = np.array(
    [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, 127, -128, 2**31 - 1, -(2**31), 63, 31, 32, 8, 5], np.int64
)
LONG = np.concatenate([INTEGERS, np.array([2**40, -(2**40), 2**63 - 1, -(2**63)])])
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
LOOSE = {"float16": 2e-3, "bfloat16": 1e-2}


def edges(dtype: str) -> torch.Tensor:
    """The edge values of a dtype."""
    if dtype.startswith(("float", "bfloat")):
        return torch.tensor(FLOATS).to(getattr(torch, dtype))
    if dtype == "bool":
        return torch.tensor([True, False])
    if dtype == "int64":
        return torch.tensor(LONG)
    info = torch.iinfo(getattr(torch, dtype))
    return torch.tensor(np.clip(INTEGERS, info.min, info.max)).to(getattr(torch, dtype))


def pairs(dtype: str, second: str | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Every edge value beside every other."""
    a, b = edges(dtype), edges(second or dtype)
    return a.repeat_interleave(len(b)), b.repeat(len(a))


def ours(t: torch.Tensor, device: str) -> pellucid.Tensor:
    """The same tensor here."""
    name = str(t.dtype).removeprefix("torch.")
    values = t.detach().float() if t.dtype is torch.bfloat16 else t.detach()
    return pellucid.tensor(
        values.numpy(), dtype=getattr(pellucid, f"{name}_" if name == "bool" else name), device=device
    )


def equal(mine: pellucid.Tensor, theirs: torch.Tensor, rtol: float = 0.0, what: str = "") -> None:
    """Shape, dtype and values agree, NaN with NaN and infinities exactly."""
    assert tuple(mine.shape) == tuple(theirs.shape), what
    assert mine.dtype.name == str(theirs.dtype).removeprefix("torch."), what
    expected = (theirs.float() if theirs.dtype is torch.bfloat16 else theirs).detach().numpy()
    np.testing.assert_allclose(
        mine.detach().numpy(), expected, rtol=rtol, atol=0, equal_nan=True, err_msg=what
    )
