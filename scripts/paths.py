"""Where things live in a checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CACHE = ROOT / "cache"
WEIGHTS = CACHE / "weights"
DIST = ROOT / "dist"
SITE = DIST / "site"
TEST_SITE = CACHE / "testsite"


def environment() -> dict[str, str]:
    """The environment for child processes: the virtual environment's tools come first, bytecode is kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
