"""What tests of the lens page do with it, and what a tiny model natively says."""

import csv
import io
from typing import Any

from playwright.sync_api import Page, expect

from browser.pages import WAIT, press, ready
from models.tiny import ours
from pellucid import lens

IDS = [5, 17, 40, 8, 22]
CLEAN = "w5 w17 w40 w8 w22"
COUNT = 3


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def table(page: Page, name: str) -> list[dict[str, str]]:
    """The CSV that a picture is saved as."""
    with page.expect_download() as download:
        page.locator(f'#{name}-panel button[data-save="csv"]').click()
    ready(page)
    return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))


def tokens(page: Page) -> list[str]:
    """The tokens up to the one that the page stands at."""
    return page.locator("#tree-view button.path").all_inner_texts()


def back_to(page: Page, number: int) -> None:
    open_tab(page, "Branch and step")
    page.locator(f'#tree-view [data-number="{number}"]').click()
    ready(page)


def said(model: Any, ids: list[int]) -> list[list[str]]:
    """What each layer would have said, the last one first."""
    look = lens.logit_lens(model, ours([ids], "cpu"), top_k=1).table()
    return [[f"w{cell[0][0]}" for cell in row] for row in reversed(look)]


def run_python(page: Page, code: str) -> None:
    """Run a program in the field of a picture."""
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    field = page.locator("#attention-code")
    field.evaluate("details => details.open = true")
    field.get_by_role("textbox").fill(code)
    field.get_by_role("button", name="Run again").click()


def load(page: Page, source: str, says: str = "") -> None:
    """Load another model, or be told why it cannot be."""
    page.get_by_role("button", name="Load another", exact=True).click()
    page.get_by_label("Address, path on this site, or hub name").fill(source)
    if not says:
        return press(page, "Load")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator("#notes strong")).to_have_text(says, timeout=WAIT)
