"""The derivatives of convolutions: three maps that are linear in two tensors.

Of an image, a weight and a result each is made of the other two, and the derivatives of each map are the
other two maps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...op.declaration import Call, op
from ...op.families import formed
from ...op.kernel import Launch
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..matmul.dense import floats
from .geometry import Geometry, Lengths, Settings, geometry_of, image_of, result_of, weight_of
from .kernels import weight_launches, window_launches

# What each is made of, and the maps once they are declared.
_OF = {"result": ("image", "weight"), "image": ("result", "weight"), "weight": ("image", "result")}
_MAPS: dict[str, Callable[..., Tensor]] = {}


def lengths_of(m: Any, count: int) -> Lengths:
    """The last lengths of a tensor's shape, or of its metadata."""
    return tuple(m.shape[-count:])


def _made(made: str, size: Lengths, groups: int, first: Lengths, second: Lengths) -> Lengths:
    """The shape of what is made."""
    channels = -len(size) - 1
    if made == "weight":
        return second[channels], first[channels] // groups, *size
    return *first[:channels], second[0] if made == "result" else second[1] * groups, *size


def _related(made: str, first: Lengths, second: Lengths, size: Lengths, settings: Settings) -> Geometry:
    shapes = dict(zip(_OF[made], (first, second), strict=True))
    shapes[made] = _made(made, size, settings.groups, first, second)
    return geometry_of(shapes["image"], shapes["weight"], shapes["result"][-len(size) :], settings)


def _of_two(first: Tensor, second: Tensor, size: Lengths, settings: Settings) -> Tensor: ...


def _map(made: str, name: str, launches: Callable, reference: Callable, doc: str, ours: str) -> Callable:
    """Declare one of the three maps."""

    def shapes(call: Call) -> tuple[Lengths, Lengths]:
        return tuple(call["first"].shape), tuple(call["second"].shape)

    def dispatches(call: Call) -> list[Launch]:
        return launches(
            call, _related(made, *shapes(call), call["size"], call["settings"]), "first", "second"
        )

    def derivative(k: int, meta: Any, known: Tensor, g: Tensor, size: Lengths, settings: Settings) -> Tensor:
        given, of = {_OF[made][1 - k]: known, made: g}, _OF[made][k]
        return _MAPS[of](*[given[name] for name in _OF[of]], lengths_of(meta, len(size)), settings)

    _MAPS[made] = op(
        dtype=floats,
        shape=lambda call: Size(_made(made, call["size"], call["settings"].groups, *shapes(call))),
        kernel=dispatches,
        reference=lambda a, b, *given: reference(_related(made, a.shape, b.shape, *given), a, b),
        grad={
            "first": lambda g, first_meta, second, size, settings: derivative(
                0, first_meta, second, g, size, settings
            ),
            "second": lambda g, first, second_meta, size, settings: derivative(
                1, second_meta, first, g, size, settings
            ),
        },
        exports=None,
        ours=ours,
    )(formed(_of_two, name, doc))
    return _MAPS[made]


_BACKWARD = "one of the three results of ATen's convolution_backward"
convolution = _map(
    "result", "convolution", partial(window_launches, transposed=False), result_of,
    "The convolution of an image and a weight whose result has lengths ``size``; see `conv2d`.",
    "lengths of the result are given; `ops.aten` has ATen's form, of conv2d and its like",
)  # fmt: skip
convolution_input = _map(
    "image", "convolution_input", partial(window_launches, transposed=True), image_of,
    "The derivative of `convolution` by its image of lengths ``size``, of that of its result and the weight.",
    _BACKWARD,
)  # fmt: skip
convolution_weight = _map(
    "weight", "convolution_weight", weight_launches, weight_of,
    "The derivative of `convolution` by its weight of lengths ``size``, of the image and that of its result.",
    _BACKWARD,
)  # fmt: skip
