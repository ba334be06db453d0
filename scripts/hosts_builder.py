"""Builds other hosts of Python beside the site: JupyterLite, a page of PyScript, and marimo's environment.

    dist/hosts/jupyterlite/   JupyterLite, whose kernel loads Pyodide and Pellucid from the site
    dist/hosts/pyscript/      a page, likewise
    cache/hosts/venv/         what builds JupyterLite, and marimo

Nothing of them reaches for the network. They lie on the server of the site, which is at `/` unless told.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import assets
import machine
from paths import CACHE, DIST, ROOT

ENVIRONMENT = CACHE / "hosts" / "venv"
REQUIREMENTS = ROOT / "requirements-hosts.txt"
EXAMPLES = ROOT / "demo" / "hosts"
WHEELS = EXAMPLES / "jupyterlite" / "requirements.txt"
JUPYTERLITE = DIST / "hosts" / "jupyterlite"
PYSCRIPT = DIST / "hosts" / "pyscript"
STAMP = ENVIRONMENT / "requirements.sha256"
# The kernel installs a package of this name, which Pyodide has on its CDN alone. IPython works without it,
# and then keeps no history; so this one is empty.
ABSENT = "sqlite3"


def _wanted() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def is_ready() -> bool:
    """Whether the environment is there, with what is pinned now."""
    return STAMP.exists() and STAMP.read_text() == _wanted()


def environment() -> Path:
    """The folder of the environment's programs, made where it is missing or old."""
    if not is_ready():
        with machine.alone():
            machine.run([sys.executable, "-m", "venv", ENVIRONMENT])
            pip = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "--quiet"]
            machine.run([*pip, "--disable-pip-version-check", "--requirement", REQUIREMENTS])
            STAMP.write_text(_wanted())
    return ENVIRONMENT / "bin"


def _wheels() -> list[Path]:
    """What JupyterLite's kernel needs inside the page."""
    digest = hashlib.sha256(WHEELS.read_bytes()).hexdigest()[:16]
    folder = CACHE / "hosts" / f"wheels-{digest}"
    if not folder.exists():
        with machine.alone(), tempfile.TemporaryDirectory(dir=CACHE) as work:
            command = [ENVIRONMENT / "bin" / "python", "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--python-version", "3.13", "--platform", "any"]
            machine.run([*command, "--dest", work, "--requirement", WHEELS])
            _empty_wheel(Path(work), ABSENT)
            shutil.copytree(work, folder)
    return sorted(folder.glob("*.whl"))


def _empty_wheel(folder: Path, name: str) -> None:
    with zipfile.ZipFile(folder / f"{name}-0.0.0-py3-none-any.whl", "w") as archive:
        about = f"{name}-0.0.0.dist-info"
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.0\n")
        archive.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: pellucid\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{about}/RECORD", "")


def jupyterlite(site: str = "") -> Path:
    """Build JupyterLite with the example; `site` is the site's address without the final slash."""
    programs = environment()
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        source = EXAMPLES / "jupyterlite"
        settings = (source / "jupyter-lite.json").read_text(encoding="utf-8").replace("SITE", site)
        Path(work, "jupyter-lite.json").write_text(settings, encoding="utf-8")
        Path(work, "contents").mkdir()
        shutil.copy(source / "lens.ipynb", Path(work, "contents"))
        options = ["--lite-dir", work, "--contents", Path(work, "contents"), "--output-dir", JUPYTERLITE]
        options += ["--apps", "repl", "--apps", "notebooks", "--no-sourcemaps", "--no-unused-shared-packages"]
        for wheel in _wheels():
            options += ["--piplite-wheels", wheel]
        shutil.rmtree(JUPYTERLITE, ignore_errors=True)
        path = {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}
        machine.run([programs / "jupyter", "lite", "build", *options], path, Path(work))
    return JUPYTERLITE


def pyscript(site: str = "") -> Path:
    """Put the page of PyScript together."""
    shutil.rmtree(PYSCRIPT, ignore_errors=True)
    shutil.copytree(EXAMPLES / "pyscript", PYSCRIPT)
    shutil.copytree(assets.npm(assets.PYSCRIPT) / "dist", PYSCRIPT / "core")
    page = PYSCRIPT / "index.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace('"/pyodide/', f'"{site}/pyodide/').replace('"/web/', f'"{site}/web/'))
    return PYSCRIPT
