"""The instruments of the lens page as a person uses them, beside the same computed natively; axe."""

import ast
import asyncio
import csv
import inspect
import io
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from safetensors.numpy import save_file

from browser.pages import WAIT, press, ready
from models.tiny import VOCABULARY, loaded, made, ours, saved, with_words
from pellucid import lens, weights

import assets
from paths import SITE
from static_server import StaticServer

IDS = [5, 17, 40, 8, 22]
CLEAN = "w5 w17 w40 w8 w22"
COUNT = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny model whose tokens are words."""
    return with_words(saved(made("llama_tied"), tmp_path_factory.mktemp("site") / "tiny"))


@pytest.fixture(scope="module")
def model(folder) -> Any:
    return loaded(folder, "cpu")


@pytest.fixture(scope="module")
def small(folder) -> Any:
    """The same model in eight bits."""
    weights.quantize(folder, folder.parent / "small", "q8_0")
    return folder.parent / "small"


@pytest.fixture(scope="module")
def arrays(folder) -> dict[str, np.ndarray]:
    """A sparse coder, which also lies beside the model."""
    encoder, decoder = np.random.default_rng(9).standard_normal((2, 32, 24)).astype("float32")
    made = {"W_enc": encoder, "W_dec": decoder.T.copy(), "b_enc": encoder[0], "b_dec": decoder[:, 0].copy()}
    save_file(made, folder / "sae.safetensors")
    return made


@pytest.fixture(scope="module")
def site(folder, small) -> Iterator[StaticServer]:
    with StaticServer(SITE, {"tiny": folder, "small": small}) as server:
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, site: StaticServer) -> Iterator[Page]:
    """The page with the tiny model, three tokens behind the prompt."""
    context = browser.new_context(accept_downloads=True)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(f"{site.url}demo/logit_lens/?model=/tiny/&prompt={CLEAN.replace(' ', '+')}")
    ready(opened)
    opened.get_by_label("New tokens").fill(str(COUNT))
    press(opened, "Generate")
    yield opened
    context.close()
    assert not errors, f"uncaught errors in the page: {errors}"


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def table(page: Page, name: str) -> list[dict[str, str]]:
    """The CSV that a picture is saved as."""
    with page.expect_download() as download:
        page.locator(f'#{name}-panel button[data-save="csv"]').click()
    ready(page)
    return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))


def tokens(page: Page) -> list[str]:
    """The tokens up to the one that the page stands at."""
    return page.locator("#tree-view button.path").all_inner_texts()


def back_to(page: Page, number: int) -> None:
    open_tab(page, "Branch and step")
    page.locator(f'#tree-view [data-number="{number}"]').click()
    ready(page)


def test_a_branch_goes_on_as_the_model_does_natively(page, model):
    session = lens.Session(model, IDS)
    made = [session.token().id for _ in range(COUNT)]
    assert tokens(page) == [f"w{k}" for k in IDS + made]
    back_to(page, 5)
    session.go(5)
    best = session.candidates(5)
    chips = page.locator("#candidates button").all_inner_texts()
    assert [chip.split(" ")[0] for chip in chips] == [f"w{token}" for token, _ in best]
    for chip, (_, probability) in zip(chips, best, strict=True):
        assert float(chip.split(" ")[1]) == pytest.approx(100 * probability, abs=0.06)
    page.locator("#candidates button").nth(1).click()
    expect(page.locator("#tree-view .line")).to_have_count(3)
    ready(page)
    session.token(best[1][0])
    for _ in range(COUNT - 1):
        session.token()
    assert tokens(page) == [f"w{k}" for k in session.ids]
    # The lens of the branch is what a run of its ids says.
    look = lens.logit_lens(model, ours([session.ids], "cpu"), top_k=5).table()
    shown = page.locator("#grid tbody tr").all()
    assert len(shown) == len(look)
    for row, cells in zip(shown, reversed(look), strict=True):
        assert row.locator("td").all_inner_texts() == [f"w{cell[0][0]}" for cell in cells]


def test_a_pause_shows_values_and_a_change_goes_on(page, model):
    back_to(page, 4)
    press(page, "Step a layer")
    press(page, "Step an operation")
    session = lens.Session(model, IDS)
    session.step("layer")
    value = session.step("operation").value.numpy()
    expect(page.locator("#paused-at")).to_contain_text("resid_pre.1")
    numbers = page.locator("#paused-numbers").inner_text()
    assert f"mean {float(f'{value.mean():.4g}')}"[:9] in numbers
    assert "shape 1 × 1 × 32" in numbers
    page.get_by_label("Multiply by").fill("-2")
    press(page, "Change")
    press(page, "Resume")
    session.change(lambda x: x * -2)
    session.resume()
    best = session.candidates(5)
    chips = page.locator("#candidates button code").all_inner_texts()
    assert chips == [f"w{token}" for token, _ in best]
    assert page.locator("#tree-view button.changed").inner_text() == "w22"


def test_attention_of_all_heads(page, model):
    back_to(page, 5)
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    ids = [int(word[1:]) for word in tokens(page)]
    seen = lens.run(model, ids, lens.Plan(capture=["attn_probs"]))
    probs = np.concatenate([value.numpy() for value in seen.values()])
    got = np.zeros_like(probs)
    for row in table(page, "attention"):
        got[tuple(int(row[name]) for name in ("layer", "head", "from", "to"))] = float(row["probability"])
    np.testing.assert_allclose(got, probs, atol=1e-5)
    overview = page.locator("#attention-view canvas.overview")
    overview.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#attention-view h3")).to_have_text("Layer 1, head 1")
    page.locator("#attention-view canvas.head").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#attention-view .told")).to_contain_text("looks at")


def other_prompt(model: Any) -> list[int]:
    """A prompt that differs in one token, and that the model goes on with in another way."""
    answer = lens.Session(model, IDS).token().id
    others = ([*IDS[:2], k, *IDS[3:]] for k in range(41, VOCABULARY))
    return next(ids for ids in others if lens.Session(model, ids).token().id != answer)


def test_patching_attribution_and_ranks(page, model):
    open_tab(page, "Patching")
    page.get_by_label("Clean prompt").fill(CLEAN)
    clean, corrupted = IDS, other_prompt(model)
    page.get_by_label("Corrupted prompt").fill(" ".join(f"w{k}" for k in corrupted))
    press(page, "Patch")
    ends = [lens.run(model, ids).output.logits[0, -1] for ids in (clean, corrupted)]
    a, b = (int(end.argmax().item()) for end in ends)
    high, low = ((end[a] - end[b]).item() for end in ends)
    wanted = lens.activation_patching(model, clean, corrupted, lens.logit_difference(a, b)).numpy()
    rows = table(page, "patching")
    got = np.array([[float(row[f"w{k}"]) for k in corrupted] for row in rows])
    np.testing.assert_allclose(got, (wanted - low) / (high - low), atol=1e-3)

    back_to(page, 4)
    open_tab(page, "Attribution")
    press(page, "Attribute")
    shares = lens.direct_logit_attribution(model, IDS, a, by="layer")
    found = table(page, "attribution")
    assert [row["name"] for row in found] == shares.names
    values = [float(list(row.values())[1]) for row in found]
    np.testing.assert_allclose(values, shares.values[:, 0, 0].numpy(), atol=1e-3)
    expect(page.locator("#attribution-view svg")).to_be_visible()

    open_tab(page, "Through the layers")
    press(page, "Draw")
    curves = lens.layer_curves(model, IDS, [a])
    assert [int(float(row[f"w{a}"])) for row in table(page, "ranks")] == curves.rank[:, -1].tolist()
    expect(page.locator("#ranks-view svg").last).to_be_visible()


def test_what_follows_the_last_token_is_asked_for_where_nobody_has(page, model):
    page.get_by_role("textbox", name="Prompt", exact=True).fill(CLEAN)
    press(page, "Generate")
    open_tab(page, "Through the layers")
    press(page, "Draw")
    session = lens.Session(model, IDS)
    for _ in range(COUNT):
        session.token()
    best = [f"w{token}" for token, _ in session.candidates(3)]
    assert list(table(page, "ranks")[0])[1:] == best
    open_tab(page, "Attribution")
    press(page, "Attribute")
    assert repr(best[0]) in list(table(page, "attribution")[0])[1]


def test_prompts_of_other_lengths_are_explained(page):
    open_tab(page, "Patching")
    page.get_by_label("Corrupted prompt").fill("w5 w17")
    page.get_by_role("button", name="Patch", exact=True).click()
    expect(page.locator("#notes")).to_contain_text("choose prompts of equal length", timeout=WAIT)
    expect(page.locator("#notes strong")).to_have_text("These two cannot be compared")


def test_steering_goes_on_under_the_plan(page, model):
    back_to(page, 4)
    open_tab(page, "Steering")
    page.get_by_label("Towards").fill("w9 w60")
    page.get_by_label("Away from").fill("w9 w61")
    page.get_by_label("at layer").fill("1")
    page.get_by_role("button", name="Steer", exact=True).click()
    expect(page.locator("#steered")).to_be_visible(timeout=WAIT)
    ready(page)
    push = lens.difference_of_means(model, [[9, 60]], [[9, 61]], "resid_post.1", normed=True)
    change = {"point": "resid_post.1", "method": "add", "value": push, "strength": 0.8, "relative": True}
    session = lens.Session(model, IDS)
    plain = [session.token().id for _ in range(COUNT)]
    session.go(3)
    session.plan = lens.Plan(steer=[change])
    session.token(IDS[4])
    steered = [session.token().id for _ in range(COUNT)]
    said = ["".join(f"w{k}" for k in IDS + new) for new in (plain, steered)]
    expect(page.locator("#steered dd")).to_have_text(said)
    # The Python behind it says the same, and something else when it is changed.
    code = page.locator("#steering-code")
    code.locator("summary").click()
    text = code.get_by_role("textbox").input_value()
    code.get_by_role("textbox").fill(f"{text}\npicture['without'] = 'other'\n")
    code.get_by_role("button", name="Run again").click()
    ready(page)
    expect(page.locator("#steered dd")).to_have_text(["other", said[1]])


def test_features_of_a_coder_and_steering_by_one(page, model, arrays, tmp_path):
    coder = lens.SparseCoder.load(arrays, device="cpu")
    back_to(page, 4)
    open_tab(page, "Features")
    page.get_by_label("Its file").fill("/tiny/sae.safetensors")
    page.locator("#features-panel").get_by_label("of layer").fill("1")
    page.locator("#features-form").get_by_label("show").fill("4")
    press(page, "Find features")
    wanted = lens.top_features(model, IDS, coder, "resid_post.1", k=4)
    for k, column in enumerate(wanted):
        shown = page.locator(f"#features-view tbody td:nth-child({k + 1}) button").all()
        assert [int(one.get_attribute("data-feature") or "") for one in shown] == [f for f, _ in column]
        values = [float(one.locator("span").inner_text()) for one in shown]
        np.testing.assert_allclose(values, [v for _, v in column], rtol=6e-3)
    state = lens.run(model, IDS, lens.Plan(capture=["resid_post.1"]))["resid_post.1"]
    strong = coder.encode(state[0]).numpy()
    for k, row in enumerate(table(page, "features")):
        got = [float(value) for name, value in row.items() if name.isdecimal()]
        np.testing.assert_allclose(got, strong[k][[int(name) for name in row if name.isdecimal()]], atol=1e-4)

    feature = wanted[2][0][0]
    page.locator(f'#features-view button[data-feature="{feature}"]').first.click()
    acting = int((strong[:, feature] > 0).sum())
    expect(page.locator("#features-view .told")).to_contain_text(
        f"Feature {feature} acts at {acting} of 5 tokens"
    )
    page.locator("#feature-form").get_by_label("by", exact=True).fill("30")
    press(page, "Steer by it")
    session = lens.Session(model, IDS)
    plain = [session.token().id for _ in range(COUNT)]
    session.go(3)
    session.plan = lens.Plan(steer=[coder.steer("resid_post.1", feature, 30.0)])
    session.token(IDS[4])
    steered = [session.token().id for _ in range(COUNT)]
    assert steered != plain
    said = ["".join(f"w{k}" for k in IDS + new) for new in (plain, steered)]
    expect(page.locator("#by-feature dd")).to_have_text(said)

    # The same from a file of this computer, and one that is of another model.
    file = tmp_path / "sae.npz"
    np.savez_compressed(file, **arrays)
    page.locator("#coder-file").set_input_files(file)
    back_to(page, 4)
    open_tab(page, "Features")
    press(page, "Find features")
    assert len(page.locator("#features-view tbody button").all()) == sum(map(len, wanted))
    np.savez(file, W_enc=arrays["W_enc"][:9], W_dec=arrays["W_dec"][:, :9])
    page.locator("#coder-file").set_input_files(file)
    page.get_by_role("button", name="Find features").click()
    expect(page.locator("#notes strong")).to_have_text("This is no sparse coder of the model", timeout=WAIT)
    expect(page.locator("#notes .said")).to_contain_text("states of 9 numbers, the model has 32")


def apart(models: list[Any], prompts: list[list[int]]) -> np.ndarray:
    """How far what each layer of one run says is from the other's, at the positions that both have."""
    count = min(map(len, prompts))
    logs = []
    for model, ids in zip(models, prompts, strict=True):
        states = lens.run(model, ids, lens.Plan(capture=["resid_post"])).values()
        logs.append(
            [
                model.unembed(state[0].detach()).float().log_softmax(-1).detach().numpy()[:count]
                for state in states
            ]
        )
    p, q = np.float64(logs)
    return (np.exp(p) * (p - q)).sum(-1)


