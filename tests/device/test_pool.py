"""The rules by which device memory is kept and given back."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.device.pool import EPOCH, LARGEST_STEP, SMALLEST_STEP, Pool, block_size


class Blocks:
    """Stands for a device: counts what it made and what was given back."""

    def __init__(self, keep: int):
        self.made: list[list[int]] = []
        self.alive = 0
        self.pool = Pool(self.create, self.destroy, keep)

    def create(self, size):
        self.made.append([size, len(self.made)])
        self.alive += size
        return self.made[-1]

    def destroy(self, block):
        self.alive -= block[0]


@given(st.integers(1, 1 << 31))
def test_block_sizes(nbytes):
    size = block_size(nbytes)
    assert size >= nbytes
    assert size % SMALLEST_STEP == 0
    assert block_size(size) == size
    assert size < nbytes + max(nbytes / 16, SMALLEST_STEP)
    assert size < nbytes + LARGEST_STEP


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (0, 256),
        (1, 256),
        (256, 256),
        (257, 512),
        (512, 512),
        (513, 768),
        (8193, 8704),
        (1 << 20, 1 << 20),
        ((1 << 20) + 1, (1 << 20) + (64 << 10)),
        ((64 << 20) + 1, (64 << 20) + (256 << 10)),
    ],
)
def test_block_size_examples(nbytes, size):
    assert block_size(nbytes) == size


def test_the_block_of_a_size_that_was_made_first_is_used_first():
    b = Blocks(1 << 20)
    first, second, third = (b.pool.take(1000) for _ in range(3))
    for block in (second, first, third):
        b.pool.give(block, 1000)
    assert b.pool.take(900) is first
    assert b.pool.take(900) is second
    b.pool.give(first, 900)
    assert b.pool.take(900) is first
    assert b.pool.take(900) is third
    assert len(b.made) == 3
    assert b.pool.take(5000) not in (first, second)


def test_the_oldest_blocks_go_first():
    b = Blocks(3000)
    blocks = [b.pool.take(1024) for _ in range(5)]
    for block in blocks:
        b.pool.give(block, 1024)
    for _ in range(2 * EPOCH):
        b.pool.shrink()
        assert b.pool.free_bytes == 5 * 1024
    b.pool.shrink()
    assert b.pool.free_bytes == 2 * 1024
    assert b.pool.take(1024) is blocks[3]
    assert b.pool.take(1024) is blocks[4]
    b.pool.trim()
    assert b.pool.free_bytes == 0
    assert b.alive == 2 * 1024


def test_a_program_that_repeats_itself_finds_its_blocks_again():
    """However large it is, and although it frees everything between."""
    b = Blocks(1 << 20)
    for _ in range(200):
        blocks = [b.pool.take(4 << 20) for _ in range(30)]
        b.pool.shrink()
        for block in blocks:
            b.pool.give(block, 4 << 20)
        b.pool.shrink()
    assert len(b.made) == 30


def test_a_program_whose_sizes_take_turns_finds_its_blocks_again():
    """What it has of all sizes together is more than what is alive at once."""
    b = Blocks(0)
    for _ in range(200):
        for nbytes, count in ((4 << 20, 3), (8 << 20, 2), (1 << 20, 4)):
            for block in [b.pool.take(nbytes) for _ in range(count)]:
                b.pool.give(block, nbytes)
        b.pool.shrink()
    assert len(b.made) == 9


def test_sizes_that_follow_each_other_keep_no_more_than_twice_what_was_alive():
    b = Blocks(0)
    for mbytes in range(1, 101):
        nbytes = mbytes << 20
        b.pool.give(b.pool.take(nbytes), nbytes)
        b.pool.shrink()
        assert b.alive <= 2 * nbytes


def test_which_blocks_a_program_gets_does_not_depend_on_what_was_freed_in_which_order():
    b = Blocks(1 << 20)
    chance, rounds = random.Random(0), []
    for _ in range(20):
        others = [b.pool.take(1024) for _ in range(chance.randrange(30))]
        chance.shuffle(others)
        for block in others:
            b.pool.give(block, 1024)
        passing, made = b.pool.take(1024), []
        for _ in range(40):
            made.append(b.pool.take(1024))
            b.pool.give(passing, 1024)
            passing = b.pool.take(1024)
        rounds.append([block[1] for block in (*made, passing)])
        for block in (*made, passing):
            b.pool.give(block, 1024)
    assert rounds == rounds[:1] * 20


def test_a_program_that_shrinks_gives_its_blocks_back():
    b = Blocks(1 << 20)
    held = b.pool.take(2 << 20)
    for block in [b.pool.take(4 << 20) for _ in range(30)]:
        b.pool.give(block, 4 << 20)
    kept = []
    for _ in range(3 * EPOCH):
        b.pool.shrink()
        kept.append(b.pool.free_bytes)
    assert kept[EPOCH - 1] == 30 * (4 << 20)
    assert kept[2 * EPOCH] == 0
    assert b.alive == 2 << 20
    b.pool.give(held, 2 << 20)


@pytest.mark.parametrize("backwards", [False, True])
def test_many_blocks_go_as_fast_as_few(backwards):
    b = Blocks(0)

    def seconds(count):
        blocks = [b.pool.take(1024) for _ in range(count)]
        for block in reversed(blocks) if backwards else blocks:
            b.pool.give(block, 1024)
        began = time.perf_counter()
        b.pool.trim()
        return time.perf_counter() - began

    few = min(seconds(200) for _ in range(20))
    assert min(seconds(20_000) for _ in range(3)) < 1000 * few
    assert b.alive == 0


def test_blocks_that_have_ended_are_not_taken():
    b = Blocks(3 * 1024)
    first = [b.pool.take(1024) for _ in range(5)]
    for block in first[::-1]:
        b.pool.give(block, 1024)
    for _ in range(2 * EPOCH + 1):  # ends those that were made last, which have been free for longest
        b.pool.shrink()
    assert b.alive == 3 * 1024
    assert [b.pool.take(1024)[1] for _ in range(5)] == [0, 1, 2, 5, 6]
    assert b.alive == 5 * 1024


def test_live_and_free_blocks_share_the_cap():
    b = Blocks(10 << 20)
    small = [b.pool.take(1 << 20) for _ in range(8)]
    for block in small:
        b.pool.give(block, 1 << 20)
    large = b.pool.take(6 << 20)
    b.pool.shrink()
    assert b.pool.free_bytes == 8 << 20  # a round of this program needs both
    for _ in range(2 * EPOCH):
        b.pool.shrink()
    assert b.pool.free_bytes == 4 << 20
    b.pool.give(large, 6 << 20)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5000)), max_size=60))
def test_accounts_balance(steps):
    b = Blocks(4096)
    held: list[tuple[list[int], int]] = []
    most = 0
    for kind, nbytes in steps:
        if kind or not held:
            held.append((b.pool.take(nbytes), nbytes))
        else:
            b.pool.give(*held.pop(nbytes % len(held)))
        most = max(most, b.pool.live_bytes)
        b.pool.shrink()
        assert b.pool.live_blocks == len(held)
        assert b.pool.live_bytes == sum(block_size(n) for _, n in held)
        assert b.alive == b.pool.live_bytes + b.pool.free_bytes
        assert len({id(block) for block, _ in held}) == len(held)
        assert b.alive <= max(4096, 2 * most)
