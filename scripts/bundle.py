"""Makes one ES module of npm packages that import each other, by esbuild.

`NAME.mjs` of this folder says which names. The result is kept in cache/npm: it is made once for each choice
of versions.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import assets
import machine
from paths import SCRIPTS


def bundle(name: str, packages: Sequence[assets.Package], folder: Path) -> None:
    """Write `NAME.mjs` and `NAME.LICENSE` into a folder."""
    entry = SCRIPTS / f"{name}.mjs"
    sums = [package.sha256 for package in (assets.ESBUILD, *packages)]
    digest = hashlib.sha256("\n".join([entry.read_text(), *sums]).encode()).hexdigest()
    kept = assets.NPM / f"{name}-{digest[:16]}.mjs"
    if not kept.exists():
        with machine.alone():
            _make(entry, packages, kept)
    shutil.copy(kept, folder / f"{name}.mjs")
    licences = [f"{p.name} {p.version}\n\n{(assets.npm(p) / 'LICENSE').read_text()}" for p in packages]
    (folder / f"{name}.LICENSE").write_text("\n".join(licences))


def _make(entry: Path, packages: Sequence[assets.Package], target: Path) -> None:
    machine.node()
    esbuild = assets.npm(assets.ESBUILD) / "bin" / "esbuild"
    with tempfile.TemporaryDirectory(dir=assets.NPM) as work:
        for package in packages:
            link = Path(work, "node_modules", package.name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(assets.npm(package))
        shutil.copy(entry, work)
        made = Path(work, "made.mjs")
        # Resolved through the links: packages find each other beside themselves, not where they are kept.
        options = ["--bundle", "--format=esm", "--minify", "--legal-comments=none", "--preserve-symlinks"]
        command = ["node", esbuild, entry.name, *options, "--log-level=warning", f"--outfile={made}"]
        done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise machine.SetupError(f"esbuild did not bundle {entry.name}:\n{done.stderr}")
        made.rename(target)
