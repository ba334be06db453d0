"""The Python behind the pictures of the lens page: changed and run again, and exported as a notebook."""

import ast
import asyncio
import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from browser.lens_page.page import IDS, back_to, open_tab, table
from browser.pages import WAIT, press, ready
from pellucid import lens


def executed(cells: list[str]) -> dict[str, Any]:
    """The names that cells of a notebook leave, each run as IPython does."""

    async def run() -> dict[str, Any]:
        names: dict[str, Any] = {}
        for text in cells:
            waiting = eval(compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.iscoroutine(waiting):
                await waiting
        return names

    # Playwright's own event loop runs in this thread.
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(lambda: asyncio.run(run())).result()


def test_the_python_behind_a_picture_is_changed_and_runs_again(page, model):
    back_to(page, 4)
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    code = page.locator("#attention-code")
    if code.get_attribute("open") is None:  # a file before this one may have looked, too
        code.locator("summary").click()
    text = code.get_by_role("textbox").input_value()
    assert f"picture = await attention(model, names, {IDS})" in text
    # Only the first layer, and sharper.
    code.get_by_role("textbox").fill(
        text.replace('capture=["attn_probs"]', 'capture=["attn_probs.0"]') + '\npicture["probs"] **= 2\n'
    )
    code.get_by_role("button", name="Run again").click()
    ready(page)
    probs = lens.run(model, IDS, lens.Plan(capture=["attn_probs.0"]))["attn_probs.0"].numpy()
    got = np.zeros_like(probs)
    for row in table(page, "attention"):
        got[tuple(int(row[name]) for name in ("layer", "head", "from", "to"))] = float(row["probability"])
    np.testing.assert_allclose(got, probs**2, atol=1e-5)
    code.get_by_role("textbox").fill("picture = 3")
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes .said")).to_contain_text("leaves int in `picture`", timeout=WAIT)
    code.get_by_role("textbox").fill("picture = {'probs': torch.zeros(1 << 36)}")
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes strong")).to_have_text("The graphics processor cannot do that", timeout=WAIT)
    expect(page.locator("#notes .said")).to_contain_text("for one buffer")
    # What was there goes on.
    press(page, "Look at all heads")


def test_the_notebook_computes_what_the_page_shows(page, model, arrays):
    back_to(page, 4)
    page.locator("#candidates button").nth(2).click()
    ready(page)
    back_to(page, 4)
    shown = {}
    for tab, name, button in (
        ("Attention", "attention", "Look at all heads"),
        ("Attribution", "attribution", "Attribute"),
        ("Through the layers", "ranks", "Draw"),
        ("Features", "features", "Find features"),
        ("Compare", "comparison", "Compare"),
    ):
        open_tab(page, tab)
        if tab == "Features":
            page.get_by_label("Its file").fill("/tiny/sae.safetensors")
        if tab == "Compare":
            page.get_by_label("Other model (").fill("/small/")
        press(page, button)
        shown[name] = list(table(page, name))
        if tab == "Features":
            page.locator("#features-view button[data-feature]").first.click()
            press(page, "Steer by it")
            back_to(page, 4)
    open_tab(page, "Steering")
    page.get_by_label("Towards").fill("w9 w60")
    page.get_by_label("Away from").fill("w9 w61")
    page.locator("#steering-form").get_by_label("at layer").fill("1")
    press(page, "Steer")
    back_to(page, 4)
    said = page.locator("#steered dd").all_inner_texts(), page.locator("#by-feature dd").all_inner_texts()
    tree = page.locator("#tree-view button").all_inner_texts()
    changed = page.locator("#tree-view button.changed").count()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as notebook").click()
    made = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    cells = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    titles = [
        "".join(cell["source"])[3:].lower() for cell in made["cells"] if cell["cell_type"] == "markdown"
    ][1:]
    assert set(shown) <= set(titles)
    collected = [text + ("\nkept.append(picture)" if "picture = await" in text else "") for text in cells]
    names = executed(["kept = []", *collected])
    pictures = dict(zip(titles, names["kept"], strict=True))
    # Steered texts, and the tree with its branches and changes.
    assert pictures["steering"]["steered"] == said[0][1]
    assert list(pictures["feature"].values()) == said[1]
    nodes = pictures["branches"]["nodes"]
    assert sorted(node["token"] for node in nodes) == sorted(text.replace("·", " ") for text in tree)
    assert sum(node["changed"] for node in nodes) == changed > 0
    assert len(pictures["branches"]["texts"]) > 2
    standing = lens.Session(model, IDS)
    assert [token for token, _, _ in pictures["branches"]["next"]] == [
        token for token, _ in standing.candidates(5)
    ]
    for row in shown["attention"]:
        at = [int(row[name]) for name in ("layer", "head", "from", "to")]
        probs = pictures["attention"]["probs"].reshape(3, 4, len(IDS), len(IDS))
        assert probs[tuple(at)] == pytest.approx(float(row["probability"]), abs=1e-5)
    got = [float(list(row.values())[1]) for row in shown["attribution"]]
    np.testing.assert_allclose(got, pictures["attribution"]["values"], atol=1e-3)
    got = np.array([list(row.values())[1:] for row in shown["comparison"]], float)
    np.testing.assert_allclose(got.reshape(-1), pictures["comparison"]["apart"], atol=1e-4)
    got = np.array([list(row.values())[2:] for row in shown["features"]], float)
    np.testing.assert_allclose(got.T.reshape(-1), pictures["features"]["strengths"], atol=1e-4)
    best = pictures["ranks"]["series"]
    assert [list(map(float, row["values"])) for row in best] == [
        [float(list(row.values())[1 + k]) for row in shown["ranks"]] for k in range(len(best))
    ]
