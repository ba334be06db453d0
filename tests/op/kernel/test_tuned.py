"""Where measurements of kernels are kept, read, and forgotten."""

import asyncio
import errno
import json
import os

import pytest

import pellucid
from pellucid.device.host import Info
from pellucid.device.native import NativeHost
from pellucid.device.resources import read_text
from pellucid.device.stream import stream
from pellucid.op.kernel.autotune import measured as tuned
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.conv import tiles as conv_tiles
from pellucid.ops.matmul.choice import variant_for
from pellucid.ops.matmul.variants import MatmulTile, Shape, Variant

DEVICE = Info("browser", "nvidia", "hopper", "NVIDIA H200", version="Chrome 156")
NEWER = Info("browser", "nvidia", "hopper", "NVIDIA H200", version="Chrome 157")
SHAPE = Shape(1, 40, 40, 64)
KEY = "float32 nn 1x48x48x64"
OTHER = Variant("tiled", MatmulTile(32, 32, 4, 4), 2)
# Every text that names what makes a convolution.
CHOICES = {str(conv_tiles.TileChoice(tile, parts)) for tile in conv_tiles.TILES for parts in conv_tiles.PARTS}


@pytest.fixture(autouse=True)
def table(monkeypatch, tmp_path):
    """A table of this test's own."""
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    monkeypatch.setenv("PELLUCID_TUNING", str(tmp_path / "folder" / "tuned.json"))
    tuned.reread()
    yield tmp_path / "folder" / "tuned.json"
    tuned.reread()
    forget_plans()


def test_the_package_has_a_table():
    for name, entry in json.loads(read_text("op/kernel/autotune/tuned.json"))["devices"].items():
        assert name
        for key, text in entry["variants"].items():
            assert text in CHOICES if "conv2d" in key else str(Variant.parse(text)) == text


def test_another_browser_is_measured_anew(table):
    tuned.keep(DEVICE, {KEY: "vector"})
    asyncio.run(tuned.keep_async(DEVICE, {"other": "vector"}))
    assert tuned.variants(DEVICE) == {KEY: "vector", "other": "vector"}
    assert tuned.variants(NEWER) == {}  # those of the package
    tuned.keep(NEWER, {KEY: "vector_columns"})
    tuned.reread()
    assert tuned.variants(NEWER) == {KEY: "vector_columns"}
    assert tuned.variants(DEVICE) == {}
    assert tuned.variants(Info("browser", "apple", "metal-3", "")) == {}


def test_the_packages_table_counts_for_every_version_and_behind_the_users(table, monkeypatch, tmp_path):
    shipped = tmp_path / "shipped.json"
    entry = {"version": "Chrome 150", "variants": {KEY: "vector", "other": "vector"}}
    shipped.write_text(json.dumps({"devices": {tuned.device(DEVICE): entry}}))
    monkeypatch.setattr(tuned, "path", lambda name: shipped)
    assert tuned.variants(DEVICE) == entry["variants"]
    tuned.keep(DEVICE, {KEY: "vector_columns"})
    tuned.reread()
    assert tuned.variants(DEVICE) == {KEY: "vector_columns", "other": "vector"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"devices": {"a": {}}}',
        b'{"devices": {"a": {"version": "", "variants": 1}}}',
        b'{"devices": {"a": {"version": "", "variants": {"b": 1}}}}',
        b"[" * 100_000,
        b"\xff\xfe\x00",
    ],
    ids=["empty", "list", "missing", "number", "no text", "deep", "no UTF-8"],
)
def test_a_file_that_is_no_table(table, content):
    """It is not used, and the next measurement takes its place."""
    table.parent.mkdir()
    table.write_bytes(content)
    with pytest.warns(UserWarning, match="no table of measurements"):
        assert tuned.variants(DEVICE) == {}
    assert tuned.keep(DEVICE, {KEY: "vector"}) == str(table)
    tuned.reread()
    assert tuned.variants(DEVICE) == {KEY: "vector"}


def test_where_the_table_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("PELLUCID_TUNING", "")
    assert tuned.place() is None
    assert tuned.keep(DEVICE, {KEY: "vector"}) == ""
    assert asyncio.run(tuned.keep_async(DEVICE, {KEY: "vector"})) == ""
    assert tuned.variants(DEVICE) == dict(tuned.variants(NEWER))
    tuned.forget(DEVICE)
    monkeypatch.delenv("PELLUCID_TUNING")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    host = NativeHost()
    assert str(host.table) == str(tmp_path / "pellucid" / "tuned.json")
    host.close()
    assert tuned.place() is stream().open().table


def test_a_user_without_a_folder_keeps_nothing(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it does for a user that is not known
    host = NativeHost()
    assert host.table is None
    host.close()


def test_a_table_that_cannot_be_read(table):
    table.mkdir(parents=True)
    with pytest.warns(UserWarning, match="are not used.*forget_tuning"):
        tuned.variants(DEVICE)


def test_what_is_no_regular_file_stays(table):
    """Nothing waits for a pipe, and a device such as /dev/null is not replaced."""
    table.parent.mkdir()
    os.mkfifo(table)
    with pytest.warns(UserWarning, match="are not used: .*no regular file"):
        tuned.variants(DEVICE)
    with pytest.warns(UserWarning, match="not kept: .*no regular file"):
        tuned.keep(DEVICE, {KEY: "vector"})
    assert table.is_fifo()


def test_a_write_that_fails_leaves_nothing_behind(table, monkeypatch):
    tuned.keep(DEVICE, {KEY: "vector"})
    before = table.read_text()

    def full(path, target):
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(type(table), "replace", full)
    with pytest.warns(UserWarning, match="not kept: .*the disk is full"):
        tuned.keep(DEVICE, {KEY: "vector_columns"})
    assert [*table.parent.iterdir()] == [table]
    assert table.read_text() == before


@pytest.mark.parametrize(
    "forget",
    [pellucid.webgpu.forget_tuning, lambda: asyncio.run(pellucid.webgpu.forget_tuning_async())],
    ids=["blocking", "async"],
)
def test_a_device_is_forgotten(table, forget):
    info = stream().open().info
    before = dict(tuned.variants(info))
    for other in (info, DEVICE):
        tuned.keep(other, {KEY: str(OTHER)})
        tuned.use(other, {KEY: str(OTHER)})
    assert variant_for(SHAPE, "float32", info) == OTHER
    forget()
    assert tuned.variants(info) == before
    assert list(json.loads(table.read_text())["devices"]) == [tuned.device(DEVICE)]


@pytest.mark.parametrize("content", [b"not a table", b"\xff"])
def test_a_table_that_is_none_can_be_forgotten(table, content):
    table.parent.mkdir()
    table.write_bytes(content)
    pellucid.webgpu.forget_tuning()
    assert json.loads(table.read_text()) == {"devices": {}}


def test_where_nothing_is_kept_forgetting_writes_nothing(table):
    info = stream().open().info
    before = dict(tuned.variants(info))
    tuned.use(info, {KEY: str(OTHER)})
    pellucid.webgpu.forget_tuning()
    assert tuned.variants(info) == before
    assert not table.parent.exists()


def test_a_table_that_cannot_be_written_is_forgotten_here(table):
    info = stream().open().info
    before = dict(tuned.variants(info))
    table.mkdir(parents=True)
    tuned.use(info, {KEY: str(OTHER)})
    with pytest.raises(OSError, match="no regular file"):
        pellucid.webgpu.forget_tuning()
    with pytest.warns(UserWarning, match="are not used"):
        assert tuned.variants(info) == before
