"""Runs in the page: tokenizes what the mounted ``job.json`` lists and prints everything as JSON."""

import json
import os

from js import Array
from pyodide.ffi import create_proxy
from pyodide.http import pyfetch

from pellucid.text import AutoTokenizer
from pellucid.text.page import PageBackend

URL = os.environ["PELLUCID_MOUNT_URL"]
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = "{% set n = namespace(a='a') %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}"
_STEP = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
GROWING = json.dumps(
    {
        "normalizer": {"type": "Sequence", "normalizers": [_STEP] * 40},
        "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
    }
).encode()


def measure(tokenizer, job):
    """What the native side computes too."""
    tokenizer.pad_token = tokenizer.eos_token
    rows = []
    for text in job["strings"]:
        ids = tokenizer.encode(text)
        stream = tokenizer.stream()
        pieces = [*map(stream.push, ids), stream.end()]
        rows.append([ids, tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=True), pieces])
    batch = tokenizer(job["strings"], padding=True, truncation=True, max_length=7, padding_side="left")
    pair = tokenizer("one two three", "four five six seven", max_length=5, return_token_type_ids=True)
    return {
        "rows": rows,
        "sizes": [tokenizer.vocab_size, len(tokenizer), len(tokenizer.get_vocab())],
        "special": sorted(tokenizer.all_special_ids),
        "roles": tokenizer.special_tokens_map,
        "batch": dict(batch),
        "pair": dict(pair),
        "chat": [
            tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, tools=tools)
            for chat, tools in job["chats"]
            if tokenizer.chat_template
        ],
    }


def raised(call):
    """The class of the exception that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def raised_in_callback(call):
    """The same, called from JavaScript, where Python cannot be suspended."""
    seen = []
    proxy = create_proxy(lambda *_: seen.append(raised(call)))
    Array.of(1).forEach(proxy)
    proxy.destroy()
    return seen[0]


job = await (await pyfetch(URL + "job.json")).json()  # noqa: F704
results = {}
for name in job["vocabularies"]:
    tokenizer = await AutoTokenizer.from_pretrained_async(URL + name)  # noqa: F704
    assert isinstance(tokenizer.backend, PageBackend)
    blocking = AutoTokenizer.from_pretrained(URL + name).encode("blocking")
    results[name] = measure(tokenizer, job) | {"blocking": blocking}
hello = [{"role": "user", "content": "Hello"}]
llama = await AutoTokenizer.from_pretrained_async(URL + "llama2")  # noqa: F704
results["errors"] = {
    "damaged": raised(lambda: AutoTokenizer.from_pretrained(b"{")),
    "template": raised(lambda: llama.apply_chat_template(hello, chat_template="{% if %}")),
    "refused": raised(lambda: llama.apply_chat_template(hello, chat_template="{{ raise_exception('no') }}")),
    "endless": raised(lambda: llama.apply_chat_template(hello, chat_template=ENDLESS)),
    "doubling": raised(lambda: llama.apply_chat_template(hello, chat_template=DOUBLING)),
    "long range": raised(lambda: llama.apply_chat_template(hello, chat_template="{{ range(10**9) }}")),
    "growing": raised(lambda: AutoTokenizer.from_pretrained(GROWING)),
    "missing": raised(lambda: AutoTokenizer.from_pretrained(URL + "nothing.gguf")),
    "too short": raised(lambda: llama("Hello", truncation=True, max_length=0)),
    "callback": raised_in_callback(lambda: AutoTokenizer.from_pretrained(URL + "gpt2")),
}
print(json.dumps(results))
