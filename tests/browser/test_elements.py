"""Components on a page of twenty lines: one worker, a strict policy, views beside native values."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from models.tiny import loaded, made, saved, with_words
from pellucid import lens

from paths import SITE
from static_server import Response, StaticServer

IDS = [5, 17, 40, 8, 22]
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval' blob:",
        "worker-src 'self'",
        "connect-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src data:",
    ]
)
PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="POLICY" />
    <link rel="icon" href="data:," />
    <title>Components</title>
    <script type="module" src="/web/elements.js"></script>
  </head>
  <body>
    <h1>Two components and a program</h1>
    <pellucid-lens id="a" model="/tiny/" prompt="w5 w17 w40 w8 w22" tokens="2"></pellucid-lens>
    <pellucid-lens id="b" model="/tiny/" prompt="w5 w17 w40 w8 w22" tokens="0" view="attention">
    </pellucid-lens>
    <pellucid-repl id="c">import pellucid as torch
print("begun")
(torch.eye(2, device="cpu") * 3).tolist()</pellucid-repl>
  </body>
</html>
"""
WORKERS = """
window.workers = 0;
window.Worker = class extends Worker {
    constructor(...settings) {
        super(...settings);
        window.workers += 1;
    }
};
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model whose tokens are words."""
    return with_words(saved(made("llama_tied"), tmp_path_factory.mktemp("site") / "tiny"))


def reply(_) -> Response:
    return Response(PAGE.replace("POLICY", POLICY).encode(), "text/html; charset=utf-8")


def test_components_share_one_python_under_a_strict_policy(page, folder):
    model = loaded(folder, "cpu")
    page.add_init_script(WORKERS)
    with StaticServer(SITE, {"tiny": folder}, isolation=False, routes={"/page.html": reply}) as server:
        page.goto(f"{server.url}page.html")
        rows = page.locator("#a table tbody tr")
        expect(rows).to_have_count(3, timeout=200_000)
        expect(page.locator("#b canvas.overview")).to_be_visible(timeout=60_000)
        session = lens.Session(model, IDS)
        ids = [*IDS, session.token().id, session.token().id]
        look = lens.run(model, ids, lens.Plan(lens={"top_k": 5})).look.table()
        expect(rows.first.locator("td")).to_have_count(len(ids), timeout=60_000)
        for row, cells in zip(rows.all(), reversed(look), strict=True):
            assert row.locator("td").all_inner_texts() == [f"w{cell[0][0]}" for cell in cells]
        probs = page.evaluate("Array.from(document.querySelector('#b').data.probs)")
        seen = lens.run(model, IDS, lens.Plan(capture=["attn_probs"]))
        wanted = np.concatenate([value.numpy() for value in seen.values()])
        np.testing.assert_allclose(np.reshape(probs, wanted.shape), wanted, atol=1e-5)
        page.locator("#c button").click()
        expect(page.locator("#c pre")).to_have_text("begun\n[[3.0, 0.0], [0.0, 3.0]]")
        page.evaluate("document.querySelector('#b').setAttribute('model', '/nothing/')")
        missing = re.compile(r"^http://127.*/nothing: has none of model\.safetensors, ")
        expect(page.locator("#b [role=status]").first).to_have_text(missing, timeout=60_000)
        assert page.evaluate("window.workers") == 1
