"""More than the lens page, its Python or its device has room for: each is said, and the visit goes on."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.lens_page.page import CLEAN, COUNT, IDS, load, run_python, tokens, zeros
from browser.pages import WAIT, press
from pellucid import lens

GIB = 1 << 30


def goes_on(page: Page, model: Any) -> None:
    """The model that was there generates."""
    page.get_by_role("textbox", name="Prompt", exact=True).fill(CLEAN)
    press(page, "Generate")
    session = lens.Session(model, IDS)
    made = [session.token().id for _ in range(COUNT)]
    assert tokens(page) == [f"w{k}" for k in IDS + made]


@pytest.mark.parametrize(
    ("code", "title", "words"),
    [
        ("torch.ones(1 << 28) + 1", "The graphics processor is out of memory", "1073741824 bytes"),
        ("[bytearray(1 << 28) for _ in range(32)]", "Python is out of memory", ""),
    ],
)
def test_a_program_that_needs_more_memory_than_there_is(page, model, code, title, words):
    run_python(page, f"x = {code}\npicture = {{'probs': x}}")
    expect(page.locator("#notes strong")).to_have_text(title, timeout=WAIT)
    expect(page.locator("#notes .said")).to_contain_text(words)
    goes_on(page, model)


@pytest.mark.parametrize(
    ("rows", "title"),
    [
        (1 << 20, "The graphics processor is out of memory"),
        (3 << 19, "The graphics processor cannot do that"),
    ],
)
def test_a_model_that_the_device_has_no_room_for(page, model, site, tmp_path, rows, title):
    site.mounts[f"huge{rows}"] = zeros(tmp_path / "huge", rows)
    site.requests.clear()
    load(page, f"/huge{rows}/", says=title)
    sent = sum(request.sent for request in site.requests if request.path.endswith(".safetensors"))
    assert sent < GIB / 8
    expect(page.locator("#status")).to_contain_text("The model was not loaded.")
    page.get_by_label("Address, path on this site, or hub name").fill("/tiny/")
    press(page, "Load")
    goes_on(page, model)


def test_an_empty_prompt_is_not_read(page, model):
    prompt, notes = page.get_by_role("textbox", name="Prompt", exact=True), page.locator("#notes strong")
    before = tokens(page)
    for text, said in (("", []), ("  \n", ["There is nothing to read"])):
        prompt.fill(text)
        page.get_by_role("button", name="Generate", exact=True).click()
        expect(notes).to_have_text(said, timeout=WAIT)
        assert prompt.evaluate("field => field.validity.valueMissing") is (not text)
        assert page.evaluate("document.body.dataset.state") == "ready"
        assert tokens(page) == before
    goes_on(page, model)
