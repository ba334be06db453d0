"""The REPL after its first visit, with no server any more."""

from playwright.sync_api import expect

from browser.repl.page import BOOT, Repl

from paths import SITE
from static_server import StaticServer


def test_the_page_opens_again_without_a_network(browser):
    context = browser.new_context()
    with StaticServer(SITE) as server:
        repl = Repl(context.new_page(), server).open()
        repl.page.wait_for_selector("body[data-offline=true]", timeout=BOOT)
    repl.page.reload()
    repl.ready(BOOT)
    assert repl.type("import pellucid as torch", "torch.ones(3).sum().item()") == "3.0\n"
    assert repl.page.evaluate("crossOriginIsolated")  # so Ctrl-C still works
    expect(repl.notes).to_have_text("")
    context.close()
