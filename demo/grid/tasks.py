"""What networks of the page learn: points of a plane in two classes, and the volumes that they begin with."""

from typing import Any

import numpy as np

EXAMPLES = 192
SIDE = 24  # points of the plane's picture along each axis
WIDTH = 16  # numbers between cells


def examples(task: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points from -1 to 1 and their classes.

    Args:
        task: a key of `TASKS`.
        seed: of the draws.

    Returns:
        float32 (EXAMPLES, 2) and int64 (EXAMPLES,).
    """
    random = np.random.default_rng(seed)
    points, classes = TASKS[task](random)
    return points.astype(np.float32), classes.astype(np.int64)


def plane() -> np.ndarray:
    """All points of the picture, row by row from below: float32 (SIDE * SIDE, 2)."""
    line = np.linspace(-1, 1, SIDE, dtype=np.float32)
    rows, columns = np.meshgrid(line, line, indexing="ij")
    return np.stack([columns.ravel(), rows.ravel()], -1)


def _quarters(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    points = random.uniform(-1, 1, (EXAMPLES, 2))
    return points, points[:, 0] * points[:, 1] > 0


def _rings(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    outer = np.arange(EXAMPLES) % 2
    angle = random.uniform(0, 2 * np.pi, EXAMPLES)
    radius = 0.35 + 0.45 * outer + random.normal(0, 0.06, EXAMPLES)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1), outer


def _spirals(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    arm = np.arange(EXAMPLES) % 2
    along = np.sqrt(random.uniform(0.02, 1, EXAMPLES))
    angle = 3.2 * along * np.pi / 1.6 + np.pi * arm + random.normal(0, 0.06, EXAMPLES)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], -1), arm


TASKS = {"exclusive or": _quarters, "rings": _rings, "spirals": _spirals}


def _dense(place: tuple[int, int, int], activation: str = "tanh", inputs: int = WIDTH, outputs: int = WIDTH):
    z, y, x = place
    sizes = {"input_height": inputs, "output_height": outputs}
    return {"z": z, "y": y, "x": x, "l": 0, "type": "dense", **sizes, "activation": activation}


def _cell(place: tuple[int, int, int], **fields: Any) -> dict[str, Any]:
    z, y, x = place
    return {"z": z, "y": y, "x": x, "l": 0, **fields}


def _mixed() -> list[dict[str, Any]]:
    branch = {"type": "dense", "d_model": WIDTH}
    return [
        _dense((0, 0, 0), inputs=2),
        _cell((0, 0, 1), type="layer_norm", d_model=WIDTH),
        _dense((0, 0, 2), "gelu"),
        _cell((0, 1, 0), type="residual", sequential_layers=[branch | {"activation": "relu"}]),
        _cell((0, 1, 1), type="parallel", combine_mode="avg", parallel_branches=[
            branch | {"activation": "tanh"}, branch | {"activation": "silu"},
        ]),
        _cell((0, 1, 2), type="rms_norm", d_model=WIDTH),
        _cell((1, 0, 0), type="swiglu", d_model=WIDTH, output_height=2 * WIDTH),
        _dense((1, 0, 1)),
        _cell((1, 0, 2), type="layer_norm", d_model=WIDTH),
        _dense((1, 1, 0)),
        _cell((1, 1, 1), type="residual", sequential_layers=[branch | {"activation": "tanh"}]),
        _dense((1, 1, 2), "linear", outputs=2),
    ]  # fmt: skip


def _deep() -> list[dict[str, Any]]:
    places = [(z, y, x) for z in range(3) for y in range(3) for x in range(3)]
    inner = [_dense(place) for place in places[1:-1]]
    return [_dense(places[0], inputs=2), *inner, _dense(places[-1], "linear", outputs=2)]


def _small() -> list[dict[str, Any]]:
    return [
        _dense((0, 0, 0), inputs=2),
        _dense((0, 0, 1)),
        _dense((1, 0, 0)),
        _dense((1, 0, 1), "linear", outputs=2),
    ]


_SKIP = {"source": [0, 0, 0, 0], "target": [1, 1, 2, 0]}
_BACK = {"source": [1, 1, 0, 0], "target": [0, 0, 2, 0]}
_TWELVE = {"depth": 2, "rows": 2, "cols": 3, "layers": _mixed()}
NETWORKS: dict[str, dict[str, Any]] = {
    "twelve cells of many types": _TWELVE,
    "the same with remote links": {**_TWELVE, "links": [_SKIP, _BACK]},
    "four dense cells": {"depth": 2, "rows": 1, "cols": 2, "layers": _small()},
    "27 dense cells": {"depth": 3, "rows": 3, "cols": 3, "layers": _deep()},
}
