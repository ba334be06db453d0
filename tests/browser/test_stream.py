"""The stream of web/runtime, case by case (stream_cases.mjs, device_cases.mjs), in headless Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pellucid.device import host

from paths import ROOT
from static_server import Response, StaticServer

HERE = Path(__file__).parent
CASES = [
    (module, case)
    for module in ("stream_cases.mjs", "device_cases.mjs")
    for case in re.findall(r"^export async function (case_\w+)", (HERE / module).read_text(), re.M)
]
EMPTY = Response(b"<!doctype html><title>stream</title>", "text/html; charset=utf-8")


@pytest.fixture(scope="module")
def stream_page(browser: Browser) -> Iterator[Page]:
    """A page beside the runtime's own modules, before any build."""
    with StaticServer(ROOT, routes={"/empty": lambda _: EMPTY}) as server:
        page = browser.new_page()
        page.goto(server.url + "empty")
        yield page
        page.close()


@pytest.mark.parametrize("limits", ["all", "default"])
@pytest.mark.parametrize(("module", "case"), CASES, ids=[case for _, case in CASES])
def test_stream(stream_page: Page, module: str, case: str, limits: str):
    stream_page.evaluate(
        "async ([module, name, limits]) => {"
        " const { runCase } = await import('/tests/browser/stream_window.mjs');"
        " await runCase(module, name, limits === 'default'); }",
        ["./" + module, case, limits],
    )


def test_record_codes_are_those_of_python():
    text = (ROOT / "web/runtime/records.js").read_text()
    codes = {name: int(value) for name, value in re.findall(r"^export const (\w+) = (\d+);", text, re.M)}
    names = ["RUN", "ALLOC", "FREE", "UPLOAD", "COPY", "CODE_BITS", "STATUS_SLOT", "STATUS_BYTES"]
    assert codes == {name: getattr(host, name) for name in names}


def test_block_sizes_are_those_of_python(stream_page: Page):
    from pellucid.device.pool import block_size

    sizes = [
        *range(1, 2000, 7),
        *(1 << k for k in range(8, 32)),
        *((1 << k) + 1 for k in range(8, 32)),
        999_999_999,
    ]
    found = stream_page.evaluate(
        "async (sizes) => {"
        " const { blockBytes } = await import('/web/runtime/pool.js');"
        " return sizes.map(blockBytes); }",
        sizes,
    )
    assert found == [block_size(nbytes) for nbytes in sizes]
