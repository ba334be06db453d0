"""A vocabulary taken from GGUF metadata gives the ids of the ``tokenizer.json`` that it was made from."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.errors import FormatError
from pellucid.text.gguf import tokenizer_config_from_gguf, tokenizer_json_from_gguf
from pellucid.text.libraries import backend
from text.vocabularies import STRINGS, as_gguf, document

FAMILIES = {
    "gpt2": {"pre": "gpt-2", "bos_token_id": 50256},
    "qwen2_5": {"pre": "qwen2", "add_bos_token": False, "bos_token_id": 151643},
    "llama3": {"pre": "llama-bpe", "add_bos_token": False, "bos_token_id": 128000},
    "mistral_nemo": {"pre": "tekken", "bos_token_id": 1},
    "llama2": {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0},
}


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request):
    metadata = as_gguf(request.param, **FAMILIES[request.param])
    ours = backend(json.dumps(tokenizer_json_from_gguf(metadata)).encode())
    return ours, backend(document(request.param))


def ids(tokenizer, text):
    return tokenizer.encode(text, None, add_special_tokens=True, limit=None)[0]


@pytest.mark.parametrize("text", STRINGS)
def test_ids_equal_those_of_the_published_vocabulary(pair, text):
    ours, published = pair
    assert ids(ours, text) == ids(published, text)


@pytest.mark.parametrize("text", STRINGS)
def test_decoded_text_equals_that_of_the_published_vocabulary(pair, text):
    ours, published = pair
    for skip in (False, True):
        assert ours.decode(ids(ours, text), skip_special_tokens=skip) == published.decode(
            ids(published, text), skip_special_tokens=skip
        )


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=150, deadline=None)
def test_ids_of_any_text_equal_those_of_the_published_vocabulary(pair, text):
    ours, published = pair
    assert ids(ours, text) == ids(published, text)


def test_user_defined_spaces_of_sentencepiece_are_matched_as_spaces():
    tokens = ["<unk>", "<s>", "▁▁▁", "▁", "a", "▁a"]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [2, 3, 4, 1, 1, 1],
        "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -5.0, -4.0, -3.0],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.add_space_prefix": False,
    }
    tokenizer = backend(json.dumps(tokenizer_json_from_gguf(metadata)).encode())
    assert ids(tokenizer, "a   a a") == [1, 4, 2, 4, 5]
    assert tokenizer.decode([4, 2, 4, 5], skip_special_tokens=True) == "a   a a"


def test_first_piece_has_a_space_before_it_where_the_file_says_so():
    metadata = as_gguf(
        "llama2", bos_token_id=1, unknown_token_id=0, add_bos_token=False, add_space_prefix=False
    )
    tokenizer = backend(json.dumps(tokenizer_json_from_gguf(metadata)).encode())
    assert [tokenizer.id_to_token(index) for index in ids(tokenizer, "Hello")] == ["Hello"]
    metadata["tokenizer.ggml.add_space_prefix"] = True
    tokenizer = backend(json.dumps(tokenizer_json_from_gguf(metadata)).encode())
    assert [tokenizer.id_to_token(index) for index in ids(tokenizer, "Hello")] == ["▁Hello"]


@pytest.mark.parametrize(("bos", "eos"), [(True, True), (True, False), (False, True), (False, False)])
def test_framing_follows_the_flags(bos, eos):
    metadata = as_gguf("gpt2", pre="gpt-2", bos_token_id=50256, eos_token_id=50256)
    metadata |= {"tokenizer.ggml.add_bos_token": bos, "tokenizer.ggml.add_eos_token": eos}
    tokenizer = backend(json.dumps(tokenizer_json_from_gguf(metadata)).encode())
    assert ids(tokenizer, "Hello") == [50256] * bos + [15496] + [50256] * eos


def test_roles_and_templates_become_the_configuration():
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 8192,
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": "plain",
        "tokenizer.chat_template.tool_use": "tools",
    }
    assert tokenizer_config_from_gguf(metadata) == {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "chat_template": {"default": "plain", "tool_use": "tools"},
        "model_max_length": 8192,
    }


SMALL = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["a", "b", "ab"],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.pre": "gpt-2",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer.ggml.model": "rwkv"}, "tokenizer.ggml.model is 'rwkv', but only gpt2, llama, bert, t5"),
        ({"tokenizer.ggml.model": "t5"}, "tokenizer.ggml.scores is missing"),
        (
            {"tokenizer.ggml.model": "t5", "tokenizer.ggml.scores": [0.0, 0.0, 0.0]},
            "unknown_token_id is miss",
        ),
        (
            {
                "tokenizer.ggml.model": "t5",
                "tokenizer.ggml.scores": [0.0, 0.0, 0.0],
                "tokenizer.ggml.unknown_token_id": 0,
                "tokenizer.ggml.precompiled_charsmap": [1],
            },
            "precompiled_charsmap is no list of bytes",
        ),
        ({"tokenizer.ggml.model": "bert"}, r"no token is \[UNK\]"),
        ({"tokenizer.ggml.pre": "nobody"}, "tokenizer.ggml.pre is 'nobody'"),
        ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokenizer.ggml.tokens is a list of length 2"),
        ({"tokenizer.ggml.merges": ["ab"]}, r"tokenizer.ggml.merges\[0\] is 'ab'"),
        ({"tokenizer.ggml.token_type": [1]}, "not a number for each of the 3 tokens"),
        (
            {"tokenizer.ggml.bos_token_id": 3, "tokenizer.ggml.add_bos_token": True},
            "is 3, outside the vocabulary",
        ),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.scores is missing"),
    ],
)
def test_damaged_metadata_is_refused_by_name(change, message):
    with pytest.raises(FormatError, match=message):
        tokenizer_json_from_gguf(SMALL | change)


def test_merges_outside_the_vocabulary_are_refused():
    document = tokenizer_json_from_gguf(SMALL | {"tokenizer.ggml.merges": ["a z"]})
    with pytest.raises(FormatError, match="rejects it"):
        backend(json.dumps(document).encode())
