"""What was seen in a run: values by module path or address."""

from __future__ import annotations

import html
from typing import Any

from ..device.stream import stream
from ..errors import WeightError
from ..nn.kept import Kept
from ..tensors.html import describe
from ..tensors.tensor import Tensor
from .looks import LogitLens
from .points import canonical


class Seen(Kept):
    """Values by module path or address, in the order in which they were computed; of several calls the last.

    Attributes:
        output: what the model returned, where `pellucid.lens.run` made it.
    """

    def __init__(self, *values: Any):
        super().__init__(*values)
        self.output: Any = None
        # What the tap of `watch` keeps, and the look that was made of it.
        self.looks = Kept()
        self._made: tuple[tuple, LogitLens] | None = None

    def __reduce__(self):
        # A copy has the values: a read that is under way gives them to one.
        return Seen, (dict(self.items()),)

    def _make(self) -> None:
        super()._make()
        # Attention over a cache looks at its whole memory, and tells how much of that is filled. While a call
        # is captured it is both.
        if stream().capturing is None:
            for path, value in [*dict.items(self)]:
                if isinstance(value, tuple):
                    whole, length = value
                    dict.__setitem__(self, path, whole[..., : int(length)])

    def _repr_html_(self) -> str:
        rows = []
        for path, value in self.items():
            drawn = describe(value, 48) if isinstance(value, Tensor) else None
            told = drawn or f"<code>{html.escape(repr(value))}</code>"
            head = f"<th style='text-align:left'><code>{html.escape(path)}</code></th>"
            rows.append(f"<tr>{head}<td>{told}</td></tr>")
        return f"<table style='font:13px/1.5 system-ui,sans-serif'>{''.join(rows)}</table>"

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

    def __missing__(self, path: str) -> Tensor:
        if (address := canonical(path)) in self:
            return self[address]
        raise WeightError(
            f"capture: nothing was seen of {path!r}. "
            f"Seen: {', '.join(self) or 'nothing; the model did not run yet'}."
        )
