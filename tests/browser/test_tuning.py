"""What was tuned in a page: later pages of the origin find it, and no other browser's."""

import json

import pytest

BOOT = """
async (env) => {
  const { boot } = await import("/web/boot.js");
  window.python?.terminate();
  const onEvent = (name) => name === "interrupt" && python.interrupt();
  window.python = await boot({ onEvent, env: { PELLUCID_KERNELS: "shared", ...env } });
}
"""
# One product, for which there is one candidate: not the one that is chosen otherwise.
PRODUCT = """
import sys
import warnings

warnings.simplefilter("error")
import pellucid as torch
from pellucid.op.kernel.autotune import measured as tuned
from pellucid.ops.matmul.choice import choose, key, variant_for
from pellucid.ops.matmul.variants import Shape, MatmulTile, Variant

SHAPE = Shape(1, 40, 40, 64)
OTHER = Variant("tiled", MatmulTile(32, 32, 4, 4), 2)


def dispatches():
    a, b = torch.ones(40, 64), torch.ones(64, 40)
    torch.webgpu.synchronize()
    before = torch.webgpu.memory_stats()["dispatches"]
    assert (a @ b).sum().item() == 40 * 40 * 64
    return torch.webgpu.memory_stats()["dispatches"] - before


def tune(**settings):
    from pellucid.op.kernel.autotune import candidates as contests

    contests.shortlist = lambda shape: [OTHER]
    return torch.webgpu.tune([("nn", (40, 40, 64))], **settings)


info = torch.webgpu.get_device_properties()
usual = choose(SHAPE, info)
assert usual != OTHER
MEASURED = {key(SHAPE, "float32"): str(OTHER)}
"""
TUNE = """
found = tune()
assert variant_for(SHAPE, "float32", info) == OTHER
[found.kept, list(found.variants.values())]
"""
# What a page chooses that measures nothing.
CHOICE = """
chosen = variant_for(SHAPE, "float32", info)
torch.use_deterministic_algorithms(True)
deterministic = variant_for(SHAPE, "float32", info)
torch.use_deterministic_algorithms(False)
assert deterministic == usual
assert "pellucid.op.kernel.autotune.tune" not in sys.modules
"other" if chosen == OTHER else "usual" if chosen == usual else str(chosen)
"""
STORED = """
async () => {
  const found = await caches.match("/pellucid/tuned.json", { cacheName: "pellucid" });
  return found === undefined ? null : found.text();
}
"""
STORE = """
async (text) => {
  const cache = await caches.open("pellucid");
  await cache.put("/pellucid/tuned.json", new Response(text));
}
"""
HEARD = """
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    {}
[str(warning.message) for warning in heard]
"""


class Origin:
    """Pages of one origin, one after the other."""

    def __init__(self, page, server):
        self.page, self.server = page, server

    def open(self, before="", **env):
        """A new page, in which Python has run the setup."""
        self.page.goto(self.server.url)
        self.page.evaluate(BOOT, env)
        self.run(before + PRODUCT)

    def run(self, code):
        return self.page.evaluate("(code) => python.run(code)", code)

    def heard(self, line):
        """The warnings of a statement."""
        return self.run(HEARD.format(line))

    def stored(self):
        """The text of the table; None where there is none."""
        return self.page.evaluate(STORED)

    def store(self, text):
        """Put a text in its place."""
        self.page.evaluate(STORE, text)


@pytest.fixture
def origin(page, plain_server):
    return Origin(page, plain_server)


def test_a_later_page_chooses_what_was_measured(origin):
    origin.open()
    assert origin.run(CHOICE) == "usual"
    assert origin.run("dispatches()") == 2  # the product and the sum of all
    assert origin.stored() is None
    kept, variants = origin.run(TUNE)
    assert kept == f"the browser's storage of {origin.server.url.rstrip('/')}"
    table = json.loads(origin.stored())
    [entry] = table["devices"].values()
    assert entry["version"] == origin.run("info.version")
    assert list(entry["variants"].values()) == variants

    origin.open()
    assert origin.run(CHOICE) == "other"
    assert origin.run("dispatches()") == 3  # the parts of the product, their sum, the sum of all
    origin.run("torch.webgpu.reset()")
    assert origin.run(CHOICE) == "other"

    entry["version"] = "Chrome 1"
    origin.store(json.dumps(table))
    origin.open()
    assert origin.run(CHOICE) == "usual"
    entry["version"] = origin.run("info.version")
    origin.store(json.dumps(table))
    origin.run("torch.webgpu.forget_tuning()")  # of the table as it is now
    assert json.loads(origin.stored()) == {"devices": {}}


def test_nothing_is_kept_unasked(origin):
    origin.open()
    origin.run("torch.webgpu.forget_tuning()")
    assert origin.stored() is None
    assert origin.run("tune(keep=False).kept") == ""
    origin.open(PELLUCID_TUNING="")
    assert origin.run("tune().kept") == ""
    assert origin.stored() is None


def test_what_is_written_at_the_same_time_is_not_lost(origin):
    origin.open()
    origin.run("""
import asyncio

await asyncio.gather(*(tuned.keep_async(info, {str(n): str(OTHER)}) for n in range(4)))
""")
    [entry] = json.loads(origin.stored())["devices"].values()
    assert sorted(entry["variants"]) == ["0", "1", "2", "3"]


def test_a_table_that_is_none(origin):
    origin.page.goto(origin.server.url)
    origin.store("not a table")
    origin.open()
    [message] = origin.heard("variant_for(SHAPE, 'float32', info)")
    assert "the browser's storage of http" in message
    assert "it is no table of measurements" in message
    assert origin.run(CHOICE) == "usual"
    origin.run("tuned.keep(info, MEASURED)")
    origin.open()
    assert origin.run(CHOICE) == "other"


REFUSE = """
from pyodide.code import run_js
run_js("{} = async () => {{ throw new DOMException('no', '{}'); }}")
"""


def test_storage_that_is_full_or_refused(origin):
    origin.open(REFUSE.format("CacheStorage.prototype.match", "SecurityError"))
    assert origin.run(CHOICE) == "usual"  # and no warning: nothing was ever kept there
    [message] = origin.heard("kept = tuned.keep(info, MEASURED)")
    assert "not kept: the browser's storage of http" in message
    assert "SecurityError: no" in message
    assert origin.run("kept") == ""

    origin.run(REFUSE.format("CacheStorage.prototype.match", "UnknownError") + "torch.webgpu.reset()")
    [message] = origin.heard("tuned.reread(); variant_for(SHAPE, 'float32', info)")
    assert "UnknownError" in message

    origin.open(REFUSE.format("Cache.prototype.put", "QuotaExceededError"))
    [message] = origin.heard("await tuned.keep_async(info, MEASURED)")
    assert "QuotaExceededError: no" in message


def test_an_interrupt_keeps_what_was_measured(page, site_server):
    origin = Origin(page, site_server)
    origin.open(PELLUCID_KERNELS="direct")
    origin.run("""
import pellucid_page
done = []

def tell(state):
    done.append(state)
    pellucid_page.send("interrupt", 1)

try:
    torch.webgpu.tune([("nn", (40, 40, 64 * n)) for n in range(1, 100)], on_progress=tell)
    ended = "by itself"
except KeyboardInterrupt:
    ended = "by an interrupt"
""")
    assert origin.run("ended") == "by an interrupt"
    [entry] = json.loads(origin.stored())["devices"].values()
    assert 1 <= len(entry["variants"]) <= origin.run("len(done)")
