"""Reductions in one dispatch in Chromium, with the kernels that GPUs run."""

import json
import os
import subprocess
import sys
from pathlib import Path

from paths import SCRIPTS

PROGRAM = Path(__file__).parent / "reduce_page" / "page.py"


def test_parts_come_together():
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--timeout=140"]
    shared = {**os.environ, "PELLUCID_KERNELS": "shared"}
    done = subprocess.run(command, capture_output=True, text=True, env=shared)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["adapter"] == "swiftshader"
    assert said["wrong"] == []
    assert said["left"] == 0
    assert set(said["dispatches"].values()) == {1}
