"""Python that ends by itself: the page says why, and a new one has what was typed."""

from playwright.sync_api import expect

from browser.repl.page import BOOT, Repl

from static_server import Response


def test_a_fatal_error_offers_a_restart_that_keeps_what_was_typed(browser, site_server):
    context = browser.new_context()  # the error is one of the page, which must not fail the test
    repl = Repl(context.new_page(), site_server).open()
    repl.type("first = 1", "import ctypes")
    repl.editor.press_sequentially("ctypes.string_at(0xfffffff0, 100)")
    repl.editor.press("Enter")
    alert = repl.page.get_by_role("alert")
    expect(alert).to_contain_text("memory that is not Python's, which nothing survives", timeout=BOOT)
    expect(alert).to_contain_text("What was typed is kept")
    expect(repl.status).to_have_text("Python has stopped.")
    expect(repl.editor).to_be_disabled()
    expect(alert.get_by_role("button", name="Restart Python")).to_be_focused()
    alert.get_by_role("button", name="offer what was typed").click()
    repl.ready(BOOT)
    expect(alert).to_be_hidden()
    repl.holds("first = 1\nimport ctypes\nctypes.string_at(0xfffffff0, 100)")
    repl.fill("")
    for line in ("ctypes.string_at(0xfffffff0, 100)", "import ctypes", "first = 1"):
        repl.editor.press("ArrowUp")
        repl.holds(line)
    repl.type("")
    assert repl.type("first + 1") == "2\n"
    context.close()


def test_a_site_without_its_parts_says_so_and_tries_again(page, site_server):
    site_server.routes["/pyodide/pyodide.asm.wasm"] = lambda _: Response(b"", "application/wasm")
    page.goto(site_server.url + "web/repl/")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Python could not be loaded. Look at the connection", timeout=BOOT)
    del site_server.routes["/pyodide/pyodide.asm.wasm"]
    alert.get_by_role("button", name="Restart Python").click()
    page.wait_for_selector("body[data-state=ready]", timeout=BOOT)
