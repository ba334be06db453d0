"""The comparison with other libraries: what counts, what is void, how it is told; nothing is measured."""

import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import machine
from paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from peers import driver, packages, plot, table, weights
from peers.ours import data
from peers.results import Lane, Recorder, agree, disagreement, paired, spread, value

ROW = {"name": "chain", "title": "a chain", "kind": "chain", "ops": 20, "unit": "µs/op", "work": 20}
CHECK = [10.0, 4.0, 1.5]


def summed(values):
    """The checksum of these values as an output."""
    return data.checksum(np.array(values))


def sample(ms, repetition=0, phase="queued", checks=(CHECK,), errors=0, **more):
    return {
        "phase": phase,
        "repetition": repetition,
        "k": len(checks),
        "ms": ms,
        "host_ms": ms / 2,
        "units": list(range(len(checks))),
        "checks": [list(check) for check in checks],
        "errors": errors,
        "error": "bad buffer" if errors else None,
        **more,
    }


def lane(library, form, *samples):
    return Lane(library, form, samples=[sample(1, phase="first"), *samples])


def recorded(lanes, row=ROW):
    """A recorder that took the events of these lanes: {"library/form": [ms of each repetition]}."""
    recorder = Recorder([row])
    recorder.take({"kind": "machine", "adapter": {"vendor": "acme", "architecture": "one"}, "browser": "B 1"})
    for name, times in lanes.items():
        library, form = name.split("/")
        place = {"row": row["name"], "library": library, "form": form}
        recorder.take({"kind": "library", "name": library, "version": "1.0", "open_ms": 5})
        recorder.take({"kind": "lane", **place, "note": ""})
        counters = {"dispatches": 40, "flushes": 1, "bind_groups": 0, "encode_ms": 0.1}
        for phase, repetition, ms in [("first", 0, 9), *[("queued", r, ms) for r, ms in enumerate(times)]]:
            taken = sample(ms, repetition, phase, (CHECK, CHECK))
            if library == "pellucid":
                taken["counters"] = counters
            recorder.take({"kind": "sample", **place, **taken})
    return recorder


def finished(recorder):
    noise = {"seconds": 3, "cores": 2, "browser_cores": 1.5, "other_cores": 0.25}
    settings = {"repetitions": 3, "repetition_ms": 200}
    return {**recorder.results(), "noise": noise, "settings": settings, "failure": None}


def test_spread_is_median_quartiles_and_extremes():
    assert spread([4, 1, 3, 2, 5]) == {"median": 3, "low": 2, "high": 4, "least": 1, "most": 5}
    assert spread([7]) == {"median": 7, "low": 7, "high": 7, "least": 7, "most": 7}


def test_checksums_agree_up_to_rounding():
    assert agree(CHECK, [10.001, 4.0005, 1.501])
    assert agree([5.0, 5.0, -5.0], [5.001, 5.001, -5.001])


@pytest.mark.parametrize("n", [1024, 65536])
@pytest.mark.parametrize("place", [3, 700])
def test_an_error_in_one_element_is_caught(n, place):
    values = data.uniform((n,), 3)
    wrong = values.copy()
    wrong[place] += 0.01 * np.linalg.norm(values)
    assert agree(summed(values), summed(values * (1 + 1e-6)))
    assert not agree(summed(values), summed(wrong))


def test_a_weighted_sum_that_cancels_is_measured_by_the_norm():
    """An error far below what is allowed changes a sum near zero by far more than its thousandth part."""
    values = data.uniform((65536,), 3)
    weights = data.weights(values.size)
    values = values - weights * (values @ weights) / (weights @ weights)
    other = values + 1e-6 * np.linalg.norm(values) * data.uniform((65536,), 4) / 148
    mine, theirs = summed(values), summed(other)
    assert abs(theirs[2] - mine[2]) > 1e-3 * abs(mine[2])
    assert agree(mine, theirs)
    assert not agree(mine, summed(values[::-1] + 1e-2 * weights))


@pytest.mark.parametrize(
    "other", [[10.2, 4.0, 1.5], [10.0, 4.1, 1.5], [10.0, 4.0, -1.5], [math.nan, 4.0, 1.5], [0.0, 0.0, 0.0]]
)
def test_checksums_differ(other):
    assert not agree(CHECK, other)
    assert not agree(other, CHECK)


def test_not_finite_agrees_with_nothing():
    broken = [math.inf, math.inf, math.nan]
    assert not agree(broken, broken)
    assert disagreement([lane("a", "eager", sample(1, checks=[broken]))])


