"""scripts/browser: the same file in the browser and natively."""

import signal
import subprocess
import sys
import time

import pytest

from processes import alive, children, crash_pages

from paths import SCRIPTS

HOSTS = pytest.mark.parametrize("host", ["browser", "native"])


@pytest.fixture
def script(tmp_path):
    """Run a Python text through scripts/browser; gives the completed process."""

    def start(text, host, *options, arguments=()):
        file = tmp_path / "program.py"
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, SCRIPTS / "browser", file, "--packages=", "--timeout=60", *options]
        command += ["--native"] if host == "native" else []
        return subprocess.run([*command, "--", *arguments], capture_output=True, text=True)

    return start


@HOSTS
def test_output_arguments_and_status(script, host):
    text = "import sys\nprint('é', sys.argv[1:])\nprint('bad', file=sys.stderr)\nsys.exit(7)\n"
    done = script(text, host, arguments=["--flag", "a b"])
    assert (done.returncode, done.stdout) == (7, "é ['--flag', 'a b']\n")
    assert done.stderr.endswith("bad\n")


@HOSTS
def test_long_output_arrives_whole_and_in_order(script, host):
    done = script("for i in range(30_000): print(i)\nprint('x' * 3_000_000)\n", host)
    assert done.stdout == "".join(f"{i}\n" for i in range(30_000)) + "x" * 3_000_000 + "\n"


@HOSTS
def test_top_level_await(script, host):
    done = script("import asyncio\nprint(await asyncio.sleep(0.01, 'awaited'))\n", host)
    assert (done.returncode, done.stdout) == (0, "awaited\n")


@HOSTS
def test_uncaught_exception_shows_the_files_frames_only(script, host):
    done = script("def f():\n    raise ValueError('boom')\nf()\n", host)
    assert done.returncode == 1
    assert "line 2, in f" in done.stderr
    assert done.stderr.endswith("ValueError: boom\n")
    assert "run_file.py" not in done.stderr


@HOSTS
def test_files_beside_can_be_imported(script, host, tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 42\n")
    done = script("import beside\nprint(beside.VALUE, __name__)\n", host)
    assert done.stdout == "42 __main__\n"


@HOSTS
def test_variables_of_the_project_pass(script, host, monkeypatch):
    monkeypatch.setenv("PELLUCID_EXAMPLE", "seen")
    done = script("import os\nprint(os.environ['PELLUCID_EXAMPLE'])\n", host)
    assert done.stdout == "seen\n"


def test_mount_is_served_with_ranges(script, tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    text = """
import os
from pyodide.http import pyfetch
answer = await pyfetch(os.environ["PELLUCID_MOUNT"] + "data.bin", headers={"Range": "bytes=250-"})
print(answer.status, list(await answer.bytes()))
"""
    done = script(text, "browser", "--mount", tmp_path)
    assert done.stdout == "206 [250, 251, 252, 253, 254, 255]\n", done.stderr


def test_mount_is_a_folder_natively(script, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"abc")
    text = "import os\nprint(open(os.environ['PELLUCID_MOUNT'] + 'data.bin').read())\n"
    assert script(text, "native", "--mount", tmp_path).stdout == "abc\n"


@HOSTS
def test_timeout(script, host):
    done = script("while True: pass\n", host, "--timeout=4")
    assert done.returncode == 124
    assert "did not end within 4 s" in done.stderr


def test_a_fatal_error_of_pyodide_is_reported(script):
    text = "from pyodide.code import run_js\nrun_js('(api) => api.fatal_error(new Error(`told`))')"
    done = script(f"{text}(__import__('pyodide_js')._api)\n", "browser")
    assert done.returncode not in (0, 124)
    assert "Python ended with a fatal error: told" in done.stderr


def test_a_browser_that_cannot_start_is_reported(script):
    done = script("print(1)\n", "browser", "--chromium=/bin/false")
    assert done.returncode == 125
    assert "Chromium ended by itself with status 1" in done.stderr


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "waiting"])
def test_a_page_that_crashes_ends_the_run_at_once(tmp_path, is_busy):
    file = tmp_path / "endless.py"
    wait = "while True: pass" if is_busy else "await __import__('asyncio').sleep(1000)"
    file.write_text(f"print('running', flush=True)\n{wait}\n")
    command = [sys.executable, SCRIPTS / "browser", file, "--packages=", "--timeout=60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        began = time.monotonic()
        crashed = crash_pages(process.pid)
        _, said = process.communicate(timeout=70)
    assert crashed
    assert time.monotonic() - began < 15  # Chromium itself takes some of that to end
    assert process.returncode == 125
    assert f"browser: the page that ran {file} crashed: its process ended" in said


def test_an_error_of_the_worker_ends_the_run_at_once(script):
    text = "from pyodide.code import run_js\nrun_js('setTimeout(() => { throw new Error(`told`) }, 100)')\n"
    began = time.monotonic()
    done = script(f"{text}await __import__('asyncio').sleep(1000)\n", "browser")
    assert done.returncode == 1
    assert "The Python worker stopped: Uncaught Error: told" in done.stderr
    assert time.monotonic() - began < 40


def test_a_browser_that_is_no_program_is_named(script, tmp_path):
    done = script("print(1)\n", "browser", "--chromium=/no/such/browser", "--site", tmp_path)
    assert done.returncode == 125
    assert done.stderr.startswith("browser: chromium: '/no/such/browser' is not a program")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_ending_scripts_browser_leaves_nothing_behind(tmp_path, number, status):
    file = tmp_path / "endless.py"
    file.write_text("print('running', flush=True)\nwhile True: pass\n")
    command = [sys.executable, SCRIPTS / "browser", file, "--packages="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        (chromium,) = children(process.pid)
        process.send_signal(number)
        _, said = process.communicate(timeout=15)
    assert process.returncode == status
    assert "Traceback" not in said
    deadline = time.monotonic() + 5
    while alive(chromium) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(chromium)
