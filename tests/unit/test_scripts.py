"""Every script can be started on its own and says what it does."""

import os
import signal
import subprocess
import sys

import pytest

from paths import ROOT, SCRIPTS
from static_server import StaticServer

SCRIPT_NAMES = (
    "bench browser build check conformance demo docs fuzz hosts pytorch_names reference serve setup test"
)
NAMES = SCRIPT_NAMES.split()


def test_the_list_is_complete():
    programs = {file.name for file in SCRIPTS.iterdir() if file.is_file() and not file.suffix}
    assert programs == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_help(name):
    assert os.access(SCRIPTS / name, os.X_OK)
    done = subprocess.run([SCRIPTS / name, "--help"], capture_output=True, text=True, cwd=ROOT.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: scripts/{name}")


def test_the_reference_page_and_the_stubs_are_current():
    done = subprocess.run([sys.executable, SCRIPTS / "reference", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_taken_port_is_explained(tmp_path):
    with StaticServer(tmp_path) as server:
        command = [sys.executable, SCRIPTS / "serve", tmp_path, f"--port={server.port}"]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"127.0.0.1:{server.port} cannot be listened on" in done.stderr
    assert "Traceback" not in done.stderr


def test_serve_prints_its_address_and_ends(tmp_path):
    (tmp_path / "index.html").write_text("<p>")
    command = [sys.executable, SCRIPTS / "serve", tmp_path, "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "at http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0