def test_the_odd_one_is_named():
    odd = [20.0, 8.0, 3.0]
    lanes = [lane("a", "eager"), lane("b", "jit", sample(1, checks=[CHECK, odd])), lane("c", "eager")]
    lanes[0].samples.append(sample(1, checks=[CHECK, CHECK]))
    lanes[2].samples.append(sample(1, checks=[CHECK, CHECK]))
    found = disagreement(lanes)
    assert found is not None
    assert found.startswith("unit 1: b/jit has the checksum [20.0, 8.0, 3.0], ")


def test_every_repetition_is_compared():
    lanes = [lane("a", "eager", sample(1), sample(1, 1)), lane("b", "eager", sample(1), sample(1, 1))]
    assert disagreement(lanes) is None
    lanes[1].samples[-1]["checks"] = [[10.0, 4.0, 0.2]]
    assert disagreement(lanes) is not None


def test_outputs_are_compared_with_those_of_the_same_unit():
    other = [20.0, 8.0, 3.0]
    lanes = [
        lane("a", "eager", sample(1, checks=[CHECK, other], units=[3, 70])),
        lane("b", "eager", sample(1, checks=[CHECK, other], units=[3, 70])),
    ]
    assert disagreement(lanes) is None
    lanes[1].samples.append(sample(1, 1, checks=[other], units=[3]))
    found = disagreement(lanes)
    assert found is not None
    assert found.startswith("unit 3: b/eager has the checksum [20.0, 8.0, 3.0], ")


def test_what_units_left_behind_is_compared_where_they_were_as_many():
    lanes = [
        lane("a", "eager", sample(1, checks=[CHECK, CHECK], left=[[3.0, 2.0, 1.0]])),
        lane("b", "eager", sample(1, checks=[CHECK, CHECK], left=[[3.0, 2.0, 1.0]])),
    ]
    lanes[1].samples[0] |= {"left": [[9.0, 9.0, 9.0]]}  # after one unit; nobody else says what one unit left
    assert disagreement(lanes) is None
    lanes[1].samples[1] |= {"left": [[3.0, 2.0, -1.0]]}
    found = disagreement(lanes)
    assert found is not None
    assert found.startswith("what 2 units left behind, part 0: ")


def test_parameters_are_compared_after_few_steps_only():
    """Rounding lets those of many steps drift apart."""
    checks = [CHECK] * 9
    lanes = [
        lane("a", "eager", sample(1, checks=checks, left=[[3.0, 2.0, 1.0]])),
        lane("b", "eager", sample(1, checks=checks, left=[[3.0, 2.0, 1.1]])),
    ]
    assert disagreement(lanes) is None
    for each, last in zip(lanes, (1.0, 1.1), strict=True):
        each.samples.append(sample(1, checks=checks[:8], left=[[3.0, 2.0, last]]))
    found = disagreement(lanes)
    assert found is not None
    assert found.startswith("what 8 units left behind, part 0: ")


@pytest.mark.parametrize(
    ("unit", "off", "fits"), [(31, 1.002, False), (32, 1.002, True), (32, 1.006, False), (80, 1.006, False)]
)
def test_losses_of_late_steps_may_drift_a_little(unit, off, fits):
    row = {**ROW, "watched": ["head"]}
    recorder = recorded({"pellucid/eager": [1], "tfjs/eager": [2]}, row)
    for name, factor in (("pellucid/eager", 1.0), ("tfjs/eager", off)):
        late = sample(1, 1, checks=[[factor * x for x in CHECK]], units=[unit])
        recorder.rows["chain"].lanes[name].samples.append(late)
    assert (recorder.rows["chain"].void() is None) == fits
    del row["watched"]
    assert recorder.rows["chain"].void() is not None


def test_a_disagreement_voids_the_row():
    recorder = recorded({"pellucid/eager": [1, 1], "tfjs/eager": [2, 2]})
    recorder.rows["chain"].lanes["tfjs/eager"].samples[-1]["checks"][1] = [1.0, 1.0, 1.0]
    summary = recorder.rows["chain"].summary()
    assert summary["void"].startswith("unit 1: tfjs/eager")
    assert all(found["void"] == summary["void"] for found in summary["lanes"].values())
    assert summary["pairs"] == {}
    assert not any("value" in found for found in summary["lanes"].values())


