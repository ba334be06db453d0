"""Live plots of a training run are drawn from the entries of its history."""

import json

from playwright.sync_api import Browser

from paths import ROOT
from static_server import StaticServer

ENTRIES = [
    {"step": 1, "epoch": 0.1, "loss": 2.0, "grad_norm": 1.5},
    {"step": 2, "epoch": 0.2, "loss": 1.0, "grad_norm": 0.5},
    {"step": 2, "epoch": 0.2, "eval_loss": 1.25},
]
WEIGHTS = [
    {"step": 5, "histograms": {"a.weight": {"low": -1.0, "high": 1.0, "counts": [1, 2, 1]}}},
    {"step": 10, "histograms": {"a.weight": {"low": -2.0, "high": 1.5, "counts": [1, 0, 3]}}},
]
DRAW = """async ([entries, weights]) => {
  const { TrainingPlots } = await import("/training_plot.js");
  const plots = new TrainingPlots(document.body);
  for (const entry of entries) plots.add(entry);
  for (const entry of weights) plots.addHistograms(entry);
  return [...document.querySelectorAll("canvas")].map((canvas) => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return [canvas.dataset.name, canvas.getAttribute("aria-label"), data.some((x) => x > 0)];
  });
}"""


def test_plots_are_drawn(browser: Browser):
    with StaticServer(ROOT / "web") as server:
        page = browser.new_page()
        page.goto(f"{server.url}index.html", wait_until="domcontentloaded")
        found = page.evaluate(DRAW, [ENTRIES, WEIGHTS])
        page.close()
    assert json.loads(json.dumps(found)) == [
        ["loss", "loss: 1 at step 2", True],
        ["grad_norm", "grad_norm: 0.5 at step 2", True],
        ["eval_loss", "eval_loss: 1.25 at step 2", True],
        ["a.weight", "a.weight: -2.00 to 1.50 at step 10", True],
    ]
