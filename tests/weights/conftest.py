"""A misbehaving file server, and quick retries."""

from collections.abc import Iterator

import pytest

from pellucid.weights import settings
from weights.file_server import FileServer


@pytest.fixture
def server() -> Iterator[FileServer]:
    running = FileServer()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without long pauses and short timeouts: the rules are the same."""
    monkeypatch.setattr(settings, "network_retries", 3)
    monkeypatch.setattr(settings, "network_timeout", 2.0)
    monkeypatch.setattr("pellucid.weights.source_http._LONGEST_PAUSE", 0.05)
