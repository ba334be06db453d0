"""Memory in the browser stays flat: on the device, in Python and between Python and JavaScript."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paths import SCRIPTS

PROGRAM = Path(__file__).parent / "memory_page" / "page.py"
FLAT = ("live_bytes", "live_buffers", "references_to_javascript", "references_to_python")


@pytest.fixture(scope="module")
def left():
    """What 100, what 10,000 and what 14,500 iterations left."""
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--timeout=140"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each["iterations"] for each in found] == [100, 10_000, 14_500]
    return found


@pytest.mark.parametrize("name", FLAT)
def test_ten_thousand_iterations_leave_what_a_hundred_leave(left, name):
    first, later, last = left
    assert last[name] == later[name] == first[name] > 0


def test_what_is_kept_for_reuse_is_bounded(left):
    first, later, last = left
    # Of windows that come together rarely, a fused kernel may come late, since each makes a part of the plan.
    assert first["pipelines"] <= later["pipelines"] <= first["pipelines"] + 4
    assert later["pipelines"] <= last["pipelines"] <= later["pipelines"] + 1
    assert last["reserved_bytes"] < 4 << 20
    # The heap grows by a fifth at a time: once at most, for plans and the windows that they are known by.
    assert first["python_heap"] <= later["python_heap"] <= last["python_heap"] <= 1.21 * first["python_heap"]
