"""What a person does on any page of demo/: wait until it is ready, press a button."""

from playwright.sync_api import Page

WAIT = 200_000  # milliseconds


def ready(page: Page) -> None:
    page.wait_for_function("document.body.dataset.state === 'ready'", timeout=WAIT)
    assert page.locator("#notes").inner_text() == ""


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    ready(page)
