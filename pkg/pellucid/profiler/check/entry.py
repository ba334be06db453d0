"""An op that was recorded, as the journal keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...op.planning import Op
from ..lines import Line
from .shadow import Snapshot


@dataclass
class Entry:
    """An op that was recorded.

    Args:
        op: the op.
        run: its plan.
        written: the argument that its in-place form writes into.
        values: its arguments, with `Snapshot` for tensors.
        made: what it made or wrote into, as the reference has it.
        line: of the program.
    """

    op: Op
    run: Callable
    written: str | None
    values: list[Any]
    made: list[Snapshot]
    line: Line

    @property
    def name(self) -> str:
        return f"{self.op.public}_" if self.written else self.op.public

    @property
    def seen(self) -> list[Snapshot]:
        """The tensors among the arguments."""
        found = []
        for value in self.values:
            found += [v for v in value if isinstance(v, Snapshot)] if isinstance(value, (list, tuple)) else ()
            found += [value] if isinstance(value, Snapshot) else ()
        return found

    def __str__(self) -> str:
        def shown(value: Any) -> str:
            if isinstance(value, list) and value and isinstance(value[0], Snapshot):
                return f"[{', '.join(map(shown, value))}]"
            return str(value) if isinstance(value, Snapshot) else repr(value)

        pairs = zip(self.op.arguments, self.values, strict=True)
        return f"{self.name}({', '.join(f'{a.name}={shown(v)}' for a, v in pairs)})"
