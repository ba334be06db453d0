"""Examples in the page at reduced size, in turns: each learns, with one submission a step, and draws."""

import base64
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from turns import in_turn

from paths import ROOT, SCRIPTS

PROGRAM = Path(__file__).parent / "examples_page" / "page.py"
EXAMPLES = ROOT / "examples"
# Sizes at which a step is short; and which share of the first losses' mean the last ones' is below.
SMALL = {
    "nano_gpt": ({"steps": 14, "batch": 8, "context": 6, "width": 16, "layers": 1}, 0.98),
    "induction_heads": ({"steps": 36, "batch": 8, "letters": 4, "length": 6, "width": 16}, 0.95),
    "digits": ({"steps": 24, "batch": 16, "width": 4}, 0.98),
    "diffusion": ({"steps": 30, "batch": 64, "width": 32}, 0.95),
    "diffusion_digits": ({"steps": 60, "batch": 64, "width": 64, "depth": 1}, 0.9),
    "vae": ({"steps": 30, "batch": 16, "width": 32}, 0.9),
    "superposition": ({"steps": 40, "batch": 128}, 0.6),
    "reinforce": ({"steps": 10, "carts": 16, "moments": 40}, 0.8),
    "pinn": ({"steps": 15, "batch": 32, "width": 16}, 0.9),
    "adversarial": ({"steps": 30, "batch": 16, "width": 16}, 0.99),
    "grad_cam": ({"steps": 12, "batch": 8, "width": 4, "scraps": 0}, 0.9),
    "lstm": ({"steps": 20, "batch": 8, "length": 8, "width": 8}, 0.95),
    "word_vectors": ({"steps": 30, "batch": 64, "width": 8}, 0.95),
    "gan": ({"steps": 60, "batch": 16, "width": 16}, 0.98),
    "graph": ({"steps": 20, "width": 8}, 0.9),
    "neural_ode": ({"steps": 15, "batch": 16, "length": 2, "width": 16}, 0.85),
}
# What a run has; tests/examples runs all natively.
NAMES = [name for k, name in enumerate(SMALL) if in_turn(k, 3)]


@pytest.fixture(scope="module")
def ran():
    """What each example yielded in the page."""
    table = json.dumps({name: SMALL[name][0] for name in NAMES})
    command = [
        sys.executable, SCRIPTS / "browser", PROGRAM, "--package", EXAMPLES, "--mount", EXAMPLES, "--", table,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=320)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


def test_every_example_has_its_turn(ran):
    assert list(ran) == NAMES
    assert set(SMALL) == set(json.loads((EXAMPLES / "list.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_learns_in_the_page(ran, name):
    losses = ran[name]["losses"]
    assert np.mean(losses[-5:]) < SMALL[name][1] * np.mean(losses[:3]), losses
    # Each step, once captured, is one submission of some dispatches, as many at every step of a kind.
    steps = ran[name]["steps"]
    assert 1 <= len(steps) <= 2, steps
    assert all(submits == 1 and dispatches > 20 for submits, dispatches in steps)


def is_drawn(svg: str) -> bool:
    """Whether a picture has marks: an image of more than one colour, points at some heights, or a word."""
    for address in re.findall(r"base64,([^\"]*)", svg):
        data = base64.b64decode(address)
        at = data.index(b"IDAT")
        rows = zlib.decompress(data[at + 4 : at + 4 + int.from_bytes(data[at - 4 : at], "big")])
        if len(set(rows)) > 2:  # a filter's byte of 0 begins each row
            return True
    places = set()
    for mark in ElementTree.fromstring(svg).iter():
        if mark.get("class") == "mono" and mark.text:
            return True
        places |= {mark.get("cy")} | {xy.partition(",")[2] for xy in mark.get("points", "").split()}
    return len(places - {None}) > 2


@pytest.mark.parametrize("name", NAMES)
def test_pictures_of_an_example_show_something(ran, name):
    assert ran[name]["pictures"]
    for title, svg in ran[name]["pictures"]:
        assert "nan" not in re.sub('base64,[^"]*', "", svg), title
        assert is_drawn(svg), title
