"""How ops become one call for a batch, by families. A rule gives the batch of results, or NotImplemented
where the op runs for one example after the other."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..op.elementwise import Elementwise
from ..op.planning import Op
from ..op.rules import as_input, broadcast
from ..op.schema import OPS
from ..tensors.shape import axes, axis
from ..tensors.tensor import Tensor
from .batching import Level, invoke, of_level, whole_of

Rule = Callable[[Op, tuple, Level], Any]


def _lifted(t: Any, level: Level, rank: int) -> Any:
    """A tensor whose batch stands in front of ``rank`` axes."""
    if not of_level(t, level):
        return t
    v = t._value
    missing = rank - (v.dim() - 1)
    return v.reshape((level.size, *(1,) * missing, *v.shape[1:])) if missing else v


def _elementwise(o: Op, values: tuple, level: Level) -> Any:
    tensors = [v for v in values if isinstance(v, Tensor)]
    ranks = [t.dim() for t in tensors]
    # A tensor without axes does not decide the dtype, and a batch of them would.
    if 0 in ranks and len({t.dtype for t in tensors}) > 1:
        return NotImplemented
    return invoke(o, [_lifted(v, level, max(ranks)) for v in values])


def _along(o: Op, values: tuple, level: Level) -> Any:
    """Reductions and scans along ``dim`` of their first argument."""
    given = {a.name: v for a, v in zip(o.arguments, values, strict=True)}
    others = [v for a, v in zip(o.arguments, values, strict=True) if isinstance(v, Tensor)][1:]
    if others:
        return NotImplemented
    v = given["input"]._value
    rank, dim, keepdim = v.dim() - 1, given["dim"], given.get("keepdim", False)
    scans = "keepdim" not in given
    if not rank:
        for d in axes(dim, 0):
            axis(d, 0)
        v, dim = v.unsqueeze(1), 1
    elif dim is None or dim == ():
        v, dim = v.reshape((level.size, prod(v.shape[1:]))), 1
    else:
        dim = axis(dim, rank) + 1 if isinstance(dim, int) else tuple(d + 1 for d in axes(dim, rank))
    whole = given["dim"] is None or given["dim"] == () or not rank
    if "keepdim" in given:
        given["keepdim"] = keepdim and not whole
    out = invoke(o, list((given | {"input": v, "dim": dim}).values()))
    if not whole:
        return out

    def shaped(t: Tensor) -> Tensor:
        if not scans:
            return t.reshape((level.size, *(1,) * rank)) if keepdim else t
        return t.squeeze(1) if not rank else t

    return type(out)._make(map(shaped, out)) if hasattr(out, "_make") else shaped(out)


def _view(change: Callable[[Tensor, int, dict[str, Any]], dict[str, Any]]) -> Rule:
    """A view whose arguments ``change`` makes those of the batch."""

    def rule(o: Op, values: tuple, level: Level) -> Any:
        given = {a.name: v for a, v in zip(o.arguments, values, strict=True)}
        t = given["input"]
        given |= change(t, t.dim(), given)
        return invoke(
            o, list((given | {"input": given.get("_input", t._value)}).values())[: len(o.arguments)]
        )

    return rule


def _shifted(*names: str) -> Rule:
    return _view(lambda t, rank, given: {n: axis(given[n], rank) + 1 for n in names})


def _view_size(o: Op, values: tuple, level: Level) -> Any:
    t, size = values
    rest = prod(n for n in size if n != -1)
    found = tuple(t.numel() // max(rest, 1) if n == -1 else n for n in size)
    if prod(found) != t.numel():
        return NotImplemented
    return t._value.reshape((level.size, *found))


def _expand_size(o: Op, values: tuple, level: Level) -> Any:
    t, size = values
    return _lifted(t, level, max(len(size), t.dim())).expand((level.size, *size))


def _squeeze(o: Op, values: tuple, level: Level) -> Any:
    t, dim = values
    dims = (
        range(t.dim())
        if dim is None
        else [axis(dim, t.dim())]
        if isinstance(dim, int)
        else axes(dim, t.dim())
    )
    taken = [d for d in dims if t.shape[d] == 1]
    v = t._value
    for d in sorted(taken, reverse=True):
        v = v.squeeze(d + 1)
    return v if taken else v.view_as(v)


def _cat(o: Op, values: tuple, level: Level) -> Any:
    tensors, dim = values
    if len({t.dim() for t in tensors}) > 1:
        return NotImplemented
    return invoke(o, ([whole_of(t, level) for t in tensors], axis(dim, tensors[0].dim()) + 1))


def _matmul(o: Op, values: tuple, level: Level) -> Any:
    a, b = values
    if not a.dim() or not b.dim():
        return NotImplemented
    row, column = a.dim() == 1, b.dim() == 1
    a = a.unsqueeze(0) if row else a
    b = b.unsqueeze(1) if column else b
    rank = max(a.dim(), b.dim())
    out = invoke(o, (_lifted(a, level, rank), _lifted(b, level, rank)))
    out = out.squeeze(-1) if column else out
    return out.squeeze(-1 if column else -2) if row else out


def _linear(o: Op, values: tuple, level: Level) -> Any:
    x, weight, bias = values
    if not (of_level(weight, level) or (bias is not None and of_level(bias, level))) and x.dim():
        return invoke(o, (x._value, weight, bias))
    out = OPS["matmul"].call(x, weight.transpose(0, 1) if weight.dim() == 2 else weight)
    return whole_of(out if bias is None else out + bias, level)


def _embedding(o: Op, values: tuple, level: Level) -> Any:
    weight, indices, *rest = values
    return NotImplemented if of_level(weight, level) else invoke(o, (weight, indices._value, *rest))


def _lines(o: Op, values: tuple, level: Level) -> Any:
    """Gathers and scatters along ``dim``, whose tensors have equally many axes."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if len({t.dim() for t in tensors}) > 1 or not tensors[0].dim():
        return NotImplemented
    given = [whole_of(v, level) if isinstance(v, Tensor) else v for v in values]
    place = next(k for k, a in enumerate(o.arguments) if a.name == "dim")
    given[place] = axis(values[place], tensors[0].dim()) + 1
    return invoke(o, given)


