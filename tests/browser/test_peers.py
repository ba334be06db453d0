"""The comparison with other libraries in the browser: inputs, trap, measuring, and its smallest row."""

import json
import subprocess
import sys

import numpy as np
import pytest

import machine
from paths import ROOT, SCRIPTS, SITE
from static_server import StaticServer

sys.path.append(str(ROOT / "benchmarks"))

from peers import packages
from peers.ours import data

MEASURE = """
async ([row, k]) => {
  const { Measure, Unavailable } = await import("/page/measure.js");
  const log = [];
  const form = {
    unit: async (i) => (log.push(`unit ${i}`), i),
    before: (k) => log.push(`before ${k}`),
    after: () => log.push("after"),
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
  const sample = prepared.forms ? await measure.repeat("eager", k) : null;
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
    queued = ["before 2", "unit 0", "unit 1", "sync 0,1"]
    assert found["log"] == [*queued, "read 0", "free 0", "read 1", "free 1", "after"]
    assert found["sample"]["checks"][1][:2] == pytest.approx([2, 2**0.5])
    assert found["sample"]["k"] == 2
    assert found["sample"]["ms"] >= found["sample"]["host_ms"] >= 0


def test_a_row_with_waits_needs_no_other(peers_page):
    found = peers_page.evaluate(MEASURE, [{"kind": "good", "waits": True}, 1])
    assert not any(step.startswith("sync") for step in found["log"])


def test_what_a_library_cannot_do_is_said(peers_page):
    assert peers_page.evaluate(MEASURE, [{"kind": "none"}, 1])["prepared"] == {"unavailable": "no kernel"}
    other = peers_page.evaluate(MEASURE, [{"kind": "other"}, 1])["prepared"]
    assert other == {"unavailable": "not offered by the library"}


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
