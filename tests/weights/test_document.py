"""JSON from strangers is looked at in linear time, and refused by depth and number of values."""

import hashlib
import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pellucid
from pellucid import lens, nn, weights
from pellucid.errors import FormatError
from pellucid.train import JsonLines, PeftConfig, Trainer, TrainerState, TrainingArguments
from pellucid.weights.document import _extent, parse_object, parse_value
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


MANY = b'{"a":[' + b"1," * 2_500_000 + b"1]}"
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
        parse_object("x.json", MANY)
    assert len(parse_value("x.json", MANY, most=None)["a"]) == 2_500_001
    with pytest.raises(FormatError, match="nest deeper than 64 levels"):
        parse_object("x.json", b'{"a":' * 100_000)
    assert parse_object("x.json", b'{"a":"[[[[{{{{"}', deepest=1) == {"a": "[[[[{{{{"}


def test_texts_with_few_brackets_are_bounded_too():
    with pytest.raises(FormatError, match="nest deeper than 2 levels"):
        parse_value("x", b"[[[]]]", deepest=2)
    with pytest.raises(FormatError, match="has 4 values; 3 are allowed"):
        parse_value("x", b"[1,2,3]", most=3)
    assert parse_value("x", b"[[1,2]]", deepest=2, most=4) == [[1, 2]]
    assert parse_value("x", b'"[[["', deepest=2) == "[[["


def resumed(folder: Path, name: str) -> None:
    """A run goes on from a checkpoint of which a file is too deep."""
    with pellucid.device("cpu"):
        model = nn.Linear(1, 1)
        args = TrainingArguments(folder, max_steps=1, save_steps=1, disable_tqdm=True)
        data = [{"input": np.ones(1, np.float32)}] * 8
        trainer = Trainer(model, args, train_dataset=data, compute_loss_func=lambda y, *_, **__: y.sum())
        trainer.train()
        checkpoint = folder / "checkpoint-1"
        (checkpoint / name).write_bytes(DEEP)
        sums = checkpoint / "checksums.json"
        if name != sums.name:
            sums.write_text(
                json.dumps(json.loads(sums.read_text()) | {name: hashlib.sha256(DEEP).hexdigest()})
            )
        trainer.train(resume_from_checkpoint=str(checkpoint))


def written(folder: Path) -> Path:
    (folder / "deep").write_bytes(DEEP)
    return folder / "deep"


DEEP = b"[" * 100_000
READERS = {
    "Plan": lambda folder: lens.Plan.from_json(DEEP),
    "Session": lambda folder: lens.Session.load(written(folder), None),
    "JsonLines": lambda folder: JsonLines(written(folder)).list(),
    "PeftConfig": lambda folder: PeftConfig.from_json(DEEP),
    "TrainerState": lambda folder: TrainerState.from_json(DEEP),
    **{
        name: lambda folder, name=name: resumed(folder, name)
        for name in ("checksums.json", "rng_state.json", "trainer_state.json")
    },
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_lets_a_parser_recurse(name, tmp_path):
    """In a page, a recursion this deep would end Python."""
    with pytest.raises(FormatError, match=r": brackets nest deeper than \d+ levels\. The file is damaged"):
        READERS[name](tmp_path)


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
