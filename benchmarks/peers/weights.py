"""Fills the values of the decoder that ONNX Runtime runs: random ones, for only its speed is measured.

Nothing but the standard library is used, so that the 200 MB can be made where they are needed.
"""

import json
import random
from array import array
from pathlib import Path

CHUNK = 1 << 16


def pattern(filling: str, scale: float, chance: random.Random) -> bytes:
    """What a stretch of values is made of by repetition."""
    match filling:
        case "random":
            return chance.randbytes(CHUNK)
        case "eights":
            return b"\x88" * CHUNK
        case "constant":
            return array("f", [scale] * (CHUNK // 4)).tobytes()
        case "ones":
            return array("f", [1.0] * (CHUNK // 4)).tobytes()
        case "floats":
            return array("f", [chance.uniform(-scale, scale) for _ in range(CHUNK // 4)]).tobytes()
    raise ValueError(
        f"weights: filling {filling!r} is unknown. Use random, eights, constant, ones or floats."
    )


def fill(listing: Path, target: Path) -> None:
    """Write the file that a listing of `graphs.py` describes; done already if it has the size."""
    parts = json.loads(listing.read_text())
    if target.exists() and target.stat().st_size == sum(part["bytes"] for part in parts):
        return
    chance = random.Random(0)
    with target.open("wb") as file:
        for part in parts:
            chunk = pattern(part["filling"], part["scale"], chance)
            whole, rest = divmod(part["bytes"], len(chunk))
            for _ in range(whole):
                file.write(chunk)
            file.write(chunk[:rest])
