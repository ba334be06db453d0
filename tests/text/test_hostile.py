"""Tokenizers and chat templates of strangers: a typed error in bounded time and memory, or what they ask."""

import json
import resource
import time

import pytest

from pellucid.errors import FormatError
from pellucid.text import AutoTokenizer, libraries, sandbox, special
from pellucid.text.backend import AddedToken

TOKENIZER = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"},
}
CONFIGS = {
    "nested": b'{"a":' * 100_000,
    "template without a name": b'{"chat_template": [{"x": 1}]}',
    "template that is a number": b'{"chat_template": 5}',
    "added tokens as a list": b'{"added_tokens_decoder": [1]}',
    "added token without content": b'{"added_tokens_decoder": {"1": {}}}',
    "added token with a number as content": b'{"added_tokens_decoder": {"1": {"content": 5}}}',
    "added token with a text as flag": b'{"added_tokens_decoder": {"1": {"content": "q", "special": "x"}}}',
    "added token of 5000 digits": b'{"added_tokens_decoder": {"' + b"9" * 5000 + b'": {"content": "q"}}}',
    "added token of a word": b'{"added_tokens_decoder": {"one": {"content": "q"}}}',
    "half a character": b'{"eos_token": "\\ud800"}',
    "eos as number": b'{"eos_token": 5}',
    "eos as list": b'{"eos_token": ["a"]}',
    "eos without content": b'{"eos_token": {}}',
    "additional tokens as number": b'{"additional_special_tokens": 5}',
    "additional token as number": b'{"additional_special_tokens": ["a", 5]}',
    "length NaN": b'{"model_max_length": NaN}',
    "length infinite": b'{"model_max_length": Infinity}',
    "length negative": b'{"model_max_length": -1}',
    "length as text": b'{"model_max_length": "8"}',
    "side up": b'{"padding_side": "up"}',
    "side as list": b'{"truncation_side": ["left"]}',
    "input names as number": b'{"model_input_names": 3}',
    "clean up as text": b'{"clean_up_tokenization_spaces": "no"}',
}


def written(folder, config: bytes, tokenizer=TOKENIZER):
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_bytes(config)
    return str(folder)


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations_are_refused_by_name(tmp_path, name):
    with pytest.raises(FormatError, match=r"tokenizer_config\.json: ") as caught:
        AutoTokenizer.from_pretrained(written(tmp_path, CONFIGS[name]))
    assert len(str(caught.value)) < 600


def test_null_is_as_good_as_absent(tmp_path):
    config = json.dumps(dict.fromkeys(special.TABLE)).encode()
    assert AutoTokenizer.from_pretrained(written(tmp_path, config)).encode("a b") == [0, 1]


def test_a_template_file_that_is_not_text(tmp_path):
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match=r"chat_template\.jinja: is not UTF-8"):
        AutoTokenizer.from_pretrained(written(tmp_path, b"{}"))


def test_a_hundred_thousand_tokens_are_added_at_once(tmp_path):
    config = {"additional_special_tokens": [f"<{k}>" for k in range(100_000)]}
    began = time.monotonic()
    tokenizer = AutoTokenizer.from_pretrained(written(tmp_path, json.dumps(config).encode()))
    assert time.monotonic() - began < 30
    assert len(tokenizer) == 100_002
    assert tokenizer.decode(tokenizer.encode("a<5>"), skip_special_tokens=True) == "a"


def test_added_tokens_keep_their_flags():
    tokens = [AddedToken(None, "<p>", special=False), AddedToken(None, "<s>"), AddedToken(None, "b")]
    backend = libraries.backend(json.dumps(TOKENIZER).encode(), tokens)
    assert {t.content: t.special for t in backend.added.values()} == {"<p>": False, "<s>": True, "b": True}


def replacing(times: int, content: str = "aa") -> dict:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return {"type": "Sequence", "normalizers": [step] * times}


