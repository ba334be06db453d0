"""Every module of tests leaves the device as it found it, and runs on the default device anew."""

import gc

import pytest

import pellucid


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
