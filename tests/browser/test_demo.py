"""The page of the logit lens as a person uses it: without WebGPU, failing, cancelled, with the real model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.pages import BLOCK, drop, no_block

from paths import ROOT, SITE, WEIGHTS
from static_server import Fault, Response, StaticServer

PAGE = "demo/logit_lens/"
MODEL = "/weights/SmolLM2-135M-Instruct.Q4_1.gguf"
BOOT, LOAD, GENERATE = 120_000, 120_000, 300_000  # milliseconds
GOLDEN = json.loads((ROOT / "tests" / "golden" / "smollm2_lens.json").read_text(encoding="utf-8"))

# Runs before the page: counts frames, lets a test ask its Python.
WATCH = """
window.frames = 0;
requestAnimationFrame(function frame() {
    window.frames += 1;
    requestAnimationFrame(frame);
});
window.Worker = class extends Worker {
    constructor(...settings) {
        super(...settings);
        let settle;
        this.addEventListener("message", (event) => {
            if (event.data.id !== "test") return;
            event.stopImmediatePropagation(); // the page did not ask
            settle(event.data);
        });
        window.ask = (code) => {
            this.postMessage({ kind: "run", id: "test", code, inputs: {}, filename: "<test>" });
            return new Promise((resolve) => (settle = resolve));
        };
    }
};
"""
LIVE_BUFFERS = """
import pellucid
await pellucid.webgpu.open_async()
await pellucid.webgpu.synchronize_async()
pellucid.webgpu.memory_stats()["live_buffers"]
"""


class Lens:
    """The page, with the verbs of this file's tests."""

    def __init__(self, page: Page, server: StaticServer):
        self.page, self.server = page, server
        self.status, self.notes = page.locator("#status"), page.locator("#notes")

    def open(self, state: str = "empty") -> "Lens":
        self.page.goto(self.server.url + PAGE)
        return self.wait(state, BOOT)

    def wait(self, state: str, timeout: float = 30_000) -> "Lens":
        self.page.wait_for_selector(f"body[data-state={state}]", timeout=timeout)
        return self

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def load(self, source: str) -> None:
        self.page.get_by_label("Address, path on this site, or hub name").fill(source)
        self.press("Load")

    def without_model(self) -> "Lens":
        if self.page.evaluate("document.body.dataset.state") == "ready":
            self.press("Let go of it")
        return self.wait("empty")

    def with_model(self) -> "Lens":
        if self.page.evaluate("document.body.dataset.state") != "ready":
            self.load(MODEL)
        return self.wait("ready", LOAD)

    def generate(self, prompt: str, count: int) -> None:
        self.page.get_by_role("textbox", name="Prompt").fill(prompt)
        self.page.get_by_label("New tokens").fill(str(count))
        self.press("Generate")

    def saved(self) -> dict[str, Any]:
        with self.page.expect_download() as download:
            self.press("Save as JSON")
        return json.loads(download.value.path().read_text(encoding="utf-8"))

    @contextmanager
    def never_freezes(self, most: float = BLOCK) -> Iterator[None]:
        self.page.evaluate("window.frames = 0")
        with no_block(self.page, most):
            yield
        assert self.page.evaluate("window.frames") > 5

    def live_buffers(self) -> int:
        answer = self.page.evaluate("code => ask(code)", LIVE_BUFFERS)
        assert answer["kind"] == "done", answer
        return answer["value"]


class SlowWeights:
    """Fault of a server: while `rate` is set, weights come at so many bytes a second on each connection."""

    rate: float | None = None

    def __call__(self, request) -> Fault | None:
        slow = self.rate is not None and request.path.startswith("/weights/")
        return Fault(bytes_per_second=self.rate) if slow else None


def without_jspi(_) -> Response:
    """The worker's script, in a browser that cannot suspend Python."""
    script = (SITE / "web" / "python_worker.js").read_text(encoding="utf-8")
    text = f"delete WebAssembly.Suspending; delete WebAssembly.promising;\n{script}"
    return Response(text.encode(), "text/javascript")


@pytest.fixture(scope="module")
def session(browser: Browser) -> Iterator[Lens]:
    """One running page in the poorest place that is enough: no JSPI, no cross-origin isolation."""
    routes = {"/web/python_worker.js": without_jspi}
    with StaticServer(
        SITE, {"weights": WEIGHTS}, isolation=False, routes=routes, faults=SlowWeights()
    ) as server:
        context = browser.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(WATCH)
        yield Lens(page, server).open()
        context.close()
    assert not errors, f"uncaught errors in the page: {errors}"


