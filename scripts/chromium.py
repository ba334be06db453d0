"""Headless Chromium as a plain process.

Where it comes from: an explicit path, the environment variable PELLUCID_CHROMIUM, or the first of the usual
names on PATH.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# The sandbox needs privileges that containers and root accounts lack; only files of this machine are opened.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--enable-unsafe-webgpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# The software adapter, and the flags under which headless Chromium finds a real one (NVIDIA, no display).
SOFTWARE_ADAPTER = ("--use-webgpu-adapter=swiftshader",)
REAL_ADAPTER = (
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
    "--ignore-gpu-blocklist",
    "--use-angle=gl-egl",
    "--enable-webgpu-developer-features",
)


def find(path: str | None = None) -> str:
    """The Chromium to start.

    Raises: FileNotFoundError when there is none.
    """
    wanted = path or os.environ.get("PELLUCID_CHROMIUM")
    if wanted:
        if shutil.which(wanted) is None:
            raise FileNotFoundError(
                f"chromium: {wanted!r} is not a program. Give the path of a Chromium or Chrome."
            )
        return wanted
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(
        f"chromium: none of {', '.join(NAMES)} is on PATH. Run scripts/setup, or set PELLUCID_CHROMIUM."
    )


def end_with_us() -> None:
    """Have signals from outside leave `with` blocks, so that browsers and servers end, too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


class Kept:
    """What a browser fetched and compiled of Python, with which the next one begins.

    Chromium finds both by the address of what was fetched, so all pages of one folder have the same.

    Args:
        folder: where it is; made by the first browser that compiled enough.
        parts: files whose change, like one of the browser, makes what is kept useless.
        path: the browser.
    """

    NAMES = ("Cache", "Code Cache")

    def __init__(self, folder: Path, parts: Sequence[Path], path: str | None = None) -> None:
        facts = [(str(file), file.stat().st_mtime_ns) for file in (Path(find(path)).resolve(), *parts)]
        self._folder = folder / hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    @staticmethod
    def _compiled(folder: Path) -> int:
        """Bytes of machine code; earlier versions of it lie beside the last one, which is the largest."""
        return max((file.stat().st_size for file in folder.glob("Code Cache/wasm/*_0")), default=0)

    def copy(self, profile: Path) -> None:
        """Put it into a new profile."""
        if self._folder.is_dir():
            try:
                shutil.copytree(self._folder, profile / "Default")
            except shutil.Error:  # another browser put more in its place
                shutil.rmtree(profile)

    def keep(self, profile: Path) -> None:
        """Take what an ended browser leaves, where that is much more than what is there."""
        found = profile / "Default"
        if self._compiled(found) <= max(1_000_000, 1.5 * self._compiled(self._folder)):
            return
        top = self._folder.parent
        top.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=top, ignore_cleanup_errors=True) as work:
            made = Path(work, "made")
            made.mkdir()
            for name in self.NAMES:
                shutil.move(found / name, made)
            with contextlib.suppress(OSError):  # another browser does the same at this moment
                for old in top.glob("[!n]*"):
                    old.rename(Path(work, old.name))
                made.rename(self._folder)


class Chromium:
    """One browser with a profile of its own, gone when the `with` block ends.

    Args:
        url: what it opens.
        path: the program; see `find`.
        adapter: flags that choose the adapter.
        kept: what its profile begins with; none if not given.
    """

    def __init__(
        self,
        url: str,
        path: str | None = None,
        adapter: Sequence[str] = SOFTWARE_ADAPTER,
        kept: Kept | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pellucid-chromium-", ignore_cleanup_errors=True)
        self._errors = Path(self._folder.name, "stderr")
        self._kept, self._profile = kept, Path(self._folder.name, "profile")
        if kept:
            kept.copy(self._profile)
        self._command = [find(path), *FLAGS, *adapter, f"--user-data-dir={self._profile}", url]

    def __enter__(self) -> "Chromium":
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
            )
        return self

    def __exit__(self, *error: object) -> None:
        is_whole = self.process.poll() is None  # what a browser leaves that did not end in peace is not kept
        for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(patience)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                is_whole = False
                continue
        if self._kept and is_whole:
            self._kept.keep(self._profile)
        self._folder.cleanup()

    def complaints(self, lines: int = 20) -> str:
        """The last lines that the browser wrote to its error stream."""
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-lines:])
