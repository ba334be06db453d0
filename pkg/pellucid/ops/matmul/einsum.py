"""einsum: sums of products by subscripts, as a chain of batched matrix products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from ...errors import ArgumentError, ShapeError
from ...op.public import function
from ...op.rules import of_one_dtype
from ...tensors.tensor import Tensor
from ..shape.slicing import diagonal
from .dense import bmm

# An axis: a letter, or the place of one behind "...", counted from the right.
Label = str | int
_DOTS = "..."


def _written(text: str, equation: str) -> list[str]:
    """The subscripts of one operand or of the result."""
    labels, rest = [], text.replace(" ", "")
    while rest:
        label = _DOTS if rest.startswith(_DOTS) else rest[0]
        if label != _DOTS and not (label.isascii() and label.isalpha()):
            raise ArgumentError(
                f"einsum: '{equation}' has {label!r}. Subscripts are letters, and '...' once."
            )
        labels.append(label)
        rest = rest[len(label) :]
    return labels


def _listed(places: Sequence) -> list[str]:
    """Subscripts that were given as a list of numbers from 0 to 51, and Ellipsis."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    try:
        return [_DOTS if k is Ellipsis else letters[range(52)[k]] for k in places]
    except (IndexError, TypeError):
        raise ArgumentError(
            f"einsum: subscripts {places} must be numbers from 0 to 51, or Ellipsis."
        ) from None


def _given(args: tuple) -> tuple[str, list[list[str]], list[str] | None, list[Tensor]]:
    """The equation as it is shown, the subscripts of the operands, of the result, and the operands."""
    if args and isinstance(args[0], str):
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
            operands = list(operands[0])
        left, arrow, right = equation.partition("->")
        inputs = [_written(part, equation) for part in left.split(",")]
        output = _written(right, equation) if arrow else None
    else:
        *pairs, last = args if len(args) % 2 else (*args, None)
        operands, inputs = list(pairs[::2]), [_listed(places) for places in pairs[1::2]]
        output = None if last is None else _listed(last)
        equation = ",".join(map("".join, inputs)) + ("" if output is None else "->" + "".join(output))
    if len(operands) != len(inputs) or not operands:
        raise ArgumentError(
            f"einsum: '{equation}' is for {len(inputs)} operands, and {len(operands)} are given."
        )
    for x in operands:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"einsum: operands must be Tensors, not {type(x).__name__}.")
    return equation, inputs, output, operands


def _axes(equation: str, labels: list[str], x: Tensor, k: int) -> list[Label]:
    """One label for each axis."""
    named = len(labels) - (_DOTS in labels)
    hidden = x._meta.rank - named
    if hidden < 0 or (hidden and _DOTS not in labels) or labels.count(_DOTS) > 1:
        raise ShapeError(
            f"einsum: '{equation}' has {named} subscripts for operand {k}, which has {x._meta.rank} axes."
        )
    return [a for label in labels for a in (range(hidden, 0, -1) if label == _DOTS else (label,))]


