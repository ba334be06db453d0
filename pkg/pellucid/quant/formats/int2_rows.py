"""Ternary weights with a scale per row: BitNet, as transformers packs it.

A byte holds one number of each quarter of the rows. There is one scale for all: ``bitlinear`` divides by it,
``autobitlinear`` multiplies. These layers round activations to 8 bits.

Source: Ma et al. 2024, "The Era of 1-bit LLMs"
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.tensor import Tensor
from ..activations import DynamicQuantization
from ..format import ROW, UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored

_EACH = 4  # numbers of a byte


def _shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    weight, scale = shapes["weight"], shapes["weight_scale"]
    if len(weight) != 2 or weight[1] % UNIT or scale not in ((1,), ()):
        raise FormatError(
            f"weight of shape {weight} and weight_scale of shape {scale} are not rows of whole {UNIT} "
            "columns and one number."
        )
    return _EACH * weight[0], weight[1]


def _planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    bytes_, scale = tensors["weight"], tensors["weight_scale"].float()
    places = bytes_.new_tensor([2 * i for i in range(_EACH)]).view(-1, 1, 1)
    rows = (bytes_ >> places & 3).flatten(0, 1).unflatten(1, (-1, _EACH))
    quants = rows[..., 0]
    for i in range(1, _EACH):
        quants = quants | rows[..., i] << 2 * i
    if settings.get("linear_class") != "autobitlinear":
        scale = 1 / scale
    return [quants.contiguous(), scale.reshape(1).expand(rows.shape[0]).contiguous()]


def _values(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    numbers = quants[..., None] >> np.arange(0, 8, 2, dtype=np.uint8) & np.uint8(3)
    return scales.view(np.float32) * (numbers.reshape(*quants.shape[:2], UNIT).astype(np.float32) - 1)


INT2 = QuantFormat(
    name="int2_rows",
    planes=(Plane("quants", UNIT // _EACH), Plane("scales", 4, ROW)),
    values=_values,
    stored=(
        Stored(
            methods=("bitnet",),
            tensors={"weight": ("uint8",), "weight_scale": ("float32", "float16", "bfloat16")},
            shape=_shape,
            planes=_planes,
            when={
                "linear_class": (None, "bitlinear", "autobitlinear"),
                "quantization_mode": (None, "offline"),
                "use_rms_norm": (None, False),
            },
            activations=lambda settings: DynamicQuantization("int8", 127.0, least=1e-5 / 127),
        ),
    ),
)
