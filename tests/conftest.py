"""Every test starts from the same random state, and the collector walks over what tests made only."""

import gc
import importlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import hypothesis  # noqa: F401  # it asks who holds generators, and frozen objects do not answer
import numpy as np
import pytest

from turns import TURN, in_turn

# Threads of PyTorch wait for each other by turning, which takes longer than what the tests compute.
os.environ["OMP_NUM_THREADS"] = "1"

# Python 3.12 tells a trace function of opcodes only if some frame asked for them before.
sys._getframe().f_trace_opcodes = True

# Where tests run again with every window fused, but for those that set the mode of fusion themselves.
FUSED_ROOMS = ("autograd", "device", "lens", "models", "nn", "op", "ops", "optim", "quant", "tensors")
OWN_FUSION = ("fusion", "jit")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run one in N tests of ops and models again, with every window fused when it first appears"
    parser.addoption("--fused-again", type=int, default=0, metavar="N", help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fused: of a test that runs again; fused_at_once sets the mode")


def pytest_report_header() -> str:
    return f"PELLUCID_TURN={TURN} says which part of combinations is tested; it follows from the commit"


def fused_again(items: list[pytest.Item], of: int) -> Iterator[pytest.Item]:
    """All tests, each of those that take their turn followed by the same with PELLUCID_FUSION=always.

    They come from the same process, which has loaded what they need, and compiled all but fused kernels.
    """
    rooms = [Path(__file__).parent / name for name in FUSED_ROOMS]
    for item in items:
        yield item
        if type(item) is not pytest.Function or not of or item.get_closest_marker("browser"):
            continue
        is_meant = any(room in item.path.parents for room in rooms)
        is_meant = is_meant and item.path.parent.name not in OWN_FUSION
        if is_meant and in_turn(crc32(item.nodeid.encode()), of):
            given = {"callspec": item.callspec} if hasattr(item, "callspec") else {}
            again = pytest.Function.from_parent(
                item.parent,
                name=f"{item.name}-PELLUCID_FUSION=always",
                callobj=item.obj,
                originalname=item.originalname,
                fixtureinfo=item._fixtureinfo,
                **given,
            )
            again.add_marker("fused")
            yield again


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
    if not any("[" in argument for argument in config.args) and (left_out := waiting(items)):
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=[*left_out])
    items[:] = fused_again(items, config.getoption("--fused-again"))
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
def fused_at_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests that run again, and their own processes, fuse every window when it first appears."""
    if not request.node.get_closest_marker("fused"):
        yield
        return
    fusion = importlib.import_module("pellucid.op.fusion")
    kept = os.environ.get("PELLUCID_FUSION")
    os.environ["PELLUCID_FUSION"] = "always"
    fusion.enable(True, at_once=True)
    yield
    fusion.enable(kept != "0", at_once=kept == "always")
    del os.environ["PELLUCID_FUSION"]
    if kept is not None:
        os.environ["PELLUCID_FUSION"] = kept


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