def said(model: Any, ids: list[int]) -> list[list[str]]:
    """What each layer would have said, the last one first."""
    look = lens.logit_lens(model, ours([ids], "cpu"), top_k=1).table()
    return [[f"w{cell[0][0]}" for cell in row] for row in reversed(look)]


def test_another_prompt_and_a_quantized_model_beside(page, model, small):
    back_to(page, 4)
    open_tab(page, "Compare")
    other = [9, 60, 17, 40, 8, 22]
    page.get_by_label("Other prompt").fill(" ".join(f"w{k}" for k in other))
    press(page, "Compare")
    sides = page.locator("#comparison-view figure")
    expect(sides).to_have_count(2)
    expect(sides.nth(1).locator("tbody tr").first.locator("td")).to_have_count(len(other))
    for side, ids in zip(sides.all(), (IDS, other), strict=True):
        shown = [row.locator("td").all_inner_texts() for row in side.locator("tbody tr").all()]
        assert shown == said(model, ids)
    wanted = apart([model, model], [IDS, other])
    got = np.array([list(row.values())[1:] for row in table(page, "comparison")], float)
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    heads = sides.nth(1).locator("thead th.apart").all_inner_texts()
    assert heads[-1] == ""
    np.testing.assert_allclose([float(text) for text in heads[:-1]], wanted[-1], rtol=6e-3, atol=1e-5)
    # A cell that is looked at is described with the one of the other side.
    sides.nth(0).locator("tbody td").last.click()
    panel = page.locator("#comparison-view .lens-panel")
    expect(panel.locator("h3")).to_have_count(2)
    expect(panel.locator(".apart").first).to_contain_text("nats apart here")

    page.get_by_label("Other prompt").fill("")
    page.get_by_label("Other model (").fill("/small/")
    press(page, "Compare")
    expect(sides.locator("figcaption")).to_have_text(["tiny", "small"])
    wanted = apart([model, loaded(small, "cpu")], [IDS, IDS])
    assert 0 < wanted.max() < 0.1
    got = np.array([list(row.values())[1:] for row in table(page, "comparison")], float)
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    press(page, "Let go of the other")
    expect(page.locator("#leave-other")).to_be_hidden()


