"""Ops beside other libraries: the file of expressions, what counts, how it is told; nothing is measured."""

import json
import runpy
import sys
from argparse import Namespace

import numpy as np
import pytest
import torch

from paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from peers import driver, ops, ops_table
from peers.ours import ops as ours

BENCHMARK = runpy.run_path(str(ROOT / "benchmarks" / "ops.py"))
CHECK = [10.0, 4.0, 1.5]
NAMES = ["add", "sum, all", "rand_like"]


def test_expressions_are_of_rows_that_exist():
    assert set(ops.EXPRESSIONS) <= set(ops.ROWS)
    assert list(ops.EXPRESSIONS) == [name for name in ops.ROWS if name in ops.EXPRESSIONS]
    for name, row in ops.EXPRESSIONS.items():
        assert set(row) <= {"pellucid", *ops.PEERS, "indexes", "loosely"}, name
        assert compile(row.get("pellucid", ops.ROWS[name]), name, "eval")
        for peer in set(ops.PEERS) & set(row):
            found = row[peer]
            keys = {"run"} if isinstance(found, str) else set(found)
            assert keys == {"none"} or ("run" in keys and keys <= {"run", "setup", "read", "jit"}), name
        assert row.get("indexes", "all") in ("all", "rows", "columns"), name


def test_operands_are_those_of_the_benchmark():
    made, expected = ours.values(64), BENCHMARK["operands"](torch, 64**2)
    assert set(made) == set(expected)
    for name, tensor in expected.items():
        assert made[name].shape == tuple(tensor.shape), name
        assert made[name].dtype == tensor.numpy().dtype, name
    assert np.array_equal(np.sort(made["k"]), np.arange(64**2))


@pytest.mark.parametrize(("mbytes", "side"), [(64, 4096), (1, 512), (0.25, 256), (0.015625, 64)])
def test_sides_are_those_of_the_benchmark(mbytes, side):
    assert ops.side(mbytes) == side


def test_rows_are_chosen_by_parts_of_their_names():
    rows = ops.rows(["cumprod", "unique"], 1, ["jax"])
    assert [row["name"] for row in rows] == ["cumprod, rows", "cumprod, columns", "cumprod, all", "unique"]
    assert rows[0]["expressions"] == {
        "pellucid": {"run": "m.cumprod(dim=1)"},
        "jax": {"run": "np.cumprod(m, 1)"},
    }
    assert rows[3]["expressions"]["jax"] == ops.NO_OP
    assert len(ops.rows([], 1, ["jax"])) == len(ops.ROWS)
    with pytest.raises(SystemExit, match="has nonsense in its name"):
        ops.rows(["nonsense"], 1, ["jax"])
    with pytest.raises(SystemExit, match="too small"):
        ops.rows([], 0.01, ["jax"])


def test_peers_without_ops_are_refused():
    assert ops.chosen([]) == ["tfjs", "jax"]
    assert ops.chosen(["jax"]) == ["jax"]
    with pytest.raises(SystemExit, match="not ort"):
        ops.chosen(["jax", "ort"])


def test_what_is_left_open_is_set():
    names = (
        "mbytes",
        "repetitions",
        "repetition_ms",
        "warm_ms",
        "row_seconds",
        "call_seconds",
        "most_seconds",
    )
    options = Namespace(gpu=True, ops=[], **dict.fromkeys(names))
    options.repetitions = 3
    driver.choose(options)
    assert (options.mbytes, options.repetitions, options.repetition_ms) == (64, 3, 40)


def took(recorder, name, library, form, times, check=CHECK):
    place = {"row": name, "library": library, "form": form}
    recorder.take({"kind": "lane", **place, "note": "", "check": check})
    for repetition, ms in enumerate(times):
        recorder.take({"kind": "sample", **place, "repetition": repetition, "calls": 9, "ms": ms})


def begun(target, names=NAMES, mbytes=1, adapter="acme"):
    recorder = ops.Recorder(target, mbytes, [ops.row(name, 512, ["tfjs", "jax"]) for name in names])
    recorder.take({"kind": "machine", "adapter": {"vendor": adapter}, "browser": "B 1", "cores": 2})
    for name in ("pellucid", "tfjs", "jax"):
        recorder.take({"kind": "library", "name": name, "version": "1.0", "open_ms": 5})
    return recorder


