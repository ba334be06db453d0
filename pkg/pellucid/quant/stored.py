"""How checkpoints of safetensors store a quantized weight: as tensors beside each other.

``quantization_config`` of ``config.json`` has a ``quant_method``, and a layer ``name`` has tensors such as
``name.qweight`` and ``name.scales`` where it would have ``name.weight``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..tensors.tensor import Tensor
from .activations import DynamicQuantization

Settings = Mapping[str, Any]  # the quantization_config, which nobody has checked
WANTED = "_shape"  # among them: the shape of the model's parameter, where it has one of the name
Shapes = Mapping[str, tuple[int, ...]]  # of tensors, by what follows the layer's name


class Expected(NamedTuple):
    """What a tensor must hold that is not loaded: a permutation that there is not, zero points of zero.

    Args:
        dtype: of its elements in the file.
        holds: elements, shape of the weight and settings to whether it does.
        otherwise: what to say if not.
    """

    dtype: str
    holds: Callable[[np.ndarray, tuple[int, int], Settings], bool]
    otherwise: str


@dataclass(frozen=True)
class Stored:
    """One way in which checkpoints store weights of a format.

    Args:
        methods: what ``quant_method`` may be.
        tensors: the tensors of a weight, by what follows the layer's name, and the dtypes that each may have,
            by our names (U32 of safetensors is "uint32").
        shape: their shapes and the settings to (rows, columns) of the weight. Raises FormatError, with what
            is wrong, where the format or the settings are others than it knows.
        when: what settings must be, by key: one of these, where None is one that is not set. Of the ways of a
            method those are tried whose settings these are.
        planes: the tensors and the settings to the planes of the weight, by ops, on whichever device.
        expected: tensors that may be there, too.
        ignored: tensors that may be there and do not matter.
        separator: what stands between the name of a layer and those of its tensors.
        state: a tensor that is JSON, an object whose keys stand among the settings of the weight.
        activations: the settings to how a layer rounds its input; None if it does not.
    """

    methods: tuple[str, ...]
    tensors: Mapping[str, tuple[str, ...]]
    shape: Callable[[Shapes, Settings], tuple[int, int]]
    planes: Callable[[Mapping[str, Tensor], Settings], Sequence[Tensor]]
    when: Mapping[str, tuple] = field(default_factory=dict)
    expected: Mapping[str, Expected] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    separator: str = "."
    state: str = ""
    activations: Callable[[Settings], DynamicQuantization | None] = lambda settings: None

    def unread(self, settings: Settings) -> list[str]:
        """The keys of settings that this is not the way of."""
        # Of the same type, too: 1 is not True.
        given = {key: settings.get(key) for key in self.when}
        return [k for k, v in given.items() if not any(type(v) is type(w) and v == w for w in self.when[k])]
