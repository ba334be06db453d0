"""Fused kernels in Chromium: they give the bits of those that they stand for, and nobody waits for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_pyodide import run_in_pyodide

from paths import SCRIPTS

PROGRAM = Path(__file__).parents[1] / "op" / "fusion" / "page.py"


@pytest.mark.slow
def test_bit_for_bit():
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--timeout=240"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["adapter"] == "swiftshader"
    assert said["kernels"] > 50
    assert said["differ"] == []


@run_in_pyodide(packages=["pellucid"])
def test_a_plan_is_used_once_its_kernels_are_compiled(selenium):
    from pyodide.code import run_js

    import pellucid as torch
    from pellucid.device.stream import stream
    from pellucid.op.fusion import plan

    hold_compiling = run_js("""
      (stream) => {
        const { device } = stream;
        const make = device.createComputePipelineAsync;
        const waiting = [];
        device.createComputePipelineAsync = (descriptor) =>
          new Promise((resolve) => waiting.push(() => resolve(make.call(device, descriptor))));
        return () => {
          delete device.createComputePipelineAsync;
          for (const begin of waiting) begin();
        };
      }
    """)
    x = torch.arange(1000.0, device="webgpu")
    release = hold_compiling(stream().open().stream)

    def run():
        before = torch.webgpu.memory_stats()["dispatches"]
        y = ((x * 3 + 1).sqrt() - x).tolist()
        return torch.webgpu.memory_stats()["dispatches"] - before, y

    longest, plan._LONGEST = plan._LONGEST, 3600.0  # however slow the machine is
    with torch.webgpu.fusion(True):
        counts, results = zip(*[run() for _ in range(20)], strict=True)
        assert counts == (4,) * 20
        release()
        while torch.webgpu.memory_stats()["compiling"]:
            torch.webgpu.synchronize()
        count, last = run()
        assert count == 1
        assert all(result == last for result in results)
        plan._LONGEST = longest
        # A captured function's window waits in the host, and Python does not.
        release = hold_compiling(stream().open().stream)
        captured = torch.compile(lambda x: ((x + 2).abs() * x).exp2())
        first, second = captured(x), captured(x)
        third = captured(x)
        release()
        assert first.tolist() == second.tolist() == third.tolist()
