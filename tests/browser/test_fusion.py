"""Fused kernels in Chromium give every bit that the kernels which they stand for give."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paths import SCRIPTS

PROGRAM = Path(__file__).parents[1] / "op" / "fusion" / "page.py"


@pytest.mark.slow
def test_bit_for_bit():
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--timeout=240"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["adapter"] == "swiftshader"
    assert said["kernels"] > 50
    assert said["differ"] == []
