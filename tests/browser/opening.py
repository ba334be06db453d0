"""Headless Chromium with the software adapter, as tests of pages open it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

import chromium

# No name but the machine's own resolves: whatever reaches for the network fails its test.
FLAGS = [
    *(flag for flag in chromium.FLAGS if not flag.startswith("--headless")),
    *chromium.SOFTWARE_ADAPTER,
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--js-flags=--expose-gc",
]


@contextmanager
def opened_context(profile: Path) -> Iterator[BrowserContext]:
    """Chromium that kept nothing of an earlier one but what was fetched and compiled."""
    for kept in (*profile.glob("Default/*"), *profile.glob("[!D]*")):
        if kept.name not in ("Cache", "Code Cache"):
            shutil.rmtree(kept) if kept.is_dir() and not kept.is_symlink() else kept.unlink()
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch_persistent_context
        opened = launch(profile, executable_path=chromium.find(), args=FLAGS)
        yield opened
        opened.close()
