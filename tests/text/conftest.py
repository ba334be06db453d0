"""The tokenizers that several tests share."""

import pytest

from pellucid.text import AutoTokenizer
from text.vocabularies import folder

import assets


@pytest.fixture(scope="session")
def smollm():
    return AutoTokenizer.from_pretrained(str(assets.weights()))


@pytest.fixture(scope="session")
def qwen():
    return AutoTokenizer.from_pretrained(str(folder("qwen2_5")))


@pytest.fixture(scope="session")
def llama():
    return AutoTokenizer.from_pretrained(str(folder("llama2")))
