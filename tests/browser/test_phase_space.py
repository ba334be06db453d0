"""The page of phase space as a person uses it: clouds move while they are computed, as they do natively."""

import json
import math

import numpy as np
import pytest
from playwright.sync_api import expect

import pellucid as torch
from browser.pages import press, ready
from pellucid import physics

import assets

HEARD = """
import { Drift, Portrait } from "/demo/phase_space/portrait.js";
window.heard = [];
const draw = Portrait.prototype.draw;
Portrait.prototype.draw = function (x, y) {
  const seen = draw.call(this, x, y);
  window.heard.push({ x: [...x], y: [...y], seen });
  return seen;
};
"""
INK = """(id) => {
  const canvas = document.getElementById(id);
  const data = canvas.getContext("2d").getImageData(60, 10, canvas.width - 80, canvas.height - 80).data;
  return data.filter((value, k) => k % 4 === 3 && value > 0).length;
}"""


def filled(page, **values):
    for name, value in values.items():
        page.locator(f"input[name={name}]").fill(str(value))


def test_clouds_move_while_they_are_computed(page, plain_server, tmp_path):
    page.goto(f"{plain_server.url}demo/phase_space/")
    page.add_script_tag(content=HEARD, type="module")
    ready(page)
    assert page.locator("#system option").all_inner_texts() == [
        "Pendulums", "Springs", "Planets", "Stars in a galaxy"
    ]  # fmt: skip
    page.locator("#system").select_option("harmonic_oscillator")
    filled(page, dt=0.1, count=30, steps=2, pictures=5)
    press(page, "Run")
    expect(page.locator("#status")).to_contain_text("Done. Largest change of an energy")
    heard = page.evaluate("heard")
    assert [one["seen"] for one in heard] == [30] * 6
    # From where the page began, the same motion by the closed form of leapfrog's turn.
    q, p = (torch.tensor(heard[0][name]).unsqueeze(1) for name in "xy")
    path = physics.integrate(physics.harmonic_oscillator(), q, p, 0.1, 10, every=2)
    for one, x, y in zip(heard, path.q.numpy(), path.p.numpy(), strict=True):
        np.testing.assert_allclose([one["x"], one["y"]], [x[:, 0], y[:, 0]], atol=1e-5)
    exact = np.array(heard[0]["x"]) * math.cos(1) + np.array(heard[0]["y"]) * math.sin(1)
    np.testing.assert_allclose(heard[-1]["x"], exact, atol=5e-3)
    label = page.locator("#drift").get_attribute("aria-label")
    assert float(label.split()[-4]) == pytest.approx(path.drift, rel=0.1)
    assert min(page.evaluate(INK, "portrait"), page.evaluate(INK, "drift")) > 100

    # A run that is stopped goes no further; nothing on the page is hard to reach.
    page.locator("#system").select_option("pendulum")
    page.locator("#method").select_option("yoshida4")
    page.evaluate("heard.length = 0")
    filled(page, count=500, pictures=90_000)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("heard.length > 6")
    page.screenshot(path=tmp_path / "phase_space.png")
    press(page, "Stop")
    expect(page.locator("#status")).to_have_text("Stopped.")
    heard = page.evaluate("heard")
    assert max(map(abs, heard[-1]["x"])) <= math.pi + 1e-5
    assert json.dumps(heard[-1]["x"]) != json.dumps(heard[0]["x"])
    page.add_script_tag(path=assets.npm(assets.AXE) / "axe.min.js")
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, [(one["id"], one["nodes"][0]["html"]) for one in serious]