def test_without_webgpu_the_page_says_which_browsers_have_it(page, site_server):
    earlier = len(site_server.requests)
    page.add_init_script("delete Navigator.prototype.gpu;")
    lens = Lens(page, site_server).open("missing")
    expect(lens.notes).to_contain_text("This browser has no WebGPU")
    for name in ("Chrome and Edge 113", "Safari 26", "Firefox 141"):
        expect(lens.notes).to_contain_text(name)
    for name in ("Load", "Choose a file…", "Generate"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    # What can be switched on, by the browser's own name.
    advice = """async (given) => (await import("/web/webgpu_advice.js")).toSwitchOn(...given)"""
    linux, windows = "Mozilla/5.0 (X11; Linux x86_64", "Mozilla/5.0 (Windows NT 10.0; Win64"
    for blocked, agent, wanted in (
        (False, f"{linux}; rv:153.0) Gecko/20100101 Firefox/153.0", "dom.webgpu.enabled to true"),
        (True, f"{linux}; rv:153.0) Gecko/20100101 Firefox/153.0", "gfx.webgpu.ignore-blocklist"),
        (False, f"{linux}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0", "chrome://flags"),
        (False, f"{windows}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/110.0.0.0", None),
        (False, "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/110.0.0.0 Mobile", None),
    ):
        said = page.evaluate(advice, [blocked, agent])
        assert wanted in said if wanted else said == "", agent
    assert not any("/pyodide/" in request.path for request in site_server.requests[earlier:])


def test_without_an_adapter_the_page_says_what_to_try(page, site_server):
    page.add_init_script("GPU.prototype.requestAdapter = async () => null;")
    lens = Lens(page, site_server).open("missing")
    expect(lens.notes).to_contain_text("WebGPU finds no graphics processor")
    expect(lens.notes).to_contain_text("driver")


def test_neither_jspi_nor_isolation_is_needed(session):
    expect(session.page.locator("#about")).to_contain_text("JSPI missing, not needed")
    expect(session.page.locator("#about")).to_contain_text("not cross-origin isolated, not needed")


@pytest.mark.parametrize(
    ("source", "title", "words"),
    [
        ("/weights/nothing.gguf", "There is no such model", "status 404"),
        ("/weights/100%.gguf", "There is no such model", "status 404"),
        ("/demo/logit_lens/index.html?x.gguf", "There is no such model", "model.safetensors"),
        ("/demo/logit_lens/", "There is no such model", "model.safetensors"),
        ("http://127.0.0.1:9/x.gguf", "The model could not be fetched", "127.0.0.1:9"),
    ],
    ids=["missing", "a percent sign", "a page", "no weights", "no server"],
)
def test_a_wrong_address_is_explained(session, source, title, words):
    session.without_model().load(source)
    # The state "loading" may be over before anybody looks; the note stays.
    expect(session.notes.locator("strong")).to_have_text(title, timeout=LOAD)
    session.wait("empty", LOAD)
    expect(session.notes).to_contain_text(words)
    expect(session.status).to_have_text("The model was not loaded.")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"MIT License", "begins with b'MIT Lice'"),
        (b"\xef\xbb\xbf\n<!doctype html>", "is a web page"),
        (b"\x02" + bytes(7) + b"{}", "is a safetensors file"),
        (b"GGUF" + bytes(60), "model.gguf"),
    ],
    ids=["nothing", "text", "page", "safetensors", "empty GGUF"],
)
def test_a_file_that_is_no_model_is_explained(session, content, words):
    before = session.without_model().live_buffers()
    file = {"name": "model.gguf", "mimeType": "application/octet-stream", "buffer": content}
    session.page.locator("#file").set_input_files(file)
    expect(session.notes.locator("strong")).to_have_text("This file cannot be read as a model")
    expect(session.notes.locator(".said")).to_contain_text(words)
    session.wait("empty")
    assert session.live_buffers() == before


def test_cancel_leaves_no_buffer_behind(session):
    session.without_model()
    before = session.live_buffers()
    session.server.faults.rate = 2_000_000
    try:
        session.load(MODEL)
        expect(session.page.locator("#progress-text")).to_contain_text("MB/s", timeout=LOAD)
        assert 0 < session.page.locator("#progress").evaluate("bar => bar.value") < 1
        assert session.live_buffers() > before
        session.press("Cancel")
        session.wait("empty", 10_000)
    finally:
        session.server.faults.rate = None
    expect(session.status).to_have_text("Cancelled. Nothing of it is kept.")
    expect(session.notes).to_be_empty()
    assert session.live_buffers() == before


