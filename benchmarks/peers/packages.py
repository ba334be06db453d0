"""The libraries of the comparison: packages of npm at fixed versions, fetched when they are needed."""

from dataclasses import dataclass, field
from typing import Any

import assets

TFJS = (
    assets.Package(
        "@tensorflow/tfjs-core", "4.22.0", "e8f8aa285ad0237b901e7d79995a1450993cf11fb1b3cc02f09de167fdaf9496"
    ),
    assets.Package(
        "@tensorflow/tfjs-backend-cpu",
        "4.22.0",
        "d3c32e2fe0452fe302e88dde434cd8d7b126ce21754c6c972b28e3bcb8ec0878",
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


@dataclass(frozen=True)
class Peer:
    """A library beside Pellucid.

    Attributes:
        title: what the tables call it.
        adapter: its file in page/adapters, without the ending.
        packages: what it needs from npm.
        options: more for its `open`.
    """

    title: str
    adapter: str
    packages: tuple[assets.Package, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def install(self) -> dict[str, str]:
        """Fetch what is missing; the address of each package in the page, by name."""
        return {package.name: f"/packages/{assets.npm(package).name}/" for package in self.packages}


PEERS = {"tfjs": Peer("TensorFlow.js", "tfjs", TFJS)}
