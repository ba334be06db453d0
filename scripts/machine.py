"""Prepares the machine: system packages and the virtual environment. Each step looks before it acts."""

import ctypes.util
import fcntl
import glob
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import chromium
from paths import CACHE, PYTHON, ROOT, VENV

REQUIREMENTS = ROOT / "requirements-dev.txt"
STAMP = VENV / "pellucid-setup.sha256"


class SetupError(SystemExit):
    """A step that a person must help with; the text says how."""

    def __init__(self, text: str) -> None:
        super().__init__(f"setup: {text}")


def run(command: Sequence[str | Path], variables: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
    """Run a step's command; stop the setup when it fails. Standard output stays the caller's."""
    print(f"setup: {' '.join(str(word) for word in command)}", file=sys.stderr, flush=True)
    merged = {**os.environ, **(variables or {})}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=merged, cwd=cwd)
    if done.returncode:
        raise SetupError(f"{command[0]} failed with status {done.returncode}; its output is above.")


_holders: list[IO[str]] = []
_installing = threading.Lock()


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time changes what the checkout's scripts make; the others wait.

    May be nested, and entered by threads that were started within.
    """
    CACHE.mkdir(exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        if not _holders:
            fcntl.flock(lock, fcntl.LOCK_EX)
        _holders.append(lock)
        try:
            yield
        finally:
            _holders.remove(lock)


def _apt(packages: list[str]) -> None:
    apt = shutil.which("apt-get")
    if apt is None:
        raise SetupError(
            f"missing, with no apt-get to install it: {' '.join(packages)}. Install it and run again."
        )
    sudo = [] if os.geteuid() == 0 else [shutil.which("sudo") or ""]
    if sudo == [""]:
        raise SetupError(f"run this as root, or have somebody do so: apt-get install {' '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with alone(), _installing:
        run([*sudo, apt, "update", "-qq"], quiet)
        run([*sudo, apt, "install", "-y", "-qq", "--no-install-recommends", *packages], quiet)


def browser(path: str | None = None) -> None:
    """What a page needs. Where `path` or PELLUCID_CHROMIUM names a browser, nothing is installed.

    Raises: SetupError when it names no program.
    """
    if not (path or os.environ.get("PELLUCID_CHROMIUM")):
        system()
        return
    try:
        chromium.find(path)
    except FileNotFoundError as error:
        raise SetupError(str(error)) from None


def system() -> None:
    """Chromium and a software Vulkan driver, from apt where they are missing."""
    if sys.platform != "linux":
        chromium.find()
        return
    missing = []
    try:
        chromium.find()
    except FileNotFoundError as error:
        if os.environ.get("PELLUCID_CHROMIUM"):  # another one from apt would not be used
            raise SetupError(str(error)) from None
        missing.append("chromium")
    if not glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"):
        missing.append("mesa-vulkan-drivers")
    if ctypes.util.find_library("vulkan") is None:
        missing.append("libvulkan1")
    if missing:
        _apt(missing)


def node() -> str:
    """The npm program.

    Raises: SetupError when Node or npm is missing.
    """
    found = shutil.which("npm")
    if found is None or shutil.which("node") is None:
        raise SetupError(
            "Node with npm is needed for the site's parts. Install it (Debian: apt-get install nodejs npm)."
        )
    return found


def interpreter() -> None:
    """The virtual environment `.venv`, with pip and nothing else if it was not there."""
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever starts this may have an older one
        raise SetupError(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}.")
    with alone():
        if not PYTHON.exists():
            if importlib.util.find_spec("ensurepip") is None:  # Debian packages it apart
                _apt(["python3-venv"])
            run([sys.executable, "-m", "venv", VENV])


def environment() -> None:
    """The virtual environment `.venv` with the pinned requirements and this project, editable."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return
    with alone():
        interpreter()
        # Of the packages' files few are imported; those are compiled then, as others' are.
        pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        run([*pip, "--requirement", REQUIREMENTS])
        run([*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT])
        STAMP.write_text(wanted)


def enter() -> None:
    """Continue the running script with the virtual environment's Python."""
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
