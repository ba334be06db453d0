"""JSON from strangers is looked at in linear time, and refused by depth and number of values."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid import weights
from pellucid.errors import FormatError
from pellucid.weights.document import _extent, parse_object
from pellucid.weights.formats import gguf
from weights import samples

MEGABYTES = 2_000_000
HOSTILE = {
    "escaped quotes": b'{"' + b'\\"' * (MEGABYTES // 2),
    "backslashes": b'{"' + b"\\" * MEGABYTES,
    "empty strings": b"{" + b'"",' * (MEGABYTES // 3),
    "pairs of brackets": b'{"a":' + b"[]" * (MEGABYTES // 2),
    "opening brackets": b"[" * MEGABYTES,
    "closing brackets": b"{" + b"]" * MEGABYTES,
    "digits": b'{"a":' + b"1" * MEGABYTES,
    "minus signs": b'{"a":' + b"-" * MEGABYTES,
    "spaces": b"{" + b" " * MEGABYTES,
    "one name": b"{" + b",".join([b'"a":1'] * (MEGABYTES // 6)) + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_two_megabytes_are_refused_soon(name):
    text = HOSTILE[name]
    for data in (text, len(text).to_bytes(8, "little") + text):
        began = time.monotonic()
        with pytest.raises(FormatError):
            parse_object("config.json", text, unique=True) if data is text else weights.open(data)
        assert time.monotonic() - began < 2


JSON = st.recursive(
    st.none() | st.integers() | st.text('a"\\[]{},', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('b"\\[{', max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def levels(value) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


def count(value) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(JSON)
def test_depth_and_number_of_values(value):
    deepest, values = _extent(json.dumps(value).encode())
    assert deepest == levels(value)
    assert count(value) <= values <= 2 * count(value)


def test_too_many_values_or_levels():
    with pytest.raises(FormatError, match=r"has 2,500,00. values"):
        parse_object("x.json", b'{"a":[' + b"1," * 2_500_000 + b"1]}")
    with pytest.raises(FormatError, match="nest deeper than 64 levels"):
        parse_object("x.json", b'{"a":' * 100_000)
    assert parse_object("x.json", b'{"a":"[[[[{{{{"}', deepest=1) == {"a": "[[[[{{{{"}


class Dribble(weights.MemorySource):
    """A file of which a request gives little, as of a server: its arrays are parsed while they arrive."""

    def chunks(self, start, stop):
        return super().chunks(start, min(stop, start + 50_000))


def array(kind: int, count: int, body: bytes) -> bytes:
    return kind.to_bytes(4, "little") + count.to_bytes(8, "little") + body


@pytest.mark.parametrize(
    "body",
    [
        array(8, 200_000, samples.gguf_string(b"abcd") * 200_000),
        array(7, 2_000_000, b"\1" * 2_000_000),
        array(9, 20_000, array(8, 5, samples.gguf_string(b"ab") * 5) * 20_000),
        array(9, 20_000, array(7, 0, b"") * 20_000),
    ],
    ids=["strings", "bools", "arrays of strings", "arrays of nothing"],
)
def test_long_arrays_are_parsed_once_however_they_arrive(body):
    data = samples.gguf_raw([samples.gguf_pair(b"k", 9, body)], [samples.gguf_tensor()])
    began = time.monotonic()
    slow = weights.open(Dribble(data)).metadata
    assert time.monotonic() - began < 2
    assert slow == weights.open(data).metadata


def test_arrays_of_arrays_are_few():
    body = array(9, 1 << 17, array(7, 0, b"") * (1 << 17))
    with pytest.raises(FormatError, match="arrays within arrays"):
        weights.open(samples.gguf_raw([samples.gguf_pair(b"k", 9, body)], [samples.gguf_tensor()]))
    assert gguf._MOST_ARRAYS < 1 << 17
