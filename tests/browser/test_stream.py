"""The stream of web/runtime, case by case (stream_cases.mjs, device_cases.mjs), in headless Chromium."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from paths import ROOT
from static_server import Response, StaticServer

HERE = Path(__file__).parent
CASES = [
    (module, case)
    for module in ("stream_cases.mjs", "device_cases.mjs")
    for case in re.findall(r"^export async function (case_\w+)", (HERE / module).read_text(), re.M)
]
EMPTY = Response(b"<!doctype html><title>stream</title>", "text/html; charset=utf-8")


@pytest.fixture(scope="module")
def stream_page(browser: Browser) -> Iterator[Page]:
    """A page beside the runtime's own modules, before any build."""
    with StaticServer(ROOT, routes={"/empty": lambda _: EMPTY}) as server:
        page = browser.new_page()
        page.goto(server.url + "empty")
        yield page
        page.close()


@pytest.mark.parametrize("limits", ["all", "default"])
@pytest.mark.parametrize(("module", "case"), CASES, ids=[case for _, case in CASES])
def test_stream(stream_page: Page, module: str, case: str, limits: str):
    stream_page.evaluate(
        "async ([module, name, limits]) => {"
        " const { runCase } = await import('/tests/browser/stream_window.mjs');"
        " await runCase(module, name, limits === 'default'); }",
        ["./" + module, case, limits],
    )


def test_block_sizes_are_those_of_python(stream_page: Page):
    from pellucid.device.pool import block_size

    sizes = [
        *range(1, 2000, 7),
        *(1 << k for k in range(8, 32)),
        *((1 << k) + 1 for k in range(8, 32)),
        999_999_999,
    ]
    found = stream_page.evaluate(
        "async (sizes) => {"
        " const { blockBytes } = await import('/web/runtime/pool.js');"
        " return sizes.map(blockBytes); }",
        sizes,
    )
    assert found == [block_size(nbytes) for nbytes in sizes]


def test_pools_follow_the_rules_of_python(stream_page: Page):
    """The same blocks serve a program, and go at the same time, on both hosts."""
    from pellucid.device.pool import Pool

    chance, steps, held = random.Random(0), [], []
    for round_ in range(400):
        most = 40 if round_ // 100 % 2 else 4
        for _ in range(12):
            if len(held) < most and (not held or chance.random() < 0.6):
                held.append(chance.choice([300, 5000, 70_000, 2_000_000]))
                steps.append(["take", held[-1]])
            elif held:
                number = chance.randrange(len(held))
                held.pop(number)
                steps.append(["give", number])
        steps.append(["settle", 0])
    made, log, live = [], [], []

    def create(size):
        made.append(size)
        return [len(made)]

    pool = Pool(create, lambda block: log.append(-block[0]), 1 << 20)
    for what, number in steps:
        if what == "take":
            live.append((pool.take(number), number))
            log.append(live[-1][0][0])
        elif what == "give":
            pool.give(*live.pop(number))
        else:
            pool.shrink()
            log.append(pool.free_bytes)
    assert any(entry < 0 for entry in log)
    found = stream_page.evaluate(
        "async ([steps, keptFloor]) => {"
        " const { Pool } = await import('/web/runtime/pool.js');"
        " const [log, live] = [[], []];"
        " const create = (block) => ({ destroy: () => log.push(-block.id) });"
        " const pool = new Pool({ create, forget: () => {}, largest: 2 ** 31, keptFloor });"
        " for (const [what, number] of steps) {"
        "  if (what === 'take') { live.push(pool.take(number)); log.push(live.at(-1).id); }"
        "  else if (what === 'give') pool.give(live.splice(number, 1)[0]);"
        "  else { pool.settle(); log.push(pool.pooledBytes); }"
        " }"
        " return log; }",
        [steps, 1 << 20],
    )
    assert found == log


