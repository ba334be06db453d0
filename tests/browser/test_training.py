"""Training in a page: exact resume from OPFS after a reload, a full disk, damage, a lost device; Ctrl-C."""

from pathlib import Path

import pytest

from browser.test_site import LOAD, run

RUNS = Path(__file__).parent / "training_page" / "runs.py"
STEPS = 16
CODE = "import sys; sys.path.append('/runs'); import runs"


def opened(page, url):
    page.goto(url)
    page.evaluate(LOAD, {})
    page.evaluate("(text) => python.writeFile('/runs/runs.py', text)", RUNS.read_text(encoding="utf-8"))
    done = run(page, CODE)
    assert "error" not in done, done
    return page


class Ran:
    """Calls functions of the page's runs."""

    def __init__(self, page, url):
        self.page, self.url = page, url

    def __call__(self, text):
        outcome = run(self.page, f"await runs.{text}")
        assert "error" not in outcome, outcome["message"]
        return outcome["value"]


@pytest.fixture(scope="module")
def ran(context, servers):
    """All tests share the page."""
    url = servers[True].url
    return Ran(opened(context.new_page(), url), url)


def test_a_run_goes_on_in_the_same_bits_after_a_reload_a_full_disk_and_a_damaged_file(ran):
    whole = ran("trained('a')")
    assert (whole["step"], whole["warned"]) == (STEPS, [])
    entries = ran.page.evaluate("heard.events")
    assert [value["step"] for name, value in entries if name == "training" and "loss" in value] == [
        *range(1, 17)
    ]
    histograms = [value for name, value in entries if name == "histograms"]
    assert [value["step"] for value in histograms] == [4, 8, 12, 16]
    assert sum(histograms[0]["histograms"]["0.weight"]["counts"]) == 32

    # The page is loaded anew: what lies in OPFS is all that is left.
    opened(ran.page, ran.url)
    assert ran("trained('a', 'opfs:a/checkpoint-8')") == whole

    # The newest checkpoint is damaged: an earlier one is taken, and said so.
    run(ran.page, "await runs.spoil('a/checkpoint-16/optimizer.pt')")
    again = ran("trained('a', True)")
    assert (again["step"], again["bits"]) == (STEPS, whole["bits"])
    assert "checkpoint-16/optimizer.pt: is not what was written" in again["warned"][0]

    # The disk is full: every checkpoint but those before is left out, the run goes on to its end.
    for step in (16, 12):
        run(ran.page, f"await runs.spoil('a/checkpoint-{step}/optimizer.pt')")
    control = ran.page.context.new_cdp_session(ran.page)
    origin = ran.url.rstrip("/")
    control.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1})
    full = ran("filled('a')")
    assert (full["step"], full["bits"]) == (STEPS, whole["bits"])
    assert any("No checkpoint of step 12; the run goes on" in text for text in full["warned"]), full["warned"]
    assert "Free some" in full["said"]
    assert "The run is finished and the model is in memory" in full["said"]
    control.send("Storage.overrideQuotaForOrigin", {"origin": origin})
    assert ran("saved_at_last()") == "checkpoint-16"
    assert ran("trained('a', True)")["bits"] == whole["bits"]


def test_a_lost_device_costs_no_finished_checkpoint(ran):
    whole, lost = ran("trained('b')"), ran("lost('c')")
    assert "lost" in lost["said"]
    assert "reset" in lost["said"]
    assert "train(resume_from_checkpoint=True) goes on from the last checkpoint" in lost["said"]
    assert (lost["step"], lost["bits"], lost["warned"]) == (STEPS, whole["bits"], [])


def test_a_tab_that_is_frozen_goes_on_where_it_was(ran):
    """P-094: what a page does that is put to sleep and wakes."""
    whole = ran("trained('d', steps=60, save_strategy='no')")
    page, control = ran.page, ran.page.context.new_cdp_session(ran.page)
    page.evaluate("window.heard.events.length = 0; window.ended = python.run(`await runs.long('e', 60)`); 0")
    page.wait_for_function("heard.events.some(([name]) => name === 'training')")
    control.send("Page.setWebLifecycleState", {"state": "frozen"})
    page.wait_for_timeout(500)
    control.send("Page.setWebLifecycleState", {"state": "active"})
    found = page.evaluate("ended")
    assert (found["step"], found["bits"]) == (60, whole["bits"])


def test_mamba_learns_code_by_heart_and_nothing_leaves_the_page(ran):
    """M-14, M-16, M-23."""
    asked, text = [], "def f(x):\n    return x + 1\n"
    ran.page.on("request", lambda request: asked.append((request.method, request.url)))
    found = ran(f"written({text!r}, 40)")
    assert found["losses"][:12] == sorted(found["losses"][:12], reverse=True), found["losses"]
    assert found["losses"][-1] < 0.1
    assert found["text"] == text
    # Workers of the page ask for its own blobs.
    assert {(how, where.removeprefix("blob:").startswith(ran.url)) for how, where in asked} <= {("GET", True)}


def test_nan_is_named_and_ctrl_c_ends_after_a_step(ran):
    bad = ran("bad_loss('f')")
    assert "the loss is nan at step" in bad["said"]
    assert "Its batch has nan in 0. What to do" in bad["said"]
    assert bad["finite"]

    page = ran.page
    page.evaluate(
        "window.heard.events.length = 0; window.ended = python.run(`await runs.interrupted('g')`); 0"
    )
    page.wait_for_function("heard.events.some(([name]) => name === 'running')")
    page.wait_for_timeout(1500)
    page.evaluate("python.interrupt()")
    found = page.evaluate("ended")
    assert found["stopped"] > 0
    assert found["step"] == found["stopped"] + 5
