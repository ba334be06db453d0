"""The schema of an op: what its declaration says, as the rooms below `declaration` read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..errors import RangeError
from ..tensors.dtypes import DType, float32
from .arguments import Reader
from .plan_cache import table_of_plans


@dataclass(frozen=True)
class Argument:
    """One parameter of a declaration and the role that its annotation gives it.

    Args:
        name: as in the declaration.
        role: tensor, optional, operand, tensors, number, dynamic or static.
        default: as in the declaration.
        keyword: whether it is given by name only.
        read: makes a value regular, or refuses it; None where there is nothing to do.
        typed: whether the value's type is part of a plan's key: 1, 1.0 and True are equal.
    """

    name: str
    role: str
    default: Any
    keyword: bool
    read: Reader | None = None
    typed: bool = False


@dataclass
class Schema:
    """What a declaration says; `op` explains its fields. ``call`` is the function that users call."""

    name: str
    function: Callable
    arguments: tuple[Argument, ...]
    dtype: Callable
    shape: Callable | None
    kernel: Any
    reference: Callable | None
    view: Callable | None
    composite: Callable | None
    grad: Any
    outputs: tuple[str, ...]
    strided: frozenset[str]
    mutates: str | None
    index: int
    plans: dict = field(default_factory=table_of_plans)
    call: Callable = field(default=lambda: None, repr=False)
    record: Callable = field(default=lambda: None, repr=False)
    saved: frozenset[str] = frozenset()
    result: type | None = None
    # All arguments that the kernel writes into; ``mutates`` is the first of them.
    mutated: tuple[str, ...] = ()
    public: str = ""
    check: Callable | None = None
    follow: Callable | None = None
    prepare: Callable | None = None
    alone: Callable | None = None
    route: Callable | None = None
    exact: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()

    def must_fit(self, a: Argument, d: DType) -> bool:
        """Whether a number that is given for an argument must fit the dtype of the computation. A float32
        operand may become infinite, as in PyTorch; what only sets the op up, such as a slope, may not."""
        if d is float32:
            return a.role == "number" or a.name in self.exact
        return a.name in self.fits or (d.is_integer and a.name in self.exact)

    def refuse(self, name: str, value: float, d: DType) -> RangeError:
        """The error for a number that a dtype does not hold."""
        return RangeError(
            f"{self.public}: {name} is {value}, which {d} does not hold. Give another, or convert the tensor "
            "first."
        )

    def within_64_bits(self, name: str, value: float) -> None:
        """Refuse integers that no dtype holds, as PyTorch does for floats too.

        Raises:
            RangeError: it has more bits.
        """
        if isinstance(value, int) and not -1 << 63 <= value < 1 << 64:
            raise RangeError(
                f"{self.public}: {name} has more than 64 bits. Give a smaller integer, or a float."
            )


# What computes calls in the place of ops and functions, for arguments with a ``__torch_function__`` and in
# modes; `tensors.dispatch` says how. Functions that are no ops ask once something is `active`.
overrides: Any = SimpleNamespace(active=False, find=lambda values: None, dispatch=None, of_op=None)
# Every declared op by name.
OPS: dict[str, Schema] = {}
