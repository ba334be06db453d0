"""The npm package on a page of another origin: components and a program on one worker, a strict policy."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from models.tiny import loaded, made, saved, with_words
from pellucid import lens

import npm_package
from paths import SITE
from static_server import StaticServer

IDS = [5, 17, 40, 8, 22]
PROMPT = " ".join(f"w{k}" for k in IDS)
POLICY = """default-src 'none'; script-src 'self' SITE 'wasm-unsafe-eval'; worker-src 'self';
      connect-src 'self' SITE; style-src 'self'; img-src data:"""
PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="POLICY" />
    <meta name="pellucid-site" content="SITE" />
    <link rel="icon" href="data:," />
    <title>Components</title>
    <script type="module" src="node_modules/pellucid/web/elements.js"></script>
  </head>
  <body>
    <h1>Two components and a program</h1>
    <pellucid-lens id="a" model="SITEtiny/" prompt="PROMPT" tokens="2"></pellucid-lens>
    <pellucid-lens id="b" model="SITEtiny/" prompt="PROMPT" tokens="0" view="attention"></pellucid-lens>
    <pellucid-repl id="c">import pellucid as torch
print("begun")
(torch.eye(2, device="cpu") * 3).tolist()</pellucid-repl>
  </body>
</html>
"""
BEFORE = """
window.workers = 0;
window.refused = [];
window.Worker = class extends Worker {
    constructor(...settings) {
        super(...settings);
        window.workers += 1;
    }
};
addEventListener("securitypolicyviolation", (event) => window.refused.push(event.blockedURI));
"""
# What a program of the page asks; typed arrays come as lists with the names of their types.
PROGRAM = """async ([source, prompt]) => {
    const { load, run } = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const plain = (x) => ArrayBuffer.isView(x) ? [x.constructor.name, Array.from(x)] : x;
    const model = await load(source);
    const texts = [], few = [];
    for await (const { id, text } of model.stream(prompt, { max_new_tokens: 4 })) texts.push([id, text]);
    const long = model.stream(prompt, { max_new_tokens: 100 });
    for await (const { id } of long) if (few.push(id) === 2) break;
    const ablate = [{ point: "mlp_out", method: "zero" }];
    const ablated = [];
    const changed = model.stream(prompt, { max_new_tokens: 2, plan: { ablate } });
    for await (const { id } of changed) ablated.push(id);
    const wanted = { capture: ["resid_post.1"], lens: { top_k: 3 } };
    const { ids, values, lens } = await model.look(prompt, wanted);
    const { shape, data } = values["resid_post.1"];
    const printed = [];
    const sum = await run("print('six'); a + 2", { a: 4 }, { onPrint: (text) => printed.push(text) });
    const failed = await run("1 / 0").catch((error) => error.type);
    const aborter = AbortSignal.abort();
    const aborted = await load("/nothing/", { signal: aborter }).catch((error) => error.name);
    await model.release();
    const released = await model.tokenize("w5").catch((error) => error.message.split("\\n").at(-1));
    return {
        texts, few, ablated, ids: plain(ids), shape, data: plain(data), points: lens.points,
        top: plain(lens.ids), shares: plain(lens.probabilities), sum, printed, failed, aborted, released,
        layers: model.layers, chat: model.chat, has: model.points.includes("attn_probs.2"),
        workers: window.workers,
    };
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model whose tokens are words."""
    return with_words(saved(made("llama_tied"), tmp_path_factory.mktemp("site") / "tiny"))


