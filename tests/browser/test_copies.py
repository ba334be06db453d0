"""Copies of weights in the page's own storage: read instead of the server, and never wrong."""

import hashlib

import numpy as np
import pytest
from playwright.sync_api import Page
from safetensors.numpy import save_file

from models.tiny import loaded, made, saved
from pellucid import lens

from paths import SITE
from static_server import Fault, StaticServer

IDS = [5, 17, 40, 8, 22]
BOOT = """async () => {
    const { boot } = await import("/web/boot.js");
    window.python = await boot();
}"""
LOAD = f"""
import pellucid as torch
from pellucid.utils import copies

torch.settings.keep_copies = True
await torch.webgpu.open_async()
model = await torch.AutoModelForCausalLM.from_pretrained_async("/tiny/")
logits = await model(torch.tensor([{IDS}])).logits[0, -1].tolist_async()
await copies.finish_async()
logits, [(one.url.rsplit("/")[-1], one.size) for one in await copies.list_async()]
"""
DAMAGE = """async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("pellucid-copies");
    for await (const [name, handle] of folder.entries()) {
        const { size } = await handle.getFile();
        if (!name.endsWith(".bytes") || size < 10000) continue;
        const file = await handle.createWritable({ keepExistingData: true });
        await file.write({ type: "write", position: size - 4000, data: new Uint8Array(64).fill(7) });
        await file.close();
    }
}"""
CUT_OFF = """async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("pellucid-copies");
    let removed = 0;
    for await (const name of [...await Array.fromAsync(folder.keys())]) {
        if (name.endsWith(".json")) removed += 1, await folder.removeEntry(name);
    }
    return removed;
}"""
LIST = "from pellucid.utils import copies\nlen(await copies.list_async())"


def asked(server: StaticServer, name: str) -> int:
    return sum(name in request.path for request in server.requests)


@pytest.mark.timeout(600)
def test_a_second_visit_asks_the_server_for_no_weights(page, tmp_path):
    folder = saved(made("llama_tied"), tmp_path / "tiny")
    size = (folder / "model.safetensors").stat().st_size
    wanted = lens.run(loaded(folder, "cpu"), IDS).output.logits[0, -1].numpy()
    page.set_default_timeout(200_000)
    with StaticServer(SITE, {"tiny": folder}) as server:

        def visit() -> list:
            server.requests.clear()
            page.goto(server.url)
            page.evaluate(BOOT)
            logits, found = page.evaluate("code => python.run(code)", LOAD)
            np.testing.assert_allclose(logits, wanted, atol=1e-4)
            return found

        assert ["model.safetensors", size] in visit()
        assert asked(server, "model.safetensors") > 0
        assert ["model.safetensors", size] in visit()
        assert asked(server, "model.safetensors") == asked(server, "config.json") == 0
        # A byte that is wrong is noticed: the server is asked, and a new copy is made.
        page.evaluate(DAMAGE)
        assert ["model.safetensors", size] in visit()
        assert asked(server, "model.safetensors") > 0
        # What was not finished is no copy, and goes.
        assert page.evaluate(CUT_OFF) > 0
        assert page.evaluate("code => python.run(code)", LIST) == 0
        logits, found = page.evaluate("code => python.run(code)", LOAD)
        np.testing.assert_allclose(logits, wanted, atol=1e-4)
        assert ["model.safetensors", size] in found
        remove = f"await copies.remove_async('{server.url}tiny/model.safetensors')\n{LIST}"
        before = page.evaluate("code => python.run(code)", LIST)
        assert page.evaluate("code => python.run(code)", remove) == before - 1


# Below: one tensor of three pieces, read without a device: a visit takes little more than starting Python.
SIZE = 2_400_000
READ = """
import hashlib
import pellucid as torch
from pellucid.utils import copies

torch.settings.keep_copies = True
file = await torch.weights.open_async("/data/big.safetensors")
raw, = await torch.weights.read_async(file, list(file.values()))
await copies.finish_async()
hashlib.sha256(raw).hexdigest(), [one.size for one in await copies.list_async()]
"""
FOLDER = """async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("pellucid-copies", { create: true });
    return (await Array.fromAsync(folder.keys())).filter((name) => name.endsWith(".bytes")).length;
}"""


