"""The real SmolLM2 beside transformers, natively and in headless Chromium: greedy ids and logits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import assets
from paths import ROOT, SCRIPTS

PROGRAM = Path(__file__).parent / "page_tokens.py"
RECORDED = ROOT / "tests" / "golden" / "smollm2_tokens.json"
PROMPTS = json.loads(RECORDED.read_text(encoding="utf-8"))["prompts"]


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and the recorded values."""
    folder = tmp_path_factory.mktemp("smollm2")
    file = assets.weights()
    (folder / file.name).symlink_to(file)
    (folder / RECORDED.name).symlink_to(RECORDED)
    return folder


def agrees(mount: Path, *options: str, prompts: str, arguments: tuple[str, ...] = ()) -> None:
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--mount", mount, "--timeout=280", *options]
    done = subprocess.run([*command, "--", "--prompts", prompts, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"prompts": len(prompts.split(",")), "failures": 0}


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.turns(3)
@pytest.mark.parametrize("prompt", ["long", "chat", "single"])
def test_greedy_text_natively(mount, prompt):
    agrees(mount, "--native", prompts=prompt, arguments=("--new", "4"))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.turns(2)
@pytest.mark.parametrize("prompt", ["plain", "code"])
def test_greedy_text_in_a_page(mount, prompt):
    agrees(mount, prompts=prompt, arguments=("--new", "4"))


def test_the_recorded_prompts_are_clear_enough_to_tell():
    """Most steps of every prompt are decided by more than rounding."""
    for row in PROMPTS.values():
        assert len(row["new_ids"]) == len(row["leads"]) == 16
        assert sum(lead > 0.05 for lead in row["leads"]) >= 12
