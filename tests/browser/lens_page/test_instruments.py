"""The instruments of the lens page as a person uses them, beside the same computed natively; axe."""

import re
import struct
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from browser.lens_page.page import (
    CLEAN,
    COUNT,
    IDS,
    back_to,
    open_tab,
    other_prompt,
    picture,
    said,
    table,
    tokens,
)
from browser.pages import WAIT, press, ready
from models.tiny import loaded, ours
from pellucid import lens

import assets


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
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#attention-view h3")).to_have_text(f"Layer {len(seen) - 2}, head 1")
    page.locator("#attention-view canvas.head").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#attention-view .told")).to_contain_text("looks at")


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
    # The picture that is saved is all of the canvas, whose lowest part is the scale.
    canvas = page.locator("#patching-view canvas")
    expect(canvas).to_have_accessible_name(re.compile(r"Colours go from .*\. Arrow keys"))
    width, height = struct.unpack(">2I", picture(page, "patching", "png")[16:24])
    assert [width, height] == canvas.evaluate("({ width, height }) => [width, height]")

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
    drawn = picture(page, "ranks", "svg").decode()
    assert all(f">{name}<" in drawn for name in list(table(page, "ranks")[0])[1:])  # beside their colours
    assert "rank, from 1 through" in drawn


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
    tab, row = (page.get_by_role(role, name=name) for role, name in (("tab", "Steering"), ("tablist", None)))
    page.set_viewport_size({"width": 390, "height": 844})  # the open tab stays in sight
    page.wait_for_function("row => row.scrollLeft > 0", arg=row.element_handle())
    expect(tab).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 720})
    layer = page.get_by_label("at layer")
    assert int(layer.input_value()) < len(model.model.layers)
    layer.fill("1")
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
