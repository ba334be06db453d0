"""The table of ONNX operators: by name and opset, the function that computes one out of Pellucid's ops.

`rows` says what a function's signature means. An input that older opsets have as an attribute is given by
its name just the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..rows import Floats, Ints, Number, Operator, Tensor, refused, signature

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class OnnxOperator(Operator):
    """One row: an operator from an opset on.

    Args:
        domain: "" is ai.onnx.
        since: the first opset whose form ``function`` takes.
    """

    domain: str = ""
    since: int = 1


TABLE: dict[tuple[str, str], list[OnnxOperator]] = {}
# Operators that are not computed, and why.
REFUSED = refused(
    {
        "control flow, whose graphs run by values on the device; export with it unrolled": "If Loop Scan",
        "sequences, which are no tensors; export with fixed numbers of them": "SequenceAt SequenceConstruct "
        "SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence "
        "ConcatFromSequence",
        "texts, which belong before the model": "StringConcat StringNormalizer StringSplit RegexFullMatch "
        "TfIdfVectorizer",
        "optional values, which are no tensors; export with them given or left out": "Optional "
        "OptionalGetElement OptionalHasElement",
        "files of images, which belong before the model": "ImageDecoder",
    }
)


def operator(
    *names: str, since: int = 1, domain: str = "", fixed: bool = True
) -> Callable[[Callable], Callable]:
    """Declare the function of an operator, from opset ``since`` on; the others are `OnnxOperator`'s."""

    def declare(function: Callable) -> Callable:
        for name in names:
            row(name, function, since=since, domain=domain, fixed=fixed)
        return function

    return declare


def row(
    name: str,
    function: Callable,
    arity: int = 0,
    *,
    since: int = 1,
    domain: str = "",
    fixed: bool = True,
) -> None:
    """Put an operator into the table; ``arity`` is the number of inputs of a function of tensors alone."""
    inputs, variadic, attributes = signature(function, arity)
    measures = name in ("Shape", "Size") and not domain
    found = OnnxOperator(name, function, inputs, variadic, attributes, fixed, measures, domain, since)
    rows = TABLE.setdefault((domain, name), [])
    rows.append(found)
    rows.sort(key=lambda r: r.since)


def find(domain: str, name: str, opset: int) -> OnnxOperator | None:
    """The row for an operator of a graph: the last one that is no newer than its opset."""
    rows = [r for r in TABLE.get((domain, name), ()) if r.since <= opset]
    return rows[-1] if rows else None


__all__ = ["MICROSOFT", "REFUSED", "TABLE", "Floats", "Ints", "Number", "Tensor", "operator"]
