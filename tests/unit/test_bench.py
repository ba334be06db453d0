"""scripts/bench as its user meets it: options that do not fit, what is missing, what it needs."""

import json
import subprocess
import sys

import pytest

from paths import ROOT, SCRIPTS

# Runs the script as if these packages were not installed.
WITHOUT = """
import runpy, sys
for name in ("numpy", "torch", "matplotlib", "onnx"):
    sys.modules[name] = None
program, *sys.argv = sys.argv[1:]
sys.argv = [program, *sys.argv]
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
"""


def bench(*words):
    command = [sys.executable, "-c", WITHOUT, str(SCRIPTS / "bench"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--llama", "cpu"], "--llama can be used only with --peers"),
        (["--rows", "chain", "matmul"], "--rows can be used only with --peers"),
        (["--peers", "--host", "native"], "--host cannot be used with --peers"),
        (["--peers", "--llama", "cpu", "--pytorch", "cpu"], "not allowed with argument"),
        (["--peers", "--pytorch", "cuda:1"], "invalid choice: 'cuda:1'"),
        (["--peers", "--repetitions", "0"], "0 is less than one"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, said):
    done = bench(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_where_results_cannot_lie_is_told_before_anything_is_measured(tmp_path):
    (tmp_path / "file").touch()
    for words in (["--peers", "--out", tmp_path / "file"], ["quant", "--json", tmp_path / "file" / "a.json"]):
        done = bench(*words)
        assert done.returncode == 2
        assert f"{tmp_path}/file cannot be a folder for results" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "No such file"), ("{", "Expecting"), (json.dumps({"rows": {}}), "holds no comparison")],
)
def test_results_that_are_none(tmp_path, text, said):
    source = tmp_path / "results.json"
    if text is not None:
        source.write_text(text)
    done = bench("--peers", "--from", source, "--out", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"bench: --from {source} ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_comparison_in_a_browser_needs_no_package(tmp_path):
    """It comes as far as the browser, on a machine with a site and Python alone."""
    words = [
        "--site",
        tmp_path,
        "--out",
        tmp_path,
        "--rows",
        "chain",
        "--chromium",
        "/no/such/browser",
        "wgsl",
    ]
    done = bench("--peers", *words)
    assert done.stderr.startswith("bench: chromium: '/no/such/browser' is not a program")


def test_other_libraries_are_not_compared_without_a_browser(tmp_path):
    done = bench("--peers", "tfjs", "--llama", "cpu", "--out", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("bench: --pytorch and --llama measure no other library (tfjs)")


@pytest.mark.parametrize("library", [["--pytorch", "cpu"], ["--llama", "cpu"]])
def test_a_package_that_is_missing_is_named(tmp_path, library):
    done = bench("--peers", *library, "--rows", "prefill", "--out", tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"bench: the package numpy is needed, and {sys.executable} has none\n"
