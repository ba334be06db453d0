"""Measurements of products: what is measured, what is used, and what it changes."""

import asyncio
import json
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pellucid
from pellucid.device.host import Info
from pellucid.device.native import NativeHost
from pellucid.device.stream import stream
from pellucid.errors import DTypeError, ShapeError
from pellucid.op import launches
from pellucid.op.kernel.autotune import candidates as contests
from pellucid.op.kernel.autotune import measured as tuned
from pellucid.op.kernel.autotune import tune as tuning
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.conv import tiles as conv_tiles
from pellucid.ops.matmul.choice import choose, variant_for
from pellucid.ops.matmul.variants import MatmulTile, Shape, Variant

DEVICE = Info("browser", "nvidia", "hopper", "NVIDIA H200", version="Chrome 156")
SHAPE = Shape(1, 40, 40, 64)
KEY = "float32 nn 1x48x48x64"
TWO = [Variant("tiled", MatmulTile(32, 32, 4, 4)), Variant("tiled", MatmulTile(32, 32, 4, 4), 2)]


shortlist = contests.shortlist


def contest():
    return contests.product(SHAPE, pellucid.float32, TWO)


@pytest.fixture(autouse=True)
def table(monkeypatch, tmp_path):
    """A table of this test's own, two candidates, and short measurements."""
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    monkeypatch.setenv("PELLUCID_TUNING", str(tmp_path / "folder" / "tuned.json"))
    monkeypatch.setattr(tuning, "_BATCH_SECONDS", 1e-5)
    monkeypatch.setattr(tuning, "_FAR", 100.0)
    monkeypatch.setattr(contests, "shortlist", lambda shape: TWO)
    tuned.reread()
    yield tmp_path / "folder" / "tuned.json"
    tuned.reread()
    forget_plans()


