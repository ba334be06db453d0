"""Real models in one page, each used for what it is made for, and what they say looked at."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import assets
from paths import SCRIPTS

PROGRAM = Path(__file__).with_name("uses_in_page.py")
# What lies where: the package, the file in its wheel, the name that the program knows.
FILES = [
    (assets.MINILM, assets.MINILM_FOLDER, "minilm/"),
    (
        assets.WORDLLAMA,
        "wordllama/weights/l2_supercat_256.safetensors",
        "wordllama/l2_supercat_256.safetensors",
    ),
    (assets.WORDLLAMA, "wordllama/tokenizers/l2_supercat_tokenizer_config.json", "wordllama/tokenizer.json"),
    (assets.MAGIKA, "magika/models/standard_v3_3/", "magika/"),
]


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """A folder with the models."""
    for package, source, target in FILES:
        with zipfile.ZipFile(assets.wheel(package)) as wheel:
            for name in wheel.namelist():
                if name.startswith(source) and not name.endswith("/"):
                    path = tmp_path / (target + name.removeprefix(source))
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(wheel.read(name))
    file = assets.weights()
    (tmp_path / file.name).symlink_to(file)
    return tmp_path


@pytest.mark.slow
@pytest.mark.browser
def test_a_chat_searches_and_labels_in_a_page(mount):
    command = [sys.executable, SCRIPTS / "browser", PROGRAM, "--mount", mount, "--timeout=280"]
    done = subprocess.run([*command, "--packages=numpy,pellucid,protobuf"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {}
    for line in done.stdout.splitlines():
        said |= json.loads(line.partition(" s ")[2])
    assert said["chat"] == {"role": "assistant", "content": "The capital of France is Paris."}
    assert said["search"] == said["words"] == [0, 1, 2]
    assert said["labels"] == ["animals", "finance", "sports"]
    names = json.loads((mount / "magika" / "config.min.json").read_text())["target_labels_space"]
    assert [names[k] for k in said["kinds"]] == ["python", "html", "json"]
