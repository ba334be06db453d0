"""Checks and benchmarks of the grid in Chromium, by the command that anybody runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT, SCRIPTS

PROGRAM = Path(__file__).parent / "grid_page" / "page.py"
BENCHMARKS = ROOT / "benchmarks"


def in_chromium(program, *arguments):
    """The lines that a program prints in a page."""
    command = [sys.executable, SCRIPTS / "browser", program, "--timeout=600", "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.timeout(660)
def test_every_check_of_the_page_passes():
    """P-077: 8 checks of exports, 16 of a network's methods, 8 of a population's, 5 of wholes, 9 of seeds."""
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "grid.md").read_text("utf-8"), re.DOTALL)[0]
    said = json.loads(in_chromium(PROGRAM, code)[-1])
    assert said == {"exports": 8, "network": 16, "population": 8, "whole": 5, "seeds": 9}


def precisions():
    """Files of all kinds, times on GPU and CPU."""
    kinds = json.loads(in_chromium(BENCHMARKS / "grid_precisions.py", "--size", "32")[-1])["kinds"]
    assert len(kinds) == 21
    assert all(row["equal"] and row["gpu_ms"] > 0 and row["cpu_ms"] > 0 for row in kinds.values())


def networks():
    """Training."""
    trained = json.loads(in_chromium(BENCHMARKS / "grid_networks.py", "--epochs", "2", "--only", "cnn3")[-1])
    (network,) = trained["networks"].values()
    assert network["losses"][-1] < 0.9 * network["losses"][0]
    assert network["seconds"] > 0


def parity():
    """Every layer on both."""
    layers = json.loads(in_chromium(BENCHMARKS / "grid_parity.py")[-1])
    docs = (ROOT / "docs" / "grid.md").read_text("utf-8").partition("<!-- parity -->")[2]
    rows = re.findall(r"^\| ([^|]+) \| \d", docs, re.MULTILINE)
    assert list(layers["errors"]) == list(layers["forward_ms"]) == rows
    assert len(rows) > 50
    errors = [e for row in layers["errors"].values() for e in row.values() if e is not None]
    assert 0 < max(errors) <= layers["tolerance"]
    assert all(ms > 0 for row in layers["forward_ms"].values() for ms in row.values())


@pytest.mark.slow
@pytest.mark.timeout(660)
@pytest.mark.turns(3)
@pytest.mark.parametrize("benchmark", [precisions, networks, parity])
def test_a_benchmark_shows_numbers_in_a_page(benchmark):
    """P-076, P-079, P-080."""
    benchmark()