def test_an_error_of_the_device_voids_its_lane_alone():
    recorder = recorded({"pellucid/eager": [1, 1], "tfjs/eager": [2, 2], "jax/eager": [3, 3]})
    recorder.rows["chain"].lanes["tfjs/eager"].samples[0] |= {"errors": 2, "error": "bad buffer"}
    summary = recorder.rows["chain"].summary()
    assert summary["void"] is None
    assert summary["lanes"]["tfjs/eager"]["void"] == ("2 WebGPU errors that nobody caught, first: bad buffer")
    assert summary["lanes"]["jax/eager"]["void"] is None
    assert list(summary["pairs"]) == ["pellucid/eager : jax/eager"]


def test_a_lane_that_failed_or_never_ended_is_void():
    recorder = recorded({"pellucid/eager": [1], "tfjs/eager": []})
    place = {"row": "chain", "library": "pellucid", "form": "eager"}
    recorder.take({"kind": "failed", **place, "error": "no answer to repeat within 9 s"})
    lanes = recorder.rows["chain"].summary()["lanes"]
    assert lanes["pellucid/eager"]["void"] == "no answer to repeat within 9 s"
    assert lanes["tfjs/eager"]["void"] == "no repetition ended"


def test_rows_of_other_weights_are_not_compared():
    row = {**ROW, "uncompared": "each has its own weights"}
    recorder = recorded({"pellucid/eager": [1], "tfjs/eager": [2]}, row)
    recorder.rows["chain"].lanes["tfjs/eager"].samples[-1]["checks"][0] = [1.0, 1.0, 1.0]
    summary = recorder.rows["chain"].summary()
    assert summary["void"] is None
    assert not summary["compared"]


def test_pairs_are_of_the_same_repetition():
    ours = lane("pellucid", "eager", sample(1.0, 0), sample(2.0, 1), sample(4.0, 2))
    other = lane("tfjs", "eager", sample(3.0, 0), sample(8.0, 2))
    assert paired(ours, other) == spread([3.0, 2.0])
    assert paired(ours, lane("tfjs", "eager")) is None


def test_a_library_that_cannot_open_is_unavailable():
    recorder = Recorder([ROW])
    recorder.take({"kind": "failed", "row": "chain", "library": "jax", "form": None, "error": "no adapter"})
    recorder.take({"kind": "unavailable", "row": "chain", "library": "ort", "why": "not offered"})
    unavailable = recorder.rows["chain"].summary()["unavailable"]
    assert unavailable == {"jax": "failed: no adapter", "ort": "not offered"}


@pytest.mark.parametrize(
    ("unit", "work", "expected"),
    [("ms", 1, 4.0), ("µs/op", 20, 200.0), ("GFLOP/s", 8e6, 2.0), ("GB/s", 8e6, 2.0), ("ids/s", 16, 4000.0)],
)
def test_units(unit, work, expected):
    assert value({"name": "r", "unit": unit, "work": work}, 4.0) == pytest.approx(expected)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="unit 'furlong' is unknown"):
        value({"name": "r", "unit": "furlong", "work": 1}, 1.0)


def test_the_table():
    recorder = recorded(
        {"pellucid/eager": [0.4, 0.4, 0.4], "jax/eager": [4, 4, 4], "jax/captured": [0.2, 0.2, 0.2]}
    )
    recorder.take({"kind": "own", "python_us_per_op": 2.04, "gflop_per_second": 50.0})
    results = finished(recorder)
    results["rows"]["chain"]["noise"] = {"other_cores": 0.25}
    text = table.markdown(results)
    assert "Device: acme one; B 1." in text
    assert "the browser used 1.5 of 2 cores, other processes 0.25, in 3 s." in text
    assert "| a chain, eager | 2 / 0.400 / 9.00 | 2 / 4.00 / 9.00 |" in text
    # 0.4 ms for 20 ops are 20 µs each; the fastest other takes half of our time.
    cells = "20.0 (20.0–20.0) | 200 (200–200) | – | 0.500 (0.500–0.500), jax/captured | 0.250"
    assert f"| a chain, eager, µs/op | 2 | {cells} |" in text
    assert "| a chain, captured, µs/op | 2 | – | 10.0 (10.0–10.0) | – | – | 0.250 |" in text
    assert "| float32, GFLOP/s | Python per eager op, µs |" in text
    # 40 dispatches in each of 3 repetitions of 2 units, 0.1 ms of JavaScript in each.
    assert "| a chain, eager | 200 | 10.0 | 20.0 | 2.50 | 0.500 | 0 |" in text


