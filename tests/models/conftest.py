"""Models are tested on both devices, and every file of tests leaves the device as it found it."""

import gc
from pathlib import Path
from typing import Any

import pytest
import torch

import pellucid
from models.tiny import made, saved


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tiny models gain nothing from threads, which wait for each other on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(params=["cpu", "webgpu"])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory):
    """name -> (a model of transformers, its folder), made once."""
    known: dict[str, tuple[Any, Path]] = {}

    def make(name: str) -> tuple[Any, Path]:
        if name not in known:
            model = made(name)
            known[name] = model, saved(model, tmp_path_factory.mktemp(name))
        return known[name]

    return make


@pytest.fixture(autouse=True, scope="module")
def nothing_stays(request: pytest.FixtureRequest):
    """Live bytes after a file of tests equal those before it."""
    gc.collect()
    before = pellucid.webgpu.memory_allocated()
    failures = request.session.testsfailed
    yield
    # pytest holds the fixtures of the last test longer than the test.
    for item in request.session.items:
        (getattr(item, "funcargs", None) or {}).clear()
    gc.collect()
    # The traceback of a failed test holds its tensors.
    if request.session.testsfailed == failures:
        assert pellucid.webgpu.memory_allocated() == before
