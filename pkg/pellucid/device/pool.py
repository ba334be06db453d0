"""Which blocks of device memory are free: the same rules as web/runtime/pool.js, so that windows are equal on
both hosts."""

from collections.abc import Callable
from typing import Any

MINIMUM = 256
STEPS_PER_OCTAVE = 4
LARGE = 1 << 20
LARGE_STEP = 256 << 10
KEEP_BYTES = 512 << 20


def block_size(nbytes: int) -> int:
    """Bytes of the block that serves a request.

    Example:
        >>> block_size(1), block_size(300), block_size(1 << 20), block_size((1 << 20) + 1)
        (256, 320, 1048576, 1310720)
    """
    if nbytes <= MINIMUM:
        return MINIMUM
    if nbytes > LARGE:
        return -(-nbytes // LARGE_STEP) * LARGE_STEP
    octave = 1 << (nbytes - 1).bit_length() - 1
    step = octave // STEPS_PER_OCTAVE
    return -(-nbytes // step) * step


class Pool:
    """Blocks by size, newest first. ``create(size)`` makes a block and ``destroy(block)`` ends it."""

    def __init__(
        self, create: Callable[[int], Any], destroy: Callable[[Any], None], keep_bytes: int = KEEP_BYTES
    ):
        self._create, self._destroy, self._keep = create, destroy, keep_bytes
        self._free: dict[int, list] = {}
        self._order: dict[int, tuple[int, Any]] = {}  # age -> (size, block), oldest first
        self._ages: dict[int, int] = {}  # id(block) -> age
        self._clock = 0
        self.live_bytes = 0
        self.free_bytes = 0
        self.live_blocks = 0

    def take(self, nbytes: int):
        """A block of at least ``nbytes``: the one freed last, or a new one."""
        size = block_size(nbytes)
        blocks = self._free.get(size)
        if blocks:
            block = blocks.pop()
            del self._order[self._ages.pop(id(block))]
            self.free_bytes -= size
        else:
            block = self._create(size)
        self.live_bytes += size
        self.live_blocks += 1
        return block

    def give(self, block, nbytes: int) -> None:
        """Return a block that was taken for ``nbytes``."""
        size = block_size(nbytes)
        self._clock += 1
        self._free.setdefault(size, []).append(block)
        self._order[self._clock] = (size, block)
        self._ages[id(block)] = self._clock
        self.live_bytes -= size
        self.live_blocks -= 1
        self.free_bytes += size

    def shrink(self) -> None:
        """Destroy the oldest free blocks beyond the cap. Call after a submit, never within a window."""
        self._shrink_to(max(self._keep, self.live_bytes // 4))

    def trim(self) -> None:
        """Destroy every free block."""
        self._shrink_to(0)

    def _shrink_to(self, limit: int) -> None:
        while self.free_bytes > limit:
            age = next(iter(self._order))
            size, block = self._order.pop(age)
            self._free[size].remove(block)
            del self._ages[id(block)]
            self.free_bytes -= size
            self._destroy(block)
