"""Keys and values of a tree of tokens: branches share a cache until one of them writes its own rows."""

from __future__ import annotations

from typing import Any

from ...autograd.grad_mode import no_grad
from ...errors import DimensionError
from ...models.generate.loop import rounded
from .tree import TokenNode


class Branch:
    """A cache, and the tokens whose keys and values its rows hold.

    Args:
        cache: of the model.
        rows: the token of each row that is filled.
    """

    def __init__(self, cache: Any, rows: list[TokenNode]):
        self.cache, self.rows = cache, rows

    def shared(self, path: list[TokenNode]) -> int:
        """How many rows are the first tokens of a path."""
        count = 0
        for mine, theirs in zip(self.rows, path, strict=False):
            if mine is not theirs:
                break
            count += 1
        return count

    @property
    def is_plain(self) -> bool:
        """Whether rows stay what they are: no window overwrites them, no layer has a state instead, and keys
        are turned alike in every text."""
        cache = self.cache
        return not (any(cache.windows) or any(cache.states) or cache.original_positions)

    def turn_back(self, count: int) -> bool:
        """Make the next row the one behind ``count`` tokens; False where the cache has forgotten these."""
        if self.is_plain:
            self.cache.at(count, None)
            return True
        try:
            self.cache.at(len(self.rows), None)
            self.cache.crop(count)
        except DimensionError:
            return False
        del self.rows[count:]
        return True

    def wrote(self, nodes: list[TokenNode]) -> None:
        """Say what the rows from where it was turned back to are now."""
        start = self.cache.length - len(nodes)
        if self.rows[start : start + len(nodes)] != nodes:
            self.rows[start:] = nodes


class Branches:
    """The caches of one session.

    Args:
        model: whose.
        most: so many are kept; of more, the one that was used longest ago goes, and its tokens are read again
            when they are returned to.
        capacity: positions of a new cache.
    """

    def __init__(self, model: Any, most: int, capacity: int):
        self._model, self._most, self.capacity = model, most, capacity
        self.kept: list[Branch] = []  # the one used last at the end
        self.copies = 0

    def take(self, path: list[TokenNode]) -> tuple[Branch, int]:
        """A branch that may write a path's last token, and how many of its tokens need not be read.

        The one with the longest common beginning is used as it is where it grows or reads a token again;
        where a token of another branch would be overwritten, what both share is copied first.
        """
        limit = len(path) - 1
        best = max(self.kept, key=lambda b: b.shared(path), default=None)
        count = 0 if best is None else min(best.shared(path), limit)
        if best is None or not count:
            return self._add(Branch(self._new(len(path)), [])), 0
        grows = best.shared(path) == min(len(best.rows), len(path))
        if not grows or best.cache.capacity < len(path):
            best = self._add(self._copy(best, count, len(path)))
            count = len(best.rows)
        if not best.turn_back(count):
            return self._add(Branch(self._new(len(path)), [])), 0
        self.kept.remove(best)
        self.kept.append(best)
        return best, count

    def _new(self, length: int) -> Any:
        positions = self._model.config.max_position_embeddings
        if length > positions:
            raise DimensionError(
                f"Session: {length} tokens are over the model's {positions} positions. Go back, or "
                "begin with a shorter prompt."
            )
        return self._model.new_cache(1, min(positions, max(self.capacity, rounded(length + 1))))

    def _add(self, branch: Branch) -> Branch:
        self.kept.append(branch)
        del self.kept[: -self._most]
        return branch

    def _copy(self, source: Branch, count: int, length: int) -> Branch:
        """The first rows of a branch in memory of their own; none where rows cannot be told apart."""
        cache = self._new(length)
        if not source.is_plain:
            return Branch(cache, [])
        with no_grad():
            for mine, theirs in zip(cache.memory, source.cache.memory, strict=True):
                mine[:, :, :count].copy_(theirs[:, :, :count])
        self.copies += 1
        return Branch(cache, source.rows[:count])
