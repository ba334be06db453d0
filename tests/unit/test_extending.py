"""Ops, kernels, models and weight formats from outside the package, as docs/extending.md has them."""

import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT


@pytest.mark.gpu
def test_the_examples_run_and_take_part_in_everything(tmp_path):
    """In a process of its own: declarations stay."""
    program = Path(__file__).with_name("extended.py")
    command = [sys.executable, program, ROOT / "docs" / "extending.md", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "passed"
