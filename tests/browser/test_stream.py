"""The stream of web/runtime, case by case (stream_cases.mjs), in headless Chromium."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pellucid.device import host
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CASES = re.findall(r"^export async function (case_\w+)", (Path(__file__).parent / "stream_cases.mjs").read_text(), re.M)
FLAGS = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]


class Files(SimpleHTTPRequestHandler):
    """The checkout, silently; `/` is an empty page."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".js": "text/javascript"}

    def do_GET(self):
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>stream</title>")

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def page():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        yield page
        browser.close()
    server.shutdown()


@pytest.mark.parametrize("limits", ["all", "default"])
@pytest.mark.parametrize("case", CASES)
def test_stream(page, case, limits):
    page.evaluate(
        "async ([name, limits]) => {"
        " const { runCase } = await import('/tests/browser/stream_cases.mjs');"
        " await runCase(name, limits === 'default'); }",
        [case, limits],
    )


def test_record_codes_are_those_of_python():
    text = (ROOT / "web/runtime/stream.js").read_text()
    codes = dict(re.findall(r"^export const (\w+) = (\d+);", text, re.M))
    names = ["RUN", "ALLOC", "FREE", "UPLOAD", "COPY", "CODE_BITS", "STATUS_SLOT", "STATUS_BYTES"]
    assert {name: int(codes[name]) for name in names} == {name: getattr(host, name) for name in names}
