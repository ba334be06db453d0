"""The page of the examples as a person uses it: one runs as it does natively, is changed and restored."""

import json
import re
import sys

import numpy as np
from playwright.sync_api import expect

import pellucid
from browser.pages import press, ready
from examples.test_examples import loaded

import assets
from paths import ROOT

GIVEN = {"steps": 6, "batch": 8, "width": 4}
LOSSES = """
import { TrainingPlots } from "/web/training_plot.js";
window.losses = [];
const add = TrainingPlots.prototype.add;
TrainingPlots.prototype.add = function (entry) {
  window.losses.push(entry.loss);
  return add.call(this, entry);
};
"""


def test_an_example_runs_in_the_page(page, plain_server, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    names = json.loads((ROOT / "examples" / "list.json").read_text(encoding="utf-8"))
    page.goto(f"{plain_server.url}demo/examples/#digits")
    page.add_script_tag(content=LOSSES, type="module")
    links = page.get_by_role("navigation", name="Examples").get_by_role("link")
    expect(links).to_have_count(len(names))
    expect(page.get_by_role("heading", level=2)).to_have_text(links.nth(names.index("digits")).inner_text())
    ready(page)
    for field, value in GIVEN.items():
        page.get_by_label(field, exact=True).fill(str(value))
    press(page, "Run")
    expect(page.locator("#status")).to_have_text("Done.")
    expect(page.locator("#pictures img")).to_have_count(2)
    assert page.evaluate("[...document.querySelectorAll('#pictures img')].every((x) => x.naturalWidth > 100)")
    found = page.evaluate("losses")
    with pellucid.webgpu.fusion(False):
        steps = [x for x in loaded("digits").main(**GIVEN) if isinstance(x, pellucid.Tensor)]
    sys.modules.pop("pictures", None)
    np.testing.assert_allclose(found, [loss.item() for loss in steps], rtol=1e-3)

    # A run that is stopped goes no further; nothing on the page is hard to reach.
    page.get_by_label("steps", exact=True).fill("100000")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("losses.length > 20")
    press(page, "Stop")
    expect(page.locator("#status")).to_have_text("Stopped.")
    page.add_script_tag(path=assets.npm(assets.AXE) / "axe.min.js")
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, [(one["id"], one["nodes"][0]["html"]) for one in serious]

    # A change of the program, in which something fails: the page says where.
    page.locator("#code .cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\ndef main(): yield undefined_name")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#notes")).to_contain_text("undefined_name", timeout=60_000)
    lines = len((ROOT / "examples" / "digits.py").read_text(encoding="utf-8").splitlines())
    trace = page.locator("#notes pre").text_content() or ""
    assert re.search(rf'digits\.py", line {lines + 2}\b', trace), trace
    page.get_by_role("button", name="Restore the code").click()
    expect(page.locator("#code .cm-content")).not_to_contain_text("undefined_name")