def test_cancel_ends_the_wait_for_a_server_that_stalls(session):
    session.without_model()
    session.server.faults.rate = 20
    try:
        session.load(MODEL)
        session.press("Cancel")
        session.wait("empty", 10_000)
    finally:
        session.server.faults.rate = None
    expect(session.status).to_have_text("Cancelled. Nothing of it is kept.")


def test_the_page_takes_each_byte_once_and_never_freezes_while_it_loads(session):
    session.without_model()
    keep = session.page.locator("#keep-copy")
    keep.uncheck()  # which may be there already, from a test before
    session.server.requests.clear()
    with session.never_freezes(200):
        session.with_model()
    keep.evaluate("box => (box.checked = true)")  # it is hidden beside a model
    sent = sum(request.sent for request in session.server.requests if request.path == MODEL)
    assert sent == (WEIGHTS / MODEL.split("/")[-1]).stat().st_size
    expect(session.page.locator("#summary")).to_contain_text("30 layers")


def test_the_lens_shows_what_each_layer_would_have_said(session):
    session.with_model()
    with session.never_freezes():
        session.generate(GOLDEN["prompt"], 2)
        session.wait("generating")
        session.wait("ready", GENERATE)
    expect(session.notes).to_be_empty()
    expect(session.page.locator("#text")).to_have_text(GOLDEN["prompt"] + " Paris.")
    run = session.saved()
    assert [token["id"] for token in run["new_tokens"]] == GOLDEN["new_ids"][:2]
    assert [column["position"] for column in run["columns"]] == list(range(len(GOLDEN["prompt_ids"]) + 1))
    for position, column in enumerate(run["columns"]):
        for layer, cell in enumerate(column["layers"]):
            wanted = GOLDEN["probabilities"][layer][position]
            assert [p for _, _, p in cell] == pytest.approx(wanted, abs=0.02)
            if wanted[0] - wanted[1] > 0.04:
                assert cell[0][0] == GOLDEN["ids"][layer][position][0]


def test_cells_are_reached_by_keyboard_and_pointer(session):
    if session.page.locator("#grid td").count() == 0:
        session.with_model().generate("Hi", 1)
        session.wait("ready", GENERATE)
    grid, panel = session.page.get_by_role("grid"), session.page.locator("#panel")
    top = grid.get_by_role("row").first.get_by_role("gridcell")
    top.first.hover()
    expect(panel.get_by_role("heading")).to_have_text("Layer 29")
    expect(panel.get_by_role("listitem")).to_have_count(5)
    top.first.focus()
    for key, layer, position in (
        ("ArrowDown", 28, 0),
        ("End", 28, top.count() - 1),
        ("PageDown", 0, top.count() - 1),
        ("ArrowDown", 0, top.count() - 1),
        ("Control+Home", 29, 0),
    ):
        session.page.keyboard.press(key)
        focused = session.page.locator("#grid td:focus")
        expect(focused).to_have_attribute("data-layer", str(layer))
        expect(focused).to_have_attribute("data-position", str(position))
        expect(focused).to_have_attribute("tabindex", "0")
        expect(panel.get_by_role("heading")).to_have_text(f"Layer {layer}")
    assert session.page.locator('#grid td[tabindex="0"]').count() == 1


def test_generation_is_stopped(session):
    session.with_model().generate("Hi", 100)
    session.wait("generating")
    expect(session.status).to_have_text("Generating…", timeout=GENERATE)  # a token is there
    expect(session.page.get_by_role("button", name="Stop")).to_be_focused()
    session.page.keyboard.press("Enter")
    session.wait("ready", GENERATE)
    expect(session.status).to_contain_text("Stopped:")
    expect(session.page.get_by_role("button", name="Generate")).to_be_focused()
    assert len(session.saved()["new_tokens"]) < 100


def test_a_prompt_that_is_too_long_is_explained_and_the_lens_before_it_stays(session):
    session.with_model()
    if session.page.locator("#grid td").count() == 0:
        session.generate("Hi", 1)
        session.wait("ready", GENERATE)
    shown, text = session.page.locator("#grid td").count(), session.page.locator("#text").inner_text()
    session.generate("word " * 9000, 1)
    expect(session.notes.locator("strong")).to_have_text(
        "That is longer than the model can read", timeout=LOAD
    )
    session.wait("ready")
    assert session.page.locator("#grid td").count() == shown > 0
    assert session.page.locator("#text").inner_text() == text
    assert text.startswith(session.saved()["prompt"])


