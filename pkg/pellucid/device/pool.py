"""Which blocks of device memory are free: the same rules as web/runtime/pool.js, so that windows are equal on
both hosts."""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SMALLEST_STEP = 256
LARGEST_STEP = 256 << 10
STEPS_PER_OCTAVE = 16
KEEP_BYTES = 512 << 20
# The most live bytes are known of this many submissions, and of as many before them.
EPOCH = 32
# How many block sizes larger a buffer may be than it needs to: a quarter more from 4 KiB on, 1 KiB below.
_MOST_STEPS = 4


def block_size(nbytes: int) -> int:
    """Bytes of the block that serves a request.

    Example:
        >>> block_size(1), block_size(300), block_size(1 << 20), block_size((1 << 20) + 1)
        (256, 512, 1048576, 1114112)
    """
    octave = 1 << max(nbytes - 1, 1).bit_length() - 1
    step = min(max(octave // STEPS_PER_OCTAVE, SMALLEST_STEP), LARGEST_STEP)
    return max(-(-nbytes // step), 1) * step


class BlockSizes:
    """Gives families of buffers block sizes that no other family has.

    The pool gives the block that was made first of those that are free. So a program that repeats itself
    finds the same blocks again if what ends at different times has different sizes.

    Args:
        most: bytes that a buffer may have.
    """

    def __init__(self, most: int):
        self._taken: set[int] = set()
        self._most = most

    def of(self, family: Sequence[int]) -> list[int]:
        """Bytes for each of these, at least what they need."""
        made = [self._free(nbytes) for nbytes in family]
        self._taken |= {block_size(nbytes) for nbytes in made}
        return made

    def _free(self, nbytes: int) -> int:
        found = nbytes
        for _ in range(_MOST_STEPS + 1):
            if block_size(found) not in self._taken:
                return found
            found = block_size(block_size(found) + 1)
            if found > self._most:
                break
        return nbytes


def shared(uses: Sequence[Sequence[int]], sizes: Mapping[int, int]) -> tuple[dict[int, int], list[int]]:
    """Lay buffers that live within one window into few, by their first and last use.

    Args:
        uses: the buffers that each command uses.
        sizes: bytes of each.

    Returns:
        Which of the few each buffer is, and the bytes of those.
    """
    last = {buffer: k for k, used in enumerate(uses) for buffer in used}
    free: dict[int, list[int]] = {}
    home: dict[int, int] = {}
    few: list[int] = []
    for k, used in enumerate(uses):
        for buffer in used:
            if buffer not in home:
                same = free.setdefault(block_size(sizes[buffer]), [])
                home[buffer] = same.pop() if same else len(few)
                if home[buffer] == len(few):
                    few.append(0)
                few[home[buffer]] = max(few[home[buffer]], sizes[buffer])
        for buffer in used:
            if last[buffer] == k:
                free[block_size(sizes[buffer])].append(home[buffer])
    return home, few


class Pool:
    """Blocks by size. ``create(size)`` makes a block and ``destroy(block)`` ends it.

    Of a size the block that was made first is taken: which one that is depends on what is alive, not on the
    order in which the rest was freed. So a program that repeats itself gets the blocks of its last round, and
    finds their bind groups, whatever was done between.

    Live and free blocks together stay below ``keep_bytes``, or below the sum over all sizes of what the last
    submissions had alive of each at most, whichever is more: a program that repeats itself finds the blocks
    of its last round, since new ones cost the time to fill them with zeros; one that shrinks gives them back
    some submissions later. What needs its sizes one after the other keeps at most twice what was alive at
    once.
    """

    def __init__(
        self, create: Callable[[int], Any], destroy: Callable[[Any], None], keep_bytes: int = KEEP_BYTES
    ):
        self._create, self._destroy, self._keep = create, destroy, keep_bytes
        self._numbers: dict[int, int] = {}  # id(block) -> which one it is
        self._free: OrderedDict[int, tuple[int, Any]] = OrderedDict()  # number -> (size, block), oldest first
        # size -> heap of numbers, some of which may be of blocks that have ended.
        self._heaps: dict[int, list[int]] = {}
        self._made = 0
        self._submissions = 0
        # The most live bytes since this epoch began, and in the one before; size -> live blocks, and the most
        # of them in both.
        self._peak = self._peak_before = 0
        self._live: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._most_before: dict[int, int] = {}
        self.live_bytes = 0
        self.free_bytes = 0
        self.live_blocks = 0

    def take(self, nbytes: int):
        """A block of at least ``nbytes``: the free one that was made first, or a new one."""
        size = block_size(nbytes)
        block, heap = None, self._heaps.get(size)
        while heap and block is None:
            _, block = self._free.pop(heapq.heappop(heap), (size, None))
        if block is not None:
            self.free_bytes -= size
        else:
            block = self._create(size)
            self._made += 1
            self._numbers[id(block)] = self._made
        self.live_bytes += size
        self.live_blocks += 1
        if self.live_bytes > self._peak:
            self._peak = self.live_bytes
        alive = self._live[size] = self._live.get(size, 0) + 1
        if alive > self._most.get(size, 0):
            self._most[size] = alive
        return block

    def give(self, block, nbytes: int) -> None:
        """Return a block that was taken for ``nbytes``."""
        size, number = block_size(nbytes), self._numbers[id(block)]
        heapq.heappush(self._heaps.setdefault(size, []), number)
        self._free[number] = (size, block)
        self._live[size] -= 1
        self.live_bytes -= size
        self.live_blocks -= 1
        self.free_bytes += size

    def shrink(self) -> None:
        """Destroy the oldest free blocks beyond the cap. Call after every submit, never within a window."""
        if self.free_bytes + self.live_bytes > self._keep:
            cap = self._cap()
            while self.free_bytes + self.live_bytes > cap and self._free:
                self._end_oldest()
        self._submissions += 1
        if self._submissions % EPOCH == 0:
            self._peak_before, self._peak = self._peak, self.live_bytes
            self._live = {size: count for size, count in self._live.items() if count}
            self._most_before, self._most = self._most, dict(self._live)

    def _cap(self) -> int:
        before, now = self._most_before, self._most
        repeated = sum(size * max(now.get(size, 0), before.get(size, 0)) for size in {**now, **before})
        return max(self._keep, min(repeated, 2 * max(self._peak, self._peak_before)))

    def trim(self) -> None:
        """Destroy every free block. Never within a window."""
        while self._free:
            self._end_oldest()
        self._heaps.clear()

    def _end_oldest(self) -> None:
        _, (size, block) = self._free.popitem(last=False)
        del self._numbers[id(block)]
        self.free_bytes -= size
        self._destroy(block)
