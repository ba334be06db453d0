"""The check in a page, over the browser's WebGPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paths import SCRIPTS


@pytest.mark.browser
@pytest.mark.slow
def test_programs_in_a_page():
    program = Path(__file__).with_name("in_page.py")
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=240"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PELLUCID_CHECK": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "passed"
