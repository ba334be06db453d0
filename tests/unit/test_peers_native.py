"""The rows without a browser: what is timed, and what a row that fails costs; no library is needed."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from peers import native
from peers.ours.forms import Form, Unavailable

ROW = {"name": "a", "title": "a row", "kind": "any", "inputs": 2, "unit": "ms", "waits": True}


class FakeLibrary:
    """Forms whose work is so many seconds on a clock of its own."""

    def __init__(self, forms, clock):
        self._forms, self._clock = forms, clock

    def facts(self):
        return {"library": "fake 1"}

    def forms(self, row):
        if row["kind"] == "missing":
            raise Unavailable("no such file")
        return dict(self._forms)

    def wait(self):
        self._clock.now += 1

    def numbers(self, output):
        return np.array(output)


@pytest.fixture
def clock(monkeypatch):
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr(native, "time", SimpleNamespace(perf_counter=lambda: found.now))
    return found


def options(tmp_path):
    return SimpleNamespace(repetitions=3, row_seconds=1000, out=tmp_path, json=None)


@pytest.mark.parametrize(
    ("before", "follows", "seconds"),
    # Two units of 5 and a wait of 1; what follows is less what was before, with its wait.
    [(None, False, 11), (3, False, 11), (3, True, 7)],
)
def test_what_is_timed(before, follows, seconds, clock, tmp_path):
    def spend(amount):
        clock.now += amount

    def unit(i):
        spend(5)
        return [float(i + 1)]

    form = Form(unit, (lambda _: spend(before)) if before else None, follows=follows)
    found = native.measure(FakeLibrary({}, clock), ROW, form, options(tmp_path))
    assert found["ms"] == [pytest.approx(1000 * seconds / 2)] * 3
    assert (found["k"], found["check"][0]) == (2, 1.0)


def test_where_no_row_can_be_measured_the_run_fails(clock, tmp_path):
    rows = [{**ROW, "kind": "missing"}]
    assert native.run(FakeLibrary({}, clock), rows, options(tmp_path), "fake.json") == 1
    assert json.loads((tmp_path / "fake.json").read_text())["rows"] == {}


def test_a_row_that_fails_costs_no_other(clock, tmp_path, capsys):
    def works(_):
        clock.now += 5
        return [1.0]

    def fails(_):
        raise RuntimeError("out of memory")

    library = FakeLibrary({"captured": Form(fails), "eager": Form(works)}, clock)
    rows = [{**ROW, "name": "b", "kind": "missing"}, ROW]
    assert native.run(library, rows, options(tmp_path), "fake.json") == 1
    told = capsys.readouterr()
    assert "bench: b: no such file" in told.err
    assert "bench: a, captured: RuntimeError: out of memory" in told.err
    assert "|  | k | fake 1 |" in told.out
    assert list(json.loads((tmp_path / "fake.json").read_text())["rows"]) == ["a/eager"]
