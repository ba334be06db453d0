"""Code inside the site's Pyodide, through pytest-pyodide."""

import numpy as np
from pytest_pyodide import run_in_pyodide


@run_in_pyodide(packages=["numpy"])
def test_numpy_computes(selenium):
    import numpy

    product = numpy.arange(6.0).reshape(2, 3) @ numpy.ones((3, 2))
    assert product.tolist() == [[3.0, 3.0], [12.0, 12.0]]


@run_in_pyodide(packages=["numpy"])
def _squares(selenium, count):
    import numpy

    return (numpy.arange(count) ** 2).tolist()


def test_values_cross_between_host_and_pyodide(selenium):
    assert _squares(selenium, 5) == (np.arange(5) ** 2).tolist()


@run_in_pyodide
async def test_webgpu_offers_an_adapter(selenium):
    from js import navigator

    adapter = await navigator.gpu.requestAdapter()
    assert adapter.info.architecture == "swiftshader"
    assert adapter.limits.maxStorageBuffersPerShaderStage >= 8


@run_in_pyodide
async def test_blocking_waits_work(selenium):
    import asyncio

    from pyodide.ffi import can_run_sync, run_sync

    assert can_run_sync()
    assert run_sync(asyncio.sleep(0.01, "waited")) == "waited"


@run_in_pyodide(packages=["pellucid"])
def test_the_wheel_carries_shaders_and_runtime(selenium):
    from importlib.metadata import files, version

    names = {str(path) for path in files("pellucid")}
    assert version("pellucid") == "0.1.0"
    assert any(name.startswith("pellucid/wgsl/") and name.endswith(".wgsl") for name in names)
    assert any(name.startswith("pellucid/web/runtime/") and name.endswith(".js") for name in names)


@run_in_pyodide(packages=["pellucid"])
async def test_pellucid_computes_on_webgpu(selenium):
    import pellucid as torch

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.device.type == "webgpu"
    assert (x + 1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