def executed(cells: list[str]) -> dict[str, Any]:
    """The names that cells of a notebook leave, each run as IPython does."""

    async def run() -> dict[str, Any]:
        names: dict[str, Any] = {}
        for text in cells:
            waiting = eval(compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.iscoroutine(waiting):
                await waiting
        return names

    # Playwright's own event loop runs in this thread.
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(lambda: asyncio.run(run())).result()


def test_the_python_behind_a_picture_is_changed_and_runs_again(page, model):
    back_to(page, 4)
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    code = page.locator("#attention-code")
    code.locator("summary").click()
    text = code.get_by_role("textbox").input_value()
    assert f"picture = await attention(model, names, {IDS})" in text
    # Only the first layer, and sharper.
    code.get_by_role("textbox").fill(
        text.replace('capture=["attn_probs"]', 'capture=["attn_probs.0"]') + '\npicture["probs"] **= 2\n'
    )
    code.get_by_role("button", name="Run again").click()
    ready(page)
    probs = lens.run(model, IDS, lens.Plan(capture=["attn_probs.0"]))["attn_probs.0"].numpy()
    got = np.zeros_like(probs)
    for row in table(page, "attention"):
        got[tuple(int(row[name]) for name in ("layer", "head", "from", "to"))] = float(row["probability"])
    np.testing.assert_allclose(got, probs**2, atol=1e-5)
    code.get_by_role("textbox").fill("picture = 3")
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes .said")).to_contain_text("leaves int in `picture`", timeout=WAIT)
    code.get_by_role("textbox").fill("picture = {'probs': torch.zeros(1 << 36)}")
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes strong")).to_have_text("The graphics processor cannot do that", timeout=WAIT)
    expect(page.locator("#notes .said")).to_contain_text("for one buffer")
    # What was there goes on.
    press(page, "Look at all heads")


def test_the_notebook_computes_what_the_page_shows(page, model, arrays):
    back_to(page, 4)
    page.locator("#candidates button").nth(2).click()
    ready(page)
    back_to(page, 4)
    shown = {}
    for tab, name, button in (
        ("Attention", "attention", "Look at all heads"),
        ("Attribution", "attribution", "Attribute"),
        ("Through the layers", "ranks", "Draw"),
        ("Features", "features", "Find features"),
        ("Compare", "comparison", "Compare"),
    ):
        open_tab(page, tab)
        if tab == "Features":
            page.get_by_label("Its file").fill("/tiny/sae.safetensors")
        if tab == "Compare":
            page.get_by_label("Other model (").fill("/small/")
        press(page, button)
        shown[name] = list(table(page, name))
        if tab == "Features":
            page.locator("#features-view button[data-feature]").first.click()
            press(page, "Steer by it")
            back_to(page, 4)
    open_tab(page, "Steering")
    page.get_by_label("Towards").fill("w9 w60")
    page.get_by_label("Away from").fill("w9 w61")
    page.locator("#steering-form").get_by_label("at layer").fill("1")
    press(page, "Steer")
    back_to(page, 4)
    said = page.locator("#steered dd").all_inner_texts(), page.locator("#by-feature dd").all_inner_texts()
    tree = page.locator("#tree-view button").all_inner_texts()
    changed = page.locator("#tree-view button.changed").count()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as notebook").click()
    made = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    cells = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    titles = [
        "".join(cell["source"])[3:].lower() for cell in made["cells"] if cell["cell_type"] == "markdown"
    ][1:]
    assert set(shown) <= set(titles)
    collected = [text + ("\nkept.append(picture)" if "picture = await" in text else "") for text in cells]
    names = executed(["kept = []", *collected])
    pictures = dict(zip(titles, names["kept"], strict=True))
    # Steered texts, and the tree with its branches and changes.
    assert pictures["steering"]["steered"] == said[0][1]
    assert list(pictures["feature"].values()) == said[1]
    nodes = pictures["branches"]["nodes"]
    assert sorted(node["token"] for node in nodes) == sorted(text.replace("·", " ") for text in tree)
    assert sum(node["changed"] for node in nodes) == changed > 0
    assert len(pictures["branches"]["texts"]) > 2
    standing = lens.Session(model, IDS)
    assert [token for token, _, _ in pictures["branches"]["next"]] == [
        token for token, _ in standing.candidates(5)
    ]
    for row in shown["attention"]:
        at = [int(row[name]) for name in ("layer", "head", "from", "to")]
        probs = pictures["attention"]["probs"].reshape(3, 4, len(IDS), len(IDS))
        assert probs[tuple(at)] == pytest.approx(float(row["probability"]), abs=1e-5)
    got = [float(list(row.values())[1]) for row in shown["attribution"]]
    np.testing.assert_allclose(got, pictures["attribution"]["values"], atol=1e-3)
    got = np.array([list(row.values())[1:] for row in shown["comparison"]], float)
    np.testing.assert_allclose(got.reshape(-1), pictures["comparison"]["apart"], atol=1e-4)
    got = np.array([list(row.values())[2:] for row in shown["features"]], float)
    np.testing.assert_allclose(got.T.reshape(-1), pictures["features"]["strengths"], atol=1e-4)
    best = pictures["ranks"]["series"]
    assert [list(map(float, row["values"])) for row in best] == [
        [float(list(row.values())[1 + k]) for row in shown["ranks"]] for k in range(len(best))
    ]


def test_stop_is_heard_while_a_prompt_is_read_and_the_lens_before_it_stays(page, model):
    shown = page.locator("#grid td").count()
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    long = [*range(5, 95)]
    prompt.fill(" ".join(f"w{k}" for k in long))
    page.evaluate(
        """() => new MutationObserver((_, watcher) => {
            if (!/of 90 tokens/.test(document.querySelector("#status").textContent)) return;
            watcher.disconnect();
            document.querySelector("#stop").click();
        }).observe(document.querySelector("#status"), { childList: true })"""
    )
    page.get_by_role("button", name="Generate", exact=True).click()
    expect(page.locator("#status")).to_have_text("Stopped before the prompt was read.", timeout=WAIT)
    assert page.locator("#grid td").count() == shown > 0
    # Read to its end, in pieces, it says what one whole run says.
    press(page, "Generate")
    session = lens.Session(model, long)
    ids = [*long, *(session.token().id for _ in range(COUNT))]
    assert tokens(page) == [f"w{k}" for k in ids]
    rows = page.locator("#grid tbody tr")
    expect(rows.first.locator("td")).to_have_count(len(ids) - 1)
    look = lens.logit_lens(model, ours([ids[:-1]], "cpu"), top_k=1).table()
    shown_rows = rows.evaluate_all("all => all.map(r => [...r.cells].slice(1).map(c => c.innerText))")
    same = [
        a == f"w{cell[0][0]}"
        for row, cells in zip(shown_rows, reversed(look), strict=True)
        for a, cell in zip(row, cells, strict=True)
    ]
    assert all(same)
    prompt.fill(CLEAN)
    press(page, "Generate")


def seen_of(page: Page) -> tuple[list[str], list[str], list[list[str]]]:
    """Tokens of the path, those that were read under a plan, and the lens."""
    path = page.locator("#tree-view button.path")
    rows = page.locator("#grid tbody tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    return path.all_inner_texts(), page.locator("#tree-view button.path.changed").all_inner_texts(), rows


def test_the_link_opens_the_experiment_with_its_plans(page, site):
    back_to(page, 4)
    open_tab(page, "Steering")
    page.get_by_label("Towards").fill("w9 w60")
    page.get_by_label("Away from").fill("w9 w61")
    page.locator("#steering-form").get_by_label("at layer").fill("1")
    press(page, "Steer")
    press(page, "Copy link")
    expect(page).to_have_url(re.compile("view=steering"))
    link = page.evaluate("location.href")
    before = seen_of(page)
    assert before[1] == ["w22", *before[0][len(IDS) :]]
    assert re.search(r"&hash=[0-9a-f]{16}&", link)
    # Opened by somebody for whom the address has other weights by now, who is told.
    page.goto("about:blank")
    page.goto(re.sub(r"hash=[0-9a-f]+", "hash=0123456789abcdef", link))
    page.wait_for_function("document.body.dataset.state === 'ready'", timeout=WAIT)
    expect(page.locator("#notes strong")).to_have_text("The model has changed since the link was made")
    page.wait_for_function("document.querySelectorAll('#tree-view button.changed').length > 1")
    expect(page.locator("#status")).to_contain_text("a second", timeout=WAIT)
    assert seen_of(page) == before
    expect(page.locator("#steering-panel")).to_be_visible()


LOSE = """
from pellucid.device.stream import stream

stream().open().stream.device.destroy()
await lens.run(model, [5, 17]).output.logits.numpy_async()
"""


def test_a_lost_device_takes_the_model_and_not_the_text(page):
    page.get_by_role("textbox", name="Prompt", exact=True).fill(CLEAN)
    press(page, "Generate")
    before = seen_of(page)
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    code = page.locator("#attention-code")
    code.evaluate("details => details.open = true")
    code.get_by_role("textbox").fill(LOSE)
    code.get_by_role("button", name="Run again").click()
    expect(page.locator("#notes strong")).to_have_text(
        "The graphics processor stopped answering", timeout=WAIT
    )
    expect(page.locator("#status")).to_contain_text("load it again, and its text comes back")
    press(page, "Load")
    page.wait_for_function(
        "document.querySelectorAll('#tree-view button.path').length === " + str(len(before[0])), timeout=WAIT
    )
    ready(page)
    path, _, rows = seen_of(page)
    assert path == before[0]
    # The last token is read, too, now.
    assert [row[:-1] for row in rows] == before[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.add_script_tag(path=assets.npm(assets.AXE) / "axe.min.js")
    for tab in page.get_by_role("tab").all():
        tab.click()
        found = page.evaluate("axe.run().then(({ violations }) => violations)")
        bad = [
            (v["id"], [n["html"] for n in v["nodes"]])
            for v in found
            if v["impact"] in ("serious", "critical")
        ]
        assert not bad, f"{tab.inner_text()}: {bad}"


def test_a_reload_brings_the_model_back_without_the_network(page, site):
    page.get_by_role("textbox", name="Prompt", exact=True).fill("w5 w60")
    said = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    assert said["model"] == "/tiny/"
    assert not {"prompt", "ids"} & set(said)
    page.wait_for_function("document.body.dataset.offline === 'true'", timeout=WAIT)
    site.stop()
    page.reload()
    ready(page)
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value("w5 w60")
    press(page, "Generate")
    assert tokens(page)[:2] == ["w5", "w60"]
    page.goto("about:blank")
    page.go_back()
    ready(page)
    expect(page.locator("#summary")).to_contain_text("3 layers")