class Device:
    """A device that needs a tenth of a millisecond for a call and one for a wait, and is held up at times."""

    def __init__(self, monkeypatch):
        self.now, self.waiting, self.batches = 0.0, 0, []
        monkeypatch.setattr(tuning, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def call(self):
        self.waiting += 1

    def run(self, steps):
        try:
            while True:
                assert next(steps) is None
                if self.waiting:
                    self.batches.append(self.waiting)
                    self.now += 1e-3 + 1e-4 * self.waiting + (5e-3 if len(self.batches) % 6 == 0 else 0)
                self.waiting = 0
        except StopIteration as end:
            return end.value


def test_outliers_do_not_count(monkeypatch):
    device = Device(monkeypatch)
    monkeypatch.setattr(tuning, "_BATCH_SECONDS", 2e-3)
    assert device.run(tuning.seconds_of(device.call)) == pytest.approx(1e-4)
    assert device.batches[-2:] == [32, 96]


def test_a_gpu_is_at_work_before_it_is_measured(monkeypatch):
    device = Device(monkeypatch)
    monkeypatch.setattr(Info, "is_software", True)
    device.run(tuning._busy(device.call, 0.5))
    assert device.now == 0  # a software adapter has no clocks that rise
    monkeypatch.setattr(Info, "is_software", False)
    device.run(tuning._busy(device.call, 0.5))
    assert 0.5 <= device.now < 0.6
    assert sum(device.batches) > 100
    device.batches.clear()
    began = device.now
    device.run(tuning.seconds_of(device.call))
    assert device.now - began > tuning._WARM_AGAIN


def test_results_are_held_until_they_are_done():
    kept = []

    def call():
        kept.append(weakref.ref(x := pellucid.ones(3)))
        return x

    steps = tuning.seconds_of(call, hold=True)
    assert next(steps) is None
    assert next(steps) is None
    assert len(kept) == 1
    assert kept[0]() is not None
    steps.close()


def test_a_measurement_is_used_and_kept(table):
    info = stream().open().info
    states: list[tuning.Progress] = []
    found = pellucid.webgpu.tune([("nn", (40, 40, 64))], on_progress=states.append)
    assert list(found) == [KEY]
    assert found.kept == str(table)
    assert found[KEY]["untuned"] == str(TWO[0])
    assert found[KEY]["TFLOP/s"] >= found[KEY]["untuned TFLOP/s"]
    assert [(state.done, state.total, state.measured) for state in states] == [(1, 1, found[KEY])]
    assert str(states[0]).startswith(f"1 of 1: {KEY}: {found[KEY]['variant']}, ")
    assert str(variant_for(SHAPE, "float32", info)) == found[KEY]["variant"]
    kept = json.loads(table.read_text())["devices"][tuned.device(info)]
    assert kept == {"version": info.version, "variants": {KEY: found[KEY]["variant"]}}
    tuned.reread()
    assert str(variant_for(SHAPE, "float32", info)) == found[KEY]["variant"]
    assert list(table.parent.iterdir()) == [table]


def test_products_stay_right(table):
    a, b = np.random.random((2, 40, 40)).astype(np.float32)
    products = [("nn", (40, 40, 40)), ("tn", (2, 40, 40, 40))]
    found = asyncio.run(pellucid.webgpu.tune_async(products, keep=False))
    assert found.kept == ""
    np.testing.assert_allclose((pellucid.tensor(a) @ pellucid.tensor(b)).numpy(), a @ b, rtol=1e-4)
    assert not table.exists()


def test_deterministic_algorithms_ignore_it():
    info = stream().open().info
    other = Variant("tiled", MatmulTile(64, 32, 4, 4), 2)
    assert choose(SHAPE, info) != other
    tuned.use(info, {KEY: str(other)})
    assert variant_for(SHAPE, "float32", info) == other
    assert not pellucid.are_deterministic_algorithms_enabled()
    pellucid.use_deterministic_algorithms(True)
    try:
        assert pellucid.are_deterministic_algorithms_enabled()
        assert variant_for(SHAPE, "float32", info) == choose(SHAPE, info)
    finally:
        pellucid.use_deterministic_algorithms(False)
    assert variant_for(SHAPE, "float32", info) == other


def test_plans_are_made_anew():
    """The number of dispatches shows which variant a product took."""
    info = stream().open().info
    a = pellucid.zeros(40, 40)
    b = pellucid.zeros(40, 40)

    def dispatches() -> int:
        pellucid.webgpu.synchronize()
        before = pellucid.webgpu.memory_stats()["dispatches"]
        (a @ b).numpy()
        return pellucid.webgpu.memory_stats()["dispatches"] - before

    once = dispatches()
    tuned.use(info, {"float32 nn 1x48x48x48": str(TWO[1])})
    forget_plans()
    assert dispatches() == once + 1


def test_kernels_are_compiled_beside_each_other(monkeypatch):
    """On a GPU, which is at work until they are; on a CPU they would wait for each other."""
    later: list[str] = []

    def pipeline_later(host, *args):
        later.append(args[4])
        return type(host).pipeline(host, *args[:5])

    compiling = iter([2, 1, 0])
    monkeypatch.setattr(Info, "is_software", False)
    monkeypatch.setattr(tuning, "_WARM_AGAIN", 0.0)
    monkeypatch.setattr(NativeHost, "pipeline_later", pipeline_later)
    monkeypatch.setattr(NativeHost, "stats", lambda host: {"compiling": next(compiling)})
    monkeypatch.setattr(launches, "_pipelines", {})
    monkeypatch.setattr(tuning, "_enough", lambda call: pytest.fail("measured too early"))
    steps = tuning.compare(contest(), 0.0)
    assert [next(steps), next(steps)] == [None, None]
    made = ["matmul (matmul/tiled)", "matmul (matmul/tiled)", "matmul (matmul/combine)"]
    assert [name for name in later if "matmul" in name] == made
    with pytest.raises(pytest.fail.Exception, match="too early"):
        next(steps)
    later.clear()
    monkeypatch.undo()
    monkeypatch.setattr(Info, "is_software", True)
    monkeypatch.setattr(NativeHost, "pipeline_later", pipeline_later)
    monkeypatch.setattr(launches, "_pipelines", {})
    contest().call_of(TWO[0])()
    assert later == []


@pytest.mark.parametrize(("seconds", "stay"), [(0.4, TWO), (1.4, TWO), (1.6, TWO[:1])])
def test_one_that_is_far_behind_is_measured_shortly(monkeypatch, seconds, stay):
    times = iter([1.0, seconds, seconds])

    def better(call, calls):
        yield None
        return next(times)

    monkeypatch.setattr(tuning, "_FAR", 1.5)
    monkeypatch.setattr(tuning, "_better", better)
    assert list(tuning.run(tuning.compare(contest(), float("inf")))) == stay


def test_wrong_results_and_late_ones_are_left_out(monkeypatch):
    monkeypatch.setitem(contests._CLOSE, "float32", -1.0)
    found = tuning.run(tuning.compare(contest(), float("inf")))
    assert list(found) == TWO[:1]
    monkeypatch.setitem(contests._CLOSE, "float32", 1e-4)
    assert set(tuning.run(tuning.compare(contest(), float("inf")))) == set(TWO)
    assert list(tuning.run(tuning.compare(contest(), 0.0))) == TWO[:1]


def test_variants_that_are_not_known_are_not_used():
    info = stream().open().info
    for text in ("of a later version", "vector"):
        tuned.use(info, {KEY: text})
        assert variant_for(SHAPE, "float32", info) == choose(SHAPE, info)


def test_a_table_that_cannot_be_written(table):
    table.parent.write_text("a file where a folder should be")
    for keep in (tuned.keep, lambda *args: asyncio.run(tuned.keep_async(*args))):
        with pytest.warns(UserWarning, match="is used now and not kept.*PELLUCID_TUNING"):
            assert keep(DEVICE, {KEY: "vector"}) == ""
    with pytest.warns(UserWarning, match="not kept"):
        found = pellucid.webgpu.tune([("nn", (40, 40, 64))])
    assert found.kept == ""
    info = stream().open().info
    assert str(variant_for(SHAPE, "float32", info)) == found[KEY]["variant"]


def test_an_interrupt_keeps_what_was_measured(table):
    def interrupt(state):
        raise KeyboardInterrupt

    info, fused = stream().open().info, pellucid.webgpu.is_fusion_enabled()
    with pytest.raises(KeyboardInterrupt):
        pellucid.webgpu.tune([("nn", (40, 40, 64)), ("tn", (2, 40, 40, 40))], on_progress=interrupt)
    kept = json.loads(table.read_text())["devices"][tuned.device(info)]
    assert list(kept["variants"]) == [KEY]
    assert tuned.variants(info)[KEY] == kept["variants"][KEY]
    assert pellucid.webgpu.is_fusion_enabled() == fused


@pytest.mark.parametrize(
    "product",
    [
        ("xx", (4, 4, 4)),
        ("nn", (4, 4)),
        ("nn", (4, 0, 4)),
        ("conv2d", (1, 4, 4, 4, 4)),
        ("nn", (4, 4.0, 4)),
        ("nn", 4),
        ("nn",),
        "nn",
    ],
)
def test_errors(product):
    with pytest.raises(ShapeError, match="is no product"):
        pellucid.webgpu.tune([product])


@pytest.mark.parametrize("dtype", [pellucid.int32, "float32"])
def test_dtypes_that_are_not_measured(dtype):
    with pytest.raises(DTypeError, match="float32, float16, bfloat16"):
        pellucid.webgpu.tune([("nn", (4, 4, 4))], dtype=dtype)


@pytest.mark.parametrize(
    ("depth", "found"), [(8192, ["vector_columns, 4 parts", "direct"]), (2048, ["direct"])]
)
def test_the_shortlist_without_workgroup_memory(monkeypatch, depth, found):
    """What is used without a measurement comes first there, too."""
    monkeypatch.setenv("PELLUCID_KERNELS", "direct")
    shape = contests.shape_of("nn", (1, 16, depth))
    assert [str(variant) for variant in shortlist(shape)] == found
    assert str(variant_for(shape, "float32", stream().open().info)) == found[0]


@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (32, 4096, 4096), (3, 512, 512)])
def test_the_shortlist(sizes):
    """What would be used without it comes first; a tile comes at most twice."""
    shape = contests.shape_of("nt", sizes)
    found = shortlist(shape)
    assert found[0] == choose(shape, stream().open().info)
    assert len(found) == len(set(found)) > 1
    assert all(sum(v.tile == w.tile and v.file == w.file for w in found) <= 2 for v in found)


