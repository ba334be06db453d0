"""The rules by which device memory is kept and given back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.device.pool import LARGE, LARGE_STEP, MINIMUM, Pool, block_size


class Blocks:
    """Stands for a device: counts what it made and what was given back."""

    def __init__(self, keep: int):
        self.made: list[list[int]] = []
        self.alive = 0
        self.pool = Pool(self.create, self.destroy, keep)

    def create(self, size):
        self.made.append([size])
        self.alive += size
        return self.made[-1]

    def destroy(self, block):
        self.alive -= block[0]


@given(st.integers(1, 1 << 31))
def test_block_sizes(nbytes):
    size = block_size(nbytes)
    assert size >= nbytes
    assert size % (MINIMUM // 4) == 0
    assert block_size(size) == size
    if nbytes > MINIMUM:
        assert size <= nbytes * 1.25 + LARGE_STEP * (nbytes > LARGE)


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (0, 256),
        (1, 256),
        (256, 256),
        (257, 320),
        (512, 512),
        (513, 640),
        (1 << 20, 1 << 20),
        ((1 << 20) + 1, (1 << 20) + (256 << 10)),
    ],
)
def test_block_size_examples(nbytes, size):
    assert block_size(nbytes) == size


def test_the_newest_block_of_a_size_is_used_first():
    b = Blocks(1 << 20)
    first, second = b.pool.take(1000), b.pool.take(1000)
    b.pool.give(first, 1000)
    b.pool.give(second, 1000)
    assert b.pool.take(900) is second
    assert b.pool.take(900) is first
    assert len(b.made) == 2
    assert b.pool.take(5000) not in (first, second)


def test_the_oldest_blocks_go_first():
    b = Blocks(3000)
    blocks = [b.pool.take(1024) for _ in range(5)]
    for block in blocks:
        b.pool.give(block, 1024)
    assert b.pool.free_bytes == 5 * 1024
    b.pool.shrink()
    assert b.pool.free_bytes == 2 * 1024
    assert b.pool.take(1024) is blocks[4]
    assert b.pool.take(1024) is blocks[3]
    b.pool.trim()
    assert b.pool.free_bytes == 0
    assert b.alive == 2 * 1024


def test_a_quarter_of_what_is_live_may_be_kept():
    b = Blocks(0)
    b.pool.take(1 << 20)
    small = [b.pool.take(128 << 10) for _ in range(3)]
    for block in small:
        b.pool.give(block, 128 << 10)
    b.pool.shrink()
    assert b.pool.free_bytes == 256 << 10


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5000)), max_size=60))
def test_accounts_balance(steps):
    b = Blocks(4096)
    held: list[tuple[list[int], int]] = []
    for kind, nbytes in steps:
        if kind or not held:
            held.append((b.pool.take(nbytes), nbytes))
        else:
            b.pool.give(*held.pop(nbytes % len(held)))
        b.pool.shrink()
        assert b.pool.live_blocks == len(held)
        assert b.pool.live_bytes == sum(block_size(n) for _, n in held)
        assert b.alive == b.pool.live_bytes + b.pool.free_bytes
        assert len({id(block) for block, _ in held}) == len(held)
        assert b.pool.free_bytes <= max(4096, b.pool.live_bytes // 4)
