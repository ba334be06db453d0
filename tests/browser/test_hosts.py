"""Other hosts of Python run the examples of demo/hosts offline: PyScript, JupyterLite, marimo."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Error, Page, expect

from models.tiny import loaded, made, ours, saved, with_words
from pellucid import lens

import hosts_builder
from paths import ROOT, SITE
from static_server import StaticServer

IDS = [5, 17, 40, 8, 22]
PROMPT = " ".join(f"w{k}" for k in IDS)
WAIT = 400_000  # milliseconds; JupyterLite installs IPython first
prepared = pytest.mark.skipif(
    not hosts_builder.is_ready(), reason="JupyterLite and marimo are not here; scripts/hosts installs them"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose tokens are words."""
    return with_words(saved(made("llama_tied"), tmp_path_factory.mktemp("site") / "tiny"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return loaded(folder, "cpu")


def rows(model: Any) -> list[list[str]]:
    """What each layer would have said at each position."""
    table = lens.logit_lens(model, ours([IDS], "cpu"), top_k=1).table()
    return [[f"w{cell[0][0]}" for cell in cells] for cells in table]


def test_pyscript(page: Page, folder: Path, model: Any):
    built = hosts_builder.pyscript()
    with StaticServer(SITE, {"tiny": folder, "hosts": built}, isolation=False) as server:
        page.goto(f"{server.url}hosts/index.html?{urlencode({'model': '/tiny/', 'prompt': PROMPT})}")
        wanted = [f"model.layers.{k}: '{cells[-1]}'" for k, cells in enumerate(rows(model))]
        expect(page.locator("#lens")).to_have_text("\n".join(wanted), timeout=WAIT)


@prepared
def test_jupyterlite(page: Page, folder: Path, model: Any):
    built = hosts_builder.jupyterlite()
    notebook = json.loads((built / "files" / "lens.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    code = "\n".join(cells).replace("/weights/SmolLM2-135M-Instruct.Q4_1.gguf", "/tiny/")
    code = code.replace("The capital of France is", PROMPT)
    with StaticServer(SITE, {"tiny": folder, "hosts": built}, isolation=False) as server:
        page.goto(
            f"{server.url}hosts/repl/index.html?{urlencode({'kernel': 'python', 'execute': 1, 'code': code})}"
        )
        shown = page.locator(".lens-grid tbody tr")
        expect(shown).to_have_count(3, timeout=WAIT)
        expect(shown.first.locator("td")).to_have_count(len(IDS))
        got = [row.locator("td").all_inner_texts() for row in shown.all()]
        assert got == rows(model)[::-1]
        expect(page.locator("canvas.overview")).to_be_visible()
        ids = model.generate(ours([IDS], "cpu"), max_new_tokens=4)[0].tolist()
        expect(page.get_by_text(str(ids))).to_be_visible()


@pytest.fixture
def marimo(folder: Path, tmp_path: Path) -> Iterator[str]:
    """The address of the example, run by marimo on this machine's adapter."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = ROOT / "demo" / "hosts" / "marimo_lens.py"
    command = [hosts_builder.ENVIRONMENT / "bin" / "marimo", "run", program, "--headless", "--no-token"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--", "--model", folder, "--prompt", PROMPT]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "pkg"), "HOME": str(tmp_path)}
    with (
        open(tmp_path / "log", "w") as log,
        subprocess.Popen([*command, *options], env=settings, stdout=log, stderr=log) as process,
    ):
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(20)


@prepared
def test_marimo_on_the_desktop(page: Page, marimo: str, model: Any):
    ends = time.monotonic() + 60
    while True:
        try:
            page.goto(marimo)
            break
        except Error:  # it does not listen yet
            assert time.monotonic() < ends, "marimo did not start"
            time.sleep(0.5)
    shown = page.locator(".lens-grid tbody tr")
    expect(shown).to_have_count(3, timeout=WAIT)
    expect(shown.first.locator("td")).to_have_count(len(IDS))
    assert [row.locator("td").all_inner_texts() for row in shown.all()] == rows(model)[::-1]
    overview = page.locator("canvas.overview")
    overview.focus()
    page.keyboard.press("ArrowRight")
    # What is chosen in the picture comes to Python.
    expect(page.get_by_text("chosen: {")).to_contain_text("'head': 1")
