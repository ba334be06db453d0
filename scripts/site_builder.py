"""Builds the wheel and the static site.

    dist/pellucid-VERSION-py3-none-any.whl   the wheel for everybody
    dist/site/pyodide/                       Pyodide, its lock file, and the wheels that the lock file names
    dist/site/npm/                           what comes from npm: *.mjs as modules; d3.js and plot.js
    dist/site/web/, dist/site/demo/          the pages; dist/site/examples/: the programs of one of them
    dist/site/pellucid-VERSION.tgz           the npm package, for pages of other origins
    dist/site/index.html

Beside what gzip makes a tenth smaller lies it packed, for servers that send such files: `NAME.gz`.

The wheels and the library inside the site also carry bytecode for Pyodide's Python. Run as a program, with
the virtual environment's Python, by scripts/build and by every script that finds the site stale.
"""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bundle

import assets
import bytecode
import machine
import npm_package
from paths import CACHE, DIST, PYTHON, ROOT, SCRIPTS, SITE, TEST_SITE

LIMIT = 35_000_000
MAKERS = tuple(
    f"scripts/{name}.py"
    for name in ("assets", "bundle", "bytecode", "npm_package", "site_builder", "wheel_data")
)
SOURCES = ("pkg", "wgsl", "web", "demo", "examples", "pyproject.toml", "LICENSE", "README.md", *MAKERS)
STAMP = SITE / "sources.sha256"
# pyodide.js is for workers that are no modules, such as JupyterLite's.
RUNTIME_FILES = ("pyodide.mjs", "pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm")
PACKED = {".css", ".html", ".js", ".json", ".mjs", ".py", ".svg", ".ts", ".wasm", ".wgsl"}
SMALL = 1000  # bytes, of which packing saves nothing that one notices
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def fingerprint() -> str:
    """One digest of everything that the site is made from."""
    digest = hashlib.sha256()
    for name in SOURCES:
        top = ROOT / name
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(
                    f"{file.relative_to(ROOT)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
                )
    return digest.hexdigest()


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def ensure() -> Path:
    """The site's folder, built when it is missing or older than its sources."""
    if not (STAMP.exists() and STAMP.read_text() == fingerprint()):
        machine.environment()
        subprocess.run([PYTHON, Path(__file__)], check=True, stdout=sys.stderr)
    return SITE


def build_wheel() -> Path:
    """The wheel for everybody, in dist/."""
    with tempfile.TemporaryDirectory(dir=DIST) as work:
        command = [PYTHON, "-m", "hatchling", "build", "--target", "wheel", "--directory", work]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise machine.SetupError(f"the wheel was not built:\n{done.stdout}{done.stderr}")
        built = next(Path(work).glob("*.whl"))
        target = DIST / built.name
        built.replace(target)
    return target


