"""The table of TensorFlow Lite's operators: by name, the function that computes one out of Pellucid's ops.

`rows` says what a function's signature means; attributes are the fields of the operator's options. Images
are (batch, height, width, channels), as the files have them. Quantized numbers come and go as floats, and
activations that are fused into an operator are applied to its result: see `quantized`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..rows import Floats, Ints, Number, Operator, Tensor, refused, signature


@dataclass(frozen=True)
class TfliteOperator(Operator):
    """One row.

    Args:
        options: the table of its options, of `schema.OPTIONS`; "" if it has none that matter.
        moves: numbers come out as they went in, so quantized ones need no floats.
    """

    options: str = ""
    moves: bool = False


TABLE: dict[str, TfliteOperator] = {}
# Operators that are not computed, and why.
REFUSED = refused(
    {
        "control flow, whose graphs run by values on the device; convert with it unrolled": "IF WHILE CALL",
        "a state that outlives a call; convert with it as inputs and outputs": "SVDF LSTM RNN",
        "texts and tables of them, which belong before the model": "HASHTABLE HASHTABLE_FIND "
        "HASHTABLE_IMPORT HASHTABLE_SIZE HASHTABLE_LOOKUP LSH_PROJECTION SKIP_GRAM EMBEDDING_LOOKUP_SPARSE",
        "the length of the result follows from values": "WHERE UNIQUE",
    }
)


def operator(
    *names: str, options: str = "", fixed: bool = True, moves: bool = False
) -> Callable[[Callable], Callable]:
    """Declare the function of operators; the other arguments are `TfliteOperator`'s."""

    def declare(function: Callable) -> Callable:
        for name in names:
            row(name, function, options=options, fixed=fixed, moves=moves)
        return function

    return declare


def row(
    name: str, function: Callable, arity: int = 0, *, options: str = "", fixed: bool = True,
    moves: bool = False,
) -> None:  # fmt: skip
    """Put an operator into the table; ``arity`` is the number of inputs of a function of tensors alone."""
    inputs, variadic, attributes = signature(function, arity)
    TABLE[name] = TfliteOperator(
        name, function, inputs, variadic, attributes, fixed, name in ("SHAPE", "RANK"), options, moves
    )


__all__ = ["REFUSED", "TABLE", "Floats", "Ints", "Number", "Tensor", "operator"]
