"""A cold visit: bytes and seconds from an address to the first token of a language model on the page.

Run: .venv/bin/python benchmarks/visit.py [--rounds N] [--gpu]

    lens_page    demo/logit_lens with `?model=`, Generate pressed as soon as it can be, until a token is there
    component    demo/embed, whose `<pellucid-lens>` draws a prompt and two tokens; its whole picture counts

Each visit is a Chromium with an empty profile, the built site and SmolLM2-135M-Instruct in Q4_1 come from
127.0.0.1. Bytes are what the server sent; those of the model stand apart. The last line is JSON.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import chromium
from paths import SITE, WEIGHTS
from static_server import StaticServer

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = "The+capital+of+France+is"
LONGEST = 600_000  # milliseconds


def lens_page(page: Page, site: str) -> None:
    """Until the text has a token."""
    page.goto(f"{site}demo/logit_lens/?model=/weights/{MODEL}&prompt={PROMPT}")
    page.wait_for_function("document.body.dataset.state === 'ready'", timeout=LONGEST)
    page.evaluate("document.querySelector('#generate').click()")
    page.wait_for_function("document.querySelector('#text .made').textContent !== ''", timeout=LONGEST)


def component(page: Page, site: str) -> None:
    """Until the picture of the component is there."""
    page.goto(f"{site}demo/embed/")
    page.wait_for_function("document.querySelector('pellucid-lens')?.data", timeout=LONGEST)


def visit(playwright, look, flags: list[str]) -> dict[str, float]:
    """Of one visit: seconds, bytes of the site and of the model, requests."""
    with tempfile.TemporaryDirectory() as profile, StaticServer(SITE, {"weights": WEIGHTS}) as server:
        open_context = playwright.chromium.launch_persistent_context
        context = open_context(profile, executable_path=chromium.find(), args=flags)
        page = context.new_page()
        begun = time.perf_counter()
        look(page, server.url)
        seconds = time.perf_counter() - begun
        context.close()
        sent = {request.path: 0 for request in server.requests}
        for request in server.requests:
            sent[request.path] += request.sent
    model = sum(count for path, count in sent.items() if path.startswith("/weights/"))
    site = sum(sent.values()) - model
    return {"seconds": seconds, "site": site, "model": model, "requests": len(server.requests)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="visit")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--gpu", action="store_true", help="a real adapter instead of the software one")
    options = parser.parse_args()
    adapter = chromium.REAL_ADAPTER if options.gpu else chromium.SOFTWARE_ADAPTER
    flags = [*(flag for flag in chromium.FLAGS if not flag.startswith("--headless")), *adapter]
    result: dict[str, object] = {"benchmark": "visit", "model": MODEL}
    with sync_playwright() as playwright:
        visits = [
            {look.__name__: visit(playwright, look, flags) for look in (lens_page, component)}
            for _ in range(options.rounds)
        ]
    for name in visits[0]:
        seconds = sorted(one[name]["seconds"] for one in visits)
        found = visits[-1][name]
        print(
            f"{name:10} {statistics.median(seconds):6.1f} s ({seconds[0]:.1f} to {seconds[-1]:.1f}), "
            f"{found['site'] / 1e6:.2f} MB of the site, {found['model'] / 1e6:.2f} MB of the model, "
            f"{found['requests']} requests"
        )
        result[name] = {**found, "seconds": statistics.median(seconds)}
    print(json.dumps(result))
    return 0


sys.exit(main())
