"""The REPL page, by keyboard: the verbs of its tests."""

import contextlib

from playwright.sync_api import Page, TimeoutError

# The text that is being typed: lines of the editor, without what it suggests while it is empty.
HELD = """() => [...document.querySelectorAll(".cm-line")]
    .map((line) => (line.querySelector(".cm-placeholder") ? "" : line.textContent)).join("\\n")"""
READY, RUNNING = "body[data-state=ready]", "body[data-state=running]"
BOOT = 120_000  # milliseconds
DRAWN = 250_000  # characters of one input's output that may be on the page at a time, with room to spare


class Repl:
    """The page, with the verbs of this file's tests."""

    def __init__(self, page: Page, server):
        self.page, self.server = page, server
        self.editor = page.get_by_role("textbox", name="Python input")
        self.notes = page.locator("#notes")
        self.options = page.get_by_role("listbox", name="Completions").get_by_role("option")
        self.hint = page.locator("#hint")
        self.mark = page.locator(".cm-gutterElement:visible").first
        self.status = page.get_by_role("status")

    def open(self) -> "Repl":
        self.page.goto(self.server.url + "web/repl/")
        self.ready(BOOT)
        return self

    def ready(self, timeout: float = 30_000) -> None:
        self.page.wait_for_selector(READY, timeout=timeout)

    def start(self, line: str) -> None:
        """Type a line that goes on running."""
        self.editor.press_sequentially(line)
        self.editor.press("Enter")
        self.page.wait_for_selector(RUNNING)
        self.holds("")  # it was accepted

    def holds(self, text: str) -> None:
        """Wait until this is what stands in the editor."""
        with contextlib.suppress(TimeoutError):
            self.page.wait_for_function(f"text => ({HELD})() === text", arg=text, timeout=5_000)
        assert self.page.evaluate(HELD) == text

    def fill(self, text: str) -> None:
        """Put this into the editor, as who pastes it."""
        self.editor.press("Control+a")
        self.editor.press("Delete")
        if text:
            self.paste(text)

    def enter(self, program: str) -> str:
        """Run a whole program; what it printed."""
        self.fill(program)
        self.editor.press("Control+Enter")
        self.holds("")
        self.ready()
        return self.output()

    def type(self, *lines: str) -> str:
        """Type lines, Enter after each; what was printed for the last input."""
        for line in lines:
            self.editor.press_sequentially(line)
            self.editor.press("Enter")
            self.ready()
        return self.output()

    def type_block(self, source: str) -> str:
        """Type a statement, indented as it is written, and the empty line that ends a block."""
        first, *rest = source.rstrip("\n").split("\n")
        self.type(first)
        for line in [*rest, ""] if rest else []:
            self.editor.press("Shift+Home")  # instead of the indentation that the editor proposes
            self.editor.press("Delete")
            self.type(line)
        return self.output()

    def restart(self) -> None:
        """Press Restart Python, and answer its question."""
        self.page.get_by_role("button", name="Restart Python").click()
        self.page.get_by_role("button", name="Restart", exact=True).click()

    def paste(self, text: str) -> None:
        self.editor.evaluate(
            """(editor, text) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", text);
                const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
                editor.dispatchEvent(event);
            }""",
            text,
        )

    def output(self) -> str:
        """What was printed after the last input that was run."""
        return self.page.evaluate(
            """() => {
                const blocks = [...document.getElementById("transcript").children];
                const last = blocks.findLastIndex((block) => block.className === "input");
                return blocks.slice(last + 1).map((block) => block.textContent).join("");
            }"""
        )

    def inputs(self) -> list[str]:
        return self.page.locator("#transcript .input").all_text_contents()

    def drawn(self) -> int:
        """Characters that are on the page."""
        return self.page.evaluate("document.getElementById('transcript').textContent.length")

    def saved(self) -> str:
        """What "Save all" of the last input downloads."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save all").last.click()
        return download.value.path().read_text(encoding="utf-8")
