"""An open folder is a source: what is loaded from it reads no header again."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from models.tiny import loaded, made, saved, with_words
from pellucid import AutoConfig, AutoModelForCausalLM, AutoTokenizer, inspect, pipeline, weights
from pellucid.errors import FormatError, SourceError
from weights.file_server import FileServer

WORDS = [chr(k) for k in range(33, 127)] + ["ab"]
KEYS = {
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": WORDS,
    "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 3,
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[FileServer]:
    running = FileServer()
    yield running
    running.stop()


@pytest.fixture
def address(server: FileServer, tmp_path) -> str:
    """A GGUF with its tokenizer, larger than the part that is read first of a header."""
    model = loaded(saved(made("llama", vocab_size=4000), tmp_path / "folder"), "cpu")
    model.save_gguf(tmp_path / "a.gguf", tokenizer=AutoTokenizer.from_pretrained(KEYS))
    server.files["/a.gguf"] = (tmp_path / "a.gguf").read_bytes()
    return f"{server.url}/a.gguf"


def by_hand(address: str) -> tuple[Any, Any]:
    with weights.open_folder(address) as folder:
        model = AutoModelForCausalLM.from_pretrained(folder, device="cpu")
        return AutoTokenizer.from_pretrained(folder), model


def by_pipeline(address: str) -> tuple[Any, Any]:
    made = pipeline("text-generation", address, device="cpu")
    return made.tokenizer, made.model


@pytest.mark.parametrize("load", [by_hand, by_pipeline])
def test_a_model_and_its_tokenizer_take_each_byte_once(server, address, load: Callable):
    tokenizer, model = load(address)
    assert tokenizer.encode("abba") == [94, 65, 64]
    assert model.config.vocab_size == 4000
    assert server.sent_twice() == 0
    assert server.sent() == len(server.files["/a.gguf"])


def test_it_stays_open_for_its_owner(server, address):
    # A server without Range has one connection, which whoever closes it would end.
    server.unranged.add("/a.gguf")
    folder = weights.open_folder(address)
    assert AutoConfig.from_pretrained(folder).vocab_size == 4000
    assert inspect(folder).sizes["vocabulary"] == 4000
    assert AutoTokenizer.from_pretrained(folder).encode("abba") == [94, 65, 64]
    shapes = {name: info.shape for name, info in folder.checkpoint.items()}
    AutoModelForCausalLM.from_pretrained(folder, device="cpu")
    folder.close()
    assert {name: info.shape for name, info in folder.checkpoint.items()} == shapes
    assert len(server.log) == 1


def test_files_beside_the_weights_are_found(tmp_path):
    with weights.open_folder(with_words(saved(made("llama"), tmp_path))) as folder:
        assert AutoTokenizer.from_pretrained(folder).encode("w5 w7") == [5, 7]
        assert AutoModelForCausalLM.from_pretrained(folder, device="cpu").config.hidden_size == 32
    alone = weights.open_folder(tmp_path / "model.safetensors")
    with alone, pytest.raises(FormatError, match="is a safetensors file, which holds no tokenizer"):
        AutoTokenizer.from_pretrained(alone)


def test_it_has_its_file_already(address):
    with weights.open_folder(address) as folder:
        for load in (AutoTokenizer.from_pretrained, AutoConfig.from_pretrained):
            with pytest.raises(SourceError, match=r"is open already, so filename='b\.gguf'"):
                load(folder, filename="b.gguf")
