"""Questions about tensors, types and this process that need no kernel."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..op.arguments import describe, plain
from . import dtypes as dt
from .dtypes import DType
from .tensor import Tensor


def _tensor(input: Any, name: str) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentError(f"{name}(): argument 'input' must be Tensor, not {describe(input)}")
    return input


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Source: https://pytorch.org/docs/stable/generated/torch.is_tensor.html
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    return _tensor(input, "is_floating_point").dtype.is_floating_point


def is_signed(input: Tensor) -> bool:
    """Whether the elements can be negative."""
    return _tensor(input, "is_signed").dtype.is_signed


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero. Waits for the device.

    Raises:
        ShapeError: there is not exactly one element.
    """
    return bool(_tensor(input, "is_nonzero"))


def is_inference(input: Tensor) -> bool:
    """Whether the tensor is one of inference mode: never, since those that it makes are like others."""
    _tensor(input, "is_inference")
    return False


def is_conj(input: Tensor) -> bool:
    """Whether elements are read as their conjugates: never, they are conjugated at once."""
    _tensor(input, "is_conj")
    return False


def is_neg(input: Tensor) -> bool:
    """Whether elements are read as their negatives: never, they are negated at once."""
    _tensor(input, "is_neg")
    return False


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return _tensor(input, "is_same_size").shape == _tensor(other, "is_same_size").shape


def get_device(input: Tensor) -> int:
    """The number of a tensor's GPU, which is 0; -1 on the cpu device."""
    return _tensor(input, "get_device").get_device()


def numel(input: Tensor) -> int:
    """Number of elements."""
    return _tensor(input, "numel").numel()


def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's rules of promotion allow a result of one type to be stored as another.

    Source: https://pytorch.org/docs/stable/generated/torch.can_cast.html
    """
    return dt.can_cast(from_, to)


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an expression of two tensors or numbers.

    Source: https://pytorch.org/docs/stable/generated/torch.result_type.html

    Example:
        >>> import pellucid as torch
        >>> torch.result_type(torch.ones(2, dtype=torch.int32, device="cpu"), 1.0)
        pellucid.float32
    """
    given = [x if isinstance(x, Tensor) else plain(x) for x in (tensor1, tensor2)]
    for x in given:
        if not isinstance(x, (Tensor, bool, int, float, complex)):
            raise ArgumentError(f"result_type: takes tensors and numbers, not {describe(x)}.")
    tensors = [x for x in given if isinstance(x, Tensor)]
    return dt.result_type(
        [x.dtype for x in tensors if x.ndim],
        [x.dtype for x in tensors if not x.ndim],
        [type(x) for x in given if not isinstance(x, Tensor)],
    )


# Threads of the host's own, of which there is one.


def get_num_threads() -> int:
    """How many threads of the host compute: 1; kernels run on the device."""
    return 1


def get_num_interop_threads() -> int:
    """How many threads of the host run ops beside each other: 1."""
    return 1


def set_num_threads(int: int) -> None:
    """Accepted and without effect: kernels run on the device, and numpy chooses its own threads."""


def set_num_interop_threads(int: int) -> None:
    """Accepted and without effect, as `set_num_threads`."""


def detach(input: Tensor) -> Tensor:
    """`Tensor.detach`: the same values outside the graph, sharing storage."""
    return input.detach()


_PRECISION = ["highest"]


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given; products are computed in float32 whatever that is."""
    return _PRECISION[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Noted, and without effect: products of float32 are computed in float32, which every setting allows.

    Raises:
        ArgumentError: PyTorch has no such setting.
    """
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(
            f"set_float32_matmul_precision: {precision!r} is none of 'highest', 'high' and 'medium'."
        )
    _PRECISION[0] = precision


def typename(obj: Any) -> str:
    """The name of an object's type with its module; of a tensor PyTorch's, such as ``torch.FloatTensor``."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None) or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


# Of sizes, which are plain numbers here.


def sym_int(a: Any) -> int:
    """A size as an integer, towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """A size as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether a truth about sizes does not hold."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two sizes; a float if one of them is."""
    return max(float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two sizes; a float if one of them is."""
    return min(float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two sizes, by a truth."""
    return t if b else f
