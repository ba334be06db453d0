"""The comparison with other libraries in the browser: inputs, trap, measuring, and its smallest row."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from processes import crash_pages

import machine
from paths import ROOT, SCRIPTS, SITE
from static_server import StaticServer

sys.path.append(str(ROOT / "benchmarks"))

from peers import ops, packages
from peers.ours import data
from peers.ours import ops as ours

MEASURE = """
async ([row, k]) => {
  const { Measure, Unavailable } = await import("/page/measure.js");
  const log = [];
  const form = {
    unit: async (i) => (log.push(`unit ${i}`), i),
    before: (k) => log.push(`before ${k}`),
    after: () => log.push("after"),
    follows: row.follows,
  };
  const measure = new Measure({
    sync: (outputs) => log.push(`sync ${outputs}`),
    read: (output) => (log.push(`read ${output}`), [output, -output]),
    free: (output) => log.push(`free ${output}`),
    rows: {
      good: () => ({ eager: form }),
      none: () => { throw new Unavailable("no kernel"); },
    },
  });
  const prepared = await measure.prepare(row);
  let sample = null;
  if (prepared.forms) {
    await measure.ready("eager", k);
    log.push("warm");
    sample = await measure.repeat("eager", k, 32, k, 1);
  }
  await measure.finish();
  return { prepared, sample, log };
}
"""


@pytest.fixture
def peers_page(page):
    """A page beside the comparison's own modules."""
    with StaticServer(packages.HERE) as server:
        page.goto(server.url + "rows.json")
        yield page


@pytest.mark.parametrize(("seed", "scale", "offset"), [(1, 1.0, 0.0), (3007, 0.05, 1.0), (123456, 4.0, 0.0)])
def test_inputs_are_the_same_in_both_languages(peers_page, seed, scale, offset):
    call = "async (o) => [...(await import('/page/data.js')).uniform(1000, ...o)]"
    found = np.array(peers_page.evaluate(call, [seed, scale, offset]), dtype=np.float32)
    np.testing.assert_array_equal(found, data.uniform((1000,), seed, scale, offset))
    call = "async (o) => [...(await import('/page/data.js')).integers(1000, ...o)]"
    np.testing.assert_array_equal(
        peers_page.evaluate(call, [seed, 49152]), data.integers((1000,), seed, 49152)
    )


def test_series_and_samples_are_the_same_in_both_languages(peers_page):
    call = """
    async (o) => {
      const of = (await import('/page/data.js')).series(...o);
      return [0, 1, 2].map((i) => [...of(i)]);
    }
    """
    found = np.array(peers_page.evaluate(call, [3, 600, 7, 2.0, 0.5]), dtype=np.float32)
    made = list(data.series(3, (20, 30), 7, 2.0, 0.5))
    np.testing.assert_array_equal(found.reshape(3, 20, 30), made)
    assert len({values.tobytes() for values in made}) == 3
    call = "async (o) => (await import('/page/data.js')).sample(...o)"
    for k, seed in [(32, 0), (33, 0), (1024, 0), (1024, 1)]:
        drawn = data.sample(k, 32, seed)
        assert peers_page.evaluate(call, [k, 32, seed]) == drawn
        assert len(set(drawn)) == 32
        assert drawn == sorted(drawn)
        assert drawn[-1] < k
    assert data.sample(1024, 32, 0) != data.sample(1024, 32, 1)


def test_half_of_a_sample_is_what_every_library_has(peers_page):
    call = "async (o) => (await import('/page/data.js')).sample(...o)"
    drawn = {(k, near): data.sample(k, 32, 3, near) for k in (64, 512) for near in (5, 20, 40)}
    for (k, near), units in drawn.items():
        assert peers_page.evaluate(call, [k, 32, 3, near]) == units
        assert len(set(units)) == 32
        assert len([i for i in units if i < near]) >= min(16, near)
        assert max(units) > near
    assert {i for i in drawn[512, 40] if i < 40} & {i for i in drawn[64, 40] if i < 40}
    assert data.sample(512, 32, 3, 512) == data.sample(512, 32, 3)