TEXT = {"Sequence": {"id": "A", "type_id": 0}}
BOMBS = {
    "doubling": {"normalizer": replacing(40)},
    "nested": {"normalizer": {"type": "Sequence", "normalizers": [replacing(7), replacing(7)]}},
    "one long replacement": {"normalizer": replacing(1, "a" * 5000)},
    "decoders": {"decoder": {"type": "Sequence", "decoders": replacing(40)["normalizers"]}},
    "many steps": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 300}},
    "the text often": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [TEXT] * 3,
            "pair": [TEXT, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {},
        }
    },
    "many tokens around": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "a", "type_id": 0}}] * 300 + [TEXT],
            "pair": [TEXT, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"a": {"id": "a", "ids": [0] * 300, "tokens": ["a"] * 300}},
        }
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_tokenizers_that_make_texts_grow_are_refused(name):
    with pytest.raises(FormatError, match="made to mislead"):
        AutoTokenizer.from_pretrained(json.dumps(TOKENIZER | BOMBS[name]).encode())


def test_a_pattern_at_which_the_library_panics(capfd):
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    tokenizer = AutoTokenizer.from_pretrained(json.dumps(TOKENIZER | {"pre_tokenizer": split}).encode())
    with pytest.raises(FormatError, match=r"tokenizer\.json: .* rejects to encode this text: .*retry-limit"):
        tokenizer.encode("a" * 40 + "b")
    assert tokenizer.encode("b") == [1]
    capfd.readouterr()  # what Rust says of a panic


def test_a_vocabulary_without_its_unknown_token():
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "absent"}
    tokenizer = AutoTokenizer.from_pretrained(json.dumps(TOKENIZER | {"model": model}).encode())
    with pytest.raises(FormatError, match="rejects to encode this text"):
        tokenizer.encode("b")


