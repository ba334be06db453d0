"""Tokenizers as keys of a GGUF, from which the same tokenizers are read."""

import json

import pytest

from pellucid.errors import FormatError
from pellucid.text import AutoTokenizer
from pellucid.text.gguf_saving import tokenizer_to_gguf
from pellucid.text.libraries import backend
from pellucid.text.tokenizer import Tokenizer
from text.test_gguf import FAMILIES
from text.vocabularies import STRINGS, as_gguf, folder

MERGED = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "<|end|>", "<tool>"],
    "tokenizer.ggml.token_type": [1, 1, 1, 3, 4],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 3,
    "tokenizer.ggml.bos_token_id": 3,
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.ggml.add_eos_token": True,
    "tokenizer.chat_template": "{{ messages }}",
    "tokenizer.chat_template.tool_use": "{{ tools }}",
}


@pytest.mark.parametrize("name", FAMILIES)
def test_published_vocabularies(name):
    tokenizer = AutoTokenizer.from_pretrained(str(folder(name)))
    keys = tokenizer_to_gguf(tokenizer, len(tokenizer) + 5)
    wanted = as_gguf(name, **FAMILIES[name])
    for key in ("model", "pre", "merges"):
        assert keys.get(f"tokenizer.ggml.{key}") == wanted.get(f"tokenizer.ggml.{key}")
    assert keys["tokenizer.ggml.tokens"][-5:] == [f"[PAD{len(tokenizer) + k}]" for k in range(5)]
    again = AutoTokenizer.from_pretrained(keys)
    assert again.special_tokens_map == tokenizer.special_tokens_map
    assert again.chat_template == tokenizer.chat_template
    for text in STRINGS:
        ids = tokenizer.encode(text)
        assert again.encode(text) == ids
        assert again.decode(ids) == tokenizer.decode(ids)


def test_every_key_comes_back():
    assert tokenizer_to_gguf(AutoTokenizer.from_pretrained(MERGED), 5) == MERGED
    more = tokenizer_to_gguf(AutoTokenizer.from_pretrained(MERGED), 6)
    assert (more["tokenizer.ggml.tokens"][5], more["tokenizer.ggml.token_type"][5]) == ("[PAD5]", 5)


def changed(**parts) -> Tokenizer:
    """The tokenizer of `MERGED` with other parts of its document."""
    tokenizer = AutoTokenizer.from_pretrained(MERGED)
    document = json.dumps(json.loads(tokenizer._document) | parts).encode()
    return Tokenizer(backend(document), tokenizer.config, document)


def test_other_ways_of_cutting_text():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    for steps, name in (([byte_level], "gpt-2"), ([digits, byte_level], "smollm")):
        cut = {"type": "Sequence", "pretokenizers": steps}
        keys = tokenizer_to_gguf(changed(pre_tokenizer=cut), 5)
        assert keys["tokenizer.ggml.pre"] == name


def test_what_has_no_key_is_refused():
    words = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    split = {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated", "invert": False}
    framed = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<tool>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<tool>": {"id": "<tool>", "ids": [4], "tokens": ["<tool>"]}},
    }
    for parts, reason in (
        ({"model": words, "pre_tokenizer": None}, "no BPE"),
        ({"pre_tokenizer": split}, r"which no tokenizer\.ggml\.pre names"),
        ({"pre_tokenizer": None}, "has no key for"),
        ({"normalizer": {"type": "Lowercase"}}, "Lowercase"),
        ({"post_processor": framed}, "'<tool>'"),
    ):
        with pytest.raises(FormatError, match=reason):
            tokenizer_to_gguf(changed(**parts), 5)
    with pytest.raises(FormatError, match="5 tokens and the model 4 rows"):
        tokenizer_to_gguf(changed(), 4)
    with pytest.raises(FormatError, match="no BPE"):
        tokenizer_to_gguf(Tokenizer(changed().backend, {}), 5)
