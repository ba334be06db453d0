"""What registering a hook returns."""

from __future__ import annotations


class Handle:
    """What registering a hook returns.

    Args:
        hooks: the table that holds the hook.
        hook: the function.
    """

    _next = 0

    def __init__(self, hooks: dict, hook):
        Handle._next += 1
        self.id = Handle._next
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook out; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()
