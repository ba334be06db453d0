"""Every module of tests leaves the device as it found it, and runs on the default device anew."""

import gc

import pytest

import pellucid
from pellucid.device.native import NativeHost
from pellucid.op import launches
from pellucid.op.kernel.source import compact
from pellucid.op.kernel.variants import is_direct
from pellucid.op.plan_cache import forget_plans


@pytest.fixture
def compact_form(monkeypatch):
    """Kernels in the form that serves until the full one is compiled (`source.compact`)."""
    pipeline, asked = NativeHost.pipeline, []

    def make(host, source, *args):
        text = compact(source)
        asked.append(text != source)
        return pipeline(host, text, *args)

    forget_plans()
    monkeypatch.setattr(NativeHost, "pipeline", make)
    monkeypatch.setattr(launches, "_pipelines", {})
    direct = is_direct()
    yield
    forget_plans()
    assert any(asked) != direct


@pytest.fixture(params=["full", "compact"])
def form(request):
    """Both forms, one after the other."""
    if request.param == "compact":
        request.getfixturevalue("compact_form")


@pytest.fixture(autouse=True, scope="module")
def nothing_stays(request):
    """Live bytes after a module equal those before it: an op that keeps a tensor alive fails here."""
    gc.collect()
    before = pellucid.webgpu.memory_allocated()
    failures = request.session.testsfailed
    yield
    gc.collect()
    # The traceback of a failed test holds its tensors.
    if request.session.testsfailed == failures:
        assert pellucid.webgpu.memory_allocated() == before
