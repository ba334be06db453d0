"""What a model takes, told before it is loaded, beside what it then takes; the list of models."""

import json
import re

import pytest
from playwright.sync_api import expect

import pellucid
from models.tiny import made, saved, with_words

from paths import SITE
from static_server import StaticServer

WAIT = 200_000  # milliseconds
HELD = "import pellucid\npellucid.webgpu.memory_stats()['weight_bytes']"
# Runs before the page: lets the test ask its Python.
ASK = """
window.Worker = class extends Worker {
    constructor(...settings) {
        super(...settings);
        let settle;
        this.addEventListener("message", (event) => {
            if (event.data.id !== "test") return;
            event.stopImmediatePropagation(); // the page did not ask
            settle(event.data.value);
        });
        window.ask = (code) => {
            this.postMessage({ kind: "run", id: "test", code, inputs: {}, filename: "<test>" });
            return new Promise((resolve) => (settle = resolve));
        };
    }
};
"""


def size(text: str) -> float:
    """Bytes, as the page writes them."""
    number, unit = text.split()
    return float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


@pytest.mark.timeout(600)
def test_sizes_are_told_before_a_model_is_loaded(page, tmp_path):
    folder = with_words(saved(made("llama_tied"), tmp_path / "tiny"))
    found = pellucid.inspect(folder)
    page.add_init_script(ASK)
    rows = [{"path": "/tiny/", "about": "tiny"}, {"hub": "nobody/nothing", "about": "far away"}]
    page.route("**/models.json", lambda route: route.fulfill(body=json.dumps(rows)))
    with StaticServer(SITE, {"tiny": folder}) as server:
        page.goto(f"{server.url}demo/logit_lens/")
        page.wait_for_function("document.body.dataset.state === 'empty'", timeout=WAIT)
        page.get_by_label("Address, path on").fill("/tiny/")
        page.get_by_role("button", name="What does it take?").click()
        told = page.locator("#takes strong")
        expect(told).to_contain_text("parameters", timeout=WAIT)
        sizes = re.findall(r"([\d.]+ [kMG]B)", told.inner_text())
        assert size(sizes[0]) == pytest.approx(found.nbytes, rel=0.01)
        assert size(sizes[1]) == pytest.approx(found.memory["weights"], rel=0.01)
        cache = 1000 * found.memory["keys and values of a position"]
        assert size(sizes[2]) == pytest.approx(cache, rel=0.01)
        assert "makes buffers of up to" in page.locator("#takes").inner_text()
        assert page.locator("#takes .against").count() == 0
        assert page.evaluate("code => ask(code)", HELD) == 0  # headers alone were read

        page.locator("#models summary").click()
        texts = page.locator("#models-list li .numbers")
        expect(texts.first).to_contain_text(sizes[1], timeout=WAIT)
        expect(texts.last).to_have_text("cannot be reached from here", timeout=WAIT)
        page.get_by_role("button", name="Load tiny").click()
        page.wait_for_function("document.body.dataset.state === 'ready'", timeout=WAIT)
        held = page.evaluate("code => ask(code)", HELD)
        assert held == pytest.approx(found.memory["weights"], rel=0.05)
