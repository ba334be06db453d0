"""Text that arrives token by token is the text of all tokens, and never ends inside a character."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.text import TextStreamer
from text.vocabularies import STRINGS


def pieces(tokenizer, ids, **options):
    stream = tokenizer.stream(**options)
    return [*map(stream.push, ids), stream.end()]


@pytest.fixture(scope="module", params=["smollm", "llama"])
def tokenizer(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("text", STRINGS)
def test_pieces_join_to_the_whole(tokenizer, text):
    ids = tokenizer.encode(text)
    for skip in (False, True):
        assert "".join(pieces(tokenizer, ids, skip_special_tokens=skip)) == tokenizer.decode(
            ids, skip_special_tokens=skip
        )


@given(
    text=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd", max_codepoint=0x3FFFF),
        max_size=40,
    )
)
@settings(max_examples=200, deadline=None)
def test_pieces_of_any_text_are_whole_characters(tokenizer, text):
    """P-055: no piece ends within a character."""
    ids = tokenizer.encode(text)
    parts = pieces(tokenizer, ids)
    assert "".join(parts) == tokenizer.decode(ids)
    assert not any("\ufffd" in part for part in parts)


@given(ids=st.lists(st.integers(17, 49151), max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_ids_of_a_byte_level_vocabulary_join_to_the_whole(smollm, ids):
    assert "".join(pieces(smollm, ids)) == smollm.decode(ids)


def test_a_character_of_several_tokens_comes_when_it_is_complete(smollm):
    ids = smollm.encode("日")
    assert len(ids) > 1
    assert pieces(smollm, ids) == [""] * (len(ids) - 1) + ["日", ""]


def test_words_come_at_once(smollm):
    assert pieces(smollm, smollm.encode("The capital of")) == ["The", " capital", " of", ""]


def test_bytes_that_never_become_a_character_are_not_held_forever(smollm):
    index = next(i for i in range(17, 300) if smollm.decode([i]) == "\ufffd")
    parts = pieces(smollm, [index] * 100)
    assert sum(map(len, parts[:50])) > 0
    assert "".join(parts) == smollm.decode([index] * 100)


def test_a_long_stream_keeps_only_a_short_window(smollm):
    stream = smollm.stream()
    for index in smollm.encode("The capital of France is Paris. " * 100):
        stream.push(index)
        assert len(stream._window) < 5


def test_streamer_prints_what_follows_the_prompt(smollm):
    file = io.StringIO()
    streamer = TextStreamer(smollm, skip_prompt=True, file=file)
    streamer.put([smollm.encode("The capital of")])
    for index in smollm.encode(" France is 日本"):
        streamer.put(index)
    streamer.end()
    assert file.getvalue() == " France is 日本\n"
    with pytest.raises(ValueError, match="got 2 sequences"):
        streamer.put([[1], [2]])
