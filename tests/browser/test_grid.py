"""The grid laboratory as a person uses it, beside PyTorch and the same computed natively; axe; 390 pixels.

P-093 (the page draws the grid), P-004 (morphing), P-039 (targets), P-047 (populations). Its Python runs as in
a browser without JSPI, where nothing may wait.
"""

import base64
import copy
import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, Route, expect

import pellucid
from browser.pages import press, ready
from pellucid.grid import TargetPropagation, TargetPropagationConfig, network_from_json, stored_bytes

import assets
from paths import ROOT, SITE
from static_server import StaticServer

SEED = 3
PLACES = ["0,0,0,0", "0,0,1,0", "1,0,0,0", "1,0,1,0"]
EXAMPLES = runpy.run_path(str(ROOT / "demo" / "grid" / "tasks.py"))["examples"]


def without_jspi(route: Route) -> None:
    answer = route.fetch()
    text = "delete WebAssembly.Suspending;\ndelete WebAssembly.promising;\n" + answer.text()
    route.fulfill(response=answer, body=text)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """The page with four dense cells and the rings."""
    with StaticServer(SITE) as server:
        context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
        context.route("**/python_worker.js", without_jspi)
        opened = context.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.goto(f"{server.url}demo/grid/")
        ready(opened)
        opened.get_by_role("combobox", name="Cells").select_option("four dense cells")
        opened.get_by_role("combobox", name="Task").select_option("rings")
        opened.get_by_label("Seed").fill(str(SEED))
        press(opened, "Build")
        opened.locator("#network-form summary").click()
        yield opened
        context.close()
    assert not errors, f"uncaught errors in the page: {errors}"


def tab(page: Page, name: str, **fields: str) -> None:
    page.get_by_role("tab", name=name).click()
    panel = page.get_by_role("tabpanel")
    for label, value in fields.items():
        panel.get_by_label(label).fill(value)


def saved(page: Page) -> dict[str, Any]:
    with page.expect_download() as download:
        page.get_by_role("button", name="Save with its weights").click()
    ready(page)
    return json.loads(download.value.path().read_text(encoding="utf-8"))


def network(spec: dict[str, Any]) -> torch.nn.Sequential:
    """The same of PyTorch: a pair of a layer and an activation for each cell."""
    parts: list[torch.nn.Module] = []
    for layer in sorted(spec["layers"], key=lambda one: (one["z"], one["y"], one["x"])):
        made = torch.nn.Linear(layer["input_height"], layer["output_height"])
        for name, parameter in made.named_parameters():
            values = np.frombuffer(base64.b64decode(layer["weights"][f"layer.{name}"]), "<f4")
            parameter.data = torch.tensor(values).reshape(parameter.shape)
        last = torch.nn.Tanh() if layer["activation"] == "tanh" else torch.nn.Identity()
        parts.append(torch.nn.Sequential(made, last))
    return torch.nn.Sequential(*parts)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = EXAMPLES("rings", SEED)
    return torch.tensor(x), torch.tensor(y)


