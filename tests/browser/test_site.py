"""The built site: its size, its independence of the network, and web/boot.js with and without isolation."""

import gzip
import hashlib
import json

import pytest
from playwright.sync_api import expect

import assets
import site_builder
from paths import SITE

LOAD = """
async (options) => {
  const { boot, PythonError } = await import("/web/boot.js");
  window.PythonError = PythonError;
  window.heard = { stdout: "", stderr: "", events: [], stages: [] };
  window.python = await boot({
    onStdout: (text) => (heard.stdout += text),
    onStderr: (text) => (heard.stderr += text),
    onEvent: (name, value) => heard.events.push([name, value]),
    onProgress: ({ stage }) => heard.stages.push(stage),
    ...options,
  });
  return python.info;
}
"""
OUTCOME = """
async ([code, inputs]) => {
  try {
    return { value: await python.run(code, inputs ?? {}) };
  } catch (error) {
    return { error: error.name, type: error.type ?? null, message: error.message };
  }
}
"""


@pytest.fixture
def python(page, site_server):
    """A page of the isolated site in which Python runs."""
    page.goto(site_server.url)
    page.evaluate(LOAD, {})
    return page


def run(page, code, **inputs):
    return page.evaluate(OUTCOME, [code, inputs])


def test_site_is_small_enough():
    assert 0 < site_builder.size(SITE) <= site_builder.LIMIT == 35_000_000


def test_what_packs_well_lies_packed_beside(browser, site_server):
    packed = {file.with_suffix("").relative_to(SITE).as_posix(): file for file in SITE.rglob("*.gz")}
    assert {"pyodide/pyodide.asm.wasm", "pyodide/pyodide.asm.js", "web/boot.js", "index.html"} <= set(packed)
    assert not any(name.endswith((".zip", ".whl", ".tgz")) for name in packed)
    for name, file in packed.items():
        assert gzip.decompress(file.read_bytes()) == (SITE / name).read_bytes()
        assert file.stat().st_mtime_ns == (SITE / name).stat().st_mtime_ns
    with browser.new_context() as visitor:  # has kept nothing of an earlier test
        page = visitor.new_page()
        page.goto(site_server.url)
        page.evaluate(LOAD, {})
    sent = sum(request.sent for request in site_server.requests)
    assert 14_000_000 < sent < 19_000_000  # bytes of a page with Python; without packing 24 millions


def test_lock_file_names_wheels_that_are_there():
    folder = SITE / "pyodide"
    packages = json.loads((folder / "pyodide-lock.json").read_text())["packages"]
    assert set(packages) == {"micropip", "numpy", "packaging", "pellucid", "protobuf"}
    for package in packages.values():
        found = hashlib.sha256((folder / package["file_name"]).read_bytes()).hexdigest()
        assert found == package["sha256"], package["name"]


def test_site_boots_without_network(page, site_server):
    reached = []
    page.on("request", lambda request: reached.append(request.url))
    page.goto(site_server.url)
    info = page.evaluate(LOAD, {})
    assert info["pyodide"] == "0.29.5"
    assert info["isolated"]
    assert info["jspi"]
    assert page.evaluate("heard.stages") == ["runtime", "packages", "ready"]
    assert run(page, "import numpy; numpy.__version__") == {"value": "2.2.5"}
    assert reached
    assert all(url.startswith(site_server.url) for url in reached), reached
    assert all(
        request.status in (200, 304) for request in site_server.requests if "favicon" not in request.path
    )


def test_site_boots_without_isolation(page, plain_server):
    page.goto(plain_server.url)
    info = page.evaluate(LOAD, {})
    assert not info["isolated"]
    assert run(page, "6 * 7") == {"value": 42}
    assert page.evaluate("python.interrupt()") is False
    assert "Cross-Origin-Opener-Policy" in page.evaluate("python.interruptNote")


@pytest.mark.parametrize("server", ["site_server", "plain_server"])
def test_worker_reaches_webgpu(page, server, request):
    page.goto(request.getfixturevalue(server).url)
    page.evaluate(LOAD, {"packages": []})
    code = "import js; (await js.navigator.gpu.requestAdapter()).info.architecture"
    assert run(page, code) == {"value": "swiftshader"}


