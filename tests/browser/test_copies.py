"""Copies of weights in the page's own storage: read instead of the server, and never wrong."""

import numpy as np
import pytest

from models.tiny import loaded, made, saved
from pellucid import lens

from paths import SITE
from static_server import StaticServer

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
        assert ["model.safetensors", size] in visit()
        remove = f"await copies.remove_async('{server.url}tiny/model.safetensors')\n{LIST}"
        before = page.evaluate("code => python.run(code)", LIST)
        assert page.evaluate("code => python.run(code)", remove) == before - 1