def run(net: torch.nn.Sequential) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The loss, and what each cell gave."""
    x, y = data()
    given = []
    for part in net:
        x = part(x)
        given.append(x)
    return torch.nn.functional.cross_entropy(x, y), given


def number(page: Page, name: str) -> float:
    return float(re.split("[ %]", page.locator(f"#{name}").inner_text().replace(",", ""))[0])


def cells(page: Page, kind: str) -> list[float]:
    """What the list tells of each cell."""
    page.get_by_role("combobox", name="Colour by").select_option(kind)
    assert [c.get_attribute("data-place") for c in page.locator("#cells button").all()] == PLACES
    return [float(text) for text in page.locator("#cells button span").all_inner_texts()]


def test_cells_show_what_pytorch_computes(page):
    net = network(saved(page))
    loss, given = run(net)
    slopes = torch.autograd.grad(loss, given)
    assert number(page, "loss") == pytest.approx(loss.item(), rel=1e-3)
    right = (given[-1].argmax(-1) == data()[1]).float().mean().item()
    assert number(page, "accuracy") == pytest.approx(100 * right, abs=0.06)
    assert number(page, "parameters") == sum(p.numel() for p in net.parameters())
    assert cells(page, "activation") == pytest.approx([g.abs().mean().item() for g in given], rel=2e-3)
    assert cells(page, "gradient") == pytest.approx([g.abs().mean().item() for g in slopes], rel=5e-3)


def test_training_goes_as_in_pytorch(page):
    net = network(saved(page))
    tab(page, "Train", Steps="12", Rate="0.02")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_role("button", name="First view")).to_be_enabled()  # it can be turned meanwhile
    ready(page)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(12):
        optimizer.zero_grad()
        run(net)[0].backward()
        optimizer.step()
    after = run(net)[0].item()
    assert number(page, "loss") == pytest.approx(after, rel=2e-3)
    label = page.locator("#train-view svg[role=img]").get_attribute("aria-label")
    assert label.startswith("loss through 3 steps")


def test_a_click_in_the_volume_opens_the_cell(page):
    canvas = page.locator("#volume-view canvas")
    canvas.scroll_into_view_if_needed()
    x, y = canvas.evaluate("(canvas) => canvas.placeOf([0, 0, 1, 0])")
    page.mouse.click(x, y)
    expect(page.locator("#panel-title")).to_have_text("Cell 0,0,1,0 · dense")
    ready(page)
    net = network(saved(page))
    _, given = run(net)
    told = page.locator("#tensor-text").inner_text()
    assert told.startswith("192 × 16 float32 in 12,288 bytes")
    shown = [float(v) for v in re.findall(r"(?:mean|deviation|from|to) (-?[\d.e-]+)", told)]
    value = given[1]
    wanted = [value.mean(), value.std(correction=0), value.min(), value.max()]
    assert shown == pytest.approx([w.item() for w in wanted], rel=2e-3, abs=1e-4)
    page.get_by_role("combobox", name="Tensor").select_option("layer.weight")
    weight = net[1][0].weight
    told = page.locator("#tensor-text").inner_text()
    assert f"16 × 16 float32 in 1,024 bytes · mean {weight.mean().item():.3g}"[:-1] in told
    # A linear readout of the cell, and the loss if it gave its mean.
    features = np.concatenate([value.detach().numpy(), np.ones((192, 1))], -1).astype(np.float64)
    classes = data()[1].numpy()
    square = features.T @ features + 1e-3 * 192 * np.eye(17)
    said = features @ np.linalg.solve(square, features.T @ (classes * 2.0 - 1))
    silent = net[3](net[2](value.mean(0, keepdim=True).expand_as(value)))
    told = page.locator("#says-text").inner_text()
    accuracy, loss = re.search(r"right for ([\d.]+) %.*would be ([\d.]+)", told).groups()
    assert float(accuracy) == pytest.approx(100 * ((said > 0) == classes).mean(), abs=0.6)  # an example at 0
    wanted = torch.nn.functional.cross_entropy(silent, data()[1]).item()
    assert float(loss) == pytest.approx(wanted, rel=2e-3)


def test_a_cell_that_is_switched_off_hands_on(page):
    """P-010: as in PyTorch without it; where the others do not fit then, it stays on, which is said."""
    press(page, "The whole network")
    net, before = network(saved(page)), page.locator("#loss").inner_text()
    page.locator("#cells button").nth(1).click()
    ready(page)
    press(page, "Switch it off")
    assert number(page, "loss") == pytest.approx(run(net[:1] + net[2:])[0].item(), rel=1e-3)
    expect(page.locator("#says-text")).to_have_text("It is switched off.")
    expect(page.locator("#says-view")).to_be_hidden()
    press(page, "Switch it on")
    assert page.locator("#loss").inner_text() == before
    expect(page.locator("#says-view canvas")).to_be_visible()
    page.locator("#cells button").nth(0).click()
    ready(page)
    page.get_by_role("button", name="Switch it off").click()
    expect(page.locator("#notes strong")).to_have_text("The cells do not fit each other")
    assert page.locator("#loss").inner_text() == before
    press(page, "The whole network")


def test_arrows_and_enter_open_a_cell_and_a_drag_does_not(page):
    canvas = page.locator("#volume-view canvas")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    place = page.locator("#volume-view .told").inner_text().split(" ")[0]
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_have_text(f"Cell {place} · dense")
    ready(page)
    before = canvas.evaluate("(canvas) => canvas.placeOf([0, 0, 0, 0])")
    x, y = canvas.evaluate("(canvas) => canvas.placeOf([1, 0, 1, 0])")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y, steps=4)
    page.mouse.up()
    expect(page.locator("#panel-title")).to_have_text(f"Cell {place} · dense")
    after = canvas.evaluate("(canvas) => canvas.placeOf([0, 0, 0, 0])")
    assert np.hypot(*np.subtract(after, before)) > 10
    press(page, "First view")
    press(page, "The whole network")


def test_names_cover_no_other(page):
    """P-093: of twelve cells, from the front and turned, at either width; most are shown."""
    page.get_by_role("combobox", name="Cells").select_option("the same with remote links")
    press(page, "Build")
    canvas = page.locator("#volume-view canvas")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        press(page, "First view")
        for turn in (0, 90):
            box = canvas.bounding_box()
            page.mouse.move(box["x"] + 60, box["y"] + 200)
            page.mouse.down()
            page.mouse.move(box["x"] + 60 + turn, box["y"] + 200, steps=3)
            page.mouse.up()
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            names = canvas.evaluate("(canvas) => canvas.names()")
            assert len(names) >= (8 if width == 1280 else 4)
            for k, (left, top, right, bottom) in enumerate(names):
                for a, b, c, d in names[:k]:
                    assert right <= a or left >= c or bottom <= b or top >= d
            if not turn:
                assert all(left > -8 and right < box["width"] + 8 for left, _, right, _ in names)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("combobox", name="Cells").select_option("four dense cells")
    press(page, "Build")


def test_fewer_bits(page):
    spec = saved(page)
    tab(page, "Precision")
    for kind in ("int4", "binary", "float32"):
        page.get_by_role("combobox", name="Numbers").select_option(kind)
        press(page, "Morph")
    shown = [row.split("\t") for row in page.locator("#precisions tbody").inner_text().splitlines()]
    x, y = (pellucid.tensor(v.numpy(), device="cpu") for v in data())
    for kind, size, loss, _ in shown:
        net = network_from_json(spec, device="cpu").morph(kind)
        assert int(size.replace(",", "")) == stored_bytes(net)
        wanted = pellucid.nn.functional.cross_entropy(net(x), y).item()
        assert float(loss) == pytest.approx(wanted, rel=5e-3)


def test_targets_against_gradients(page):
    press(page, "Build")
    spec = saved(page)
    tab(page, "Targets", Steps="12", Rate="0.05")
    page.get_by_role("combobox", name="Colour by").select_option("gradient")
    press(page, "Compare")
    expect(page.get_by_role("combobox", name="Colour by")).to_have_value("budget")
    shown = [row.split("\t") for row in page.locator("#compared tbody").inner_text().splitlines()]
    net = network(spec)
    twin, loss = copy.deepcopy(net), torch.nn.functional.cross_entropy
    optimizer = torch.optim.SGD(twin.parameters(), 0.05, momentum=0.9)
    for _ in range(12):
        optimizer.zero_grad()
        run(twin)[0].backward()
        optimizer.step()
    assert float(shown[0][1]) == pytest.approx(run(twin)[0].item(), rel=2e-3)
    ours = network_from_json(spec, device="cpu")
    config = TargetPropagationConfig(0.05, momentum=0.9, budget=-1, max_step=0.5)
    train = TargetPropagation(ours, config)
    x, y = (pellucid.tensor(v.numpy(), device="cpu") for v in data())
    records = [train.step(x, y, pellucid.nn.functional.cross_entropy) for _ in range(12)]
    wanted = loss(torch.tensor(ours(x).numpy(force=True)), data()[1]).item()
    assert float(shown[1][1]) == pytest.approx(wanted, rel=5e-3)
    assert cells(page, "budget") == pytest.approx(records[-1].budgets, abs=2e-4)
    page.get_by_role("button", name="Go on with the copy that learned by target propagation").click()
    ready(page)
    assert number(page, "loss") == float(shown[1][1])
    press(page, "Build")  # there are no budgets any more
    expect(page.get_by_role("combobox", name="Colour by")).to_have_value("gradient")


def test_a_population_gets_better(page):
    press(page, "Build")
    before = number(page, "loss")
    tab(page, "Evolve", Networks="8", Generations="4")
    press(page, "Evolve")
    told = page.locator("#evolve-text").inner_text()
    best = re.match(r"generation 4: best -([\d.]+), mean", told).group(1)
    assert float(best) == pytest.approx(number(page, "loss"), rel=1e-3)
    assert float(best) < before
    assert float(best) == pytest.approx(run(network(saved(page)))[0].item(), rel=1e-3)


def test_errors_are_told_and_the_network_stays(page):
    before = page.locator("#loss").inner_text()
    spec = page.get_by_label("Specification as JSON")
    good = spec.input_value()
    for text, title in (
        ('{"layers": [{"type": "sponge"}]}', "This is no network"),
        (good[:-5], "This is no network"),
        ('{"layers": [{"type": "dense", "d_model": 16777216}]}', "This is no network"),
        (good.replace('"input_height":2', '"input_height":5'), "The cells do not fit each other"),
    ):
        spec.fill(text)
        page.get_by_role("button", name="Build").click()
        expect(page.locator("#notes strong")).to_have_text(title)
        expect(page.locator("#status")).to_have_text("That did not work.")
        assert page.locator("#loss").inner_text() == before
    # A network may have no cell, or none with weights: there is nothing to learn then, which is said.
    for text, count in (("{}", "0"), ('{"layers": [{"type": "softmax"}]}', "1")):
        spec.fill(text)
        press(page, "Build")
        assert page.locator("#cells button").count() == int(count)
        tab(page, "Train")
        page.get_by_role("button", name="Train", exact=True).click()
        expect(page.locator("#notes .said")).to_contain_text("no parameters to optimize")
    page.get_by_role("combobox", name="Cells").select_option("the same with remote links")
    press(page, "Build")
    tab(page, "Targets")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#notes .said")).to_contain_text("remote links")
    page.get_by_role("combobox", name="Cells").select_option("four dense cells")
    press(page, "Build")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.add_script_tag(path=assets.npm(assets.AXE) / "axe.min.js")
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in bad] == []


def test_a_narrow_screen_scrolls_one_way_and_shows_all_cells(page):
    canvas = page.locator("#volume-view canvas")
    press(page, "First view")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelector('#volume-view canvas').clientWidth < 390")

    def spots():
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return canvas.evaluate("(canvas) => [[0, 0, 0, 0], [1, 0, 1, 0]].flatMap(canvas.placeOf)")

    turned = spots()
    press(page, "First view")
    assert turned == pytest.approx(spots(), abs=1)
    page.locator("#cells button").nth(1).click()
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