def _once(x: Tensor, labels: list[Label]) -> tuple[Tensor, list[Label]]:
    """Diagonals in the place of axes that have the same label."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            labels = [*[a for j, a in enumerate(labels) if j not in (first, second)], label]
    return x, labels


def _summed(x: Tensor, labels: list[Label], wanted: set[Label]) -> tuple[Tensor, list[Label]]:
    """The sum over axes that nothing else has."""
    alone = [j for j, label in enumerate(labels) if label not in wanted]
    return (x.sum(alone), [label for label in labels if label in wanted]) if alone else (x, labels)


def _product(
    a: Tensor, own: list[Label], b: Tensor, other: list[Label], later: set[Label]
) -> tuple[Tensor, list[Label]]:
    """The product of two, summed over the axes that both have and nothing later does."""
    a, own = _summed(a, own, {*other, *later})
    b, other = _summed(b, other, {*own, *later})
    batch = [label for label in own if label in other and label in later]
    inner = [label for label in own if label in other and label not in later]
    if inner:
        of_one_dtype(a, b)
    rows = [label for label in own if label not in other]
    columns = [label for label in other if label not in own]
    size = dict(zip(own, a._meta.shape, strict=True)) | dict(zip(other, b._meta.shape, strict=True))
    result = [*batch, *rows, *columns]
    shape = [size[label] for label in result]
    if inner and a._meta.dtype.is_floating_point and a._meta.dtype is b._meta.dtype:
        count, depth = prod(size[label] for label in batch), prod(size[label] for label in inner)
        height, width = prod(size[label] for label in rows), prod(size[label] for label in columns)
        left = a.permute([own.index(label) for label in (*batch, *rows, *inner)])
        right = b.permute([other.index(label) for label in (*batch, *inner, *columns)])
        out = bmm(left.reshape(count, height, depth), right.reshape(count, depth, width))
        return out.reshape(shape), result
    # Other types have no matrix product: every product, then the sum.
    left = a.permute([own.index(label) for label in (*inner, *batch, *rows)])
    right = b.permute([other.index(label) for label in (*inner, *batch, *columns)])
    shared = [size[label] for label in (*inner, *batch)]
    left = left.reshape(*shared, *[size[label] for label in rows], *[1] * len(columns))
    right = right.reshape(*shared, *[1] * len(rows), *[size[label] for label in columns])
    out = left * right
    return (out.sum(tuple(range(len(inner))), dtype=out.dtype) if inner else out), result


@function(aten="einsum.default(equation, tensors, *, path=None)")
def einsum(equation, *operands) -> Tensor:
    """Sum of products by subscripts: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Args:
        equation: a letter is an axis. What the result does not have is summed over, an operand that has one
            twice gives its diagonal, ``...`` stands for all other axes, which broadcast. Without ``->`` the
            result has the letters that occur once, sorted.
        operands: as many tensors as the equation has. Instead of all this: each tensor followed by a list of
            numbers, and at the end the list of the result.

    Returns:
        The sum. Operands are taken from left to right, two at a time, as batched matrix products.

    Raises:
        ArgumentError: an equation that cannot be read, or is for another number of operands.
        ShapeError: subscripts do not fit the axes, or lengths differ and none is 1.

    Example:
        >>> import pellucid as torch
        >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> torch.einsum("ij,kj->ik", a, a).tolist()
        [[5.0, 11.0], [11.0, 25.0]]
    """
    equation, inputs, output, tensors = _given((equation, *operands))
    axes = [_axes(equation, labels, x, k) for k, (labels, x) in enumerate(zip(inputs, tensors, strict=True))]
    size: dict[Label, int] = {}
    for labels, x in zip(axes, tensors, strict=True):
        for label, length in zip(labels, x._meta.shape, strict=True):
            if size.setdefault(label, length) == 1:
                size[label] = length
            elif length not in (1, size[label]):
                raise ShapeError(
                    f"einsum: '{equation}' has lengths {size[label]} and {length} for subscript {label!r}. "
                    "They must be equal, or one of them 1."
                )
    hidden: list[Label] = sorted([label for label in size if isinstance(label, int)], reverse=True)
    if output is None:
        counts = Counter(label for labels in inputs for label in labels)
        result = [*hidden, *sorted([label for label, n in counts.items() if n == 1 and label != _DOTS])]
    else:
        result = [a for label in output for a in (hidden if label == _DOTS else [label])]
    if len(set(result)) < len(result) or not set(result) <= size.keys():
        raise ArgumentError(
            f"einsum: '{equation}': each subscript of the result must be one of an operand, and occur once."
        )
    terms = [_once(x, labels) for x, labels in zip(tensors, axes, strict=True)]
    # Where another operand is longer, an axis of length 1 is left out, and so broadcast.
    for k, (x, labels) in enumerate(terms):
        one = [j for j, label in enumerate(labels) if x._meta.shape[j] == 1 and size[label] != 1]
        terms[k] = x.squeeze(tuple(one)), [label for j, label in enumerate(labels) if j not in one]
    out, labels = terms[0]
    for k, (x, others) in enumerate(terms[1:], 2):
        later = {*result, *(label for _, following in terms[k:] for label in following)}
        out, labels = _product(out, labels, x, others, later)
    out, labels = _summed(out, labels, set(result))
    out = out.permute([labels.index(label) for label in result])
    return out
