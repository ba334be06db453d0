"""Calibration after training: GPTQ, AWQ and rounding to nearest, of the weights of linear layers by their
inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....autograd.grad_mode import under
from ....errors import ArgumentError, RangeError, ShapeError
from ....tensors.construct import tensor
from ....tensors.tensor import Tensor
from ...modules.linear import Linear
from ...modules.module import Module


@dataclass(frozen=True)
class Calibrated:
    """A weight on the grid of a narrow type.

    Attributes:
        weight: its values (rows, columns).
        error: the mean square of what outputs on the calibration data are off, over that of outputs.
    """

    weight: Tensor
    error: float


def _grids(block: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps and zero points of rows, which hold the least and the largest number and 0."""
    low, high = np.minimum(block.min(1), 0), np.maximum(block.max(1), 0)
    scale = np.maximum((high - low) / (2**bits - 1), 1e-9)
    return scale, np.round(-low / scale)


def _onto(column: np.ndarray, scale: np.ndarray, zero: np.ndarray, bits: int) -> np.ndarray:
    return (np.clip(np.round(column / scale) + zero, 0, 2**bits - 1) - zero) * scale


def _grouped(weight: np.ndarray, bits: int, group_size: int) -> np.ndarray:
    made = np.empty_like(weight)
    for k in range(0, weight.shape[1], group_size):
        scale, zero = _grids(weight[:, k : k + group_size], bits)
        made[:, k : k + group_size] = _onto(
            weight[:, k : k + group_size], scale[:, None], zero[:, None], bits
        )
    return made


def _given(
    where: str, weight: Tensor, inputs: Tensor, bits: int, group_size: int
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(weight, Tensor) or not isinstance(inputs, Tensor):
        raise ArgumentError(f"{where}: weight and inputs must be Tensors.")
    if weight.ndim != 2 or inputs.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"{where}: a weight of shape {tuple(weight.shape)} and inputs of {tuple(inputs.shape)} must "
            "be (rows, "
            "columns) and (..., columns)."
        )
    if not isinstance(bits, int) or not 2 <= bits <= 8:
        raise RangeError(f"{where}: bits must be from 2 to 8, not {bits!r}.")
    if not isinstance(group_size, int) or group_size < 1:
        raise RangeError(f"{where}: group_size must be at least 1, not {group_size!r}.")
    x = inputs.detach().numpy().astype(np.float64).reshape(-1, weight.shape[1])
    return weight.detach().numpy().astype(np.float64), x


def _made(weight: Tensor, old: np.ndarray, new: np.ndarray, x: np.ndarray) -> Calibrated:
    error = np.square(x @ (new - old).T).mean() / max(np.square(x @ old.T).mean(), 1e-30)
    return Calibrated(tensor(new, dtype=weight.dtype, device=weight.device), float(error))


def round_to_nearest(weight: Tensor, inputs: Tensor, bits: int = 4, group_size: int = 32) -> Calibrated:
    """Each weight as the nearest number of its group's grid; what others are compared with.

    Args:
        weight: (rows, columns).
        inputs: of the layer, (..., columns).
        bits: of a weight, from 2 to 8.
        group_size: columns with one scale and zero point.

    Raises:
        ShapeError: shapes do not fit.
        RangeError: bits or group_size are out of range.

    Example:
        >>> import pellucid as torch
        >>> w = torch.tensor([[0.0, 1.5, 0.61]], device="cpu")
        >>> found = torch.ao.quantization.round_to_nearest(w, torch.ones(1, 3, device="cpu"), bits=4)
        >>> found.weight
        tensor([[0.0000, 1.5000, 0.6000]], device='cpu')
    """
    old, x = _given("round_to_nearest", weight, inputs, bits, group_size)
    return _made(weight, old, _grouped(old, bits, group_size), x)


