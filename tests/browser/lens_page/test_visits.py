"""A visit to the lens page: stopped, sent as a link, without its device, come back to."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from browser.lens_page.page import CLEAN, COUNT, IDS, back_to, load, open_tab, run_python, tokens
from browser.pages import WAIT, press, ready, wait_until
from models.tiny import loaded, ours
from pellucid import lens


def test_stop_is_heard_while_a_prompt_is_read_and_the_lens_before_it_stays(page, model):
    shown = page.locator("#grid td").count()
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    long = [*range(5, 95)]
    prompt.fill(" ".join(f"w{k}" for k in long))
    page.evaluate(
        """() => new MutationObserver((_, watcher) => {
            if (!/of 90 tokens/.test(document.querySelector("#status").textContent)) return;
            watcher.disconnect();
            document.querySelector("#stop").click();
        }).observe(document.querySelector("#status"), { childList: true })"""
    )
    page.get_by_role("button", name="Generate", exact=True).click()
    expect(page.locator("#status")).to_have_text("Stopped before the prompt was read.", timeout=WAIT)
    assert page.locator("#grid td").count() == shown > 0
    # Read to its end, in pieces, it says what one whole run says.
    press(page, "Generate")
    session = lens.Session(model, long)
    ids = [*long, *(session.token().id for _ in range(COUNT))]
    assert tokens(page) == [f"w{k}" for k in ids]
    rows = page.locator("#grid tbody tr")
    expect(rows.first.locator("td")).to_have_count(len(ids) - 1)
    look = lens.logit_lens(model, ours([ids[:-1]], "cpu"), top_k=1).table()
    shown_rows = rows.evaluate_all("all => all.map(r => [...r.cells].slice(1).map(c => c.innerText))")
    same = [
        a == f"w{cell[0][0]}"
        for row, cells in zip(shown_rows, reversed(look), strict=True)
        for a, cell in zip(row, cells, strict=True)
    ]
    assert all(same)
    prompt.fill(CLEAN)
    press(page, "Generate")


@pytest.mark.parametrize("count", [20, 30, 90])
def test_a_text_of_longrope_is_read_as_a_whole(page, long, count):
    load(page, "/long/")
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    ids = [*range(4, 4 + count)]
    prompt.fill(" ".join(f"w{k}" for k in ids))
    page.get_by_label("New tokens").fill("22")
    press(page, "Generate")
    model = loaded(long, "cpu")
    made = model.generate(ours([ids], "cpu"), max_new_tokens=22)[0].tolist()
    assert tokens(page) == [f"w{k}" for k in made]
    page.get_by_label("New tokens").fill(str(COUNT))
    prompt.fill(CLEAN)
    load(page, "/tiny/")
    press(page, "Generate")


def seen_of(page: Page) -> tuple[list[str], list[str], list[list[str]]]:
    """Tokens of the path, those that were read under a plan, and the lens."""
    path = page.locator("#tree-view button.path")
    rows = page.locator("#grid tbody tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    return path.all_inner_texts(), page.locator("#tree-view button.path.changed").all_inner_texts(), rows


def test_the_link_opens_the_experiment_with_its_plans(page, site):
    back_to(page, 4)
    open_tab(page, "Steering")
    page.get_by_label("Towards").fill("w9 w60")
    page.get_by_label("Away from").fill("w9 w61")
    page.locator("#steering-form").get_by_label("at layer").fill("1")
    press(page, "Steer")
    press(page, "Copy link")
    expect(page).to_have_url(re.compile("view=steering"))
    link = page.evaluate("location.href")
    before = seen_of(page)
    assert before[1] == ["w22", *before[0][len(IDS) :]]
    assert re.search(r"&hash=[0-9a-f]{16}&", link)
    # Opened by somebody for whom the address has other weights by now, who is told.
    page.goto("about:blank")
    page.goto(re.sub(r"hash=[0-9a-f]+", "hash=0123456789abcdef", link))
    page.wait_for_function("document.body.dataset.state === 'ready'", timeout=WAIT)
    expect(page.locator("#notes strong")).to_have_text("The model has changed since the link was made")
    wait_until(page, "document.querySelectorAll('#tree-view button.changed').length > 1")
    expect(page.locator("#status")).to_contain_text("a second", timeout=WAIT)
    assert seen_of(page) == before
    expect(page.locator("#steering-panel")).to_be_visible()


def test_the_link_holds_the_sum_of_weights_from_the_hub(page, site):
    run_python(page, f'torch.settings.hub_endpoint = "{site.url}hub"')
    expect(page.locator("#notes .said")).to_contain_text("`picture`", timeout=WAIT)
    page.get_by_role("textbox", name="Prompt", exact=True).fill(CLEAN)
    # A browser that takes its time to copy a link holds nothing up.
    page.evaluate("navigator.clipboard.writeText = () => new Promise((done) => setTimeout(done, 300))")
    sums = []
    for source, file in (("owner/name", "hub/owner/name/resolve/main/model"), ("/tiny/", "tiny/model")):
        load(page, source)
        expect(page.locator(f'#copies [title^="{site.url}{file}.safetensors"]')).to_have_count(1)
        press(page, "Generate")
        press(page, "Copy link")
        expect(page).to_have_url(re.compile(f"model={re.escape(quote(source, safe=''))}&hash="))
        sums += re.findall(r"&hash=([0-9a-f]{16})&", page.evaluate("location.href"))
    assert len(sums) == 2
    assert sums[0] == sums[1]  # the same weights


LOSE = """
from pellucid.device.stream import stream

stream().open().stream.device.destroy()
await lens.run(model, [5, 17]).output.logits.numpy_async()
"""


def test_a_lost_device_takes_the_model_and_not_the_text(page):
    page.get_by_role("textbox", name="Prompt", exact=True).fill(CLEAN)
    press(page, "Generate")
    before = seen_of(page)
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    code = page.locator("#attention-code")
    code.evaluate("details => details.open = true")
    code.get_by_role("textbox").fill(LOSE)
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes strong")).to_have_text(
        "The graphics processor stopped answering", timeout=WAIT
    )
    expect(page.locator("#status")).to_contain_text("load it again, and its text comes back")
    press(page, "Load")
    wait_until(page, f"document.querySelectorAll('#tree-view button.path').length === {len(before[0])}")
    ready(page)
    path, _, rows = seen_of(page)
    assert path == before[0]
    # The last token is read, too, now.
    assert [row[:-1] for row in rows] == before[2]


def test_a_reload_brings_the_model_back_without_the_network(page, site):
    page.get_by_role("textbox", name="Prompt", exact=True).fill("w5 w60")
    said = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    assert said["model"] == "/tiny/"
    assert not {"prompt", "ids"} & set(said)
    page.wait_for_function("document.body.dataset.offline === 'true'", timeout=WAIT)
    site.stop()
    page.reload()
    ready(page)
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value("w5 w60")
    press(page, "Generate")
    assert tokens(page)[:2] == ["w5", "w60"]
    page.goto("about:blank")
    page.go_back()
    ready(page)
    expect(page.locator("#summary")).to_contain_text("3 layers")
