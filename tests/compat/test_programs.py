"""Programs of other packages, unedited: results and gradients are those of PyTorch."""

import subprocess
import sys
from pathlib import Path

import pytest

from compat.programs import difference

# What the requirements of the tests have; docs/compat.md says what runs all.
PROGRAMS = ("einops", "distributions", "llama", "gpt2", "bert", "qwen3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("programs")
    for library in ("torch", "pellucid"):
        words = [
            sys.executable,
            str(Path(__file__).with_name("programs.py")),
            library,
            str(where / "x"),
            *PROGRAMS,
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        (where / f"{library}.log").write_text(done.stdout)
    return where


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(folder, name):
    log = (folder / "pellucid.log").read_text()
    assert f"{name}: done" in log, log
    assert difference(name, folder / "x") < 1e-4
