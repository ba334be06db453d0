"""Programs that run under PELLUCID_CHECK=1, in processes of their own: the check is for the whole process."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def program(tmp_path):
    """Run the text of a program; returns its exit status and what it printed, both streams."""

    def run(text: str, **variables: str) -> tuple[int, str]:
        file = tmp_path / "program.py"
        file.write_text("import pellucid as torch\n" + textwrap.dedent(text))
        env = {**os.environ, "PELLUCID_CHECK": "1", "PELLUCID_FUSION": "1", **variables}
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env)
        return done.returncode, done.stdout + done.stderr

    return run
