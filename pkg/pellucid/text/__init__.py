"""Tokenizers and chat templates, by the Hugging Face libraries themselves."""

from pellucid.text.auto import AutoTokenizer
from pellucid.text.batch import BatchEncoding
from pellucid.text.gguf import tokenizer_json_from_gguf
from pellucid.text.stream import TextStream, TextStreamer
from pellucid.text.tokenizer import Tokenizer

__all__ = [
    "AutoTokenizer",
    "BatchEncoding",
    "TextStream",
    "TextStreamer",
    "Tokenizer",
    "tokenizer_json_from_gguf",
]
