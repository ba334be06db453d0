"""Functions of several tensors at once, as ``torch._foreach_mul_(tensors, 2)``: one call of the op for each.

Optimizers and running means of programs use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError
from ...ops.linalg.norms import vector_norm
from ...tensors.tensor import Tensor

_OF_ONE = (
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 max "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero"
)
_OF_SEVERAL = "add addcdiv addcmul clamp_max clamp_min copy div lerp maximum minimum mm mul pow sub"
# What has no form that writes, or only that.
_MADE_ONLY, _WRITTEN_ONLY = {"clone", "max", "mm"}, {"copy", "zero"}
# Beside a number.
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _part(value: Any, k: int) -> Any:
    return value[k] if isinstance(value, (list, tuple)) else value


def _apply(name: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """One call, ``value`` behind the tensors by keyword."""
    plain, end = name.removesuffix("_"), "_" * name.endswith("_")
    if plain.startswith("addc") and len(args) == 3:
        args, kwargs["value"] = args[:2], args[2]
    if plain in _OF_NUMBERS and not isinstance(args[0], Tensor):
        name = _OF_NUMBERS[plain] + end
    if not isinstance(x, Tensor):
        return args[0].__rpow__(x)
    if not hasattr(x, name):  # no tensor has `maximum_`
        return x.copy_(getattr(x, plain)(*args, **kwargs))
    return getattr(x, name)(*args, **kwargs)


def _of_each(name: str) -> Callable:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = [value for value in (self, *args, *kwargs.values()) if isinstance(value, (list, tuple))]
        count = len(given[0]) if given else 0
        # All before the first is written.
        if not count or any(len(value) != count for value in given):
            raise ArgumentError(
                f"_foreach_{name}: lists of {', '.join(str(len(value)) for value in given) or 'no'} values. "
                "Give lists or tuples of one length, of one tensor at least."
            )
        return [
            _apply(
                name,
                _part(self, k),
                tuple(_part(a, k) for a in args),
                {key: _part(value, k) for key, value in kwargs.items()},
            )
            for k in range(count)
        ]

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"``x.{name}(...)`` for each of several tensors; of an argument that is a list, its own."
    return call


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> list[Tensor]:
    """The vector norm of each tensor."""
    return [vector_norm(x, ord, dtype=dtype) for x in self]


def _forms(plain: str) -> list[str]:
    """What there is of an op: a form that makes tensors, one that writes, or both."""
    return [plain] * (plain not in _WRITTEN_ONLY) + [f"{plain}_"] * (plain not in _MADE_ONLY)


_NAMES = [name for plain in (*_OF_ONE.split(), *_OF_SEVERAL.split()) for name in _forms(plain)]
FUNCTIONS: dict[str, Callable] = {
    **{f"_foreach_{name}": _of_each(name) for name in _NAMES},
    "_foreach_norm": _foreach_norm,
}

__all__ = ["FUNCTIONS"]
