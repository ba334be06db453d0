"""See what models compute, and put something else in its place: by point or module path, while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..nn.hooks import Tap
from ..nn.kept import Kept
from ..op.arguments import describe
from ..tensors.tensor import Tensor
from .paths import checked, first_tensor, pick
from .points import pick_points
from .probe import hook
from .seen import Seen


@contextmanager
def capture(model: Any, pattern: str | list[str] = "**", *, inputs: bool = False):
    """Keep what modules return, or the values at points, while the context is open.

    Nothing is copied and nothing waits; fused or not, a value that is held is a value that is computed.
    Compiled calls and the steps of ``generate`` stay captured: the values come along.

    Args:
        model: a module.
        pattern: addresses of points (``resid_post.3``, see `points`), or paths of modules: ``*`` within a
            name, ``**`` across names; several in a list.
        inputs: keep the first input of modules instead of the output.

    Yields:
        A `Seen`: address or path -> tensor.

    Raises:
        WeightError: no module fits.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens, nn
        >>> with torch.device("cpu"):
        ...     model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        ...     with lens.capture(model, "*") as seen:
        ...         _ = model(torch.zeros(1, 2))
        >>> {path: tuple(x.shape) for path, x in seen.items()}
        {'0': (1, 3), '1': (1, 3)}
    """
    seen = Seen()
    with ExitStack() as stack:
        modules, at = _divided(model, pattern)
        hook(stack, model, seen, at, {}, set(at))
        for path, module in pick(model, modules).items() if modules or not at else ():
            tap = Tap(seen, path, inputs)
            stack.callback(tap.end)
            stack.callback(module.register_forward_hook(tap).remove)
        yield seen


@contextmanager
def patch(model: Any, changes: Mapping[str, Callable[[Tensor], Tensor] | Tensor]):
    """Replace what modules return while the context is open.

    Args:
        model: a module.
        changes: address of a point or pattern of paths -> a function of the value, or the tensor to put
            there. A function runs Python, so that calls are not captured; a `Plan` is.

    Raises:
        WeightError: no module fits a pattern.
        ShapeError: a replacement has another shape than the output.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens, nn
        >>> with torch.device("cpu"):
        ...     model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        ...     with lens.patch(model, {"0": lambda x: x * 0 - 1}):
        ...         model(torch.ones(1, 2)).tolist()
        [[0.0, 0.0, 0.0]]
    """

    def change(path: str, new: Any):
        replaced = _replacement(new, path)

        def hook(module, args, output):
            result = replaced(first_tensor(output))
            return (result, *output[1:]) if isinstance(output, tuple) else result

        return hook

    if not isinstance(changes, Mapping):
        raise ArgumentError(f"patch: changes must be a dictionary by patterns, not {describe(changes)}.")
    with ExitStack() as stack:
        for pattern, new in changes.items():
            modules, at = _divided(model, pattern)
            for address in at:
                made = {address: [_replacement(new, address)]}
                hook(stack, model, Kept(), {address: at[address]}, made, set(), plain=True)
            for path, module in pick(model, pattern).items() if modules else ():
                stack.callback(module.register_forward_hook(change(path, new)).remove)
        yield


def _divided(model: Any, pattern: Any) -> tuple[list[Any], dict[str, Any]]:
    """The patterns of modules, and the points of the others."""
    found = {p: pick_points(model, p) for p in checked(model, pattern)}
    return [p for p in found if not found[p]], {a: q for of in found.values() for a, q in of.items()}


def _replacement(new: Any, path: str) -> Callable[[Tensor], Tensor]:
    """The function of a value that gives what stands in its place, of the same shape."""

    def replaced(old: Tensor) -> Tensor:
        result = new(old) if callable(new) else new
        if not isinstance(result, Tensor) or result.shape != old.shape:
            got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
            raise ShapeError(
                f"patch: {path} returns shape {tuple(old.shape)}, the replacement is {got}. "
                "They must be equal."
            )
        return result

    return replaced
