"""See what modules compute, and put something else in its place: by module path, while the model runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from ..errors import ArgumentError, ShapeError, WeightError
from ..nn.hooks import Tap
from ..op.arguments import describe
from ..tensors.tensor import Tensor
from .looks import LogitLens
from .paths import first_tensor, pick


class Seen(dict):
    """Outputs of modules by path, in the order in which they ran; of several calls the last one."""

    def __init__(self, *values: Any):
        super().__init__(*values)
        # What the tap of `watch` keeps, and the look that was made of it.
        self.looks: dict[str, tuple] = {}
        self._made: tuple[tuple, LogitLens] | None = None

    def __reduce__(self):
        # A copy has the values: a read that is under way gives them to one.
        return Seen, (dict(self),)

    @property
    def look(self) -> LogitLens:
        """The look of the last call, where `watch` makes one a part of it.

        Raises:
            WeightError: nobody looked.
        """
        if not self.looks:
            raise WeightError(
                "watch: no look was a part of a call. Use lens.watch(model), and run the model."
            )
        (values,) = self.looks.values()
        if self._made is None or self._made[0] is not values:
            self._made = values, LogitLens(*values)
        return self._made[1]

    def begin(self) -> None:
        """Let the table of this look travel, if that of the look before was read."""
        if self._made is not None and self._made[1].was_read:
            self.look.begin_read()

    def __missing__(self, path: str):
        raise WeightError(
            f"capture: nothing was seen of {path!r}. "
            f"Seen: {', '.join(self) or 'nothing; the model did not run yet'}."
        )


@contextmanager
def capture(model: Any, pattern: str | list[str] = "**", *, inputs: bool = False):
    """Keep what modules return while the context is open.

    Nothing is copied and nothing waits; fused or not, a value that is held is a value that is computed.
    Compiled calls and the steps of ``generate`` stay captured: the values come along.

    Args:
        model: a module.
        pattern: paths of modules: ``*`` within a name, ``**`` across names; several in a list.
        inputs: keep the first input instead of the output.

    Yields:
        A `Seen`: path -> tensor.

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
        for path, module in pick(model, pattern).items():
            tap = Tap(seen, path, inputs)
            stack.callback(tap.end)
            stack.callback(module.register_forward_hook(tap).remove)
        yield seen


@contextmanager
def patch(model: Any, changes: Mapping[str, Callable[[Tensor], Tensor] | Tensor]):
    """Replace what modules return while the context is open.

    Args:
        model: a module.
        changes: pattern of paths -> a function of the output, or the tensor to return instead.

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
        def hook(module, args, output):
            old = first_tensor(output)
            result = new(old) if callable(new) else new
            if not isinstance(result, Tensor) or result.shape != old.shape:
                got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
                raise ShapeError(
                    f"patch: {path} returns shape {tuple(old.shape)}, the replacement is {got}. "
                    "They must be equal."
                )
            return (result, *output[1:]) if isinstance(output, tuple) else result

        return hook

    if not isinstance(changes, Mapping):
        raise ArgumentError(f"patch: changes must be a dictionary by patterns, not {describe(changes)}.")
    with ExitStack() as stack:
        for pattern, new in changes.items():
            for path, module in pick(model, pattern).items():
                stack.callback(module.register_forward_hook(change(path, new)).remove)
        yield
