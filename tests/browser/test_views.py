"""The views with data of a large model, without Python: nothing blocks the page, and what was hard to see."""

import re
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from browser.pages import no_block

LAYERS, HEADS, TOKENS = 30, 9, 96
# Colours in a row of a canvas, counted from below where it is negative.
PIXELS = """([selector, y, places]) => {
    const canvas = document.querySelector(selector);
    const row = y < 0 ? canvas.height + y : y;
    return places.map((x) => [...canvas.getContext("2d").getImageData(x, row, 1, 1).data]);
}"""
START = """async () => {
    const { Model, show } = await import("/web/views/model.js");
    for (const name of ["/web/style.css", "/web/views/lens_grid.css", "/web/views/views.css"]) {
        const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: name });
        document.head.append(link);
        await new Promise((resolve) => (link.onload = resolve));
    }
    window.models = {};
    window.draw = async (name, data) => {
        const box = Object.assign(document.createElement("div"), { id: name, style: "width: 340px" });
        document.body.append(box);
        models[name] = new Model({ data });
        await show((await import(`/web/views/${name}.js`)).default, box, models[name]);
    };
}"""


@pytest.fixture
def views(page: Page, site_server) -> Page:
    page.goto(site_server.url)
    page.evaluate("document.head.textContent = document.body.textContent = ''")
    page.evaluate(START)
    return page


def test_views_of_large_models(views: Page):
    attention = """([layers, heads, count]) => draw("attention", {
        layers, heads, tokens: Array.from({ length: count }, (_, k) => `t${k}`),
        probs: new Float32Array(layers * heads * count * count).fill(0.25),
    })"""
    with no_block(views):
        views.evaluate(attention, [LAYERS, HEADS, TOKENS])
        overview = views.locator("#attention canvas.overview")
        # The row that is painted last, layer 0, is there in time.
        painted = """() => {
            const canvas = document.querySelector("#attention canvas.overview");
            const { width, height } = canvas;
            return canvas.getContext("2d").getImageData(width - 12, height - 30, 1, 1).data[3] === 255;
        }"""
        views.wait_for_function(painted)
        overview.focus()
        for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
            views.keyboard.press(key)
        expect(views.locator("#attention h3")).to_have_text(f"Layer {LAYERS - 3}, head 1")
        for k in range(8):  # the pointer over the pattern
            views.locator("#attention canvas.head").hover(position={"x": 60 + 12 * k, "y": 500})
        expect(views.locator("#attention .told")).to_contain_text("looks at")

    modules = [{"path": "", "type": "Model", "parameters": 9, "bytes": 9}]
    for layer in range(LAYERS):
        path = f"model.layers.{layer}"
        names = ["", *(f".attn.{k}" for k in range(6)), *(f".mlp.{k}" for k in range(6))]
        modules += [{"path": path + name, "type": "Linear", "parameters": 7, "bytes": 4321} for name in names]
    with no_block(views):
        views.evaluate("modules => draw('model_map', { name: 'Model', modules })", modules)
        rows = views.locator("#model_map [data-path]")
        assert rows.count() == 1 + LAYERS
        rows.nth(3).click()
        expect(rows).to_have_count(1 + LAYERS + 12)
        assert rows.nth(3).get_attribute("data-path") == "model.layers.2"
    # Where there is little room, the mark that opens the whole stays on the line of its name, said once.
    name = "NameOfALanguageModel"
    modules[0] |= {"type": name, "parameters": 134_515_008, "bytes": 96_576_768}
    views.evaluate("modules => draw('model_map', { modules })", modules)
    whole = views.locator("#model_map").last.locator("summary").first
    assert whole.inner_text().count(name) == 1
    box, line = whole.bounding_box(), whole.locator("code").bounding_box()
    assert box
    assert line
    assert line["y"] < box["y"] + line["height"]

    # What is below 0 has its own colour, also where the page around has none.
    views.evaluate("""() => draw("heat_map", {
        name: "shares", rows: ["a"], columns: ["x", "y"], values: new Float32Array([-1, 1.5]), from: 1, to: 1,
    })""")
    least, most = [179, 69, 29, 255], [10, 79, 150, 255]
    assert views.evaluate(PIXELS, ["#heat_map canvas", 3, [60, 110]]) == [least, most]
    # The picture has the scale of its colours below, up to where they change no more.
    expect(views.locator("#heat_map canvas")).to_have_accessible_name(
        re.compile("^shares: .* Colours go from -1 over 0 to ≥ 1[.]")
    )
    bar = views.evaluate(PIXELS, ["#heat_map canvas", -22, [3, 76, 150]])
    np.testing.assert_allclose(bar, [least, [246, 248, 251, 255], most], atol=4)
    expect(views.locator("#heat_map .told")).to_have_text(
        "Point at a cell, or move there with the arrow keys."
    )
    views.locator("#heat_map canvas").focus()
    views.keyboard.press("ArrowRight")
    expect(views.locator("#heat_map .told")).to_contain_text("a · ")

    # A share below 0 does not cover the name of what has it.
    views.evaluate("""() => draw("attribution", {
        names: ["mlp_out.27", "attn_out.3"], values: new Float32Array([-7.25, 2]), measure: "logit",
    })""")
    texts = views.locator("#attribution svg text")
    expect(texts.first).to_be_visible()
    boxes = {text.inner_html(): text.bounding_box() for text in texts.all()}
    name, value = boxes["mlp_out.27"], boxes["-7.25"]
    assert name
    assert value
    assert name["x"] + name["width"] <= value["x"]