def written(folder, seed: int) -> tuple[str, int]:
    """A file of random numbers: the digest of its tensor, and its size."""
    values = np.random.default_rng(seed).standard_normal(SIZE).astype("float32")
    save_file({"x": values}, folder / "big.safetensors")
    return hashlib.sha256(values.tobytes()).hexdigest(), (folder / "big.safetensors").stat().st_size


def booted(page: Page, server: StaticServer) -> Page:
    page.goto(server.url)
    page.evaluate(BOOT)
    return page


@pytest.fixture
def data(tmp_path):
    with StaticServer(SITE, {"data": tmp_path}) as server:
        yield server, tmp_path


@pytest.mark.timeout(300)
def test_two_tabs_that_write_one_copy_read_right_weights(page, data):
    server, folder = data
    digest, size = written(folder, 1)
    tabs = [booted(page, server), booted(page.context.new_page(), server)]
    server.faults = lambda request: Fault(bytes_per_second=4e6) if "big" in request.path else None
    for tab in tabs:
        tab.evaluate("code => void (window.reading = python.run(code))", READ)
    found = [tab.evaluate("reading") for tab in tabs]
    assert [one[0] for one in found] == [digest, digest]
    # One of them made the copy, and each reads it from now on.
    server.requests.clear()
    for tab in tabs:
        assert tab.evaluate("code => python.run(code)", READ) == [digest, [size]]
    assert asked(server, "big") == 0
    tabs[1].close()


@pytest.mark.timeout(300)
def test_a_full_disk_leaves_no_copy_and_right_weights(browser, data):
    server, folder = data
    digest, size = written(folder, 2)
    context = browser.new_context()  # of a profile on disk Chromium goes on to believe that it is full
    page = booted(context.new_page(), server)
    control = context.new_cdp_session(page)
    origin = server.url.rstrip("/")
    control.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 5_000_000})
    assert page.evaluate("code => python.run(code)", READ) == [digest, []]
    assert page.evaluate(FOLDER) == 0  # the room is given back
    control.send("Storage.overrideQuotaForOrigin", {"origin": origin})
    assert page.evaluate("code => python.run(code)", READ) == [digest, [size]]
    context.close()


@pytest.mark.timeout(300)
def test_a_write_that_is_killed_is_no_copy(page, data):
    server, folder = data
    digest, size = written(folder, 3)
    booted(page, server)
    server.faults = lambda request: Fault(bytes_per_second=1e6) if "big" in request.path else None
    page.evaluate("code => void python.run(code).catch(() => {})", READ)
    page.wait_for_function(FOLDER.replace("return (", "return 0 < (").replace("async ()", "async () "))
    page.evaluate("python.terminate()")
    server.faults = None
    booted(page, server)
    assert page.evaluate("code => python.run(code)", READ) == [digest, [size]]
    server.requests.clear()
    assert page.evaluate("code => python.run(code)", READ) == [digest, [size]]
    assert asked(server, "big") == 0


@pytest.mark.timeout(300)
def test_a_damaged_copy_is_not_completed_from_another_version(page, data):
    """The first pieces are of what was kept, and the server has another file by now."""
    server, folder = data
    digest, size = written(folder, 4)
    booted(page, server)
    assert page.evaluate("code => python.run(code)", READ) == [digest, [size]]
    page.evaluate(DAMAGE)
    other, _ = written(folder, 5)
    said = page.evaluate("code => python.run(code).catch(({ message }) => message)", READ)
    assert "the file changed while it was being read" in said
    assert "Load it again" in said
    assert page.evaluate("code => python.run(code)", READ) == [other, [size]]


@pytest.mark.timeout(600)
def test_shards_of_a_checkpoint_are_listed_and_used_again(page, tmp_path):
    """P-075: each shard that was downloaded is found in this browser by the next visit."""
    folder = saved(made("llama_tied"), tmp_path / "tiny", max_shard_size="40KB")
    shards = sorted(file.name for file in folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    wanted = lens.run(loaded(folder, "cpu"), IDS).output.logits[0, -1].numpy()
    page.set_default_timeout(200_000)
    with StaticServer(SITE, {"tiny": folder}) as server:
        for visit in range(2):
            server.requests.clear()
            page.goto(server.url)
            page.evaluate(BOOT)
            logits, found = page.evaluate("code => python.run(code)", LOAD)
            np.testing.assert_allclose(logits, wanted, atol=1e-4)
            assert {(name, (folder / name).stat().st_size) for name in shards} <= set(map(tuple, found))
            assert [asked(server, name) == 0 for name in shards] == [visit == 1] * len(shards)
