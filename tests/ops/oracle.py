"""PyTorch as the oracle: the same function on the same arrays, values and gradients compared."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import pellucid

DEVICES = ("webgpu", "cpu")
LAYOUTS = ("contiguous", "strided", "offset")


def given(module, array, layout: str, device: str | None, grad: bool):
    """(what the function sees, the leaf behind it) for one array in one layout."""
    array = np.asarray(array)
    options = {} if module is torch else {"device": device}
    if layout == "strided" and array.ndim > 1:
        leaf = module.tensor(np.ascontiguousarray(np.swapaxes(array, 0, -1)), **options)
    elif layout == "strided" and array.ndim == 1:
        leaf = module.tensor(np.repeat(array, 2), **options)
    elif layout == "offset":
        leaf = module.tensor(
            np.concatenate([array.reshape(-1)[:1]] * 3 + [array.reshape(-1)]) if array.size else array,
            **options,
        )
    else:
        leaf = module.tensor(array, **options)
    if grad and array.dtype.kind == "f":
        leaf.requires_grad_()
    if layout == "strided" and array.ndim > 1:
        return leaf.transpose(0, -1), leaf
    if layout == "strided" and array.ndim == 1:
        return leaf[::2], leaf
    if layout == "offset" and array.size:
        return leaf[3:].reshape(array.shape), leaf
    return leaf, leaf


def plain(t) -> np.ndarray:
    """A tensor's values as numpy, bfloat16 widened."""
    if isinstance(t, torch.Tensor):
        t = t.detach().cpu()
        return (t.float() if t.dtype is torch.bfloat16 else t).numpy()
    return t.detach().numpy()


def results(out) -> tuple:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def same(ours, theirs, rtol: float, atol: float, what: str) -> None:
    """Shape, dtype and values agree."""
    assert tuple(ours.shape) == tuple(theirs.shape), (
        f"{what}: shape {tuple(ours.shape)}, PyTorch has {tuple(theirs.shape)}"
    )
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1], (
        f"{what}: {ours.dtype}, PyTorch has {theirs.dtype}"
    )
    np.testing.assert_allclose(plain(ours), plain(theirs), rtol=rtol, atol=atol, err_msg=what)


@cache
def flushes(device: str) -> bool:
    """Whether the device takes subnormal numbers as zero, in a product, a quotient, a root, a comparison or a
    copy."""
    x = pellucid.tensor([1e-40, 1e-40], device=device)
    quotient = pellucid.tensor([0.5, 1.0], device=device) / 3e38
    return not all(
        (made.numpy() != 0).all() for made in (x * 1, quotient, x.sqrt(), x.sign(), x[::-1].contiguous())
    )


def flushed(values: np.ndarray) -> np.ndarray:
    """The values with zeros of the same sign instead of subnormal numbers."""
    zeros = np.copysign(values.dtype.type(0), values)
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, zeros, values)


def agree(
    mine, function, *inputs: torch.Tensor, device: str, rtol: float = 0.0, atol: float = 0.0, what: str = ""
) -> None:
    """Ours is what PyTorch's function gives. WGSL lets a device take subnormal inputs and results as zero:
    on one that does, an element may also be the function of flushed inputs, and either result may be flushed.
    """
    theirs = function(*inputs)
    if flushes(device):
        expected = plain(theirs)
        of_flushed = plain(function(*[torch.tensor(flushed(plain(x))).to(x.dtype) for x in inputs]))
        choices = [expected, flushed(expected), of_flushed, flushed(of_flushed)]
        close = [np.isclose(plain(mine), c, rtol=rtol, atol=atol, equal_nan=True) for c in choices]
        theirs = torch.tensor(np.select(close, choices, expected)).to(theirs.dtype)
    same(mine, theirs, rtol, atol, what)


def check(
    function,
    *arrays,
    theirs=None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    devices=DEVICES,
    layouts=LAYOUTS,
    grad: bool = True,
) -> None:
    """Run ``function(module, *tensors)`` on PyTorch and here, on every device and layout, and compare
    results and gradients.

    Args:
        function: takes the module and a tensor per array, returns a tensor or several.
        arrays: numpy arrays; floating-point ones are leaves whose gradients are compared.
        theirs: PyTorch's spelling of the function, where it differs.
        grad: whether to compare gradients.
    """
    for layout in layouts:
        pairs = [given(torch, a, layout, None, grad) for a in arrays]
        expected = results((theirs or function)(torch, *[seen for seen, _ in pairs]))
        weights = [np.random.standard_normal(tuple(t.shape)).astype(np.float32) for t in expected]
        if grad:
            roots = [
                (t, torch.tensor(w).to(t.dtype))
                for t, w in zip(expected, weights, strict=True)
                if t.requires_grad
            ]
            torch.autograd.backward([t for t, _ in roots], [w for _, w in roots])
        for device in devices:
            ours = [given(pellucid, a, layout, device, grad) for a in arrays]
            out = results(function(pellucid, *[seen for seen, _ in ours]))
            where = f"{device}, {layout}"
            assert len(out) == len(expected)
            for k, (o, t) in enumerate(zip(out, expected, strict=True)):
                same(o, t, rtol, atol, f"{where}, result {k}")
            if grad:
                mine = [
                    (o, pellucid.tensor(w, device=device).to(o.dtype))
                    for o, t, w in zip(out, expected, weights, strict=True)
                    if t.requires_grad
                ]
                pellucid.autograd.backward([o for o, _ in mine], [w for _, w in mine])
                for k, ((_, leaf), (_, reference)) in enumerate(zip(ours, pairs, strict=True)):
                    if reference.grad is not None:
                        same(
                            leaf.grad,
                            reference.grad,
                            10 * rtol,
                            10 * atol,
                            f"{where}, gradient of argument {k}",
                        )


def check_error(function, *arrays, device: str = "cpu") -> None:
    """PyTorch refuses, and so do we, with a class that its users would catch and a message that says
    where.
    """
    try:
        function(torch, *[torch.tensor(a) for a in arrays])
    except Exception as error:
        expected = type(error)
    else:
        raise AssertionError("PyTorch accepts this")
    with pytest.raises(expected, match=r".{20}"):
        function(pellucid, *[pellucid.tensor(a, device=device) for a in arrays])


def normal(*shape: int) -> np.ndarray:
    """Standard normal numbers, float32."""
    return np.random.standard_normal(shape).astype(np.float32)