def gptq(
    weight: Tensor,
    inputs: Tensor,
    bits: int = 4,
    group_size: int = 32,
    *,
    damping: float = 0.01,
    act_order: bool = False,
) -> Calibrated:
    """Round column by column, and let the columns that follow make up for each error.

    The change is the one that keeps the layer's outputs on the calibration data best, by the Cholesky factor
    of ``(X'X + damping)^-1``. Runs on the host in float64.

    Args:
        weight: (rows, columns).
        inputs: of the layer on calibration data, (..., columns).
        bits: of a weight, from 2 to 8.
        group_size: columns with one scale and zero point.
        damping: times the mean of the diagonal of ``X'X``, added to it.
        act_order: columns with large inputs first.

    Raises:
        ShapeError: shapes do not fit.
        RangeError: bits, group_size or damping are out of range.

    Source: Frantar et al. 2022, "GPTQ: accurate post-training quantization for generative pre-trained
        transformers", algorithm 1
    """
    old, x = _given("gptq", weight, inputs, bits, group_size)
    if not damping > 0:
        raise RangeError(f"gptq: damping must be above 0, not {damping!r}.")
    columns = old.shape[1]
    hessian = 2 * x.T @ x
    dead = np.diag(hessian) == 0
    hessian[dead, dead] = 1
    hessian += np.eye(columns) * damping * np.diag(hessian).mean()
    order = np.argsort(-np.diag(hessian), kind="stable") if act_order else np.arange(columns)
    left = np.where(dead, 0, old)[:, order]
    factor = np.linalg.cholesky(np.linalg.inv(hessian[np.ix_(order, order)])).T
    made = np.empty_like(left)
    # With act_order a group is of columns as they stand, so grids are taken of the weight before any change.
    fixed = (
        [_grids(old[:, k : k + group_size], bits) for k in range(0, columns, group_size)] if act_order else []
    )
    scale = zero = np.zeros(0)
    for k in range(columns):
        if act_order:
            scale, zero = fixed[order[k] // group_size]
        elif k % group_size == 0:
            scale, zero = _grids(left[:, k : k + group_size], bits)
        made[:, k] = _onto(left[:, k], scale, zero, bits)
        error = (left[:, k] - made[:, k]) / factor[k, k]
        left[:, k + 1 :] -= np.outer(error, factor[k, k + 1 :])
    new = np.empty_like(made)
    new[:, order] = made
    return _made(weight, old, new, x)


def awq(
    weight: Tensor, inputs: Tensor, bits: int = 4, group_size: int = 32, *, tries: int = 20
) -> Calibrated:
    """Round weights after scaling up those columns whose inputs are large, and scale back.

    ``W' = Q(W s) / s`` with ``s = mean |x| ^ a``, for the a from 0 to 1 that keeps outputs best. The scales
    stay in the values here; no layer before is changed. Runs on the host in float64.

    Args:
        weight: (rows, columns).
        inputs: of the layer on calibration data, (..., columns).
        bits: of a weight, from 2 to 8.
        group_size: columns with one scale and zero point.
        tries: values of a.

    Raises:
        ShapeError: shapes do not fit.
        RangeError: bits, group_size or tries are out of range.

    Source: Lin et al. 2023, "AWQ: activation-aware weight quantization", equations 4 and 5
    """
    old, x = _given("awq", weight, inputs, bits, group_size)
    if not isinstance(tries, int) or tries < 1:
        raise RangeError(f"awq: tries must be at least 1, not {tries!r}.")
    size = np.maximum(np.abs(x).mean(0), 1e-8)
    best, least = old, np.inf
    for k in range(tries):
        scale = size ** (k / tries)
        scale /= np.sqrt(scale.max() * scale.min())
        new = _grouped(old * scale, bits, group_size) / scale
        error = np.square(x @ (new - old).T).sum()
        if error < least:
            best, least = new, error
    return _made(weight, old, best, x)


METHODS = {"awq": awq, "gptq": gptq, "nearest": round_to_nearest}


def calibrate(
    model: Module,
    batches: Iterable[Any],
    method: str = "gptq",
    bits: int = 4,
    group_size: int = 32,
    **options: Any,
) -> dict[str, float]:
    """Quantize the weights of all linear layers of a model, in place, one after another.

    Each layer sees the inputs that the layers before it, quantized already, give it.

    Args:
        model: any module; weights become floats on the grid.
        batches: arguments of the model; a tuple is several. All of them run once for each layer.
        method: ``"gptq"``, ``"awq"`` or ``"nearest"``.
        bits, group_size, options: of the method.

    Returns:
        The relative error of each layer's outputs by its path.

    Raises:
        RangeError: no such method.
        ArgumentError: no data, or no linear layer.

    Source: Frantar et al. 2022, "GPTQ", section 4
    """
    if method not in METHODS:
        raise RangeError(f"calibrate: method {method!r} is none of {', '.join(map(repr, METHODS))}.")
    data = [b if isinstance(b, tuple) else (b,) for b in batches]
    layers = [(name, m) for name, m in model.named_modules() if isinstance(m, Linear)]
    if not data or not layers:
        raise ArgumentError(
            f"calibrate: {len(data)} batches and {len(layers)} linear layers; both are needed."
        )
    errors: dict[str, float] = {}
    for name, layer in layers:
        seen: list[np.ndarray] = []
        columns = layer.in_features
        hook = layer.register_forward_pre_hook(
            lambda _, args, seen=seen, columns=columns: seen.append(
                args[0].detach().numpy().reshape(-1, columns)
            )
        )
        try:
            for batch in data:
                under(False, model, *batch)
        finally:
            hook.remove()
        if not seen:  # no batch comes by
            continue
        inputs = tensor(np.concatenate(seen), device="cpu")
        found = METHODS[method](layer.weight, inputs, bits, group_size, **options)
        layer.weight.data = found.weight
        errors[name] = found.error
    return errors
