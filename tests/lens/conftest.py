"""A tiny model of transformers and ours with its weights, on both devices."""

from typing import Any

import pytest
import torch

from models.tiny import loaded, made, saved


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tiny models gain nothing from threads, which wait for each other on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(params=["cpu", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def theirs() -> Any:
    return made("llama_tied")


@pytest.fixture(scope="session")
def folder(theirs, tmp_path_factory: pytest.TempPathFactory):
    return saved(theirs, tmp_path_factory.mktemp("lens"))


@pytest.fixture
def model(folder, device: str) -> Any:
    """A fresh one for every test: tests change its weights."""
    return loaded(folder, device)
