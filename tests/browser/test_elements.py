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
from static_server import Fault, Request, StaticServer

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
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticServer]:
    """The site with the model, and one that is longer than what is read at once."""
    wide = made("llama_tied", intermediate_size=1500)
    slow = with_words(saved(wide, tmp_path_factory.mktemp("wide") / "slow"))
    mounts = {"tiny": folder, "kept": folder, "slow": slow}
    with StaticServer(SITE, mounts, isolation=False, cors=True) as server:
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, site: StaticServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a folder that has nothing but the unpacked package, beside the site of another origin."""
    home = tmp_path_factory.mktemp("elsewhere")
    with tarfile.open(next(SITE.glob("pellucid-*.tgz"))) as archive:
        archive.extractall(home / "node_modules", filter="data")
    (home / "node_modules" / "package").rename(home / "node_modules" / "pellucid")
    with StaticServer(home, isolation=False) as server:
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
    # Without WebGPU it says so at once, and what can be done.
    page.evaluate("""() => {
        window.gpu = Object.getOwnPropertyDescriptor(Navigator.prototype, "gpu");
        delete Navigator.prototype.gpu;
        document.querySelector("#b").setAttribute("tokens", "1");
    }""")
    status = page.locator("#b [role=status]").first
    expect(status).to_contain_text("This browser has no WebGPU. On Linux, Chrome may want")
    expect(status).to_contain_text("Safari 26 or newer")
    page.evaluate("Object.defineProperty(Navigator.prototype, 'gpu', window.gpu)")
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


# Two programs of a page load one model, and the first gives up; then both do.
TOGETHER = """async (source) => {
    const { load } = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const heard = [[], []], aborters = [new AbortController(), new AbortController()];
    const begin = (k, until) => load(source, {
        signal: aborters[k].signal,
        onProgress: ({ done, total }) => heard[k].push([done, total]) && until?.(done),
    });
    let early;
    const gone = begin(0).catch((error) => [error.name, performance.now()]);
    const stays = begin(1, (done) => {
        if (!done || early) return;
        early = performance.now();
        aborters[0].abort();
    });
    const model = await stays;
    const loaded = performance.now(), [name, left] = await gone;
    const { tokens } = await model.tokenize("w5 w7");
    const both = heard.map((all) => all.length), [done, total] = heard[1].at(-1);
    await model.release();
    return { name, before: left < loaded, tokens, both, done, total };
}"""
GIVE_UP = """async (source) => {
    const { load } = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const aborter = new AbortController();
    const reason = new Error("enough");
    const give_up = ({ done }) => done && aborter.abort(reason);
    const calls = [1, 2].map(() => load(source, { signal: aborter.signal, onProgress: give_up }));
    return (await Promise.allSettled(calls)).map(({ reason: why }) => why === reason);
}"""


def slowly(request: Request) -> Fault | None:
    return Fault(bytes_per_second=500_000) if request.path == "/slow/model.safetensors" else None


def test_who_gives_up_leaves_the_load_to_others(page, site):
    site.faults = slowly
    got = page.evaluate(TOGETHER, f"{site.url}slow/")
    assert (got["name"], got["before"]) == ("AbortError", True)
    assert got["tokens"] == ["w5", "w7"]
    assert got["done"] == got["total"] > 0
    assert 0 < got["both"][0] < got["both"][1]


def test_a_load_that_nobody_waits_for_ends(page, site):
    site.requests.clear()
    assert page.evaluate(GIVE_UP, f"{site.url}slow/") == [True, True]
    page.wait_for_timeout(500)
    sent = sum(request.sent for request in site.requests if request.path == "/slow/model.safetensors")
    assert 0 < sent < (site.mounts["slow"] / "model.safetensors").stat().st_size / 2
    site.faults = None
    assert page.evaluate(TOGETHER, f"{site.url}slow/")["tokens"] == ["w5", "w7"]


KEEP = """async (source) => {
    const { load, run } = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const model = await load(source, { keep: true });
    await model.release();
    await (await load(source, { keep: true })).release();
    return run("from pellucid.utils import copies\\n[one.url for one in await copies.list_async()]");
}"""


def test_a_model_that_is_kept_is_read_from_its_copy(page, site):
    site.requests.clear()
    found = page.evaluate(KEEP, f"{site.url}kept/")
    assert f"{site.url}kept/model.safetensors" in found
    asked = [request.start for request in site.requests if request.path == "/kept/model.safetensors"]
    assert len(asked) == len(set(asked)) > 0


CUT = """async ([source, prompt, reason]) => {
    const { load } = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const model = await load(source), aborter = new AbortController(), ids = [];
    let error = null;
    try {
        for await (const { id } of model.stream(prompt, { max_new_tokens: 200, signal: aborter.signal })) {
            if (ids.push(id) === 2) aborter.abort(reason ?? undefined);
        }
    } catch (thrown) {
        error = thrown;
    }
    const late = model.stream(prompt, { signal: aborter.signal }).next().catch((e) => e?.name ?? e);
    const again = [], { signal } = new AbortController();
    for await (const { id } of model.stream(prompt, { max_new_tokens: 2, signal })) again.push(id);
    return { ids, again, error: error?.name ?? error, late: await late };
}"""


def test_a_stream_that_is_cut_says_so(page, site, model):
    session = lens.Session(model, IDS)
    new = [session.token().id for _ in range(2)]
    for reason, told in ((None, "AbortError"), ("enough", "enough")):
        got = page.evaluate(CUT, [f"{site.url}tiny/", PROMPT, reason])
        assert got == {"ids": new, "again": new, "error": told, "late": told}


ENDED = """async ([source, prompt]) => {
    const found = await import(`${location.origin}/node_modules/pellucid/web/pellucid.js`);
    const model = await found.load(source);
    const pending = found.run("import asyncio; await asyncio.sleep(60)");
    await found.terminate();
    const calls = () => [
        model.stream(prompt).next(), model.look(prompt), model.tokenize(prompt), model.release(),
    ];
    const names = async (promises) => (await Promise.allSettled(promises)).map(({ reason }) => [
        reason instanceof found.TerminatedError, reason.name,
    ]);
    const ended = await names([pending, ...calls(), found.load(source), found.run("1")]);
    const workers = window.workers;
    const { python } = await found.start();
    const again = await names(calls());
    return { ended, again, workers, python, sum: await found.run("1 + 1"), after: window.workers };
}"""


def test_calls_after_the_end_start_no_other_python(page, site):
    got = page.evaluate(ENDED, [f"{site.url}tiny/", PROMPT])
    assert got["ended"] == [[True, "TerminatedError"]] * 7
    assert got["again"] == [[True, "TerminatedError"]] * 4
    assert (got["workers"], got["sum"], got["after"]) == (1, 2, 2)
    assert got["python"].startswith("3.")