def test_an_interrupt_passes_through(monkeypatch):
    tokenizer = AutoTokenizer.from_pretrained(json.dumps(TOKENIZER).encode())

    class Interrupted:
        def no_truncation(self): ...

        def encode(self, *_, **__):
            raise KeyboardInterrupt

    monkeypatch.setattr(tokenizer.backend, "_tokenizer", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode("a")


def test_ids_that_no_vocabulary_has():
    tokenizer = AutoTokenizer.from_pretrained(json.dumps(TOKENIZER).encode())
    assert tokenizer.decode([0, -1, 1, 1 << 40]) == tokenizer.decode([0, 1])
    assert tokenizer.convert_ids_to_tokens([-1, 1 << 40, 1]) == [None, None, "b"]
    with pytest.raises(ValueError, match="lone surrogates"):
        tokenizer.encode("a\ud800")


DOUBLING = (
    "{% set n = namespace(a='a') %}{% for i in range(60) %}{% set n.a = BODY %}{% endfor %}{{ n.a | length }}"
)
LISTS = DOUBLING.replace("'a'", "[]").replace("BODY", "[n.a, n.a]")
BLOCK = "{% set b %}{{ n.a }}{{ n.a }}{% endset %}{% set n.a = b %}"
BRANCHING = "{% macro m(d) %}{% if d %}{{ m(d - 1) }}{{ m(d - 1) }}{% endif %}{% endmacro %}{{ m(100) }}"
TEMPLATES = {
    "range in range": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "long range": "{{ range(10**9) | list | length }}",
    "repeated list": "{{ ([0] * 10**9) | length }}",
    "repeated text": "{{ 'a' * 10**9 }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "squared often": DOUBLING.replace("'a'", "9").replace("BODY", "n.a * n.a"),
    "added to itself": DOUBLING.replace("BODY", "n.a + n.a"),
    "joined to itself": DOUBLING.replace("BODY", "n.a ~ n.a"),
    "lists of itself": LISTS.replace(" | length", ""),
    "lists of itself as JSON": LISTS.replace("length", "tojson"),
    "lists of itself compared": LISTS.replace("n.a | length", "n.a == 1"),
    "set by a block": DOUBLING.replace("{% set n.a = BODY %}", BLOCK),
    "center": "{{ 'a'.center(10**10) }}",
    "center filter": "{{ 'a' | center(10**10) }}",
    "ljust": "{{ 'a'.ljust(10**10) }}",
    "zfill": "{{ 'a'.zfill(10**10) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**10) }}",
    "indent": "{{ 'a\nb' | indent(10**10) }}",
    "tojson": "{{ [[1]] | tojson(indent=10**8) }}",
    "percent": "{{ '%10000000000d' % 1 }}",
    "percent star": "{{ '%*d' % (10**9, 1) }}",
    "format": "{{ '{:>10000000000}'.format(1) }}",
    "format nested": "{{ '{:{w}}'.format(1, w=10**9) }}",
    "format filter": "{{ '%10000000000d' | format(1) }}",
    "replace": "{% set a = 'a' * 60000 %}{{ a.replace('a', a) | length }}",
    "replace filter": "{% set a = 'a' * 60000 %}{{ a | replace('a', a) | length }}",
    "join": "{% set a = 'a' * 60000 %}{{ a.join(a) | length }}",
    "join filter": "{% set a = 'a' * 60000 %}{{ a | join(a) | length }}",
    "sum of lists": "{{ range(99999) | map('list') | sum(start=[]) }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursion that branches": BRANCHING,
    "include": "{% include 'x' %}",
    "import": "{% import 'x' as y %}",
    "extends": "{% extends 'x' %}",
    "division by zero": "{{ 1 / 0 }}",
    "number and text": "{{ 1 + 'a' }}",
    "an attribute of nothing": "{{ nothing.at.all }}",
    "number of 5000 digits": "{{ " + "9" * 5000 + " }}",
    "overflow": "{{ 2.0 ** 10000 }}",
    "strftime": "{{ strftime_now('%99999999999d') }}",
    "nested deep": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "long difference": "{{ " + "1-" * 20000 + "1 }}",
    "many loops": "{% for a in [1] %}" * 60 + "{% endfor %}" * 60,
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_end_soon_and_small(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sandbox, "_SECONDS", 0.3)
    tokenizer = AutoTokenizer.from_pretrained(written(tmp_path, b"{}"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.thread_time()
    with pytest.raises(ValueError, match="chat template: "):
        tokenizer.apply_chat_template([{"role": "user"}], chat_template=TEMPLATES[name], tokenize=False)
    assert time.thread_time() - began < 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kilobytes


PLAIN = {
    "{% for m in messages %}{{ loop.index }}{{ loop.length }}{{ loop.last }} {% endfor %}": "12False 22True ",
    "{% for a, b in {'x': 1}.items() %}{{ a }}{{ b }}{% else %}none{% endfor %}": "x1",
    "{% for x in [[1, [2]], 3] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}": "123",
    "{{ 'a' ~ 1 ~ none ~ [1] }}": "a1None[1]",
    "{% if 1 < 2 <= 2 and 'a' in ['a'] %}yes{% endif %}": "yes",
    "{% filter upper %}a{% endfilter %}{% set x %}b{% endset %}{{ x * 3 }}": "Abbb",
    "{{ '%s-%d' % ('a', 3) }}{{ '{}'.format('é') }}": "a-3é",
    "{{ {'a': [1]} | tojson(indent=2) }}": '{\n  "a": [\n    1\n  ]\n}',
    "{% macro m(x, y=2) %}{{ x + y }}{{ caller() if caller }}{% endmacro %}"
    "{{ m(1) }}{% call m(2) %}!{% endcall %}": "34!",
    "{{ messages | map(attribute='content') | join(', ') }}"
    "{{ messages | selectattr('role', 'eq', 'user') | list | length }}": "hi, yo1",
}  # fmt: skip


@pytest.mark.parametrize("template", PLAIN)
def test_what_templates_do_stays_what_it_was(tmp_path, template):
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    tokenizer = AutoTokenizer.from_pretrained(written(tmp_path, b"{}"))
    assert tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False) == PLAIN[template]
