"""Command words: Python and JavaScript read them alike."""

import json
import random
import subprocess
from array import array
from pathlib import Path
from typing import NamedTuple

import pytest

from pellucid.device import commands, host
from pellucid.device.commands import ALLOC, CODE_BITS, COPY, FREE, OPERANDS, RUN, UPLOAD, length, walk

ROOT = Path(__file__).parents[2]


class Launch(NamedTuple):
    slot_count: int
    length: int


# Slots and patches of launches, by their number.
LAUNCHES = [(1, 0), (2, 3), (8, 1), (3, 0)]
BY_HEAD = {
    k << CODE_BITS | RUN: Launch(slots, 1 + slots + patches) for k, (slots, patches) in enumerate(LAUNCHES)
}


def window_of(chance):
    """A window, and what is in it: code, place, slots, numbers and data of each command."""
    words, written = [], []
    for _ in range(chance.randint(0, 20)):
        code = chance.choice([RUN, ALLOC, FREE, UPLOAD, COPY])

        def some(count):
            return [chance.choice([0, 1, chance.getrandbits(20), (1 << 29) - 1]) for _ in range(count)]

        head, first, numbers, data = some(1)[0], [], [], []
        if code == RUN:
            head = chance.randrange(len(LAUNCHES))
            first, data = some(LAUNCHES[head][0]), some(LAUNCHES[head][1])
        elif code == ALLOC:
            numbers = [chance.choice([0, 4, (1 << 32) - 16])]
        elif code == UPLOAD:
            nbytes = chance.randint(0, 13)
            numbers, data = [4 * chance.randint(0, 9), nbytes], some((nbytes + 3) // 4)
        elif code == COPY:
            first, numbers = some(1), some(3)
        slots = first if code == RUN else [head, *first]
        written.append([code, len(words), slots, numbers, data])
        words += [head << CODE_BITS | code, *first, *numbers, *data]
    return words, written


def read(words):
    return [
        [c.code, c.at, list(c.slots), *([words[at] for at in places] for places in (c.numbers, c.data))]
        for c in walk(words, BY_HEAD)
    ]


@pytest.fixture(scope="module")
def windows():
    chance = random.Random(0)
    return [window_of(chance) for _ in range(300)]


@pytest.fixture(scope="module")
def in_javascript(windows, tmp_path_factory):
    """What node says of the windows."""
    folder = tmp_path_factory.mktemp("node")
    script = folder / "commands.mjs"
    script.write_text((ROOT / "web/runtime/commands.js").read_text())
    launches = [{"count": slots, "patches": [0] * patches} for slots, patches in LAUNCHES]
    given = json.dumps({"windows": [words for words, _ in windows], "launches": launches})
    command = ["node", str(Path(__file__).with_name("commands_walk.mjs")), str(script)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_walk_finds_what_was_written(windows):
    for words, written in windows:
        assert read(words) == written
        for c in walk(array("I", words), BY_HEAD):
            assert c.words == range(c.at, c.at + length(words, c.at, BY_HEAD))
            assert [words[at] for at in c.slot_words] == list(c.slots[c.code != RUN :])
            assert c.nbytes == (words[c.numbers[-1]] if c.numbers else 0)
            assert c.launch is BY_HEAD.get(words[c.at])


def test_javascript_reads_the_same_commands(windows, in_javascript):
    assert in_javascript["walks"] == [written for _, written in windows]


def test_javascript_has_the_same_constants(in_javascript):
    constants = in_javascript["constants"]
    assert constants.pop("OPERANDS") == {str(code): operands._asdict() for code, operands in OPERANDS.items()}
    assert constants.pop("LENGTHS") == {str(code): count for code, count in commands.LENGTHS.items()}
    assert constants == {
        name: getattr(host if name.startswith("STATUS") else commands, name) for name in constants
    }
    assert constants.keys() >= {"RUN", "ALLOC", "FREE", "UPLOAD", "COPY", "CODE_BITS", "STATUS_SLOT"}


@pytest.mark.parametrize("head", [9 << CODE_BITS | RUN, 5, 7])
def test_what_is_not_known_takes_the_rest_of_the_window(head):
    words = [2 << CODE_BITS | FREE, head, 1, 2]
    assert length(words, 1, BY_HEAD) >= 3
    with pytest.raises(KeyError):
        list(walk(words, BY_HEAD))


@pytest.mark.parametrize("rest", [[], [0], [0, 0.5], [0, "4"]])
def test_an_upload_without_a_size_takes_the_rest_of_the_window(rest):
    words = [2 << CODE_BITS | UPLOAD, *rest]
    assert length(words, 0, BY_HEAD) == len(words)
