"""The JavaScript libraries in Chromium give the ids, texts, pieces, batches and chats of the native ones."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pellucid.text import AutoTokenizer
from text.test_chat import CHAT, TOOL, TOOL_CHAT
from text.vocabularies import STRINGS, folder

import assets
from paths import SCRIPTS

pytestmark = pytest.mark.browser
NAMES = ["gpt2", "llama2", "qwen2_5"]
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    mount = tmp_path_factory.mktemp("mount")
    for name in NAMES:
        shutil.copytree(folder(name), mount / name)
    (mount / GGUF).hardlink_to(assets.weights())
    chats = [[CHAT, None], [TOOL_CHAT, [TOOL]]]
    (mount / "job.json").write_text(
        json.dumps({"vocabularies": [*NAMES, GGUF], "strings": STRINGS, "chats": chats})
    )
    return mount


@pytest.fixture(scope="module")
def in_page(places):
    script = Path(__file__).parent / "page" / "ids.py"
    done = subprocess.run(
        [sys.executable, SCRIPTS / "browser", script, "--mount", places], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=[*NAMES, GGUF])
def both(request, in_page, places):
    tokenizer = AutoTokenizer.from_pretrained(str(places / request.param))
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer, in_page[request.param]


@pytest.mark.parametrize("position", range(len(STRINGS)), ids=STRINGS)
def test_ids_texts_and_streamed_pieces(both, position):
    native, page = both
    ids = native.encode(STRINGS[position])
    stream = native.stream()
    assert page["rows"][position] == [
        ids,
        native.decode(ids),
        native.decode(ids, skip_special_tokens=True),
        [*map(stream.push, ids), stream.end()],
    ]


def test_vocabulary_and_special_tokens(both):
    native, page = both
    assert page["sizes"] == [native.vocab_size, len(native), len(native.get_vocab())]
    assert page["special"] == sorted(native.all_special_ids)
    assert page["roles"] == native.special_tokens_map


def test_batches(both):
    native, page = both
    assert page["batch"] == dict(
        native(STRINGS, padding=True, truncation=True, max_length=7, padding_side="left")
    )
    pair = native("one two three", "four five six seven", max_length=5, return_token_type_ids=True)
    assert page["pair"] == dict(pair)


def test_chats(both):
    native, page = both
    chats = [(CHAT, None), (TOOL_CHAT, [TOOL])] if native.chat_template else []
    assert page["chat"] == [
        native.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, tools=tools)
        for chat, tools in chats
    ]


def test_blocking_and_awaited_loading_agree(both):
    native, page = both
    assert page["blocking"] == native.encode("blocking")


def test_errors_are_the_native_ones(in_page):
    assert in_page["errors"] == {
        "damaged": "FormatError",
        "template": "ValueError",
        "refused": "ValueError",
        "endless": "ValueError",
        "doubling": "ValueError",
        "long range": "ValueError",
        "growing": "FormatError",
        "missing": "MissingFile",
        "too short": "ValueError",
        "callback": "DeviceError",
    }