# What stays of the body of a function, beside constants.
BRANCHES = {
    "if (A > 3u) { x; }": "{ x; }",
    "if (A < 3u) { x; }": "",
    "if (A < 3u) { x; } else { y; }": "{ y; }",
    "if (YES) { x; } else if (z) { y; } else { w; } v;": "{ x; } v;",
    "if (NO) { x; } else if (z) { y; } else { w; }": "if (z) { y; } else { w; }",
    "if (z) { x; } else if (NO) { y; } else { w; }": "if (z) { x; } else { w; }",
    "if (z) { x; } else if (YES) { y; } else { w; }": "if (z) { x; } else { y; }",
    "if (z) { x; } else if (NO) { y; }": "if (z) { x; }",
    "if (NO && q[f(3)] == 2) { if (YES) { x; } }": "",
    "if (a[i] % 4u == 0u && NO) { x; }": "",
    "if (NO && a(i)) { x; }": "",
    "if (z) { x; } else if (NO) { y; } else if (NO) { w; }": "if (z) { x; }",
    "if (YES || q) { if (!YES) { y; } x; }": "{ x; }",
    "if (G == 8u && (B != 3u)) { x; }": "{ x; }",
    "if (HALF < 2.0 && HALF != 0.0) { x; }": "{ x; }",
    "if (HALF == 0.0) { x; }": "",
    "for (;;) { if (NO) { break; } else if (YES) { continue; } }": "for (;;) { { continue; } }",
    f"if (NO) {{ x; }}{chr(10) * 5}{80 * chr(32)}else {{ y; }}": "{ y; }",
}
# What stays as it is: what constants do not decide, arithmetic of floats, what wraps, names that anything
# else declares, too; conditions that go on, have effects or are part of another statement; what is no WGSL.
KEPT = (
    "if (YES) { x; } else if z { y; } for (;;) { v; }",
    "if (q && YES) { x; }",
    "if (HALF * 2.0 < 2.0) { x; }",
    "if (A - 5u > 2u) { x; }",
    "if (LOCAL == 1u) { x; }",
    "if (FLOAT / 2 > 0) { x; }",
    "if (INNER == 1u) { x; }",
    "if (A == 1u) || (i == 0u) { x; }",
    "if (add(i) == 0u && NO) { x; }",
    "loop { continuing { break if (NO); } } if (z) { x; }",
    "@diagnostic(off, derivative_uniformity) if (NO) { x; }",
    "if (A > 3u { x;",
)
CONSTANTS = """
const A = 4u; // a comment with if (NO) { in it
const B: u32 = A / 2u;
const YES = true;
const NO = false;
const G = min(A, 8u) * B + select(1u, 0u, A > 3u);
const HALF = 0.5;
const LOCAL = 1u;
const FLOAT: f32 = 1;
const INNER = 1u;
fn inner() { const INNER = 2u; }
fn other(LOCAL: u32) -> u32 { return LOCAL; }
"""


def test_branches_that_constants_decide(stream_page: Page):
    """They go before a text is compiled, and all lines keep their numbers."""
    texts = [f"{CONSTANTS}@compute\nfn main() {{\n{body}\n}}\n" for body in (*BRANCHES, *KEPT)]
    found = stream_page.evaluate(
        "async (texts) => {"
        " const { shortened } = await import('/web/runtime/shorten.js');"
        " return texts.map(shortened); }",
        texts,
    )
    bodies = [" ".join(text.split("fn main() {\n")[1].removesuffix("\n}\n").split()) for text in found]
    assert bodies == [*BRANCHES.values(), *KEPT]
    assert [text.count("\n") for text in found] == [text.count("\n") for text in texts]


FUNCTIONS = """
struct Params { far: u32 }
fn unused() -> u32 {
    return near(1u); // fn main
}
fn near(i: u32) -> u32 { return i; }
const NO = false;
fn dead() -> u32 { return 1u; }
fn far(i: u32) -> u32 { return near(i) + 1u; }
@must_use
fn kept() -> u32 { return 2u; }
@compute @workgroup_size(1)
fn main() { var x = far(1u); if (NO) { x = dead(); } }
"""


def test_functions_that_nobody_calls(stream_page: Page):
    """They go, too, also those that only a dead branch calls."""
    found = stream_page.evaluate(
        "async (text) => (await import('/web/runtime/shorten.js')).shortened(text)", FUNCTIONS
    )
    names = [name for name in ("unused", "near", "dead", "far", "kept", "main") if f"fn {name}(" in found]
    assert names == ["near", "far", "kept", "main"]
    assert found.count("\n") == FUNCTIONS.count("\n")