@pytest.fixture(scope="module")
def model(folder) -> Any:
    return loaded(folder, "cpu")


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a folder that has nothing but the unpacked package, beside the site of another origin."""
    home = tmp_path_factory.mktemp("elsewhere")
    with tarfile.open(next(SITE.glob("pellucid-*.tgz"))) as archive:
        archive.extractall(home / "node_modules", filter="data")
    (home / "node_modules" / "package").rename(home / "node_modules" / "pellucid")
    with (
        StaticServer(SITE, {"tiny": folder}, isolation=False, cors=True) as site,
        StaticServer(home, isolation=False) as server,
    ):
        text = PAGE.replace("POLICY", POLICY).replace("PROMPT", PROMPT).replace("SITE", site.url)
        (home / "index.html").write_text(text, encoding="utf-8")
        opened = browser.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.add_init_script(BEFORE)
        opened.goto(server.url)
        yield opened
        opened.close()
    assert not errors, f"uncaught errors in the page: {errors}"


def test_components_share_one_python_under_a_strict_policy(page, model):
    rows = page.locator("#a table tbody tr")
    expect(rows).to_have_count(3, timeout=200_000)
    expect(page.locator("#b canvas.overview")).to_be_visible(timeout=60_000)
    session = lens.Session(model, IDS)
    ids = [*IDS, session.token().id, session.token().id]
    look = lens.run(model, ids, lens.Plan(lens={"top_k": 5})).look.table()
    expect(rows.first.locator("td")).to_have_count(len(ids), timeout=60_000)
    for row, cells in zip(rows.all(), reversed(look), strict=True):
        assert row.locator("td").all_inner_texts() == [f"w{cell[0][0]}" for cell in cells]
    # Cells are coloured by their probability although the policy refuses attributes of style.
    share = rows.first.locator("td").first.evaluate("cell => Number(cell.style.getPropertyValue('--p'))")
    assert share == pytest.approx(look[-1][0][0][1], abs=1e-3)
    probs = page.evaluate("Array.from(document.querySelector('#b').data.probs)")
    seen = lens.run(model, IDS, lens.Plan(capture=["attn_probs"]))
    wanted = np.concatenate([value.numpy() for value in seen.values()])
    np.testing.assert_allclose(np.reshape(probs, wanted.shape), wanted, atol=1e-5)
    page.locator("#c button").click()
    expect(page.locator("#c pre")).to_have_text("begun\n[[3.0, 0.0], [0.0, 3.0]]")
    page.locator("#b").evaluate("(b) => b.setAttribute('model', '/nothing/')")
    missing = re.compile(r"^http://127.*/nothing: has none of model\.safetensors, ")
    expect(page.locator("#b [role=status]").first).to_have_text(missing, timeout=60_000)
    assert page.evaluate("[window.workers, window.refused]") == [1, []]


def test_a_program_streams_and_reads_typed_arrays(page, model):
    source = page.locator("#a").get_attribute("model")
    got = page.evaluate(PROGRAM, [source, PROMPT])
    session = lens.Session(model, IDS)
    new = [session.token().id for _ in range(4)]
    assert [id for id, _ in got["texts"]] == new
    assert "".join(text for _, text in got["texts"]).split() == [f"w{k}" for k in new]
    assert got["few"] == new[:2]
    session = lens.Session(model, IDS, plan=lens.Plan(ablate=[{"point": "mlp_out", "method": "zero"}]))
    assert got["ablated"] == [session.token().id for _ in range(2)]
    seen = lens.run(model, IDS, lens.Plan(capture=["resid_post.1"], lens={"top_k": 3}))
    assert got["ids"] == ["Int32Array", IDS]
    state = seen["resid_post.1"].numpy()
    assert (got["data"][0], got["shape"]) == ("Float32Array", list(state.shape))
    np.testing.assert_allclose(np.reshape(got["data"][1], state.shape), state, atol=1e-4)
    assert got["points"] == list(seen.look.paths)
    assert got["top"] == ["Int32Array", seen.look.ids.numpy().reshape(-1).tolist()]
    np.testing.assert_allclose(got["shares"][1], seen.look.probabilities.numpy().reshape(-1), atol=1e-5)
    assert (got["layers"], got["chat"], got["has"]) == (3, False, True)
    assert (got["sum"], got["printed"], got["failed"]) == (6, ["six\n"], "ZeroDivisionError")
    assert got["aborted"] == "AbortError"
    assert got["released"] == "ValueError: this model was released. Load it again."
    assert got["workers"] == 1


def test_the_types_name_what_the_module_exports(page):
    there = page.evaluate("""async () => {
        const found = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
        return Object.keys(found).sort();
    }""")
    types = (SITE / "web" / "pellucid.d.ts").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^export (?:function|class) (\w+)", types, re.MULTILINE)) == there
    entry = npm_package.description()["exports"]["."]
    with tarfile.open(next(SITE.glob("pellucid-*.tgz"))) as archive:
        assert {f"package/{path[2:]}" for path in entry.values()} <= set(archive.getnames())