@pytest.mark.parametrize("server", ["site_server", "plain_server"])
def test_pellucid_computes_with_and_without_isolation(page, server, request):
    page.goto(request.getfixturevalue(server).url)
    page.evaluate(LOAD, {})
    assert run(page, "import pellucid as torch; (torch.tensor([1.0, 2.0]) * 3).tolist()") == {"value": [3, 6]}
    # What is for compilers and type checkers is not there.
    folder = "import pathlib, numpy; folder = pathlib.Path(numpy.__file__).parent"
    assert run(page, f"{folder}; [*folder.rglob('*.pyi'), *folder.rglob('*.h')]") == {"value": []}
    # Nothing was compiled for that: bytecode lies beside the sources.
    compiled = "[f for m in sys.modules.values() if (f := getattr(m, '__file__', None) or '').endswith('.py')"
    assert run(page, f"import sys; {compiled} and 'python313.zip' in f]") == {"value": []}
    shown = run(page, "import textwrap; textwrap.fill(1)")["message"]
    assert 'File "/lib/python313.zip/textwrap.py"' in shown
    assert "return w.fill(text)" in shown


def test_site_works_below_a_path(page, site_server):
    """A static host may serve the site from a folder."""
    site_server.mounts["below"] = SITE
    page.goto(f"{site_server.url}below/")
    load = LOAD.replace('"/web/boot.js"', '"/below/web/boot.js"')
    page.evaluate(load, {})
    assert run(page, "import os; os.environ['PELLUCID_SITE']") == {"value": f"{site_server.url}below/"}


def test_the_address_of_the_site_needs_no_final_slash(page, site_server):
    site_server.mounts["below"] = SITE
    page.goto(site_server.url)
    page.evaluate(LOAD, {"site": f"{site_server.url}below"})
    assert run(page, "import pellucid; pellucid.__name__") == {"value": "pellucid"}
    code = (
        "import os; from pellucid.text import libraries; os.environ['PELLUCID_SITE'], libraries.url('jinja')"
    )
    below = f"{site_server.url}below/"
    assert run(page, code) == {"value": [below, f"{below}npm/jinja.mjs"]}
    code = f"os.environ['PELLUCID_SITE'] = '{below[:-1]}'; await libraries.load(); libraries.url('jinja')"
    assert run(page, code) == {"value": f"{below}npm/jinja.mjs"}


@pytest.mark.parametrize("time", ["first", "second"])
def test_a_page_finds_nothing_of_an_earlier_one(page, site_server, time):
    page.goto(site_server.url)
    before, after = page.evaluate(
        """async () => {
            const kept = async () => [localStorage.length, ...await caches.keys(),
                ...await Array.fromAsync((await navigator.storage.getDirectory()).keys())];
            const before = await kept();
            localStorage.setItem("a", "b");
            await caches.open("c");
            await (await navigator.storage.getDirectory()).getFileHandle("d", { create: true });
            return [before, await kept()];
        }"""
    )
    assert (before, after) == ([0], [1, "c", "d"])


def test_values_and_inputs_cross(python):
    """P-081: the page's JavaScript calls Python and gets values."""
    assert run(python, "{'a': [x * 2 for x in xs], 'b': None}", xs=[1, 2]) == {
        "value": {"a": [2, 4], "b": None}
    }
    assert run(python, "object")["value"] == "<class 'object'>"
    assert run(python, "None") == {"value": None}


def test_errors_carry_class_and_traceback(python):
    outcome = run(python, "def f():\n    raise KeyError('lost')\nf()")
    assert (outcome["error"], outcome["type"]) == ("PythonError", "KeyError")
    assert 'File "<page>", line 2, in f' in outcome["message"]
    assert run(python, "'still here'") == {"value": "still here"}


def test_output_and_events_arrive_as_they_happen(python):
    run(python, "import sys; print('é', end=''); print('line'); print('bad', file=sys.stderr)")
    assert python.evaluate("[heard.stdout, heard.stderr]") == ["éline\n", "bad\n"]
    run(python, "print('no newline', end='')")
    assert python.evaluate("heard.stdout") == "éline\nno newline"
    run(python, "import pellucid_page; pellucid_page.send('token', {'id': 7, 'text': 'a'})")
    assert python.evaluate("heard.events") == [["token", {"id": 7, "text": "a"}]]


def test_calls_overlap_while_one_waits(python):
    order = python.evaluate("""async () => {
        const slow = python.run("import asyncio; await asyncio.sleep(0.3); 'slow'");
        const quick = python.run("'quick'");
        const first = await Promise.race([slow, quick]);
        return [first, await slow];
    }""")
    assert order == ["quick", "slow"]


