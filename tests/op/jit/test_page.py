"""Captures in a page: the same programs, over the browser's WebGPU."""

import subprocess
import sys
from pathlib import Path

import pytest

from paths import SCRIPTS


@pytest.mark.browser
@pytest.mark.slow
def test_training_and_generation_in_a_page():
    program = Path(__file__).with_name("in_page.py")
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=240"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "passed"