def test_checksums_are_the_same_in_both_languages(peers_page):
    values = data.uniform((4097,), 5, 3.0)
    call = "async (values) => (await import('/page/data.js')).checksum(values)"
    found = peers_page.evaluate(call, values.tolist())
    assert found == pytest.approx(data.checksum(values), rel=1e-12)
    assert found[2] != pytest.approx(data.checksum(values[::-1])[2], rel=1e-3)


def test_uncaught_errors_of_a_device_are_counted(peers_page):
    found = peers_page.evaluate(
        """
        async () => {
          const { trap, caught } = await import("/page/trap.js");
          trap();
          const device = await (await navigator.gpu.requestAdapter()).requestDevice();
          const before = caught();
          device.createBuffer({ size: 4, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
          await device.queue.onSubmittedWorkDone();
          await new Promise((resolve) => setTimeout(resolve, 50));
          return [before, caught(), caught()];
        }
        """
    )
    assert found[0] == found[2] == [0, None]
    assert found[1][0] == 1
    assert "usage" in found[1][1].lower()


def test_outputs_are_held_until_all_are_queued(peers_page):
    found = peers_page.evaluate(MEASURE, [{"kind": "good"}, 2])
    assert found["prepared"] == {"forms": [{"form": "eager", "note": ""}]}
    queued = ["before 2", "warm", "unit 0", "unit 1", "sync 0,1"]
    assert found["log"] == [*queued, "read 0", "read 1", "free 0", "free 1", "after"]
    assert found["sample"]["units"] == [0, 1]
    assert found["sample"]["checks"][1][:2] == pytest.approx([2, 2**0.5])
    assert found["sample"]["k"] == 2
    assert found["sample"]["ms"] >= found["sample"]["host_ms"] >= 0


def test_of_many_outputs_some_are_compared_and_all_are_dropped(peers_page):
    found = peers_page.evaluate(MEASURE, [{"kind": "good"}, 100])
    units = found["sample"]["units"]
    assert units == data.sample(100, 32, 1)
    at = found["log"].index("sync " + ",".join(map(str, range(100))))
    reads = [f"read {k}" for k in units]
    assert found["log"][at + 1 :] == [*reads, *(f"free {k}" for k in range(100)), "after"]
    assert [check[0] for check in found["sample"]["checks"]] == [2 * k for k in units]


def test_what_units_go_on_with_comes_behind_the_warm_up(peers_page):
    found = peers_page.evaluate(MEASURE, [{"kind": "good", "follows": True}, 2])
    assert found["log"][:3] == ["warm", "before 2", "unit 0"]
    assert found["log"].count("before 2") == 1


WARM = """
async (ms) => {
  const { Warmup } = await import("/page/warmup.js");
  const adapter = await navigator.gpu.requestAdapter();
  const timed = adapter.features.has("timestamp-query");
  const warmup = await Warmup.open(adapter);
  const runs = [];
  for (let i = 0; i < 2; i++) {
    const began = performance.now();
    const rate = await warmup.run(ms);
    runs.push([performance.now() - began, rate]);
  }
  return [timed, adapter.info.isFallbackAdapter, runs];
}
"""


def test_the_warm_up_keeps_the_device_busy_and_tells_its_speed(peers_page):
    timed, fallback, runs = peers_page.evaluate(WARM, 50)
    assert fallback  # so that a run on this adapter goes without
    for ms, rate in runs:
        assert ms > 50
        assert rate > 1e7 if timed else rate is None


SETTLED = """
async ([row, wait, unit, first]) => {
  const { settledUnits } = await import("/page/units.js");
  const tried = [];
  const measure = async (k) => (tried.push(k), wait / k + unit);
  return [await settledUnits(row, first ?? wait + unit, 200, measure), tried];
}
"""