def test_the_usual_products():
    assert len(set(contests.USUAL)) == len(contests.USUAL)
    assert all(callable(contests.contest_of(asked, pellucid.float32)) for asked in contests.USUAL)


def test_a_convolution_takes_what_was_measured(monkeypatch):
    """Of its bucket, where it suits; weights' derivatives and transposes take nothing of it."""
    monkeypatch.setattr(contests, "_MOST_TILES", 2)
    asked = ("conv2d", (2, 20, 9, 8, 20, 3))
    info, sizes = stream().open().info, conv_tiles.Sizes(1, 20, 144, 180)
    name = conv_tiles.key(sizes, "float32")
    assert name == "float32 conv2d 1x24x192x192"
    found = pellucid.webgpu.tune([asked], keep=False)
    assert str(conv_tiles.choice_for(sizes, "float32", info)) == found.variants[name]

    usual, *others = conv_tiles.candidates(sizes, info)
    other = next(choice for choice in others if choice.parts > 1)
    tuned.use(info, {name: str(other)})
    forget_plans()
    assert conv_tiles.choice_for(sizes, "float32", info) == other
    assert conv_tiles.choice_for(sizes, "float16", info) == conv_tiles.choose(sizes, info) == usual
    x, weight = np.random.random((2, 20, 9, 8)), np.random.random((20, 20, 3, 3))
    ours = pellucid.nn.functional.conv2d(
        *(pellucid.tensor(a.astype(np.float32)) for a in (x, weight)), padding=1
    )
    theirs = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight), padding=1)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4)
    pellucid.use_deterministic_algorithms(True)
    try:
        assert conv_tiles.choice_for(sizes, "float32", info) == usual
    finally:
        pellucid.use_deterministic_algorithms(False)
    with conv_tiles.forced(usual.tile, 2):
        assert conv_tiles.choice_for(sizes, "float32", info) == (usual.tile, 2)
    tuned.use(info, {name: "of a later version"})
    assert conv_tiles.choice_for(sizes, "float32", info) == usual
