"""Programs of other packages, unedited: results and gradients are those of PyTorch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# What the requirements of the tests have; scripts/compat runs all.
PROGRAMS = ("einops",)


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
    theirs, ours = (np.load(folder / f"{name}.{library}.npz") for library in ("torch", "pellucid"))
    assert set(ours) == set(theirs)
    for key, wanted in theirs.items():
        scale = max(1.0, np.abs(wanted).max(initial=0))
        assert ours[key].shape == wanted.shape
        assert np.abs(ours[key] - wanted).max(initial=0) <= 1e-4 * scale, key
