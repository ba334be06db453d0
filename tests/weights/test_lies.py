"""Servers that lie: what is read is right, or a SourceError says what is wrong, and soon."""

import hashlib
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from pellucid import weights
from pellucid.device import resources
from pellucid.errors import FormatError, SourceError
from pellucid.weights import settings
from weights.liar import Liar
from weights.lies import ARRAY, FILE, HONEST, LIES


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(settings, "network_timeout", 0.5)
    monkeypatch.setattr(settings, "network_retries", 1)


@pytest.mark.parametrize("name", LIES)
def test_what_is_read_is_right_or_refused(name):
    began = time.monotonic()
    with Liar(LIES[name], len(FILE)) as liar:
        got, told = None, ""
        try:
            checkpoint = weights.open(liar.url)
            (got,) = weights.read(checkpoint, list(checkpoint.values()))
        except (SourceError, FormatError) as error:
            told = str(error)
        if got is None:
            assert name not in HONEST
            assert liar.url.rsplit("/", 1)[0] in told
            assert len(told) < 1000
        else:
            assert got.tobytes() == ARRAY.tobytes()
    assert time.monotonic() - began < 4


def test_a_page_reads_the_same_or_refuses(tmp_path):
    for name in ("fetch.js", "body.js", "copies.js", "files.js", "halt.js"):
        (tmp_path / name).write_text(resources.read_text(f"web/runtime/{name}"))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    runner = shutil.copy(Path(__file__).with_name("fetch_runner.mjs"), tmp_path)
    with ExitStack() as stack:
        liars = {name: stack.enter_context(Liar(answer, len(FILE))) for name, answer in LIES.items()}
        names = {liar.url: name for name, liar in liars.items()}
        said = {}
        for timeout, honest in ((20_000, True), (500, False)):  # beside many liars, honest servers are slow
            urls = [url for url, name in names.items() if (name in HONEST) is honest]
            command = ["node", runner, str(tmp_path), str(timeout), *urls]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            said |= {line["url"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert {names[url] for url in said} == set(LIES)
    right = hashlib.sha256(FILE).hexdigest()
    for url, line in said.items():
        if "digest" in line:
            assert line["digest"] == right, names[url]
        else:
            assert names[url] not in HONEST, line
            assert line["error"] in ("SourceError", "MissingFile"), line


def test_a_token_does_not_leave_encryption(monkeypatch):
    from urllib.request import Request

    from pellucid.weights.connection import _Redirects

    class Body:
        def close(self): ...

    request = Request("https://example.org/x", headers={"Authorization": "Bearer secret"})
    for private in (False, True):
        handler = _Redirects(private)
        there = handler.redirect_request(request, Body(), 302, "", {}, "https://other.org/x")
        assert there is not None
        assert not there.has_header("Authorization")
        if private:
            with pytest.raises(SourceError, match="is not encrypted, and a token was given"):
                handler.redirect_request(request, Body(), 302, "", {}, "http://example.org/x")
        else:
            assert handler.redirect_request(request, Body(), 302, "", {}, "http://example.org/x")


@pytest.mark.parametrize(
    "source",
    ["http://[::1", "a\0b", "x" * 5000, "x/" * 3000, "http://a\0b/c.gguf", "http://127.0.0.1:99999/x.gguf",
     "file://[::1/x", "http:///x.gguf", "http://\xe9..com/m.gguf", "http://127.0.0.1:1/\u65e5.gguf"],
)  # fmt: skip
def test_addresses_that_are_none(source):
    with pytest.raises(SourceError):
        weights.open(source)


def test_a_malformed_token_is_not_shown():
    with pytest.raises(SourceError, match="token: has characters") as caught:
        weights.open("http://127.0.0.1:1/x.gguf", token="hf_secret\r\nX: y")
    assert "secret" not in str(caught.value)