@pytest.mark.parametrize(
    ("unit", "kind", "expected"),
    [("GFLOP/s", "chain", "20 %"), ("GB/s", "chain", "10 %"), ("GB/s", "upload", "–"), ("ms", "chain", "–")],
)
def test_the_share_of_what_the_device_can_do(unit, kind, expected):
    row = {**ROW, "unit": unit, "kind": kind, "work": 1e7}
    recorder = recorded({"pellucid/eager": [1, 1]}, row)  # 10 of either unit
    recorder.take({"kind": "own", "gflop_per_second": 50.0, "copied_gb_per_second": 100.0})
    results = finished(recorder)
    assert table.share(results, results["rows"]["chain"], "eager") == expected
    assert table.share(results, results["rows"]["chain"], "captured") == "–"
    del results["own"]["gflop_per_second"], results["own"]["copied_gb_per_second"]
    assert table.share(results, results["rows"]["chain"], "eager") == "–"


def test_the_table_tells_how_many_units_each_library_queued():
    recorder = recorded({"pellucid/eager": [1], "jax/eager": [2], "tfjs/eager": [3], "jax/captured": [4]})
    for name, k in (("pellucid/eager", 64), ("jax/eager", 5), ("tfjs/eager", 9)):
        recorder.rows["chain"].lanes[name].phase("queued")[0]["k"] = k
    text = table.markdown(finished(recorder))
    assert "| a chain, eager, µs/op | 5–64 |" in text
    assert "| a chain, captured, µs/op | 2 |" in text
    assert "| a chain, eager | 64 / 1.00 / 9.00 | 5 / 2.00 / 9.00 | 9 / 3.00 / 9.00 |" in text


def test_the_remarks_tell_how_far_up_the_clocks_were():
    recorder = recorded({"pellucid/eager": [1, 1], "tfjs/eager": [2, 2]})
    rates = iter([4e13, 3e13, 3.6e13, 2e13])
    for each in recorder.rows["chain"].lanes.values():
        each.samples[0]["warm_flop_per_second"] = None  # the first call has no warm-up
        for taken in each.phase("queued"):
            taken["warm_flop_per_second"] = next(rates)
    results = finished(recorder)
    assert results["rows"]["chain"]["warm_flop_per_second"] == spread([4e13, 3e13, 3.6e13, 2e13])
    text = table.markdown({**results, "settings": {**results["settings"], "warm_ms": 150.0}})
    assert "200 ms, each behind 150 ms of warm-up;" in text
    expected = "50 to 100 % of its fastest, 40 TFLOP/s; three quarters of the times at 69 % or more"
    assert f"- chain: the warm-up before what was measured ended at {expected}" in text


def test_a_floor_is_no_rival():
    results = finished(recorded({"pellucid/eager": [1], "wgsl/eager": [0.5], "tfjs/eager": [2]}))
    results["libraries"]["wgsl"]["floor"] = True
    assert "| 2.00 (2.00–2.00), tfjs/eager |" in table.markdown(results)


def test_the_table_says_what_is_void_and_missing():
    recorder = recorded({"pellucid/eager": [1], "tfjs/eager": [2]})
    recorder.rows["chain"].lanes["tfjs/eager"].samples[-1]["checks"][0] = [1.0, 1.0, 1.0]
    recorder.take({"kind": "unavailable", "row": "chain", "library": "ort", "why": "not offered"})
    text = table.markdown({**finished(recorder), "failure": "Chromium ended"})
    assert "| a chain, µs/op | – | void | void | – | – | – |" in text
    assert "- chain: void, for the outputs disagree: unit 0: tfjs/eager has the checksum" in text
    assert "- chain: ort is not available: not offered" in text
    assert "The run broke off: Chromium ended" in text


def test_a_row_with_ours_alone_says_so():
    text = table.markdown(finished(recorded({"pellucid/eager": [1]})))
    assert "- chain: there is nothing to compare the outputs with" in text


def test_the_plot_shows_speeds():
    found = plot.points(finished(recorded({"pellucid/eager": [1, 1], "jax/captured": [4, 2]})))
    assert found["chain"]["jax/captured"]["median"] == pytest.approx(1 / 3)
    assert found["chain"]["jax/captured"]["high"] == pytest.approx(1 / 2.5)