@pytest.mark.parametrize(
    ("row", "wait", "unit", "units", "tried"),
    [
        ({"inputs": 2000}, 4, 0.1, 1957, [8, 64, 512, 1855, 1855]),
        ({"inputs": 300}, 4, 0.1, 300, [8, 64, 300]),
        ({"inputs": 300}, 4, 150, 1, [1]),
        ({"inputs": 300, "least": 4}, 4, 150, 4, [4, 4]),
        ({"inputs": 4, "units": 1}, 4, 0.1, 1, []),
    ],
)
def test_units_grow_until_the_wait_is_a_small_part(peers_page, row, wait, unit, units, tried):
    assert peers_page.evaluate(SETTLED, [row, wait, unit, None]) == [units, tried]


def test_a_library_that_still_compiled_is_measured_again(peers_page):
    found = peers_page.evaluate(SETTLED, [{"inputs": 300}, 4, 0.1, 900])
    assert found == [300, [1, 8, 64, 300]]


def test_lanes_that_go_together_go_by_the_median_unless_one_is_very_slow(peers_page):
    call = "async (times) => (await import('/page/units.js')).togetherOf(times)"
    assert [peers_page.evaluate(call, times) for times in ([3, 1, 2], [1, 1, 40], [7])] == [2, 10, 7]


def test_a_row_with_waits_needs_no_other(peers_page):
    found = peers_page.evaluate(MEASURE, [{"kind": "good", "waits": True}, 1])
    assert not any(step.startswith("sync") for step in found["log"])


def test_what_a_library_cannot_do_is_said(peers_page):
    assert peers_page.evaluate(MEASURE, [{"kind": "none"}, 1])["prepared"] == {"unavailable": "no kernel"}
    other = peers_page.evaluate(MEASURE, [{"kind": "other"}, 1])["prepared"]
    assert other == {"unavailable": "not offered by the library"}


@pytest.mark.parametrize("n", [2, 5000, 1 << 14])
def test_permutations_and_places_are_the_same_in_both_languages(peers_page, n):
    call = """async (n) => {
      const { permutation, places } = await import("/page/data.js");
      return [[...permutation(n)], [...places(n)]];
    }"""
    order, places = peers_page.evaluate(call, n)
    assert order == data.permutation(n).tolist()
    assert sorted(order) == list(range(n))
    assert places == data.places(n).tolist()


def test_operands_of_ops_are_the_same_in_both_languages(peers_page):
    call = """async () => {
      const { constants, shapes, values } = await import("/page/op_values.js");
      const made = values(64);
      const lists = Object.entries(made).map(([name, numbers]) => [name, [...numbers]]);
      return [Object.fromEntries(lists), shapes(64), constants(64, made)];
    }"""
    found, shapes, fixed = peers_page.evaluate(call)
    expected = ours.values(64)
    for name, numbers in found.items():
        np.testing.assert_allclose(numbers, expected[name].astype(float), rtol=1e-6, err_msg=name)
    assert set(expected) == {*found, *shapes}
    assert all(list(expected[name].shape) == shape for name, shape in shapes.items())
    assert fixed == {"side": 64, "count": 4096, "top": int(expected["i"].max()) + 1}


def test_expressions_of_ops_are_javascript(peers_page):
    texts = [
        text
        for row in ops.EXPRESSIONS.values()
        for found in (row.get("tfjs"), row.get("jax"))
        for text in (
            [found] if isinstance(found, str) else [(found or {}).get(k) for k in ("run", "setup", "read")]
        )
        if text
    ]
    call = "(texts) => texts.forEach((text) => new Function(`return ${text}`))"
    peers_page.evaluate(call, texts)
    assert len(texts) > len(ops.EXPRESSIONS)