@pytest.fixture
def target(tmp_path):
    """Results of three rows."""
    recorder = begun(tmp_path / "ops.json")
    took(recorder, "add", "pellucid", "eager", [0.3, 0.1, 0.2])
    took(recorder, "add", "tfjs", "eager", [0.5, 0.4, 0.6])
    took(recorder, "add", "jax", "eager", [0.9] * 3)
    took(recorder, "add", "jax", "captured", [0.15] * 3, [10.0, 4.0, 2.5])
    recorder.take({"kind": "measured", "row": "add"})
    took(recorder, "sum, all", "pellucid", "eager", [0.3] * 3)
    took(recorder, "sum, all", "pellucid", "fused", [0.2] * 3)
    took(recorder, "sum, all", "tfjs", "eager", [0.1] * 3)
    place = {"row": "sum, all", "library": "jax", "form": "eager"}
    recorder.take({"kind": "cut", **place, "ms": 3000, "why": "a call would take about 3 s"})
    recorder.take({"kind": "measured", "row": "sum, all"})
    took(recorder, "rand_like", "pellucid", "eager", [0.2])
    took(recorder, "rand_like", "tfjs", "eager", [0.2], [10.1, 4.1, -9])
    took(recorder, "rand_like", "jax", "eager", [-0.1])
    recorder.take({"kind": "measured", "row": "rand_like"})
    assert recorder.failure is None
    return tmp_path / "ops.json"


def test_the_fastest_form_with_the_right_output_counts(target):
    rows = ops.read(target)["rows"]
    assert rows["add"]["pellucid"]["us"] == 200
    assert rows["add"]["jax"]["us"] == 900
    assert rows["add"]["jax"]["failed"]["captured"].startswith(
        "another output: its checksum is [10.0, 4.0, 2.5]"
    )
    assert rows["sum, all"]["pellucid"]["form"] == "fused"
    assert rows["sum, all"]["jax"] == {"us": 3e6, "form": "eager", "cut": "a call would take about 3 s"}
    assert rows["rand_like"]["tfjs"]["us"] == 200
    assert rows["rand_like"]["jax"] == {"none": "the longer queue took no longer than the shorter"}
    assert ops_table.best(rows["add"]) == ("tfjs", 2.5)


def test_the_table_says_where_a_peer_is_faster(target):
    results = ops.read(target)
    assert ops_table.summary(results) == (
        "tfjs in 3, jax in 2; either in 3, and we are at least the best of them in 2 (66.7 %); "
        "nearly in 0: none; not in 1: sum, all (tfjs 0.50)"
    )
    text = ops_table.markdown(results)
    assert "| sum, all | 200, fused | 100 | about 3.00 s, not measured | 0.50, tfjs |" in text
    assert "- jax: a call would take about 3 s: sum, all" in text
    assert "Libraries: pellucid 1.0, tfjs 1.0, jax 1.0; x has 1 MB" in text


def test_a_later_run_extends_the_file(target):
    recorder = begun(target, ["exp"])
    recorder.take({"kind": "unavailable", "row": "exp", "library": "jax", "why": "no such op"})
    recorder.take({"kind": "measured", "row": "exp"})
    assert list(ops.read(target)["rows"]) == [*NAMES, "exp"]
    assert ops.read(target)["rows"]["exp"]["jax"] == {"none": "no such op"}


@pytest.mark.parametrize("other", [{"mbytes": 2}, {"adapter": "another"}])
def test_rows_of_another_size_or_device_do_not_come_into_the_file(target, other):
    before = target.read_text()
    recorder = begun(target, ["exp"], **other)
    recorder.take({"kind": "measured", "row": "exp"})
    assert "give another --out" in recorder.failure
    assert target.read_text() == before


def test_a_run_goes_on_and_tries_again_last_what_went_wrong_by_chance():
    rows = [ops.row(name, 512, ["jax"]) for name in ("add", "exp", "sin", "cos")]
    done = {
        "add": {"pellucid": {"us": 1}, "jax": {"none": "no answer to repeat within 30 s"}},
        "exp": {"pellucid": {"us": 1}, "jax": {"none": "no such op"}},
        "sin": {"pellucid": {"us": 1}, "tfjs": {"us": 1}},
    }
    assert [row["name"] for row in ops.missing(rows, done, ["jax"])] == ["sin", "cos", "add"]


def test_other_files_are_refused(tmp_path):
    target = tmp_path / "ops.json"
    target.write_text(json.dumps({"libraries": {}}))
    with pytest.raises(SystemExit, match="holds no ops"):
        ops.read(target)
    target.write_text("{")
    with pytest.raises(SystemExit, match="cannot be read"):
        ops.read(target)
