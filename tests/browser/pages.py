"""What a person does on any page of demo/: wait until it is ready, press a button."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page
from playwright.sync_api import TimeoutError as Timeout

WAIT = 200_000  # milliseconds
BLOCK = 50.0  # milliseconds that a page's thread may be busy with one task


def wait_until(page: Page, condition: str) -> None:
    """Wait for a condition in JavaScript; a page that never meets it is asked what it says instead."""
    try:
        page.wait_for_function(condition, timeout=WAIT)
    except Timeout:
        said = page.evaluate(
            "document.body.dataset.state + ': ' + document.querySelector('#status')?.textContent"
        )
        notes = page.locator("#notes").inner_text(timeout=1000)
        raise AssertionError(f"never {condition}; the page says {said!r}, notes {notes!r}") from None


def ready(page: Page) -> None:
    """Wait until the page is ready and its views, which draw once a frame, show what it has."""
    wait_until(page, "document.body.dataset.state === 'ready'")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert page.locator("#notes").inner_text() == ""


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    ready(page)


def drop(page: Page, place: Locator, *files: Path) -> None:
    """Drag files of this computer onto a place of the page, as the browser itself tells of it."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    control = page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        at = {"x": box["x"] + min(9, box["width"] / 2), "y": box["y"] + min(9, box["height"] / 2)}
        control.send("Input.dispatchDragEvent", {"type": step, **at, "data": data})
    control.detach()


@contextmanager
def no_block(page: Page, most: float = BLOCK) -> Iterator[None]:
    """No task of the page's thread takes longer, in processor time, which other work cannot lengthen."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    try:
        yield
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {(e["pid"], e["tid"]) for e in events if e.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [e["tdur"] / 1000 for e in events if (e["pid"], e["tid"]) in threads and "tdur" in e]
    assert len(tasks) > 10, "nothing was traced"
    print(f"longest tasks of the page's thread: {[round(task) for task in sorted(tasks)[-5:]]} ms")
    assert max(tasks) < most, f"tasks of {sorted(tasks)[-5:]} ms"
