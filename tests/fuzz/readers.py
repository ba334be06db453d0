"""Files of strangers: valid ones, of which some fields were replaced by what no writer writes.

What is read is read, or refused by a class of `pellucid.errors` (for arguments and templates by the
documented class with a message of ours), in bounded time and memory.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
import resource
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pellucid
from pellucid import weights
from pellucid.errors import PellucidError
from pellucid.text import AutoTokenizer, sandbox
from pellucid.weights import settings
from pellucid.weights.place import Place
from pellucid.weights.source import LocalSource, MemorySource, Source

COUNT = 300
SECONDS = 5.0  # of processor time that a file may take
KILOBYTES = 500_000  # that the process may grow by at one file
ADDRESSES = 8 << 30  # bytes at which the process ends, rather than the machine
OURS = re.compile(
    r"(chat template|apply_chat_template|generate|sample|tokenizer\b.*?|tokenizer_\w+|source|token): "
)

settings.hub_endpoint = "http://127.0.0.1:1"  # nobody listens there
settings.network_retries = 0
sandbox._SECONDS = 0.2

SIZES = {
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 16,
}
CONFIG = {
    "model_type": "llama", **SIZES, "num_key_value_heads": 1, "head_dim": 4, "hidden_act": "silu",
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 32},
    "rope_parameters": None, "attention_bias": False, "mlp_bias": False, "sliding_window": None,
    "eos_token_id": 2, "pad_token_id": 0, "torch_dtype": "float32", "partial_rotary_factor": 1.0,
}  # fmt: skip
GENERATION = {
    "max_new_tokens": 3, "min_new_tokens": 1, "do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9,
    "min_p": 0.1, "repetition_penalty": 1.1, "eos_token_id": [2, 3], "pad_token_id": 0,
    "transformers_version": "5",
}  # fmt: skip
SHAPES = {
    "model.embed_tokens.weight": (16, 8), "model.norm.weight": (8,),
    "model.layers.0.input_layernorm.weight": (8,), "model.layers.0.post_attention_layernorm.weight": (8,),
    "model.layers.0.self_attn.q_proj.weight": (8, 8), "model.layers.0.self_attn.k_proj.weight": (4, 8),
    "model.layers.0.self_attn.v_proj.weight": (4, 8), "model.layers.0.self_attn.o_proj.weight": (8, 8),
    "model.layers.0.mlp.gate_proj.weight": (12, 8), "model.layers.0.mlp.up_proj.weight": (12, 8),
    "model.layers.0.mlp.down_proj.weight": (8, 12),
}  # fmt: skip
GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "blk.0.attn_norm",
    "post_attention_layernorm": "blk.0.ffn_norm", "q_proj": "blk.0.attn_q", "k_proj": "blk.0.attn_k",
    "v_proj": "blk.0.attn_v", "o_proj": "blk.0.attn_output", "gate_proj": "blk.0.ffn_gate",
    "up_proj": "blk.0.ffn_up", "down_proj": "blk.0.ffn_down",
}  # fmt: skip
TOKENS = ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a", "<0x0A>"]
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 3, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True}],
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        {"type": "NFKD"}, {"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\s+|\\w+"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, TEXT],
                       "pair": [TEXT, {"Sequence": {"id": "B", "type_id": 1}}],
                       "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "dropout": None, "unk_token": "a", "continuing_subword_prefix": None,
              "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
              "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
}  # fmt: skip
TOKENIZER_CONFIG = {
    "added_tokens_decoder": {"3": {"content": "<s>", "special": True, "lstrip": False, "normalized": False},
                             "4": {"content": "<x>", "special": False}},
    "additional_special_tokens": ["<q>", {"content": "<r>"}],
    "bos_token": "<s>", "eos_token": {"content": "<s>", "lstrip": False}, "unk_token": None, "pad_token": "a",
    "chat_template": [{"name": "default", "template": "{{ messages[0].content }}"},
                      {"name": "tool_use", "template": "{{ bos_token }}"}],
    "clean_up_tokenization_spaces": True, "model_input_names": ["input_ids"], "model_max_length": 100,
    "padding_side": "left", "truncation_side": "right", "tokenizer_class": "X",
}  # fmt: skip


class Raw:
    """Text that stands in a JSON document as it is."""

    def __init__(self, text: str):
        self.text = text


HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 255, 4097, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400,
    -(2**63), 1.5, -0.0, 0.1, math.nan, math.inf, -math.inf, 1e308, 5e-324, 1e-300, "", "a", "\ud800", "\0",
    "x" * 5000, "{{", "(a+)+$", "llama", "yarn", "linear", [], {}, [[]], [None], [1.5], ["a"], [1] * 3000,
    {"content": 5}, {"a": {"b": []}}, {"type": "Sequence"}, Raw("[" * 100_000), Raw("[" * 60 + "]" * 60),
    Raw("9" * 5000), Raw("-"), Raw("1e999"), Raw('{"a":1,"a":2}'), Raw('"' + '\\"' * 50_000), Raw(""),
]  # fmt: skip


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths of everything in a document but the document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, v in inner for p in ((*path, key), *places(v, (*path, key)))]


def mutated(rng: random.Random, document: Any) -> Any:
    """A copy with one to three fields replaced, lost, repeated, moved or grown."""
    result = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        known = places(result)
        if not known:
            return result
        *path, key = rng.choice(known)
        owner = result
        for step in path:
            owner = owner[step]
        match rng.randrange(8):
            case 0:
                del owner[key]
            case 1 if isinstance(owner, dict):
                owner[rng.choice(("", "x", "\ud800", "type", "9" * 30, "__metadata__"))] = owner.pop(key)
            case 2 if isinstance(owner, list):
                owner.extend([owner[key]] * rng.choice((1, 3, 50)))
            case 3:
                owner[key] = rng.choice(([owner[key]], {"content": owner[key]}, str(owner[key])))
            case 4 if isinstance(owner[key], int | float) and not isinstance(owner[key], bool):
                owner[key] = owner[key] * rng.choice((-1, 2, 1000, 0.5)) + rng.choice((0, 1))
            case _:
                owner[key] = copy.deepcopy(rng.choice(HOSTILE))
    return result


def written(document: Any) -> bytes:
    """A document as JSON, with its raw parts; half characters as escapes."""
    raws: list[str] = []

    def told(value: Any) -> str:
        raws.append(value.text)
        return f"@raw{len(raws) - 1}@"

    text = json.dumps(document, default=told)
    return re.sub(r'"@raw(\d+)@"', lambda found: raws[int(found[1])], text).encode()


def safetensors(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else written(header)
    return struct.pack("<Q", len(text)) + text + data


def entries(names: dict[str, tuple]) -> tuple[dict[str, Any], bytes]:
    """The header of these float32 tensors, and their bytes."""
    values = np.random.default_rng(0)
    header, data = {}, b""
    for name, shape in names.items():
        raw = values.normal(0, 0.2, shape).astype(np.float32).tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    return header, data


HEADER, DATA = entries(SHAPES)


def folder(**files: bytes) -> Place:
    """A folder in memory; ``__`` in a name stands for a point."""
    known = {name.replace("__", "."): data for name, data in files.items()}

    class File(MemorySource):
        def sibling(self, name: str) -> Source:
            return file(name)

    def file(name: str) -> Source:
        return File(known[name], name) if name in known else LocalSource("/absent/" + name)

    def names():
        return sorted(known)
        yield

    return Place("folder", file, names)


def used(model: Any) -> None:
    """A model that was read also runs."""
    model.generate([[4, 5]], max_new_tokens=2)
    model.generate([[4, 5]], max_new_tokens=min(model.generation_config.max_new_tokens, 3), do_sample=False)


def load(place: Any) -> None:
    with pellucid.no_grad(), np.errstate(all="ignore"):
        used(pellucid.AutoModelForCausalLM.from_pretrained(place, device="cpu"))


# One function for each kind of file: from a generator of chances to the file and what reads it.
Made = tuple[Any, Callable[[], Any]]


def config(rng: random.Random) -> Made:
    text = written(mutated(rng, CONFIG))
    return text, lambda: load(folder(config__json=text, model__safetensors=safetensors(HEADER, DATA)))


def generation(rng: random.Random) -> Made:
    text = written(mutated(rng, GENERATION))
    files = {"config__json": written(CONFIG), "model__safetensors": safetensors(HEADER, DATA)}
    return text, lambda: load(folder(generation_config__json=text, **files))


def header(rng: random.Random) -> Made:
    data = safetensors(mutated(rng, HEADER | {"__metadata__": {"format": "pt"}}), DATA)
    return data, lambda: load(folder(config__json=written(CONFIG), model__safetensors=data))


def index(rng: random.Random) -> Made:
    document = {"metadata": {"total_size": len(DATA)}, "weight_map": dict.fromkeys(SHAPES, "a.safetensors")}
    text = written(mutated(rng, document))
    files = {"model__safetensors__index__json": text, "a__safetensors": safetensors(HEADER, DATA)}
    return text, lambda: load(folder(config__json=written(CONFIG), **files))


LETTERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
METADATA: dict[str, tuple[int, Any]] = {
    "general.architecture": (8, "llama"), "general.alignment": (4, 32),
    "llama.attention.head_count": (4, 2), "llama.attention.head_count_kv": (4, 1),
    "llama.attention.key_length": (4, 4), "llama.block_count": (4, 1),
    "llama.attention.layer_norm_rms_epsilon": (6, 1e-5), "llama.context_length": (4, 64),
    "llama.embedding_length": (4, 8), "llama.feed_forward_length": (4, 12),
    "llama.rope.dimension_count": (4, 4), "llama.rope.freq_base": (6, 10000.0),
    "llama.rope.scaling.type": (8, "linear"), "llama.rope.scaling.factor": (6, 2.0),
    "tokenizer.ggml.model": (8, "llama"), "tokenizer.ggml.pre": (8, "default"),
    "tokenizer.ggml.tokens": (9, (8, TOKENS)),
    "tokenizer.ggml.token_type": (9, (5, [2, 3, 3, 1, 1, 1, 1, 1, 6])),
    "tokenizer.ggml.scores": (9, (6, [0.0, 0.0, 0.0, -4.0, -3.0, -2.0, -1.0, -1.5, 0.0])),
    "tokenizer.ggml.merges": (9, (8, ["a b"])), "tokenizer.ggml.eos_token_id": (4, 2),
    "tokenizer.ggml.bos_token_id": (4, 1), "tokenizer.ggml.unknown_token_id": (4, 0),
    "tokenizer.ggml.add_bos_token": (7, True), "tokenizer.chat_template": (8, "{{ messages }}"),
    "tokenizer.chat_template.tool_use": (8, "{{ tools }}"), "split.count": (2, 1),
}  # fmt: skip
NUMBERS = [
    0,
    1,
    2,
    3,
    7,
    31,
    255,
    4096,
    1 << 16,
    1 << 31,
    (1 << 32) - 1,
    1 << 60,
    1 << 63,
    (1 << 64) - 1,
    -1,
    -5,
]
NUMBERS += [math.nan, math.inf, -math.inf, 1e30, 0.5, 1e-40]


def string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(raw)) + raw


def value(kind: int, held: Any) -> bytes:
    if kind == 8:
        return string(str(held))
    if kind == 9:
        inner, elements = held
        return struct.pack("<IQ", inner, len(elements)) + b"".join(value(inner, e) for e in elements)
    letter = LETTERS.get(kind, "I")
    held = 7 if isinstance(held, str | tuple) else held
    if letter in "fd":
        with np.errstate(over="ignore"):
            number = float(np.float32(held)) if letter == "f" else float(held)
        return struct.pack(f"<{letter}", number)
    number = int(held) if isinstance(held, int) or (isinstance(held, float) and math.isfinite(held)) else 7
    return (number & (1 << 8 * struct.calcsize(f"<{letter}")) - 1).to_bytes(
        struct.calcsize(f"<{letter}"), "little"
    )


def odd(rng: random.Random, kind: int, held: Any) -> tuple[int, Any]:
    """Another type or value for a key."""
    choice = rng.randrange(6)
    if choice == 0:
        return 8, rng.choice(("", "llama", "gpt2", "{{ 1/0 }}", "x" * 3000, "\ud800", "smollm"))
    if choice == 1:
        inner = rng.choice((0, 4, 5, 6, 7, 8, 12))
        return 9, (inner, [rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 9, 3000)))])
    if choice == 2:
        inner = 9, [(8, ["a"]), (4, [1])]
        return 9, inner
    if choice == 3 and kind == 9 and held[0] != 9:
        inner, elements = held
        return 9, (inner, [rng.choice((e, rng.choice(NUMBERS), "a", "a" * 3000)) for e in elements])
    return rng.choice((0, 1, 4, 5, 6, 7, 10, 11, 12, kind if kind in LETTERS else 4)), rng.choice(NUMBERS)


def gguf_bytes(rng: random.Random, metadata: dict[str, tuple[int, Any]]) -> bytes:
    """A GGUF of the small model with this metadata; sometimes its tensors are described wrongly, too."""
    tensors, offset = [], 0
    body = b""
    factors = {"rope_freqs.weight": (rng.choice((2, 2, 1, 3)),)} if rng.random() < 0.2 else {}
    lie = rng.random() < 0.3
    for name, shape in {**SHAPES, **factors}.items():
        stem = next((g for key, g in GGUF_NAMES.items() if key in name), None)
        told = name if stem is None else f"{stem}.weight"
        dims, kind, at = list(shape[::-1]), 0, offset
        if lie and rng.random() < 0.15:
            match rng.randrange(4):
                case 0:
                    dims = [rng.choice(NUMBERS[:14]) for _ in range(rng.randrange(6))]
                case 1:
                    kind = rng.choice((1, 2, 8, 12, 24, 28, 30, 4, 99, 1 << 31))
                case 2:
                    at = rng.choice(NUMBERS[:14])
                case _:
                    told = rng.choice(
                        ("", "output.weight", "token_embd.weight", "x" * 300, "blk.99.attn_q.weight")
                    )
        numbers = struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        tensors.append(string(told) + numbers)
        size = 4 * math.prod(shape)
        fill = rng.choice((0.0, -1.0, math.nan, 1.0)) if stem is None else None
        raw = np.full(shape, fill, np.float32).tobytes() if fill is not None else DATA[:size]
        body += raw + bytes(-size % 32)
        offset += size + -size % 32
    pairs = [
        string(key) + struct.pack("<I", kind) + value(kind, held) for key, (kind, held) in metadata.items()
    ]
    if rng.random() < 0.05:
        pairs.append(rng.choice(pairs))
    counts = [len(tensors), len(pairs)]
    if rng.random() < 0.05:
        counts[rng.randrange(2)] = rng.choice(NUMBERS[:14])
    head = b"GGUF" + struct.pack("<IQQ", 3, *counts) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + body


def gguf_metadata(rng: random.Random) -> dict[str, tuple[int, Any]]:
    result = dict(METADATA)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        key = rng.choice(list(result))
        if rng.random() < 0.15:
            del result[key]
        else:
            result[key] = odd(rng, *result[key])
    return result


def gguf(rng: random.Random) -> Made:
    data = gguf_bytes(rng, gguf_metadata(rng))
    return data, lambda: load(data)


def vocabulary(rng: random.Random) -> Made:
    metadata = gguf_metadata(rng)
    if rng.random() < 0.5:
        metadata |= {"tokenizer.ggml.model": (8, "gpt2")}
    data = gguf_bytes(rng, metadata)
    return data, lambda: tokenized(data)


def tokenized(place: Any) -> None:
    tokenizer = AutoTokenizer.from_pretrained(place)
    ids = tokenizer.encode("a b ab\u00e9<s> <x>aaaaaaaaaaaaaaaaaaaaaaaaaaaa!")
    assert all(type(i) is int for i in ids)
    assert isinstance(tokenizer.decode(ids, skip_special_tokens=True), str)
    tokenizer(["a", "a b"], padding=tokenizer.pad_token_id is not None, truncation=True, max_length=4)
    if tokenizer.chat_template is not None:
        tokenizer.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)


def tokenizer(rng: random.Random) -> Made:
    text = written(mutated(rng, TOKENIZER))
    return text, lambda: tokenized(folder(tokenizer__json=text))


def tokenizer_config(rng: random.Random) -> Made:
    text = written(mutated(rng, TOKENIZER_CONFIG))
    name = rng.choice(("tokenizer_config__json", "tokenizer_config__json", "special_tokens_map__json"))
    return text, lambda: tokenized(folder(tokenizer__json=written(TOKENIZER), **{name: text}))


ATOMS = [
    "1", "0", "-1", "10**9", "9**99", "'a'", "'%s'", "'%9999999d'", "'{:>99999}'", "none", "true",
    "messages", "[]", "{}", "x", "n.a", "range(9999)", "range(10**9)", "loop", "loop.index", "1.5", "1e308",
    "'\\t'", "undefined.a", "messages[0]", "messages[0].content", "self", "namespace", "dict(a=1)",
    "joiner(', ')", "m",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "and", "or"]
FILTERS = [
    "length", "list", "join", "join('ab')", "tojson", "tojson(indent=9999999)", "upper", "center(99999999)",
    "sort", "indent(99999)", "replace('a', 'aaaa')", "int", "float", "abs", "sum", "sum(start=[])", "first",
    "last", "string", "map('upper')", "map(attribute='role')", "selectattr('role')", "batch(2)",
    "slice(9999999)", "unique", "trim", "reverse", "dictsort", "items", "default('a')", "round(400)",
    "format(1)", "truncate(3)", "groupby('role')", "random", "select('odd')", "attr('__class__')", "min",
    "wordcount", "e",
]  # fmt: skip
METHODS = [
    "center(10**10)", "ljust(9)", "zfill(10**9)", "format(1)", "format(*messages)", "replace('', 'aa')",
    "split('a')", "join(messages)", "items()", "append(1)", "expandtabs(9)", "encode()", "__class__",
    "strip()", "a", "upper", "get('a')", "pop()", "index('z')", "splitlines()", "rjust(2**63)",
    "translate({97: 'aaa'})",
]  # fmt: skip


def expression(rng: random.Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(ATOMS)
    inner = expression(rng, depth - 1)
    match rng.randrange(7):
        case 0 | 1:
            return f"({inner} {rng.choice(OPERATORS)} {expression(rng, depth - 1)})"
        case 2 | 3:
            return f"({inner} | {rng.choice(FILTERS)})"
        case 4:
            return f"({inner}).{rng.choice(METHODS)}"
        case 5:
            return rng.choice(
                (
                    f"[{inner}, {inner}]",
                    f"{{'a': {inner}}}",
                    f"({inner})[{rng.choice(ATOMS)}]",
                    f"({inner})[::-1]",
                )
            )
        case _:
            return f"({inner} if {expression(rng, depth - 1)} else {rng.choice(ATOMS)})"


def statement(rng: random.Random, depth: int = 3) -> str:
    e = expression(rng)
    if depth == 0:
        return f"{{{{ {e} }}}}"
    body = "".join(statement(rng, depth - 1) for _ in range(rng.choice((1, 1, 2))))
    match rng.randrange(9):
        case 0:
            return f"{{% for x in {e} %}}{body}{{% endfor %}}"
        case 1:
            times = rng.choice((3, 40, 99999))
            return f"{{% for i in range({times}) %}}{{% set n.a = {e} %}}{body}{{% endfor %}}"
        case 2:
            return f"{{% if {e} %}}{body}{{% else %}}b{{% endif %}}"
        case 3:
            return f"{{% set x = {e} %}}{body}"
        case 4:
            return f"{{% set x %}}{body}{{% endset %}}{{% set n.a = x ~ x %}}"
        case 5:
            return f"{{% macro m(x=1) %}}{body}{{% endmacro %}}{{{{ m({e}) }}}}"
        case 6:
            inner = rng.choice(("x", "[x, x]", "messages"))
            return f"{{% for x in {e} recursive %}}{{{{ loop({inner}) }}}}{{% endfor %}}"
        case 7:
            return f"{{% filter {rng.choice(FILTERS)} %}}{body}{{% endfilter %}}"
        case _:
            return f"{{{{ {e} }}}}{body}"


PLAIN = AutoTokenizer.from_pretrained(folder(tokenizer__json=written(TOKENIZER)))


def template(rng: random.Random) -> Made:
    text = "{% set n = namespace(a='a') %}" + "".join(statement(rng) for _ in range(rng.choice((1, 2, 4))))
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("{%", "{{", "{#", "%}", "\0", "'", "(" * 3000, "9" * 5000)) + text[at:]
    chat = [{"role": "user", "content": "ab" * 20}, {"role": "assistant", "content": ""}]

    def read() -> None:
        assert isinstance(PLAIN.apply_chat_template(chat, chat_template=text, tokenize=False), str)

    return text, read


PIECES = [
    "http://", "https://127.0.0.1:1/", "http://[::1", "http://127.0.0.1:99999/", "file://", "file:",
    "ftp://", "data:", "/", "..", "a", "a/b", "\0", "\ud800", "\u65e5", "%", "%00", "?x", "#y", ":", "@",
    " ", "\n", "x" * 300, "[", "]", ".gguf", ".safetensors", "model.safetensors.index.json", "127.0.0.1:1",
    "\xe9..", "\\", "~",
]  # fmt: skip


def address(rng: random.Random) -> Made:
    text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 5)))
    more = {name: rng.choice(PIECES) for name in ("revision", "filename", "token") if rng.random() < 0.2}
    if re.match(r"https?://(?!127\.0\.0\.1|\[|/|$)", text):  # no other host is asked, by whatever name
        text = text.replace("://", "://127.0.0.1:1/", 1)
    return (text, more), lambda: weights.open(text, **more)


KINDS = (
    config,
    generation,
    header,
    index,
    gguf,
    gguf,
    vocabulary,
    tokenizer,
    tokenizer_config,
    template,
    template,
    address,
)


def run(seed: int) -> None:
    """Read one hostile file."""
    examine(seed, KINDS)


def examine(seed: int, kinds: tuple[Callable[[random.Random], Made], ...]) -> None:
    """Read one file of these kinds: what is raised, how long it took, how much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    made, read = kind(rng)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    said = ""
    try:
        read()
    except PellucidError as error:
        said = str(error)
    except (ValueError, TypeError) as error:
        said = str(error)
        if type(error) not in (ValueError, TypeError) or not OURS.match(said):
            raise AssertionError(
                f"{kind.__name__}: {type(error).__name__}: {said[:300]}\n{made!r:.3000}"
            ) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise AssertionError(
            f"{kind.__name__}: {type(error).__name__}: {error!s:.300}\n{made!r:.3000}"
        ) from error
    seconds = time.thread_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    about = f"{kind.__name__}: {seconds:.1f} s, {grown:,} kB, a message of {len(said):,}\n{made!r:.3000}"
    assert seconds < SECONDS, about
    assert grown < KILOBYTES, about
    assert len(said) < 20_000, about
