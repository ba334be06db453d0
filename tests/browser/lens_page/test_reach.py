"""The lens page by keyboard, touch and in forced colours, by an address of the hub, and without a network."""

import threading

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from browser.lens_page.page import CLEAN, load, open_tab, other_prompt, run_python, tokens, zeros
from browser.pages import WAIT, drop, press, ready
from models.tiny import ours
from pellucid import lens

from static_server import Fault, Request


def by_key(page: Page, button: Locator) -> None:
    """Press a button by keyboard; whoever did still has a place on the page afterwards."""
    button.focus()
    page.keyboard.press("Enter")
    ready(page)
    page.wait_for_function(
        "document.activeElement !== document.body && document.activeElement.checkVisibility()"
    )


def test_whoever_uses_the_keyboard_keeps_a_place(page, model):
    by_key(page, page.get_by_role("button", name="Generate", exact=True))
    expect(page.get_by_role("button", name="Generate", exact=True)).to_be_focused()
    open_tab(page, "Branch and step")
    candidates = page.locator("#candidates button")
    by_key(page, candidates.filter(has_text="Ask the model"))
    expect(candidates.first).to_be_focused()
    by_key(page, candidates.nth(1))
    by_key(page, page.locator("#tree-view [data-number='4']"))
    expect(page.locator("#tree-view [data-number='4']")).to_be_focused()
    by_key(page, page.get_by_role("button", name="Step a layer"))
    by_key(page, page.get_by_role("button", name="Change"))
    by_key(page, page.get_by_role("button", name="Resume"))
    expect(candidates.first).to_be_focused()
    open_tab(page, "Compare")
    page.get_by_label("Other model (").fill("/small/")
    by_key(page, page.get_by_role("button", name="Compare", exact=True))
    by_key(page, page.get_by_role("button", name="Let go of the other"))
    page.get_by_label("Other model (").fill("")
    open_tab(page, "Patching")
    page.get_by_label("Clean prompt").fill(CLEAN)
    page.get_by_label("Corrupted prompt").fill(" ".join(f"w{k}" for k in other_prompt(model)))
    # Stop takes the keyboard from the button that began; it goes back there.
    patch = page.locator("#patching-form").get_by_role("button")
    page.evaluate(
        """() => new MutationObserver((_, watcher) => {
            watcher.disconnect();
            document.querySelector("#stop").focus();
            document.querySelector("#stop").click();
        }).observe(document.querySelector("#stop"), { attributes: true })"""
    )
    by_key(page, patch)
    expect(patch).to_be_focused()
    page.locator("#copies").evaluate("details => details.open = true")
    kept = page.locator("#copies li").first
    address = (kept.locator("[title]").get_attribute("title") or "").split()[0]
    by_key(page, kept.get_by_role("button", name="Remove"))
    expect(page.locator(f'#copies [title^="{address}"]')).to_have_count(0)


def test_a_prompt_from_right_to_left_begins_at_the_right(page):
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    for text, direction in (("\u0645\u0631\u062d\u0628\u0627 w5", "rtl"), (CLEAN, "ltr")):
        prompt.fill(text)
        assert prompt.evaluate("box => getComputedStyle(box).direction") == direction


def test_what_is_dropped_on_the_page_is_read_by_it_and_never_opened_instead(page, tmp_path, arrays):
    page.evaluate("window.here = true")
    before, file, folder = tokens(page), tmp_path / "notes.txt", tmp_path / "model"
    file.write_text("notes")
    folder.mkdir()
    drop(page, page.locator("#prompt-title"), file)
    expect(page.locator("#notes .said")).to_contain_text("begins with b'notes'", timeout=WAIT)
    page.get_by_role("button", name="Keep this model").click()
    drop(page, page.locator("#prompt-title"), folder)
    expect(page.locator("#notes strong")).to_have_text("A folder cannot be read here")
    # Each field for a file has a place of its own.
    np.savez(tmp_path / "sae.npz", **arrays)
    open_tab(page, "Features")
    drop(page, page.locator("#features-panel"), tmp_path / "sae.npz")
    expect(page.get_by_label("Its file")).to_have_value("sae.npz")
    page.locator("#features-panel").get_by_label("of layer").fill("1")
    press(page, "Find features")
    assert page.locator("#features-view tbody button").count() > 0
    assert page.evaluate("window.here")
    assert tokens(page) == before


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 600)])
def test_a_finger_finds_the_cell_and_what_is_told_of_it(page, width, height):
    control = page.context.new_cdp_session(page)
    size = page.viewport_size
    assert size is not None
    try:
        page.set_viewport_size({"width": width, "height": height})
        control.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        press(page, "Generate")
        panel, scroller = page.locator("#panel"), page.locator("#scroller")
        expect(panel).to_have_text("Tap a cell to see the five likeliest tokens.")
        cell = page.locator("#grid td").first
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        assert box is not None
        touch = {"x": box["x"] + 9, "y": box["y"] + 9}
        control.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [touch]})
        control.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect(panel.get_by_role("listitem")).to_have_count(5)
        above, below = scroller.bounding_box(), panel.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] <= below["y"]  # nothing of the grid is covered
        expect(panel.get_by_role("listitem").first).to_be_in_viewport(ratio=1)
        expect(cell).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        control.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
        control.detach()
        page.set_viewport_size(size)


