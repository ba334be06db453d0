"""How windows of a structure are recognised."""

import random
from array import array

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.commands import ALLOC, CODE_BITS, COPY, FREE, UPLOAD, walk
from pellucid.device.stream import stream
from pellucid.op.fusion import known as known_module
from pellucid.op.fusion.commands import period, structure
from pellucid.op.fusion.known import Pattern, PlanCache
from pellucid.op.launches import nodes

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def launches():
    """Heads of commands of launches that exist, with as many slots and patches as they take."""
    x = torch.ones(4)
    torch.webgpu.synchronize()
    assert (x + x * 2).sum().item() == 12
    return [(head, len(node.metas), len(node.patched)) for head, node in nodes.items()][:6]


def window_of(chance, launches):
    """Commands of all kinds over few slots, so that they meet again."""
    words = []
    for _ in range(chance.randint(1, 12)):
        kind = chance.choice([ALLOC, FREE, UPLOAD, COPY, None, None])
        slot = chance.randint(5, 9)
        if kind is None:
            head, slots, patches = chance.choice(launches)
            words += [head, *[chance.randint(5, 9) for _ in range(slots)], *[7] * patches]
        else:
            words.append(slot << CODE_BITS | kind)
            words += {
                ALLOC: [16], FREE: [], UPLOAD: [0, 8, 1, 2], COPY: [chance.randint(5, 9), 0, 4, 8]
            }[kind]  # fmt: skip
    return words


def commands(words):
    return list(walk(words, nodes))


def pattern_of(words):
    return Pattern(np.array(words, np.uint32), structure(words)[1])


def fits(pattern, words):
    """Whether the pattern fits; what it says of the slots that end is compared with the commands."""
    if pattern.size != len(words):
        return False
    ends = pattern.fits(words, np.frombuffer(array("I", words), np.uint32))
    if ends is None:
        return False
    made = {c.slots[0]: c.nbytes for c in commands(words) if c.code == ALLOC}
    ended = [c.slots[0] for c in commands(words) if c.code == FREE]
    assert ends.inside == [slot for slot in ended if slot in made]
    assert ends.nbytes == sum(made[slot] for slot in ends.inside)
    assert ends.outside == [slot for slot in ended if slot not in made]
    return True


def renamed(words, names):
    """The same window with other slots and other patched words."""
    words = list(words)
    for command in commands(words):
        if command.launch is None:
            words[command.at] = names[words[command.at] >> CODE_BITS] << CODE_BITS | command.code
        for at in command.slot_words:
            words[at] = names[words[at]]
        for at in command.data:
            words[at] = 99
    return words


def test_a_pattern_fits_what_has_the_same_structure(launches):
    """Slots may be others and patched words, too; any other word may not."""
    chance = random.Random(1)
    for _ in range(200):
        words = window_of(chance, launches)
        pattern = pattern_of(words)
        other = renamed(words, dict(zip(range(5, 10), chance.sample(range(5, 200), 5), strict=True)))
        assert fits(pattern, other)
        assert structure(other)[0] == structure(words)[0]
        same = renamed(words, dict.fromkeys(range(5, 10), 300))  # all slots are one
        assert fits(pattern, same) == (structure(same)[0] == structure(words)[0])


def test_a_pattern_tells_windows_apart_as_their_digests_do(launches):
    """Pairs of windows that differ in one word."""
    chance = random.Random(2)
    outcomes = set()
    for _ in range(600):
        words = window_of(chance, launches)
        other = list(words)
        at = chance.randrange(len(words))
        other[at] = chance.choice([words[at] ^ 1 << CODE_BITS, words[at] ^ 1, chance.choice(words)])
        try:
            digest = structure(other)
        except IndexError:  # no window
            continue
        digest = digest and digest[0]
        # A patched word changes no structure.
        outcomes.add(fits(pattern_of(words), other))
        pattern = pattern_of(words)
        for _ in range(2):  # also when the window before it had other slots
            assert fits(pattern, other) == (digest == structure(words)[0]), (words, other)
            assert fits(pattern, renamed(words, dict(zip(range(5, 10), range(60, 65), strict=True))))
    assert outcomes == {True, False}


