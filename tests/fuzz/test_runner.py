"""What the runner makes of kinds that differ, hang, crash, or are ended."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fuzz.runner import FOLDER, count, kinds

KINDS = {
    "steady": "COUNT = 7\ndef run(seed):\n    pass",
    "differs": "def run(seed):\n    assert seed != 3, 'x = 1\\nassert x == 2'",
    "raises": "def run(seed):\n    {}[seed]",
    "hangs": "import time\ndef run(seed):\n    time.sleep(60 if seed == 1 else 0)",
    "crashes": "import os\ndef run(seed):\n    if seed == 2: os.abort()",
    "remembers": "seen = []\ndef run(seed):\n    seen.append(seed)\n    assert len(seen) < 3, seen",
    "broken": "import no_such_module\ndef run(seed): pass",
    "prints": "def run(seed):\n    print('hello')",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in KINDS.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "beside.py").write_text("def helper(): pass")
    return tmp_path


def command(folder, *words):
    return [sys.executable, FOLDER / "runner.py", "--folder", folder, *map(str, words)]


def run(folder, *words):
    # What the suite itself runs under would stand in the command that is told.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PELLUCID_")}
    done = subprocess.run(command(folder, *words), capture_output=True, text=True, timeout=60, env=env)
    return done.returncode, done.stdout, done.stderr


def test_kinds_are_the_modules_that_can_run(folder):
    assert set(kinds(folder)) == set(KINDS)
    assert count(folder / "steady.py") == 7
    assert run(folder, "steady", "--suite")[1].split()[1] == "7"


def test_a_kind_that_holds(folder):
    status, out, _ = run(folder, "steady", "prints", "--count", 5, "--seed", 10, "--jobs", 2)
    assert status == 0
    assert out.count("5 seeds (10 to 14)") >= 2
    status, out, _ = run(folder, "steady", "--seconds", 1)
    assert status == 0
    assert int(out.split()[1]) > 10


@pytest.mark.parametrize(
    ("kind", "seed", "words"),
    [
        ("differs", 3, "assert x == 2"),
        ("raises", 0, "KeyError"),
        ("hangs", 1, "in run"),
        ("crashes", 2, "SIGABRT"),
    ],
)
def test_findings(folder, kind, seed, words):
    status, out, _ = run(
        folder, kind, "--seed", 0, "--count", 5, "--timeout", 1, "--findings", folder / "found"
    )
    assert status == 1
    assert f"Again: scripts/fuzz {kind} --seed {seed} --count 1" in out
    text = (folder / "found" / f"{kind}-{seed}.txt").read_text()
    assert words in text
    assert text in out
    assert f"{seed + 1} seeds (0 to {seed})" in out
    assert "1 findings" in out


def test_it_goes_on_where_asked(folder):
    status, out, _ = run(folder, "raises", "--seed", 0, "--count", 3, "--keep-going")
    assert status == 1
    assert "3 seeds (0 to 2)" in out
    assert "3 findings" in out


def test_what_does_not_show_by_itself_says_so(folder):
    status, out, _ = run(folder, "remembers", "--seed", 0, "--count", 3)
    assert status == 1
    assert "Not again by itself (its process ran 0 to 1 before)" in out


def test_a_kind_that_cannot_be_started(folder):
    status, _, err = run(folder, "broken")
    assert status == 2
    assert "no_such_module" in err
    assert run(folder, "nothing")[0] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_the_summary(folder, number):
    with subprocess.Popen(command(folder, "steady"), stdout=subprocess.PIPE, text=True) as process:
        time.sleep(1.5)
        process.send_signal(number)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "0 findings" in out