@pytest.mark.parametrize("forced", ["none", "active"])
def test_cells_show_shares_and_agreement_by_more_than_bold_letters(page, model, forced):
    press(page, "Generate")
    ids = [int(word[1:]) for word in tokens(page)][:-1]
    page.emulate_media(forced_colors=forced)
    try:
        shown = page.locator("#grid td").evaluate_all(
            """cells => cells.map(cell => {
                const style = getComputedStyle(cell);
                return [
                    parseFloat(style.borderBottomWidth), style.backgroundColor, style.boxShadow !== "none",
                    style.textDecorationLine === "underline",
                ];
            })"""
        )
    finally:
        page.emulate_media(forced_colors="none")
    look = [[cell[0] for cell in row] for row in lens.logit_lens(model, ours([ids], "cpu"), top_k=1).table()]
    cells = [cell for row in reversed(look) for cell in row]
    agrees = [token == look[-1][k % len(ids)][0] for k, (token, _) in enumerate(cells)]
    assert len(set(agrees)) == 2
    shares = np.array([share for _, share in cells])
    if forced == "active":
        bars = np.array([bar for bar, *_ in shown])
        np.testing.assert_allclose(bars, shares * 7.2, atol=1)  # pixels of 0.45rem
        assert [underlined for *_, underlined in shown] == agrees
    else:
        assert len({colour for _, colour, *_ in shown}) > 2
        assert [shadow for _, _, shadow, _ in shown] == agrees


def test_an_address_of_the_hubs_pages_is_the_model_of_that_page(page, site):
    run_python(page, f'torch.settings.hub_endpoint = "{site.url}hub"')
    expect(page.locator("#notes .said")).to_contain_text("`picture`", timeout=WAIT)
    for address, says in (
        ("owner/name", ""),
        ("owner/name/tree/main", ""),
        ("owner/name/blob/main/model.gguf", "There is no such model"),
    ):
        site.requests.clear()
        load(page, f"{site.url}hub/{address}", says)
        asked = {request.path for request in site.requests if request.path.startswith("/hub/")}
        assert asked
        assert all(path.startswith("/hub/owner/name/resolve/main/") for path in asked), asked
        expect(page.locator("#summary")).to_contain_text("3 layers")
    page.get_by_role("button", name="Keep this model").click()
    load(page, "/tiny/")
    press(page, "Generate")


def test_a_load_without_a_network_says_that_it_waits_and_goes_on(page, site, tmp_path):
    site.mounts["zeros"] = zeros(tmp_path / "zeros", 1 << 12)
    run_python(page, "torch.settings.network_retries = 1")
    expect(page.locator("#notes .said")).to_contain_text("`picture`", timeout=WAIT)
    silent = threading.Event()

    def hold(request: Request) -> Fault | None:
        """The header comes, the rest does not: first the server is silent, then it lets go."""
        first = request.headers.get("range", "").startswith("bytes=0-")
        if not request.path.endswith(".safetensors") or first:
            return None
        return Fault(drop_after=9) if silent.wait(WAIT / 1000) else None

    text = page.locator("#progress-text")
    page.get_by_role("button", name="Load another", exact=True).click()
    page.get_by_label("keep a copy").uncheck()
    site.faults = hold
    try:
        page.get_by_label("Address, path on this site, or hub name").fill("/zeros/")
        page.get_by_role("button", name="Load", exact=True).click()
        expect(text).to_contain_text("the server is silent; it is asked again by itself", timeout=WAIT)
        page.context.set_offline(True)
        expect(text).to_contain_text("offline; it goes on by itself")
        expect(text).not_to_contain_text("/s")  # no rate of what does not come
        silent.set()
        site.faults = None
        page.context.set_offline(False)
        ready(page)
    finally:
        silent.set()
        site.faults = None
        page.context.set_offline(False)
        page.get_by_role("button", name="Load another", exact=True).click()
        page.get_by_label("keep a copy").check()
        page.get_by_role("button", name="Keep this model").click()
        load(page, "/tiny/")
        press(page, "Generate")
        run_python(page, "torch.settings.network_retries = 5")
