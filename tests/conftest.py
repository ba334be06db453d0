"""Every test starts from the same random state, and the collector walks over what tests made only."""

import gc
import os
import random
import sys
from pathlib import Path
from zlib import crc32

import hypothesis  # noqa: F401  # it asks who holds generators, and frozen objects do not answer
import numpy as np
import pytest

from turns import TURN, in_turn

# Threads of PyTorch wait for each other by turning, which takes longer than what the tests compute.
os.environ["OMP_NUM_THREADS"] = "1"

# Most of a run is LLVM, compiling kernels for the software driver. For vectors of four it has less to do than
# for those of eight; fused runs have the driver's own width (scripts/test).
os.environ.setdefault("LP_NATIVE_VECTOR_WIDTH", "128")

# Python 3.12 tells a trace function of opcodes only if some frame asked for them before.
sys._getframe().f_trace_opcodes = True


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run one test of N, always the same")


def pytest_report_header() -> str:
    return f"PELLUCID_TURN={TURN} says which part of combinations is tested; it follows from the commit"


def waiting(items: list[pytest.Item]) -> set[pytest.Item]:
    """Combinations of tests that take turns whose turn is at another commit; one of each test runs."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("turns"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found = set()
    for combinations in tests.values():
        for k, item in enumerate(combinations):
            mark = item.get_closest_marker("turns")
            if mark and not in_turn(k, min(*mark.args, len(combinations))):
                found.add(item)
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Processes share files; pages go to one process: two browsers at once would wait too long.

    That process takes longest, so its tests come first, which counts with --no-loadscope-reorder.
    """
    step = config.getoption("--one-in")
    left_out = {item for item in items if crc32(item.nodeid.encode()) % step}
    if not any("[" in argument for argument in config.args):
        left_out |= waiting(items)
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=[*left_out])
    folder = Path(__file__).parent / "browser"
    pages = {item for item in items if folder in item.path.parents or item.get_closest_marker("browser")}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("pages" if item in pages else str(item.path)))
    items.sort(key=lambda item: item not in pages)


def pytest_collection_finish() -> None:
    """What imports made stays: `gc.collect`, which many tests call, need not walk over it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def earlier_files_stay() -> None:
    """The collector does not walk over what earlier files of the process left, such as imports and plans."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed() -> None:
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def nothing_is_recorded():
    """A recording that is left open would keep all later tests of the process from capturing."""
    yield
    device = sys.modules.get("pellucid.device.stream")
    assert device is None or device.stream().capturing is None
