"""Programs of another package, unedited, in the page: results and gradients are those of PyTorch."""

import subprocess
import sys
import zipfile
from pathlib import Path

import einops

from paths import ROOT, SCRIPTS

PROGRAMS = ("einops", "distributions")
FOLDER = ROOT / "tests" / "compat"


def test_programs_run_in_the_page(tmp_path):
    script = str(FOLDER / "programs.py")
    subprocess.run([sys.executable, script, "torch", str(tmp_path / "x"), *PROGRAMS], check=True, timeout=120)
    package = Path(einops.__file__).parent
    with zipfile.ZipFile(tmp_path / "einops.zip", "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, file.relative_to(package.parent))
    words = [
        sys.executable, SCRIPTS / "browser", FOLDER / "page.py", "--mount", tmp_path,
        "--packages", "numpy,pellucid,micropip,packaging", "--", "einops.zip", *PROGRAMS,
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    differences = dict(line.split(": ") for line in done.stdout.splitlines())
    assert differences.keys() == {*PROGRAMS}
    assert all(float(value) < 1e-4 for value in differences.values()), done.stdout
