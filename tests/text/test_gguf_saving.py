"""Tokenizers as keys of a GGUF, from which the same tokenizers are read."""

import json

import gguf
import numpy as np
import pytest
import tokenizers

from pellucid.errors import FormatError
from pellucid.text import AutoTokenizer
from pellucid.text.gguf_saving import tokenizer_to_gguf
from pellucid.text.libraries import backend
from pellucid.text.tokenizer import Tokenizer
from pellucid.weights.formats.gguf_head import begin_gguf
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


def trained(
    model, trainer, *, normalizer, pre_tokenizer, decoder, special: dict[str, str], frame: str
) -> Tokenizer:
    """A tokenizer that was trained on the texts."""
    made = tokenizers.Tokenizer(model)
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    made.decoder = decoder
    made.train_from_iterator(STRINGS * 4, trainer)
    known = [(token, made.token_to_id(token)) for token in special.values()]
    pair = f"{frame} $B:1 {frame.split()[-1]}:1"
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=frame, pair=pair, special_tokens=known
    )
    written = json.loads(made.to_str())
    if isinstance(written["model"]["vocab"], list):  # scores of SentencePiece have 32 bits
        written["model"]["vocab"] = [[t, float(np.float32(score))] for t, score in written["model"]["vocab"]]
    document = json.dumps(written).encode()
    return Tokenizer(backend(document), special, document)


ROLES = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
WORDPIECE = {
    "model": lambda: tokenizers.models.WordPiece(unk_token="[UNK]"),
    "trainer": lambda: tokenizers.trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=list(ROLES.values()), show_progress=False
    ),
    "normalizer": tokenizers.normalizers.BertNormalizer(),
    "pre_tokenizer": tokenizers.pre_tokenizers.BertPreTokenizer(),
    "decoder": tokenizers.decoders.WordPiece(),
    "special": ROLES,
    "frame": "[CLS] $A [SEP]",
}
T5_ROLES = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
SPACES = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
# As converters of transformers make it: extra spaces go by the normalizer, or by how text is cut.
SINGLE = [tokenizers.normalizers.Strip(), tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
UNIGRAM = {
    "model": tokenizers.models.Unigram,
    "trainer": lambda: tokenizers.trainers.UnigramTrainer(
        vocab_size=200, special_tokens=list(T5_ROLES.values()), unk_token="<unk>", show_progress=False
    ),
    "normalizer": tokenizers.normalizers.Sequence(SINGLE),
    "pre_tokenizer": SPACES,
    "decoder": tokenizers.decoders.Metaspace(),
    "special": T5_ROLES,
    "frame": "$A </s>",
}
CUT = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.WhitespaceSplit(), SPACES])
# A table that maps nothing: 256 empty units of its trie, and no text.
CHARSMAP = (1024).to_bytes(4, "little") + bytes(1024)
MAPPED = [tokenizers.normalizers.Precompiled(CHARSMAP), *SINGLE]


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (WORDPIECE, "bert"),
        (UNIGRAM, "t5"),
        ({**UNIGRAM, "normalizer": tokenizers.normalizers.Sequence(MAPPED)}, "t5"),
        ({**UNIGRAM, "normalizer": None, "pre_tokenizer": CUT}, "t5"),
    ],
)
def test_words_and_unigrams(parts, kind, tmp_path):
    own = {**parts, "model": parts["model"](), "trainer": parts["trainer"]()}
    tokenizer = trained(own.pop("model"), own.pop("trainer"), **own)
    keys = tokenizer_to_gguf(tokenizer, len(tokenizer) + 2)
    assert keys["tokenizer.ggml.model"] == kind
    with (tmp_path / "a.gguf").open("wb") as file:
        begin_gguf(file, {"general.architecture": "bert", **keys}, [])
    read = gguf.GGUFReader(tmp_path / "a.gguf")
    assert read.get_field("tokenizer.ggml.tokens").contents() == keys["tokenizer.ggml.tokens"]
    if "tokenizer.ggml.precompiled_charsmap" in keys:
        table = read.get_field("tokenizer.ggml.precompiled_charsmap")
        assert bytes(table.contents()) == CHARSMAP
        assert table.types[-1] == gguf.GGUFValueType.UINT8
    again = AutoTokenizer.from_pretrained(tmp_path / "a.gguf")
    assert {k: v for k, v in again.special_tokens_map.items() if k in parts["special"]} == parts["special"]
    for text in STRINGS:
        if kind == "t5" and any(c.isspace() and c != " " for c in text):
            continue  # a table of characters, which this one has not, makes them spaces
        ids = tokenizer.encode(text)
        assert again.encode(text) == ids, text
        assert again.decode(ids, skip_special_tokens=True) == tokenizer.decode(ids, skip_special_tokens=True)
    pair = tokenizer("The capital", "of France", return_token_type_ids=True)
    assert again("The capital", "of France", return_token_type_ids=True)["input_ids"] == pair["input_ids"]


def test_sentencepiece_whose_spaces_come_by_cutting():
    """As newer files of Llama 2 and Mistral, and those of Gemma, have it."""
    tokens = ["<unk>", "<s>", "</s>", "<0x0A>", "\u2581", "a", "b", "\u2581a", "ab"]
    base = {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * 7 + [-1.0, -2.0],
        "tokenizer.ggml.token_type": [2, 3, 3, 6, 1, 1, 1, 1, 1], "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
    }  # fmt: skip
    plain = AutoTokenizer.from_pretrained(base)
    spaces = {"type": "Metaspace", "replacement": "\u2581", "split": False}
    cut = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    for normalizer, pre_tokenizer, prefixed in (
        (None, {**spaces, "prepend_scheme": "first"}, True),
        (None, {**spaces, "prepend_scheme": "never"}, False),
        (replace, cut, False),
    ):
        document = json.loads(plain._document) | {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
        data = json.dumps(document).encode()
        tokenizer = Tokenizer(backend(data), plain.config, data)
        keys = tokenizer_to_gguf(tokenizer, 9)
        assert keys["tokenizer.ggml.add_space_prefix"] is prefixed
        again = AutoTokenizer.from_pretrained(keys)
        # As of llama.cpp, one more space is put before a text that begins with one.
        for text in ("ab", "a b a\n", *([] if prefixed else [" ab"])):
            assert again.encode(text) == tokenizer.encode(text)


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
