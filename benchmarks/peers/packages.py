"""The libraries of the comparison: packages of npm at fixed versions, fetched when they are needed."""

from dataclasses import dataclass, field
from typing import Any

import assets

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

    def job(self) -> dict[str, Any]:
        """What the page needs to open it: packages by name, with their addresses; what is missing is fetched."""
        addresses = {package.name: f"/packages/{assets.npm(package).name}/" for package in self.packages}
        version = self.packages[0].version if self.packages else "hand-written"
        return {"adapter": self.adapter, "version": version, "packages": addresses, **self.options}


PEERS = {
    "tfjs": Peer("TensorFlow.js", "tfjs", TFJS),
    "jax": Peer("jax-js", "jax", (JAX,)),
}
