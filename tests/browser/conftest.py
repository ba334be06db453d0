"""Headless Chromium for the tests of pages (Playwright) and of code inside Pyodide (pytest-pyodide)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_pyodide
from playwright.sync_api import Browser, Page, sync_playwright

import chromium
import site_builder
from paths import DIST, SITE, TEST_SITE, WEIGHTS
from static_server import Response, StaticServer

# No name but the machine's own resolves: whatever reaches for the network fails its test.
FLAGS = [
    *(flag for flag in chromium.FLAGS if not flag.startswith("--headless")),
    *chromium.SOFTWARE_ADAPTER,
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--js-flags=--expose-gc",
]
BOOT = """
let pyodide = await loadPyodide({ jsglobals: self, packageBaseUrl: location.origin + "/" });
"""

# pytest-pyodide looks into the lock file while tests are collected, so the site must be there by then.
site_builder.ensure_test_site()
pytest_pyodide.get_global_config().set_load_pyodide_script("chrome", BOOT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # Chromium itself lost a page once in some thirty runs, before anything of ours was in it. What
            # a page reports is a result and is not asked for again.
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="Target crashed"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium with the software adapter; one for each file, for Playwright keeps an event loop running."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium.find(), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def playwright_browsers(browser: Browser) -> dict[str, Browser]:
    """What pytest-pyodide opens its pages in."""
    return {"chrome": browser}


@pytest.fixture(scope="session")
def web_server_main() -> Iterator[tuple[str, int, Path]]:
    """What pytest-pyodide loads its pages and packages from: an isolated, secure origin."""
    templates = Path(pytest_pyodide.__file__).parent / "_templates"

    def reply(file: Path) -> Response:
        kind = "text/javascript" if file.suffix == ".js" else "text/html; charset=utf-8"
        return Response(file.read_bytes(), kind)

    routes = {f"/{file.name}": lambda _, file=file: reply(file) for file in templates.iterdir()}
    with StaticServer(TEST_SITE, {"weights": WEIGHTS}, routes=routes) as server:
        yield server.host, server.port, Path(server.root)


@pytest.fixture
def selenium(selenium_standalone):
    """A page of pytest-pyodide for each test: none finds what another left, or a page that crashed."""
    return selenium_standalone


@pytest.fixture
def site_server() -> Iterator[StaticServer]:
    """The built site with the weights at /weights/ and the wheel at /dist/, cross-origin isolated."""
    with StaticServer(SITE, {"weights": WEIGHTS, "dist": DIST}) as server:
        yield server


@pytest.fixture
def plain_server() -> Iterator[StaticServer]:
    """The same without cross-origin isolation."""
    with StaticServer(SITE, {"weights": WEIGHTS, "dist": DIST}, isolation=False) as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page whose uncaught errors fail the test."""
    context = browser.new_context()
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: print(f"console {message.type}: {message.text}", file=sys.stderr))
    yield opened
    context.close()
    assert not errors, f"uncaught errors in the page: {errors}"