def test_another_model_that_cannot_be_had_leaves_the_one_that_is_there(session):
    session.with_model()
    session.press("Load another")
    session.load("/weights/nothing.gguf")
    expect(session.status).to_contain_text(f"{MODEL.split('/')[-1]} is still here", timeout=LOAD)
    session.press("Keep this model")
    session.wait("ready")


def test_a_byte_of_a_longer_character_is_shown_as_that_byte(session):
    session.with_model()
    code = "demo.words(demo.tokenizer.encode('\U0001f9a6'))"
    shown = session.page.evaluate("code => ask(code)", code)["value"]
    assert "".join(shown) == "<F0><9F><A6><A6>"


def test_a_site_without_weights_offers_the_hubs(page, browser):
    page.add_init_script("delete Navigator.prototype.gpu;")
    with StaticServer(SITE) as server:
        Lens(page, server).open("missing")
        source = page.get_by_label("Address, path on this site, or hub name")
        expect(source).to_have_value("HuggingFaceTB/SmolLM2-135M-Instruct")
        page.get_by_role("textbox", name="Prompt").fill("Bonjour")
        page.reload()
        expect(page.get_by_role("textbox", name="Prompt")).to_have_value("Bonjour")
        expect(page.get_by_role("textbox", name="Prompt")).to_have_attribute("dir", "auto")


def test_columns_come_quickly_and_leave_the_first_answer_in_sight(page, site_server):
    page.goto(site_server.url)
    spent, answer, words, narrow, rest = page.evaluate(
        """async () => {
            const style = (href) => new Promise((onload) => {
                document.head.append(
                    Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload }),
                );
            });
            await style("/web/style.css");
            await style("/web/views/lens_grid.css");
            const { LensView } = await import("/web/views/lens_grid.js");
            document.body.innerHTML = `<p id="visible"></p>
                <div id="scroller" class="lens-scroller" style="width: 800px">
                <table id="grid" class="lens-grid"></table></div><div id="panel"></div>`;
            const [visible, scroller, table, panel] =
                ["visible", "scroller", "grid", "panel"].map((id) => document.getElementById(id));
            const view = new LensView({ table, panel, scroller, visible });
            const frame = () => new Promise(requestAnimationFrame);
            view.reset(30, 4);
            view.read(Array.from({ length: 60 }, (_, id) => ({ id, token: `word${id}` })));
            let spent = Infinity; // the quickest of ten, for other processes take time, too
            for (let position = 0; position < 60; position++) {
                const layers = Array.from({ length: 30 }, (_, layer) => [[layer, `t${layer}`, layer / 30]]);
                view.add({ position, layers });
                await frame();
                if (position < 50) continue;
                const began = performance.now();
                table.offsetWidth;
                spent = Math.min(spent, performance.now() - began);
            }
            await frame();
            const left = table.tFoot.rows[0].cells[5].getBoundingClientRect().left;
            const label = table.tFoot.rows[0].cells[0].getBoundingClientRect().right;
            const words = visible.textContent;
            // Whole columns fill any width.
            scroller.style.width = "390px";
            await frame();
            await frame();
            const each = table.tFoot.rows[0].cells[5].offsetWidth + 1;
            const rest = (scroller.clientWidth - table.tFoot.rows[0].cells[0].offsetWidth - 2) % each;
            return [spent, left - label, words, visible.textContent, rest];
        }"""
    )
    print(f"layout of a column: {spent:.1f} ms")
    assert spent < 50  # milliseconds
    assert 0 <= answer < 5
    assert words == "positions 4 to 11 of 0 to 59: scroll for more"
    assert narrow == "positions 4 to 6 of 0 to 59: scroll for more"
    assert rest < 1  # pixels: a width has whole ones


def test_a_model_that_is_let_go_leaves_no_buffer_behind(session):
    # What tests before have cancelled may still be on its way: a first model waits for it.
    session.with_model()
    session.without_model()
    before = session.live_buffers()
    drop(session.page, session.page.locator("#model-title"), WEIGHTS / MODEL.split("/")[-1])
    session.wait("ready", LOAD)
    assert session.live_buffers() > before + 200
    session.without_model()
    assert session.live_buffers() == before
