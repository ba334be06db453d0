"""Headless Chromium for the tests of pages (Playwright) and of code inside Pyodide (pytest-pyodide)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_pyodide
from playwright.sync_api import Browser, BrowserContext, Page, Request

from browser.opening import opened_context

import site_builder
from paths import DIST, SITE, TEST_SITE, WEIGHTS
from static_server import Response, StaticServer

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


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Chromium keeps what it compiled of Pyodide: later pages of the same address begin with that."""
    return tmp_path_factory.mktemp("chromium")


@pytest.fixture(scope="package")
def context(profile: Path) -> Iterator[BrowserContext]:
    """One Chromium for this folder: Playwright keeps an event loop running, which other tests would meet."""
    with opened_context(profile) as opened:
        yield opened


@pytest.fixture(scope="package")
def browser(context: BrowserContext) -> Browser:
    """The same Chromium, for contexts with settings of their own."""
    assert context.browser is not None
    return context.browser


@pytest.fixture
def emptied(context: BrowserContext) -> Iterator[BrowserContext]:
    """The context; the test's pages and all that they stored go with it."""
    origins: set[str] = set()

    def note(request: Request) -> None:
        origins.add("/".join(request.url.split("/")[:3]))

    context.on("request", note)
    yield context
    context.remove_listener("request", note)
    first, *others = context.pages
    for opened in others:
        opened.close()
    control = context.new_cdp_session(first)
    for origin in origins:
        control.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    control.detach()


@pytest.fixture(scope="package")
def playwright_browsers(context: BrowserContext) -> dict[str, BrowserContext]:
    """What pytest-pyodide opens its pages in."""
    return {"chrome": context}


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
def selenium(emptied: BrowserContext, selenium_standalone):
    """A page of pytest-pyodide for each test: none finds what another left, or a page that crashed."""
    return selenium_standalone


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[bool, StaticServer]]:
    """Servers of the site with and without isolation, which keep their addresses."""
    mounts = {"weights": WEIGHTS, "dist": DIST}
    with StaticServer(SITE, mounts) as isolated, StaticServer(SITE, mounts, isolation=False) as plain:
        yield {True: isolated, False: plain}


def as_new(server: StaticServer) -> Iterator[StaticServer]:
    """A server for one test: what it sets and what was asked of it is forgotten."""
    mounts = dict(server.mounts)
    yield server
    server.mounts, server.faults = mounts, None
    server.routes.clear()
    server.requests.clear()


@pytest.fixture
def site_server(servers: dict[bool, StaticServer]) -> Iterator[StaticServer]:
    """The built site with the weights at /weights/ and the wheel at /dist/, cross-origin isolated."""
    yield from as_new(servers[True])


@pytest.fixture
def plain_server(servers: dict[bool, StaticServer]) -> Iterator[StaticServer]:
    """The same without cross-origin isolation."""
    yield from as_new(servers[False])


@pytest.fixture
def page(emptied: BrowserContext) -> Iterator[Page]:
    """A fresh page whose uncaught errors fail the test."""
    opened = emptied.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: print(f"console {message.type}: {message.text}", file=sys.stderr))
    yield opened
    assert not errors, f"uncaught errors in the page: {errors}"
