"""Every op, forward and backward, under Chromium's compiler: webgpu against the cpu device, which the tests
in tests/ops compare with PyTorch.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paths import SCRIPTS

PROGRAM = Path(__file__).parent / "op_page" / "page.py"
SAMPLES = Path(__file__).parents[1] / "samples"
# One op at least of each way in which a kernel takes its parameters and shares its work.
GROUPS = "shape,in place,indexing,random,reduce,norm,training,graphs"


def walk(*arguments, **variables):
    """Which adapter the page found, and the JSON of its last line."""
    browser = [sys.executable, SCRIPTS / "browser", PROGRAM, f"--package={SAMPLES}", "--timeout=1800"]
    command = [*browser, "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    (adapter,) = [line for line in lines if line.startswith("on ")]
    return adapter, json.loads(lines[-1])


@pytest.mark.slow
@pytest.mark.timeout(1860)
def test_every_op_agrees_and_every_kernel_is_executed():
    """P-060, P-063, P-077: the check page of all ops, in Chromium."""
    adapter, said = walk()
    assert adapter == "on google swiftshader, 64 bytes of immediates"
    assert said["failures"] == 0
    assert said["calls"] > 800
    assert said["ops"] > 120


@pytest.mark.slow
def test_with_default_limits():
    adapter, said = walk(f"--groups={GROUPS}", "--layouts=strided", "--partial", PELLUCID_DEFAULT_LIMITS="1")
    assert adapter == "on google swiftshader, 0 bytes of immediates"
    assert said["failures"] == 0
    assert said["calls"] > 200