def newest_wheel() -> Path:
    """The wheel for everybody that was built last."""
    return max(DIST.glob("pellucid-*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def _with_bytecode(archive: Path, folder: Path) -> Path:
    """Put the wheel or the library, with bytecode where a matching Python is found, into `folder`."""
    kept = CACHE / "bytecode" / archive.name
    stamp = kept.with_suffix(".sha256")
    wanted = assets.sha256(archive) + assets.sha256(Path(bytecode.__file__))
    if not (kept.exists() and stamp.exists() and stamp.read_text() == wanted):
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not bytecode.compile_archive(archive, kept):
            print(
                f"build: no Python 3.13 found, so {archive.name} carries no bytecode and is imported more "
                "slowly. Set PELLUCID_PYTHON313 to one.",
                flush=True,
            )
            return Path(shutil.copy(archive, folder))
        stamp.write_text(wanted)
    return Path(shutil.copy(kept, folder))


def write_lock(folder: Path, wheels: list[Path]) -> None:
    """Write `pyodide-lock.json` for the wheels in `folder`; Pyodide's own describes the compiled ones."""
    from pyodide_lock import PyodideLockSpec
    from pyodide_lock.spec import InfoSpec, PackageSpec
    from pyodide_lock.utils import add_wheels_to_spec

    upstream = json.loads((assets.npm(assets.PYODIDE) / "pyodide-lock.json").read_text())
    pure = [wheel for wheel in wheels if wheel.stem.endswith("-none-any")]
    compiled = {}
    for wheel in set(wheels) - set(pure):
        name = wheel.name.split("-")[0]
        entry = {**upstream["packages"][name], "file_name": wheel.name, "sha256": assets.sha256(wheel)}
        compiled[name] = PackageSpec(**entry)
    info = InfoSpec(version=assets.PYODIDE.version, **upstream["info"])
    spec = add_wheels_to_spec(PyodideLockSpec(info=info, packages=compiled), pure, base_path=folder)
    for package in spec.packages.values():
        package.file_name = Path(package.file_name).name  # beside the lock file, wherever that is served
    spec.check_wheel_filenames()
    spec.to_json(folder / "pyodide-lock.json")


def _pyodide(folder: Path, wheel: Path) -> None:
    folder.mkdir()
    package = assets.npm(assets.PYODIDE)
    for name in RUNTIME_FILES:
        shutil.copy2(package / name, folder)  # with its date, by which browsers know what they have compiled
    _with_bytecode(package / "python_stdlib.zip", folder)
    third_party = [assets.numpy_wheel(), *map(assets.wheel, assets.SITE_WHEELS)]
    write_lock(folder, [_with_bytecode(found, folder) for found in (*third_party, wheel)])


def _npm(folder: Path) -> None:
    folder.mkdir()
    for package, file, name in (
        (assets.TOKENIZERS, "dist/tokenizers.min.mjs", "tokenizers.mjs"),
        (assets.JINJA, "dist/index.js", "jinja.mjs"),
        (assets.D3, "dist/d3.min.js", "d3.js"),
        (assets.PLOT, "dist/plot.umd.min.js", "plot.js"),
    ):
        source = assets.npm(package)
        shutil.copy(source / file, folder / name)
        shutil.copy(source / "LICENSE", folder / f"{Path(name).stem}.LICENSE")
    bundle.bundle("codemirror", assets.CODEMIRROR, folder)
    bundle.bundle("three", (assets.THREE,), folder)


def pack(folder: Path) -> None:
    """Write the packed form of what becomes smaller, with the same date, by which browsers know versions."""
    for file in folder.rglob("*"):
        if file.suffix not in PACKED or not file.is_file() or file.stat().st_size < SMALL:
            continue
        packed = gzip.compress(file.read_bytes(), mtime=0)
        if len(packed) < 0.9 * file.stat().st_size:
            target = file.with_name(f"{file.name}.gz")
            target.write_bytes(packed)
            shutil.copystat(file, target)


def build() -> None:
    """Build the wheel and the site; a site that is being served stays whole until the new one is ready."""
    DIST.mkdir(exist_ok=True)
    with machine.alone():
        wanted = fingerprint()
        wheel = build_wheel()
        with tempfile.TemporaryDirectory(dir=DIST) as work:
            site = Path(work, "site")
            site.mkdir(mode=0o755)
            _pyodide(site / "pyodide", wheel)
            _npm(site / "npm")
            for room in ("web", "demo", "examples"):
                if (ROOT / room).is_dir():
                    shutil.copytree(ROOT / room, site / room, ignore=IGNORED)
            for name in ("index.html", "service_worker.js"):  # what a service worker serves lies below it
                shutil.copy(ROOT / "web" / name, site / name)
            shutil.copy(ROOT / "LICENSE", site / "LICENSE")
            npm_package.write(site)
            pack(site)
            (site / STAMP.name).write_text(wanted)
            total = size(site)
            if total > LIMIT:
                raise machine.SetupError(
                    f"the site has {total:,} bytes, more than the {LIMIT:,} that it may have."
                )
            if SITE.exists():
                SITE.rename(Path(work, "old"))
            site.rename(SITE)
    print(f"build: {os.path.relpath(wheel)} ({wheel.stat().st_size:,} bytes)")
    print(
        f"build: {os.path.relpath(SITE)} ({total / 1e6:.1f} MB of at most {LIMIT / 1e6:.0f} MB)", flush=True
    )


def _test_site_fingerprint() -> str:
    return STAMP.read_text() + assets.sha256(SCRIPTS / "assets.py")


def ensure_test_site() -> Path:
    """The folder that pytest-pyodide serves, built when it is missing or older than the site."""
    ensure()
    stamp = TEST_SITE / STAMP.name
    if not (stamp.exists() and stamp.read_text() == _test_site_fingerprint()):
        subprocess.run([PYTHON, Path(__file__), "test-site"], check=True, stdout=sys.stderr)
    return TEST_SITE


def build_test_site() -> None:
    """Build the site's Pyodide with pytest's own wheels in its lock file."""
    with machine.alone():
        shutil.rmtree(TEST_SITE, ignore_errors=True)
        shutil.copytree(SITE / "pyodide", TEST_SITE, ignore=shutil.ignore_patterns("*.gz"))
        for package in assets.TEST_WHEELS:
            shutil.copy(assets.wheel(package), TEST_SITE)
        write_lock(TEST_SITE, sorted(TEST_SITE.glob("*.whl")))
        (TEST_SITE / STAMP.name).write_text(_test_site_fingerprint())


if __name__ == "__main__":
    if sys.argv[1:] == ["test-site"]:
        build_test_site()
    else:
        build()
