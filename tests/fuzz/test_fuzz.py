"""The same seeds of every kind each time: what `scripts/fuzz` runs without end."""

import subprocess
import sys

import pytest

from fuzz.runner import FOLDER, kinds

pytestmark = pytest.mark.gpu


@pytest.mark.turns(3)
@pytest.mark.parametrize("kind", kinds(FOLDER))
def test_seeds(kind):
    command = [sys.executable, FOLDER / "runner.py", kind, "--suite", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
