"""Open every view of the lens page in headless Chromium and take its picture: light, dark, desktop, phone.

    .venv/bin/python scripts/demo_tour.py URL OUT

Writes OUT/VIEW-SCREEN-SCHEME.png, and prints the longest block of the page's thread in each view.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

import chromium

SCREENS: dict[str, ViewportSize] = {
    "desktop": {"width": 1440, "height": 900},
    "phone": {"width": 390, "height": 844},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WAIT = 300_000  # milliseconds in which the page must show something new; a software adapter is slow
# What is pressed in each tab before it is looked at.
TABS = {
    "tree": "Step a layer",
    "attention": "Look at all heads",
    "patching": "Patch",
    "attribution": "Attribute",
    "ranks": "Draw",
    "steering": "Steer",
    "features": None,
    "comparison": "Compare",
    "map": None,
}
# What tells that the page goes on.
SHOWN = """["status", "progress-text", "text"].map((id) => document.getElementById(id).textContent).join()"""
# Tasks of the page's thread that a person notices.
WATCH = """
window.blocks = [];
new PerformanceObserver((list) => window.blocks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask" });
"""


class Tour:
    """One visit to the page, whose views are pictured on every screen."""

    def __init__(self, page: Page, out: Path):
        self.page, self.out = page, out
        self.blocks: dict[str, list[float]] = {}

    def ready(self) -> None:
        """Wait as long as the page goes on."""
        while self.page.evaluate("document.body.dataset.state") != "ready":
            changed = f"(shown) => document.body.dataset.state === 'ready' || {SHOWN} !== shown"
            self.page.wait_for_function(changed, arg=self.page.evaluate(SHOWN), timeout=WAIT)

    @contextmanager
    def watched(self, name: str) -> Iterator[None]:
        """Note the blocks meanwhile under a name."""
        self.page.evaluate("window.blocks.length = 0")
        yield
        self.page.wait_for_timeout(200)  # entries come a little later
        self.blocks[name] = self.page.evaluate("window.blocks")

    def picture(self, name: str) -> None:
        for screen, size in SCREENS.items():
            for scheme in SCHEMES:
                self.page.set_viewport_size(size)
                self.page.emulate_media(color_scheme=scheme)
                self.page.wait_for_timeout(300)
                self.page.screenshot(path=self.out / f"{name}-{screen}-{scheme}.png", full_page=True)
        self.page.set_viewport_size(SCREENS["desktop"])

    def run(self, url: str) -> None:
        page = self.page
        page.add_init_script(WATCH)
        page.goto(url)
        page.wait_for_function("document.body.dataset.state === 'empty'", timeout=WAIT)
        self.picture("start")
        with self.watched("load"):
            page.click("#load")
            self.ready()
        with self.watched("generate"):
            page.click("#generate")
            self.ready()
        self.picture("lens")
        for name, press in TABS.items():
            with self.watched(name):
                page.click(f"#{name}-tab")
                if name == "comparison":
                    page.fill("#other-prompt", "The capital of Italy is")
                if press:
                    page.locator(f"#{name}-panel").get_by_role("button", name=press, exact=True).click()
                    self.ready()
            self.picture(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/demo_tour.py", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("url", help="address of the page")
    parser.add_argument("out", type=Path, help="folder of the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    flags = [flag for flag in chromium.FLAGS if not flag.startswith("--headless")]  # Playwright adds its own
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(), args=[*flags, *chromium.SOFTWARE_ADAPTER]
        )
        page = browser.new_page(viewport=SCREENS["desktop"])
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        tour = Tour(page, options.out)
        tour.run(options.url)
        browser.close()
    for name, blocks in tour.blocks.items():
        print(f"tour: {name}: {len(blocks)} blocks over 50 ms, the longest {max(blocks, default=0):.0f} ms")
    print(f"tour: {len(list(options.out.glob('*.png')))} pictures in {options.out}")
    if errors:
        print(f"tour: FAILED: uncaught errors in the page: {errors}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
