"""Every test starts from the same random state, and the collector walks over what tests made only."""

import gc
import random
import sys

import hypothesis  # noqa: F401  # it asks who holds generators, and frozen objects do not answer
import numpy as np
import pytest

# Python 3.12 tells a trace function of opcodes only if some frame asked for them before.
sys._getframe().f_trace_opcodes = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes share files; those of pages go to one process: two browsers at once would wait too long."""
    for item in items:
        folder = item.path.parent
        group = str(folder) if folder.name == "browser" else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish() -> None:
    """What imports made stays: `gc.collect`, which many tests call, need not walk over it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed() -> None:
    random.seed(0)
    np.random.seed(0)
