"""Running REPL pages."""

import pytest

from browser.repl.page import Repl

from paths import SITE
from static_server import StaticServer


@pytest.fixture(scope="package")
def session(browser):
    """One running page for the tests that need no fresh one."""
    with StaticServer(SITE) as server:
        context = browser.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield Repl(page, server).open()
        context.close()
    assert not errors


@pytest.fixture
def repl(session):
    """The running page, with an empty transcript and an empty line."""
    session.ready()
    session.fill("")
    session.page.get_by_role("button", name="Clear").click()
    return session


@pytest.fixture
def fresh_repl(page, site_server):
    """A page of its own."""
    return Repl(page, site_server).open()


@pytest.fixture
def plain_repl(page, plain_server):
    return Repl(page, plain_server).open()