def test_the_numbers_that_are_compared_are_those_behind_indices(peers_page):
    call = """async ([numbers, row, x]) => {
      const { taken } = await import("/page/op_values.js");
      return [...taken(numbers, row, x)];
    }"""
    x = [1, 2, 3, 4]
    cases = {None: [1, 0], "all": [2, 1], "rows": [2, 3], "columns": [3, 2]}
    for indexes, expected in cases.items():
        assert peers_page.evaluate(call, [[1, 0], {"indexes": indexes, "side": 2}, x]) == expected
    odd = "async () => [...(await import('/page/op_values.js')).taken([NaN, Infinity, -Infinity], {}, [])]"
    assert peers_page.evaluate(odd) == [ours.NAN, ours.INFINITY, ours.MINUS_INFINITY]


@pytest.mark.slow
def test_a_page_that_crashes_ends_the_run_at_once(tmp_path):
    """What was measured by then is written."""
    command = [SCRIPTS / "bench", "--peers", "wgsl", "--rows", "readback", "--call-seconds", "60"]
    command += ["--site", SITE, "--out", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.endswith(" ms\n") for line in process.stderr)
        began = time.monotonic()
        assert crash_pages(process.pid)
        process.communicate(timeout=150)
    assert time.monotonic() - began < 30
    assert process.returncode == 1
    results = json.loads((tmp_path / "peers.json").read_text())
    assert results["failure"].startswith("the page crashed: its process ended")
    assert results["rows"]["readback"]["lanes"]["pellucid/eager"]["samples"]


@pytest.mark.slow
def test_the_smallest_row_with_a_peer(tmp_path):
    try:
        packages.PEERS["tfjs"].job()
    except machine.SetupError as error:
        pytest.skip(str(error))
    target = tmp_path / "results.json"
    command = [SCRIPTS / "bench", "--peers", "tfjs", "--rows", "chain", "--repetitions", "2"]
    command += ["--repetition-ms", "5", "--site", SITE, "--out", tmp_path, "--json", target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(target.read_text())
    row = results["rows"]["chain"]
    assert row["void"] is None
    assert row["compared"]
    assert row["unavailable"] == {}
    for lane in row["lanes"].values():
        assert lane["void"] is None
        assert lane["value"] > 0
        assert len([s for s in lane["samples"] if s["phase"] == "queued"]) == 2
    assert "pellucid/eager : tfjs/eager" in row["pairs"]
    assert row["lanes"]["pellucid/unfused"]["counters"]["dispatches"] == row["row"]["ops"]
    assert results["own"]["python_us_per_op"] > 0
    assert "swiftshader" in json.dumps(results["machine"]["adapter"]).lower()
    assert row["row"]["title"] in (tmp_path / "peers.md").read_text()


@pytest.mark.slow
def test_an_op_beside_its_peers(tmp_path):
    """Every library gives what ours gives; a later run adds its rows to the file."""
    try:
        for name in ops.PEERS:
            packages.PEERS[name].job()
    except machine.SetupError as error:
        pytest.skip(str(error))
    command = [SCRIPTS / "bench", "--peers", "--site", SITE, "--out", tmp_path, "--mbytes", "0.0625"]
    command += ["--repetitions", "1", "--ops"]
    for names in (["argmax, rows", "bincount"], ["F.max_pool2d"]):
        done = subprocess.run([*command, *names], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "ops.json").read_text())
    assert list(results["rows"]) == ["argmax, rows", "bincount", "F.max_pool2d"]
    for name, row in results["rows"].items():
        assert set(row) == {"pellucid", *ops.PEERS}
        for library, found in row.items():
            if (name, library) == ("bincount", "jax"):
                assert found == {"none": "no such op"}
            else:
                assert "none" not in found or "longer queue" in found["none"], (name, library, found)
    assert "3 rows, 260 not yet measured; tfjs in" in done.stdout.splitlines()[-1]
    assert "| bincount |" in (tmp_path / "ops.md").read_text()
