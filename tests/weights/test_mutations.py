"""Thousands of damaged headers: each is read or refused by a FormatError, in little memory."""

import json
import random
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pellucid import weights
from pellucid.errors import FormatError
from pellucid.weights import LocalSource, MemorySource
from weights import samples

SECONDS = 10  # for each format; many thousands of headers on any machine
LEAST = 2000
QUICK = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = [
    0,
    1,
    2,
    7,
    8,
    9,
    12,
    13,
    31,
    255,
    256,
    1 << 16,
    1 << 31,
    1 << 32,
    1 << 60,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
]


def attempt(data: bytes) -> bool:
    """Whether the file opens; what opens must be consistent."""
    try:
        checkpoint = weights.open(data)
    except FormatError:
        return False
    for info in checkpoint.values():
        assert 0 <= info.start <= info.stop <= len(data)
        assert all(type(n) is int and n >= 0 for n in info.shape)
    spans = sorted((t.start, t.stop) for t in checkpoint.values() if t.nbytes)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert repr(checkpoint)
    assert str(checkpoint)
    return True


def mutate(data: bytes, header: int) -> bytes:
    """One to four changes to the first ``header`` bytes: a byte, a number, a cut, a repeat, a loss."""
    result = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(min(header, len(result)) or 1)
        match random.randrange(7):
            case 0:
                result[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                result[at : at + 1] = (
                    bytes([result[at] ^ (1 << random.randrange(8))]) if at < len(result) else b""
                )
            case 2:
                width = random.choice((4, 8))
                result[at : at + width] = (random.choice(NUMBERS) % (1 << 8 * width)).to_bytes(
                    width, "little"
                )
            case 3:
                del result[at:]
            case 4:
                result[at:at] = result[at : at + random.randrange(64)]
            case 5:
                del result[at : at + random.randrange(1, 16)]
            case 6:
                result[at : at + 1] = random.choice(
                    (b"[", b"{", b'"', b"-", b"9" * 30, b"\\ud800", b"1e9", b"null", b",")
                )
    return bytes(result)


def good_gguf(tmp_path) -> bytes:
    return samples.gguf_file(tmp_path / "model.gguf")


def good_safetensors(tmp_path) -> bytes:
    return samples.safetensors_file(samples.arrays(), {"format": "pt"})


@pytest.mark.slow
@pytest.mark.parametrize("make", [good_gguf, good_safetensors])
def test_mutated_headers(tmp_path, make):
    data = make(tmp_path)
    checkpoint = weights.open(data)
    header = min(t.start for t in checkpoint.values())
    tracemalloc.start()
    try:
        until, count, opened, slowest = time.monotonic() + SECONDS, 0, 0, 0.0
        while time.monotonic() < until:
            began = time.monotonic()
            opened += attempt(mutate(data, header))
            slowest = max(slowest, time.monotonic() - began)
            count += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(
        f"{count:,} headers, {opened:,} still good; slowest {slowest * 1e3:.0f} ms, peak {peak / 1e6:.1f} MB"
    )
    assert count >= LEAST
    assert opened < count / 2
    assert peak < 50e6  # nothing is allocated by a count that a file claims


def test_every_cut_of_a_file_is_refused(tmp_path):
    for make in (good_gguf, good_safetensors):
        data = make(tmp_path)
        last = max(t.stop for t in weights.open(data).values())
        for length in range(0, last, 7):
            assert not attempt(data[:length])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(NUMBERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "F4", "BOOL", "Q4"]) | JSON,
        "shape": st.lists(st.sampled_from(NUMBERS) | st.integers(-1, 9), max_size=3) | JSON,
        "data_offsets": st.lists(st.sampled_from([0, 4, 8, 16, 24, 1 << 40]), min_size=2, max_size=2) | JSON,
    }
)


@QUICK
@given(
    st.dictionaries(st.text(max_size=5) | st.just("__metadata__"), ENTRY | JSON, max_size=4),
    st.binary(max_size=40),
)
def test_any_json_header(header, data):
    attempt(samples.safetensors_raw(json.dumps(header).encode(), data))


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes(data):
    attempt(data)
    attempt(samples.safetensors_raw(b"{" + data))
    attempt(samples.gguf_raw([data], data=b""))


@QUICK
@given(st.data())
def test_any_gguf_of_well_formed_pieces(data):
    number = st.sampled_from(NUMBERS)
    pair = st.builds(samples.gguf_pair, st.binary(max_size=4), st.integers(0, 14), st.binary(max_size=24))
    pairs = data.draw(st.lists(pair, max_size=3))
    dims = data.draw(st.lists(number, max_size=4))
    kind = st.integers(0, 45)
    tensors = [samples.gguf_tensor(b"t%d" % k, (*dims,), data.draw(kind), data.draw(number)) for k in (0, 1)]
    attempt(samples.gguf_raw(pairs, tensors))


class Index(MemorySource):
    """An index whose only shard that exists is ``a.safetensors``."""

    def __init__(self, document):
        super().__init__(json.dumps(document).encode(), "model.safetensors.index.json")

    def sibling(self, name):
        return MemorySource(SHARD, name) if name == "a.safetensors" else LocalSource("/absent/" + name)


SHARD = samples.safetensors_file({"x": np.zeros(3, np.float32)})
FILES = st.sampled_from(["a.safetensors", "b.safetensors", "../a.safetensors", ""]) | JSON
TOTAL = st.fixed_dictionaries({"total_size": st.sampled_from([0, 12, 12.0, -1]) | JSON})
INDEX = st.fixed_dictionaries(
    {"weight_map": st.dictionaries(st.sampled_from(["x", "y"]), FILES) | JSON},
    optional={"metadata": TOTAL | JSON},
)


@QUICK
@given(INDEX | JSON)
def test_any_index(document):
    try:
        checkpoint = weights.open(Index(document))
    except FormatError:
        return
    assert set(checkpoint) <= {"x"}