def _of_first(o: Op, values: tuple, level: Level) -> Any:
    if any(of_level(v, level) for v in values[1:]):
        return NotImplemented
    return invoke(o, (values[0]._value, *values[1:]))


def _convolution(o: Op, values: tuple, level: Level) -> Any:
    x, *rest = values
    if any(of_level(v, level) for v in rest) or not isinstance(rest[0], Tensor):
        return NotImplemented
    many = x.dim() == rest[0].dim()
    v = x._value.flatten(0, 1) if many else x._value
    out = invoke(o, (v, *rest))
    return out.reshape((level.size, out.shape[0] // max(level.size, 1), *out.shape[1:])) if many else out


def _last_axes(o: Op, values: tuple, level: Level) -> Any:
    return invoke(o, (values[0]._value, *values[1:])) if values[0].dim() > 1 else NotImplemented


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "any", "all", "amax", "amin", "argmax", "argmin", "max", "min", "softmax",
         "log_softmax", "cumsum", "cumprod", "running_max", "log_scan", "log_of_sum", "sort", "topk",
         "sum_of_squares", "squares_about_mean", "known_mean"),
        _along,
    ),
    "view_size": _view_size, "expand_size": _expand_size, "squeeze": _squeeze,
    "permute_dims": _view(lambda t, r, given: {"dims": (0, *(axis(d, r) + 1 for d in given["dims"]))}),
    "unsqueeze": _view(lambda t, r, given: {"dim": axis(given["dim"], r + 1) + 1}),
    "transpose": _shifted("dim0", "dim1"), "select": _shifted("dim"), "slice_dim": _shifted("dim"),
    "diagonal": _shifted("dim1", "dim2"), "unfold": _shifted("dimension"),
    "cat": _cat, "matmul": _matmul, "linear": _linear, "embedding": _embedding,
    **dict.fromkeys(("gather", "scatter_lines", "scatter_add"), _lines),
    **dict.fromkeys(("layer_norm", "rms_norm", "one_hot_rows", "pad_planes"), _of_first),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    "tril": _last_axes, "triu": _last_axes,
}  # fmt: skip


def rule_of(o: Op) -> Rule | None:
    """The rule of an op's family, if it has one."""
    found = _RULES.get(o.name)
    if found is None and isinstance(o.kernel, Elementwise) and o.shape in (broadcast, as_input):
        return _elementwise
    return found