@pytest.mark.parametrize(("gpu", "expected"), [(True, (5, 150)), (False, (7, 0))])
def test_settings_that_go_with_the_adapter(gpu, expected):
    names = ("ops", "repetitions", "repetition_ms", "warm_ms", "row_seconds", "call_seconds")
    options = SimpleNamespace(gpu=gpu, **dict.fromkeys(names))
    driver.choose(options)
    assert (options.repetitions, options.warm_ms) == expected
    options = SimpleNamespace(gpu=gpu, **dict.fromkeys(names) | {"repetitions": 2, "warm_ms": 0})
    driver.choose(options)
    assert (options.repetitions, options.warm_ms) == (2, 0)


def test_graphs_that_do_not_fit_are_told_of_first(tmp_path, monkeypatch, capsys):
    """Before anything is fetched to make them anew."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "sources.sha256").write_text("of another version")
    monkeypatch.setattr(packages, "GRAPHS", folder)

    def tools():
        assert f"the graphs in {folder} were made from another rows.json" in capsys.readouterr().err
        raise machine.SetupError("no network")

    monkeypatch.setattr(packages, "tools", tools)
    with pytest.raises(machine.SetupError, match="no network"):
        packages.graphs(decoder=False)
    (folder / "sources.sha256").unlink()
    monkeypatch.setattr(packages, "tools", lambda: sys.exit(capsys.readouterr().err))
    with pytest.raises(SystemExit, match=r"^$"):
        packages.graphs(decoder=False)


def test_rows_and_peers_by_name():
    options = SimpleNamespace(rows="chain,matmul_256", gpu=False)
    assert [row["name"] for row in driver.chosen_rows(options)] == ["matmul_256", "chain"]
    everything = driver.chosen_rows(SimpleNamespace(rows=None, gpu=True))
    assert {row["name"] for row in everything} == {row["name"] for row in driver.ROWS}
    small = driver.chosen_rows(SimpleNamespace(rows=None, gpu=False))
    assert "matmul_4096" not in {row["name"] for row in small}
    inputs = {row["name"]: row["inputs"] for row in driver.chosen_rows(SimpleNamespace(rows=None, gpu=True))}
    assert (inputs["matmul_256"], inputs["decode"]) == (1024, 4)
    assert next(row["inputs"] for row in small if row["name"] == "matmul_256") == 32
    assert driver.chosen_peers([]) == list(packages.PEERS)
    assert driver.chosen_peers(["ort", "tfjs"]) == ["tfjs", "ort"]


def test_inputs_and_outputs_of_a_gpu_fit_its_memory():
    """Of one library at a time, 2.5 GB."""
    elements = {
        "matmul": lambda row: 2 * row["n"] ** 2,
        "chain": lambda row: 2 * row["n"],
        "softmax": lambda row: 2 * row["rows"] * row["columns"],
        "layer_norm": lambda row: 2 * row["rows"] * row["columns"],
        "sum": lambda row: row["n"],
        "conv2d": lambda row: (row["channels"] + row["out"]) * row["size"] ** 2,
        "block": lambda row: 2 * row["tokens"] * row["d"],
        "upload": lambda row: row["n"],
        "readback": lambda row: row["n"],
    }
    rows = driver.chosen_rows(SimpleNamespace(rows=",".join(r["name"] for r in driver.ROWS), gpu=True))
    sizes = {
        row["name"]: 4 * row["inputs"] * elements[row["kind"]](row) for row in rows if row["kind"] in elements
    }
    assert max(sizes.values()) < 2.5e9
    assert sizes["sum"] > 2e9


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="no row named chains"):
        driver.chosen_rows(SimpleNamespace(rows="chains", gpu=False))
    with pytest.raises(SystemExit, match="no peer named numpy"):
        driver.chosen_peers(["numpy"])


def test_the_values_of_the_large_graph(tmp_path):
    listing, target = tmp_path / "llm.json", tmp_path / "llm.bin"
    parts = [
        ("random", 100_000, 0.0),
        ("constant", 8, 0.5),
        ("eights", 3, 0.0),
        ("ones", 4, 0.0),
        ("floats", 8, 2.0),
    ]
    listing.write_text(json.dumps([{"filling": f, "bytes": n, "scale": s} for f, n, s in parts]))
    weights.fill(listing, target)
    found = target.read_bytes()
    assert len(found) == sum(n for _, n, _ in parts)
    assert found[100_000:100_011] == b"\0\0\0?" * 2 + b"\x88" * 3
    assert found[100_011:100_015] == b"\0\0\x80?"
    with pytest.raises(ValueError, match="filling 'zeros' is unknown"):
        weights.pattern("zeros", 0.0, weights.random.Random(0))
