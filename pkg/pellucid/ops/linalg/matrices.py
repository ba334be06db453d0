"""What functions of batches of matrices ask of their arguments: dtypes, shapes, and an ``info`` of zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import DTypeError, LinAlgError, ShapeError
from ...op.call import Call
from ...op.kernel import PIECE, Launch, is_direct
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.meta import Meta
from ...tensors.shape import broadcast_shapes
from ...tensors.tensor import Tensor

REAL = {dt.float32: dt.float32, dt.float64: dt.float64, dt.complex64: dt.float32, dt.complex128: dt.float64}


def typed(*kinds: str | DType) -> Callable:
    """A dtype rule for matrices of float32 or float64, or complex ones.

    Args:
        kinds: of each result: "own" as the matrices, "real" as their real parts, or a dtype.
    """

    def rule(call: Call):
        given = call.tensors()
        d = floats(given[0][1].dtype)
        for name, m in given:
            if m.dtype is not d and not m.dtype.is_integer:
                raise DTypeError(f"takes tensors of one dtype, and '{name}' is {m.dtype}, not {d}.")
        found: Any = tuple({"own": d, "real": REAL[d]}.get(k, k) for k in kinds)  # type: ignore[call-overload]
        return (found if len(found) > 1 else found[0]), d

    return rule


def floats(d: DType) -> DType:
    """The dtype, if matrices of it are decomposed.

    Raises:
        DTypeError: it is a half or an integer type.
    """
    if d not in REAL:
        raise DTypeError(f"takes float32, float64 or complex tensors, not {d}. Convert with .float().")
    return d


def matrices(x: Meta | Tensor, name: str = "the input") -> tuple[tuple[int, ...], int, int]:
    """(the shape of the batch, rows, columns).

    Raises:
        ShapeError: fewer than two axes.
    """
    if len(x.shape) < 2:
        raise ShapeError(f"{name} must be matrices, of at least two axes, not of shape {tuple(x.shape)}.")
    return tuple(x.shape[:-2]), x.shape[-2], x.shape[-1]


def square(x: Meta | Tensor, name: str = "the input") -> tuple[tuple[int, ...], int]:
    """(the shape of the batch, rows).

    Raises:
        ShapeError: fewer than two axes, or matrices that are not square.
    """
    batch, rows, columns = matrices(x, name)
    if rows != columns:
        raise ShapeError(f"{name} must be square matrices, not {rows} by {columns}.")
    return batch, rows


def system(name: str, so: str = "") -> Callable:
    """A shape rule: that of B, which has as many rows as the square matrices of this name."""

    def rule(call: Call):
        (_, rows), (_, own, columns) = square(call[name], name), matrices(call["B"], "B")
        if rows != own:
            raise ShapeError(f"{name} is {rows} by {rows} and B is {own} by {columns}{so}.")
        return call["B"].shape

    return rule


def lanes(elements: int) -> int:
    """Lanes of a workgroup that share the elements of a matrix; four run as one vector on software
    adapters."""
    return 4 if is_direct() else 64 if elements < 4096 else 256


def steps(launch: Launch, count: int, turns: int) -> list[Launch] | None:
    """Dispatches that go through the steps of a decomposition, each as many as it may; None where a step is
    too long for one, so that the cpu device takes the matrix.

    Args:
        launch: the dispatch, without the parameters ``first`` and ``last``, the step that is not in it.
        count: of steps.
        turns: of the loops of an invocation, at most, in one step, and before the first.
    """
    per = (PIECE - turns) // turns
    if per <= 0:
        return None
    parts = [{"first": k, "last": min(k + per, count)} for k in range(0, max(count, 1), per)]
    return [replace(launch, params=launch.params | part, bind=dict(launch.bind)) for part in parts]


def of_reals(launches: Callable) -> Callable:
    """The kernel of an op whose complex matrices go over the cpu device."""
    return lambda call: None if call.compute.is_complex else launches(call)


def one_batch(*tensors: Tensor) -> list[Tensor]:
    """Matrices expanded to the batch that all broadcast to."""
    batch = broadcast_shapes(*[t.shape[:-2] for t in tensors])
    return [t if t.shape[:-2] == batch else t.expand(*batch, *t.shape[-2:]) for t in tensors]


def checked(found: Any, explain: str, wanted: bool = True) -> Any:
    """The results of a factorization whose last is ``info``, which is read if wanted.

    Args:
        explain: what it means, with ``{}`` where it stands.

    Raises:
        LinAlgError: the info of a matrix is not 0.
    """
    info = found[-1]
    while getattr(info, "is_batched", False):  # of all examples of `vmap`
        info = info._value
    if wanted and info.device.type != "meta":
        read = info.detach().numpy().reshape(-1)
        bad = read.nonzero()[0]
        if len(bad):
            which = f"matrix {bad[0]} of the batch: " if info.ndim else ""
            raise LinAlgError(which + explain.format(read[bad[0]]))
    return found