def test_the_same_scale_beside_the_lens_and_below_attention(views: Page):
    views.evaluate("""() => draw("attention", {
        layers: 1, heads: 1, tokens: ["a", "b"], probs: new Float32Array([1, 0, 0.25, 0.75]),
    })""")
    head = views.locator("#attention canvas.head")
    expect(head).to_have_accessible_name(re.compile("Colours go from 0 % over 25 % to 100 %"))
    # A quarter has the colour in the middle of the bar.
    cells = views.evaluate(PIXELS, ["#attention canvas.head", 36, [20]])
    bar = views.evaluate(PIXELS, ["#attention canvas.head", -22, [2 + 75]])
    np.testing.assert_allclose(bar, cells, atol=4)
    views.evaluate("""() => draw("lens_grid", {
        layers: 1, answer: 0, tokens: [{ id: 0, token: "a" }],
        columns: [{ position: 0, layers: [[[0, "a", 0.5]]] }],
    })""")
    scale = views.get_by_role("img", name="probability: Colours go from 0 % over 50 % to 100 %")
    expect(scale).to_be_visible()
    # Its colours are those that a style sheet mixes.
    mixed = views.evaluate("""() => {
        const context = new OffscreenCanvas(1, 1).getContext("2d");
        context.fillStyle = "color-mix(in oklab, rgb(10 79 150) 50%, rgb(246 248 251))";
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    }""")
    bar = views.evaluate(PIXELS, ["#lens_grid canvas.lens-scale", -22, [74]])
    np.testing.assert_allclose(bar, [mixed], atol=4)


@pytest.mark.parametrize("log", [False, True])
def test_names_at_the_ends_of_lines_do_not_touch(views: Page, log: bool):
    names = ["one", "two", "three", "four", "a-name-that-is-too-long-for-the-place", "far"]
    values = [1, 1, 1.001, 1.002, 1.001, 900]
    views.evaluate(
        """([names, values, log]) => draw("rank_lines", {
            points: ["0", "1"], series: names.map((name, k) => ({ name, values: [50 * k, values[k]] })),
            measure: "rank", log, down: log,
        })""",
        [names, values, log],
    )
    texts = [views.locator("#rank_lines svg text", has_text=name[:4]).last for name in names]
    boxes = [text.bounding_box() or {} for text in texts]
    frame = views.locator("#rank_lines").bounding_box() or {}
    assert all(box["x"] + box["width"] <= frame["x"] + frame["width"] for box in boxes)
    tops = sorted(box["y"] for box in boxes)
    assert min(b - a for a, b in pairwise(tops)) >= max(box["height"] for box in boxes) - 1
    # Each is as near to its line as the others let it: the least squares of distances, and order is kept.
    spread = """async () => (await import("/web/views/rank_lines.js")).spread"""
    call = f"async ([places, gap, low, high]) => (await ({spread})())(places, gap, low, high)"
    assert views.evaluate(call, [[50, 10, 51, 52], 12, 0, 100]) == [39, 10, 51, 63]
    assert views.evaluate(call, [[99, 98, 0], 12, 0, 100]) == [100, 88, 0]
    assert views.evaluate(call, [[5, 5, 5], 12, 0, 10]) == [0, 5, 10]
    assert views.evaluate(call, [[], 12, 0, 10]) == []


def test_what_is_chosen_first_is_in_sight(views: Page):
    """The head whose pattern is drawn, and the token of a long line at which the text stands."""
    views.evaluate("""() => draw("attention", {
        layers: 30, heads: 2, tokens: ["a", "b"], probs: new Float32Array(30 * 2 * 4),
    })""")
    expect(views.locator("#attention h3")).to_have_text("Layer 29, head 0")
    # All heads of 30 layers are seen at once, without scrolling in them.
    box = views.locator("#attention .scroller").first
    assert box.evaluate("box => box.scrollHeight <= box.clientHeight && box.clientHeight < innerHeight")
    views.evaluate("""() => draw("branch_tree", {
        nodes: Array.from({ length: 60 }, (_, k) => ({ number: k, parent: k - 1, token: `token${k}` })),
        at: 59,
    })""")
    tree = views.locator("#branch_tree [role=tree]").bounding_box()
    chosen = views.locator("#branch_tree [aria-selected=true]").bounding_box()
    assert tree
    assert chosen
    assert tree["x"] <= chosen["x"]
    assert chosen["x"] + chosen["width"] <= tree["x"] + tree["width"]
