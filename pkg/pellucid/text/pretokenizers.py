"""How families of byte-level vocabularies cut text before merging; GGUF's ``tokenizer.ggml.pre`` names them.

The regular expressions are those of the families' own ``tokenizer.json`` files. Each is applied in turn to
the pieces that the previous one left: its matches, and what lies between them.
"""

from dataclasses import dataclass

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PUNCTUATION_AND_SPACE = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}|{_PUNCTUATION_AND_SPACE}"
)
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}"
    rf"|\p{{N}}{{1,3}}|{_PUNCTUATION_AND_SPACE}"
)


@dataclass(frozen=True)
class PreTokenizer:
    """What happens to text before the merges.

    Attributes:
        splits: regular expressions, applied one after the other.
        whole_words: a piece that is in the vocabulary is taken as it is, without merging (``ignore_merges``).
        compose: text is brought to Unicode's composed form (NFC) first.
        begins: a beginning-of-sequence token is added unless the file says otherwise.
    """

    splits: tuple[str, ...]
    whole_words: bool = False
    compose: bool = False
    begins: bool = False


_FAMILIES: dict[PreTokenizer, tuple[str, ...]] = {
    PreTokenizer((GPT2,)): (
        "gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es",
        "jina-v2-de", "gigachat", "roberta-bpe", "trillion", "granite-docling",
    ),
    PreTokenizer((GPT2,), compose=True): ("modern-bert",),
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")): ("default",),
    PreTokenizer((r"\p{N}", GPT2)): (
        "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
    ),
    PreTokenizer((_LLAMA3,), whole_words=True, begins=True): (
        "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
    ),
    PreTokenizer((_LLAMA3,)): ("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"),
    PreTokenizer((_QWEN2,), compose=True): ("qwen2", "deepseek-r1-qwen", "megrez"),
    PreTokenizer((_QWEN2,)): ("stablelm2", "hunyuan"),
    PreTokenizer((_TEKKEN,), whole_words=True, begins=True): ("tekken",),
    PreTokenizer((_GPT4O,)): ("gpt-4o", "llama4"),
}  # fmt: skip

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: family for family, names in _FAMILIES.items() for name in names
}
