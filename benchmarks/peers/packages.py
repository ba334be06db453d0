"""The libraries of the comparison: packages of npm at fixed versions, fetched when they are needed."""

import hashlib
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import assets
import machine
from . import weights
from paths import CACHE, PYTHON

HERE = Path(__file__).parent
ROWS = HERE / "rows.json"
FOLDER = CACHE / "peers"
TOOLS = FOLDER / "python"
GRAPHS = FOLDER / "graphs"

TFJS = (
    assets.Package(
        "@tensorflow/tfjs", "4.22.0", "56505c191e24116787477b3bb5bb1cc0cf1c2bdce8112b9c402a8a2d31cf2f00"
    ),
    assets.Package(
        "@tensorflow/tfjs-backend-webgpu",
        "4.22.0",
        "e60089ded350de2a7ec0b367bd44c62a516da312d69a84a3f2e1aa3bb31c97e6",
    ),
)
JAX = assets.Package(
    "@jax-js/jax", "0.1.25", "6bb85e8f37f497fa0eccf0beb25f1c69225db94e555e82e20a848eaac79db30e"
)
ORT = assets.Package(
    "onnxruntime-web", "1.30.0", "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
)
WLLAMA = assets.Package(
    "@wllama/wllama", "3.8.1", "bbe65fcc6d128d7853aed6d1699db7541e51a0363dc0135b8b68153acbf74670"
)
# Builds of llama.cpp by the backend that they have beside that of the CPU. That for CUDA is older, for it has
# machine code for the H200; later ones have PTX alone for it, and of CUDA 13.1, which older drivers refuse.
LLAMA = {
    "cpu": assets.Package(
        "@node-llama-cpp/linux-x64",
        "3.22.1",
        "0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0",
    ),
    "vulkan": assets.Package(
        "@node-llama-cpp/linux-x64-vulkan",
        "3.22.1",
        "e10577190fc4bd1649d3b655588e5c7a85fc6b6dbf7136fee596cbe9e25521e7",
    ),
    "cuda": assets.Package(
        "@node-llama-cpp/linux-x64-cuda",
        "3.14.5",
        "90308ed45ef12c0b744cec339ca6f096d42f238ef6b752f6115c5073da3eae78",
    ),
}
# Of these packages, what is loaded; the rest belongs to Node.
LLAMA_FILES = ("LICENSE", "bins/*/libggml*.so", "bins/*/libllama.*.so")


@dataclass(frozen=True)
class Peer:
    """A library beside Pellucid.

    Attributes:
        title: what the tables call it.
        adapter: its file in page/adapters, without the ending.
        packages: what it needs from npm.
        files: of these packages, what the page fetches; all else may be missing.
        options: more for its `open`.
        floor: no library, but what the device gives without one.
    """

    title: str
    adapter: str
    packages: tuple[assets.Package, ...] = ()
    files: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    floor: bool = False

    def job(self) -> dict[str, Any]:
        """What the page needs to open it; packages that are missing are fetched."""
        addresses = {package.name: f"/packages/{assets.npm(package).name}/" for package in self.packages}
        version = self.packages[0].version if self.packages else "hand-written"
        return {"adapter": self.adapter, "version": version, "packages": addresses, **self.options}


PEERS = {
    "tfjs": Peer("TensorFlow.js", "tfjs", TFJS, ("dist/tf.min.js", "dist/tf-backend-webgpu.min.js")),
    "jax": Peer("jax-js", "jax", (JAX,), ("dist/*.js",)),
    "ort": Peer(
        "ONNX Runtime Web",
        "ort",
        (ORT,),
        ("dist/ort.jspi.bundle.min.mjs", "dist/ort-wasm-simd-threaded.jspi.*"),
        {"graphs": "/graphs/"},
    ),
    "wllama": Peer("wllama", "wllama", (WLLAMA,), ("esm/index.min.js", "esm/wasm/*.wasm")),
    "wgsl": Peer("WGSL by hand", "wgsl", floor=True),
}


def stamped(stamp: Path, *sources: Path) -> str | None:
    """What to write into a stamp when its work is done, or None where it was done for these sources."""
    wanted = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return None if stamp.exists() and stamp.read_text() == wanted else wanted


def tools() -> Path:
    """The folder with the Python packages onnx and matplotlib, apart from the virtual environment."""
    requirements, stamp = HERE / "requirements.txt", TOOLS / "requirements.sha256"
    if wanted := stamped(stamp, requirements):
        python = PYTHON if PYTHON.exists() else sys.executable
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
        with machine.alone():
            machine.run([*pip, "--target", TOOLS, "--requirement", requirements])
            stamp.write_text(wanted)
    return TOOLS


def outdated() -> str:
    """What to say where graphs lie that do not fit."""
    return (
        f"the graphs in {GRAPHS} were made from another rows.json or graphs.py, so they are made anew, with "
        "the package onnx. If that cannot be fetched here: run `scripts/bench --peers --carry DIR` of this "
        f"version on a machine with network, and copy DIR/graphs to {GRAPHS}; or name the other libraries, "
        "without ort."
    )


def graphs(decoder: bool) -> None:
    """The graphs for ONNX Runtime; with `decoder` also the values of the large one."""
    maker, stamp = HERE / "graphs.py", GRAPHS / "sources.sha256"
    if wanted := stamped(stamp, ROWS, maker):
        if stamp.exists():
            print(f"bench: {outdated()}", file=sys.stderr, flush=True)
        GRAPHS.mkdir(parents=True, exist_ok=True)
        python = PYTHON if PYTHON.exists() else sys.executable
        machine.run([python, maker, ROWS, GRAPHS], {"PYTHONPATH": str(tools())})
        stamp.write_text(wanted)
    if decoder:
        weights.fill(GRAPHS / "llm.json", GRAPHS / "llm.bin")


def carry(names: list[str], target: Path) -> int:
    """Copy what a machine without network needs of the peers: npm/ belongs into its cache/, graphs/ into its
    cache/peers/.

    Returns: the bytes.
    """
    peers = [PEERS[name] for name in names]
    total = sum(_carry(package, peer.files, target) for peer in peers for package in peer.packages)
    if "ort" in names:
        graphs(decoder=False)
        for file in GRAPHS.iterdir():
            if file.suffix != ".bin":  # made there
                total += _copy(file, target / "graphs" / file.name)
    return total


def carry_llama(backend: str, target: Path) -> int:
    """Copy a build of llama.cpp likewise.

    Returns: the bytes.
    """
    return _carry(LLAMA[backend], LLAMA_FILES, target)


def _carry(package: assets.Package, patterns: tuple[str, ...], target: Path) -> int:
    source = assets.npm(package)
    files = [found for pattern in patterns for found in source.glob(pattern)]
    return sum(_copy(file, target / "npm" / source.name / file.relative_to(source)) for file in files)


def _copy(source: Path, target: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return target.stat().st_size