def test_what_was_used_longest_ago_goes_first(launches):
    head, slots, patches = launches[0]
    windows = [[head, *range(5, 5 + slots), *[0] * patches] * n for n in (1, 2, 3)]
    table = PlanCache(2 * len(windows[2]))

    def find(words):
        return table.find(words, np.frombuffer(array("I", words), np.uint32))[0]

    plan = object()
    for words in windows[:2]:
        table.add_plan(table.add(structure(words)[0], pattern_of(words), 0), plan)
    assert find(windows[0]).plans == [plan]  # used last
    table.add_plan(table.add(structure(windows[2])[0], pattern_of(windows[2]), 0), plan)
    assert find(windows[2]) is not None
    assert find(windows[0]) is not None
    table.add_plan(find(windows[2]), plan)
    assert find(windows[2]) is not None
    assert find(windows[1]) is None
    assert find(windows[0]) is None


def test_what_goes_before_it_has_paid_waits_twice_as_long_each_time(launches):
    head, slots, patches = launches[0]
    windows = [[head, *range(5, 5 + slots), *[0] * patches] * n for n in (3, 4)]
    first, second = [structure(words)[0] for words in windows]
    table = PlanCache(len(windows[1]))

    def come_and_go(uses):
        """The first structure is planned, makes windows, and goes for the second, which never waits."""
        for key, words, n in ((first, windows[0], uses), (second, windows[1], 1000)):
            known = table.add(key, pattern_of(words), 0)
            known.uses = n
            table.add_plan(known, object())

    def comings():
        assert table.is_due(second)
        return next(n for n in range(1, 1000) if table.is_due(first))

    assert comings() == 1
    seen = []
    for uses in (0, 1, 63, 64, 0):
        come_and_go(uses)
        seen.append(comings())
    assert seen == [8, 16, 32, 1, 8]
    table.clear()
    assert comings() == 1


def test_what_has_waited_longest_is_forgotten_when_too_many_wait(launches, monkeypatch):
    monkeypatch.setattr(known_module, "_MOST_WAITING", 2)
    head, slots, patches = launches[0]
    windows = [[head, *range(5, 5 + slots), *[0] * patches] * n for n in (1, 2, 3, 4)]
    table = PlanCache(1)
    for words in windows:
        table.add_plan(table.add(structure(words)[0], pattern_of(words), 0), object())
    assert [table.is_due(structure(words)[0]) for words in windows] == [True, False, False, True]


def test_a_period_is_that_of_kinds_of_commands_in_words(launches):
    """The shortest, if the window holds it twice; numbers of slots and patched words say nothing."""
    chance = random.Random(3)

    def run(number, slot):
        head, slots, patches = launches[number]
        return [head, *range(slot, slot + slots), *[chance.randint(0, 9)] * patches]

    def body(slot):
        return [
            *run(0, slot), slot << CODE_BITS | UPLOAD, 0, 6, 1, 2, *run(1, slot), slot << CODE_BITS | FREE,
            *run(0, slot), slot + 1 << CODE_BITS | ALLOC, 64, slot << CODE_BITS | COPY, slot + 1, 0, 0, 16,
        ]  # fmt: skip

    def found(words):
        return period(structure(words)[1])

    length = len(body(5))
    many = [word for k in range(9) for word in body(5 + k)]
    assert found(many) == length
    assert found(many[: 3 * length + 1 + launches[0][1] + launches[0][2]]) == length
    assert found(many[: 2 * length]) == length
    assert found(many[:length]) == 0
    assert found(run(1, 5) + many) == 0
    assert found(many + run(1, 5)) == 0
    assert found([]) == 0


def test_a_window_in_which_nothing_fuses_runs_what_was_recorded():
    """Also once it has a plan."""
    seen = []
    host = stream().open()
    submit = host.submit
    x = torch.randn(16)
    y = torch.randn(16)
    torch.webgpu.flush()
    vars(host)["submit"] = lambda words, held=False: (seen.append(words.tolist()), submit(words, held))
    listened = []
    stream().on_submit.append(listened.append)
    try:
        with torch.webgpu.fusion(True):
            for _ in range(4):
                kept = x + 1, y.sin()
                torch.webgpu.flush()
    finally:
        stream().on_submit.remove(listened.append)
        del vars(host)["submit"]
    assert len(kept) == 2
    runs = [[w for w in words if w in nodes] for words in seen if words]
    recorded = [[w for w in words if w in nodes] for words in listened if words]
    assert runs == recorded
