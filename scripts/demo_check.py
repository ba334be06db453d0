"""Open the logit lens in headless Chromium, generate with the real model and compare with recorded values.

    .venv/bin/python scripts/demo_check.py URL

Compared are the greedy tokens, the lens's last row with the model's own logits, and every row with what
transformers computes (tests/golden/smollm2_lens.json). Writes out/logit_lens.png; exits 0 when everything
agrees, else 1.
"""

import argparse
import json
import sys
import time
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

import chromium
from paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "smollm2_lens.json"
SCREENSHOT = ROOT / "out" / "logit_lens.png"
TIMEOUT = 600.0  # seconds for everything; a software adapter on two cores needs up to half of it
OWN = 1e-3  # between the lens's last row and the model's own logits
NEAR = 0.02  # between any row and transformers
CLEAR = 2 * NEAR  # lead of the likeliest token from which on it must be the same one

Cell = list[tuple[int, str, float]]


class Failure(Exception):
    """The page did not do what it should."""


def say(text: str) -> None:
    print(f"check: {text}", flush=True)


class Check:
    """One visit to the page."""

    def __init__(self, page: Page):
        self.page = page
        self.ends = time.monotonic() + TIMEOUT
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def until(self, *states: str, telling: str) -> None:
        """Wait for one of the page's states, printing what it shows meanwhile."""
        shown = ""
        while (state := self.page.evaluate("document.body.dataset.state")) not in states:
            if self.errors:
                raise Failure(f"uncaught errors in the page: {self.errors}")
            if time.monotonic() > self.ends:
                raise Failure(f"the page is still {state!r} after {TIMEOUT:.0f} s")
            if (now := self.page.inner_text(telling).strip()) != shown:
                shown = now
                say(repr(shown))
            time.sleep(1)
        notes = self.page.inner_text("#notes").strip()
        if notes or self.errors:
            raise Failure(f"the page says: {notes} {self.errors or ''}")

    def run(self, url: str, prompt: str, count: int) -> dict[str, Any]:
        """Load the page's own model and generate; what the page saves as JSON."""
        page = self.page
        page.goto(url)
        self.until("empty", "missing", "crashed", telling="#status")
        began = time.monotonic()
        page.click("#load")
        self.until("ready", "empty", "crashed", telling="#progress-text")
        say(f"{page.inner_text('#summary')}, loaded in {time.monotonic() - began:.1f} s")
        page.fill("#prompt", prompt)
        page.fill("#count", str(count))
        page.click("#generate")
        self.until("ready", "empty", "crashed", telling="#text")
        say(page.inner_text("#status"))
        with page.expect_download() as download:
            page.click("#save")
        return json.loads(download.value.path().read_text(encoding="utf-8"))


def compare(run: dict[str, Any], golden: dict[str, Any]) -> None:
    """Raise a Failure where a run departs from what was recorded."""
    prompt = [token["id"] for token in run["prompt_tokens"]]
    new = [token["id"] for token in run["new_tokens"]]
    expect("ids of the prompt", prompt, golden["prompt_ids"])
    expect("new tokens", new, golden["new_ids"])
    expect("text", run["text"], golden["text"])
    columns: list[list[Cell]] = [column["layers"] for column in run["columns"]]
    expect("columns", len(columns), len(prompt) + len(new) - 1)
    expect("layers", {len(column) for column in columns}, {golden["layers"]})

    own = 0.0
    for index, token in enumerate(run["new_tokens"]):
        last = columns[len(prompt) - 1 + index][-1]
        expect(f"last row at token {index}", [c[0] for c in last], [c[0] for c in token["best"]])
        own = max(own, *(abs(a[2] - b[2]) for a, b in zip(last, token["best"], strict=True)))
    if own > OWN:
        raise Failure(f"the last row departs from the model's own logits by {own:.5f}, more than {OWN}")
    say(f"the last row is the model's own prediction (probabilities within {own:.1e})")

    far, same, clear = 0.0, 0, 0
    for layer in range(golden["layers"]):
        for position, column in enumerate(columns):
            ids, probabilities = golden["ids"][layer][position], golden["probabilities"][layer][position]
            where = f"layer {layer}, position {position}"
            if probabilities[0] - probabilities[1] > CLEAR:
                expect(f"the likeliest token of {where}", column[layer][0][0], ids[0])
                clear += 1
            same += [cell[0] for cell in column[layer]] == ids
            apart = max(abs(cell[2] - p) for cell, p in zip(column[layer], probabilities, strict=True))
            if apart > NEAR:
                raise Failure(f"{where}: probabilities are {apart:.4f} from transformers', more than {NEAR}")
            far = max(far, apart)
    cells = golden["layers"] * len(columns)
    say(f"all {cells} cells agree with transformers: probabilities within {far:.1e},")
    say(f"the likeliest token the same in all {clear} with a clear one, all five in {same}")


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Failure(f"{what}: got {got!r}, expected {wanted!r}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/demo_check.py", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("url", help="address of the page")
    url = parser.parse_args().url
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    SCREENSHOT.parent.mkdir(exist_ok=True)
    flags = [flag for flag in chromium.FLAGS if not flag.startswith("--headless")]  # Playwright adds its own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=[*flags, *chromium.SOFTWARE_ADAPTER]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        try:
            run = Check(page).run(url, golden["prompt"], len(golden["new_ids"]))
            compare(run, golden)
            page.hover(f"#grid tbody tr:first-child td:nth-of-type({len(golden['prompt_ids'])})")
        except (Failure, Error) as error:
            say(f"FAILED: {error}")
            return 1
        finally:
            page.screenshot(path=SCREENSHOT, full_page=True)
            say(f"screenshot {SCREENSHOT}")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
