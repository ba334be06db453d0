"""The same kernels under Chromium's compiler and software adapter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pellucid.quant import FORMATS
from quant.samples import DOTS
from turns import in_turn

from paths import SCRIPTS


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(660)
def test_every_format_in_a_page():
    """One in six, others at each commit, through every kernel: each takes a second to compile."""
    program = Path(__file__).with_name("in_page.py")
    named = [name for k, name in enumerate(FORMATS) if in_turn(k, 6)]
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=600", "--", *named]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines if "products within" in line] == list(FORMATS)
    assert lines[-1] == "passed"


@pytest.mark.browser
@pytest.mark.slow
def test_integer_dot_products_in_a_page():
    """One format in three, others at each commit."""
    program = Path(__file__).with_name("dots_in_page.py")
    named = [name for k, name in enumerate(DOTS) if in_turn(k, 3)]
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=240", "--", *named]
    chosen = {"PELLUCID_KERNELS": "shared", "PELLUCID_DOTS": "integer", "PELLUCID_DEFAULT_LIMITS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **chosen})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines if "of the bound" in line] == named