def test_interrupt_stops_a_long_computation(python):
    outcome = python.evaluate("""async () => {
        const endless = python.run("print('begun')\\nwhile True: pass").catch((error) => error.type);
        while (!heard.stdout.includes("begun")) await new Promise((resolve) => setTimeout(resolve, 10));
        const sent = python.interrupt();
        return [sent, await endless];
    }""")
    assert outcome == [True, "KeyboardInterrupt"]
    assert run(python, "1 + 1") == {"value": 2}


def test_no_press_is_lost(python):
    """Python looks at the signal byte all the time; a press between its look and its clearing must stay."""
    lost = python.evaluate("""async () => {
        const lost = [];
        for (let n = 0; n < 60; n++) {
            heard.stdout = "";
            const endless = python.run("print('begun')\\nwhile True: pass").catch((error) => error.type);
            while (!heard.stdout.includes("begun")) await new Promise((resolve) => setTimeout(resolve, 0));
            python.interrupt();
            const late = () => new Promise((resolve) => setTimeout(() => resolve(null), 5000));
            if ((await Promise.race([endless, late()])) === null) {
                lost.push(n);
                while ((await Promise.race([endless, late()])) === null) python.interrupt();
            }
        }
        return lost;
    }""")
    assert lost == []


def test_a_press_before_python_has_begun_is_kept(python):
    """Code that cancels what waits comes behind the call, and must not drop the signal for it."""
    types = python.evaluate("""async () => {
        const types = [];
        for (let n = 0; n < 20; n++) {
            const code = "import time\\nend = time.time() + 2\\nwhile time.time() < end: pass";
            const busy = python.run(code).catch((error) => error.type);
            python.interrupt("1");
            types.push(await busy);
            await python.run("0"); // what cancels has run, too
        }
        return types;
    }""")
    # A signal that comes while Python itself prepares the call may still be for nobody, one in fifty.
    assert types.count(None) < 5
    assert run(python, "1 + 1") == {"value": 2}


def test_interrupting_nothing_harms_nothing(python):
    assert python.evaluate("python.interrupt()") is True
    assert run(python, "sum(range(100000))") == {"value": 4999950000}


def test_terminate_rejects_what_is_pending(python):
    message = python.evaluate("""async () => {
        const endless = python.run("while True: pass").catch((error) => error.message);
        python.terminate();
        return [await endless, await python.run("1").catch((error) => error.message)];
    }""")
    assert message == ["Python was terminated.", "Python was terminated. Start it again."]


def test_a_missing_package_fails_the_boot(page, site_server):
    page.goto(site_server.url)
    message = page.evaluate("""async () => {
        const { boot } = await import("/web/boot.js");
        return boot({ packages: ["absent"] }).then(() => "booted", (error) => error.message);
    }""")
    assert "absent" in message


def test_micropip_installs_the_wheel_in_bare_pyodide(page, site_server):
    wheel = site_builder.newest_wheel().name
    page.goto(site_server.url)
    page.evaluate(LOAD, {"packages": ["micropip"]})
    code = """
        import micropip
        await micropip.install(address)
        import importlib.metadata, pellucid
        [importlib.metadata.version("pellucid"), (pellucid.tensor([1.0, 2.0]) - 1).tolist()]
    """
    outcome = run(page, code, address=f"{site_server.url}dist/{wheel}")
    assert outcome == {"value": ["0.1.0", [0, 1]]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_shows_what_there_is(page, site_server, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site_server.url)
    rooms = page.get_by_role("main").get_by_role("link")
    for room in rooms.all():
        expect(room.locator("svg, pre")).to_be_visible()  # a picture, or an example
        assert len(room.locator("span").inner_text()) > 30
        color, background = room.evaluate(
            "a => [getComputedStyle(a).color, getComputedStyle(a).backgroundColor]"
        )
        assert color not in ("rgb(0, 0, 238)", background)  # a browser's own blue
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.add_script_tag(path=assets.npm(assets.AXE) / "axe.min.js")
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []
    # Each leads to a page of its own.
    addresses = [room.evaluate("a => a.href") for room in rooms.all()]
    assert len(set(addresses)) == len(addresses) >= 5
    for address in addresses:
        page.goto(address)
        expect(page.locator("h1")).to_contain_text("Pellucid")
