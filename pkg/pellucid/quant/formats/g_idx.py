"""2, 3, 4 or 8 bits with a scale and a zero point for the group that a column names, as GPTQ has them.

GPTQ with ``desc_act`` (act_order) quantizes columns in the order of their importance, so those of a group lie
anywhere. Numbers lie one behind another, also across words: 32 of 3 bits are three words.

Source: Frantar et al. 2022, "GPTQ"; https://github.com/AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import float32, int16, uint8
from ...tensors.tensor import Tensor
from ..activations import of_compressed_tensors, of_torchao
from ..format import UNIT, Plane, QuantFormat
from ..stored import Expected, Settings, Shapes, Stored
from .int4_groups import GPTQ, IN_ORDER, NO_BIAS, group_index, is_version_1
from .int8_rows import NO_ZEROS, plain_names

_TENSORS = {"qweight": ("int32",), "qzeros": ("int32",), "scales": ("float16", "bfloat16", "float32")}
_INDEX = {"g_idx": ("int32",)}


def numbers(words: Tensor, bits: int) -> Tensor:
    """Words (n, m) as integers (n, 32 m / bits), the lowest bits first."""
    parts = words.contiguous().view(uint8)
    if bits == 8:
        return parts.int()
    bytes_ = parts.unflatten(-1, (-1, bits)).int()  # of 8 numbers
    joined = bytes_[..., 0]
    for i in range(1, bits):
        joined = joined | bytes_[..., i] << 8 * i
    places = bytes_.new_tensor([bits * i for i in range(8)])
    return (joined.unsqueeze(-1) >> places & (1 << bits) - 1).flatten(-2)


def planes(quants: Tensor, scales: Tensor, zeros: Tensor, index: Tensor) -> list[Tensor]:
    """The planes of numbers in their place, of scales and zero points (rows, groups), and of the columns'
    groups."""
    rows, groups = scales.shape
    units = index.shape[0] // UNIT
    every = scales.new_zeros(rows, units, dtype=float32)
    every[:, :groups] = scales.float()
    points = zeros.new_zeros(rows, units, dtype=int16)
    points[:, :groups] = zeros.to(int16)
    return [quants, every, points, index.to(int16)]


def in_range(index: np.ndarray, shape: tuple[int, int], settings: Settings) -> bool:
    """Whether columns name groups that there are."""
    return index.min() >= 0 and index.max() < _groups(settings, shape[1])


_IN_RANGE = Expected("int32", in_range, "columns name groups that there are not")


def _groups(settings: Settings, columns: int) -> int:
    """Groups of columns, the last of which may be smaller.

    Raises:
        FormatError: there are more than units.
    """
    size = settings.get("group_size")
    size = -1 if size is None else size
    if type(size) is not int or (size != -1 and size < UNIT):
        raise FormatError(f"group_size {str(size)[:80]} is not read; {UNIT} and more can be, or -1.")
    return 1 if size == -1 else -(-columns // size)


def _shape(bits: int) -> Callable:
    def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
        words, zeros, scales = shapes["qweight"], shapes["qzeros"], shapes["scales"]
        if len(words) == 2:
            columns, rows = words[0] * 32 // bits, words[1]
            groups = _groups(settings, columns)
            whole = not (words[0] * 32 % bits or columns % UNIT or rows * bits % 32)
            fit = scales == (groups, rows) and zeros == (groups, rows * bits // 32)
            if whole and fit and shapes.get("g_idx", (columns,)) == (columns,):
                return rows, columns
        raise FormatError(
            f"qweight, qzeros, scales and g_idx of shapes {words}, {zeros}, {scales} and "
            f"{shapes.get('g_idx')} do not belong together, or columns are not in units of {UNIT}."
        )

    return shape


def _gptq(bits: int) -> Callable:
    def made(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
        words, index = tensors["qweight"].t().contiguous(), tensors.get("g_idx")
        zeros = numbers(tensors["qzeros"], bits)
        if is_version_1(settings):
            zeros = zeros + 1
        if index is None:
            index = words.new_tensor(group_index(settings, words.shape[1] * 32 // bits))
        return planes(words, tensors["scales"].t(), zeros.t(), index)

    return made


def _values(bits: int) -> Callable:
    def values(quants: np.ndarray, scales: np.ndarray, zeros: np.ndarray, groups: np.ndarray) -> np.ndarray:
        rows = quants.shape[0]
        found = np.unpackbits(quants.reshape(rows, -1), axis=1, bitorder="little").reshape(rows, -1, bits)
        q = np.packbits(found, axis=2, bitorder="little")[..., 0].astype(np.float32)
        index = groups.view(np.uint16).reshape(-1)
        d = scales.view(np.float32)[:, index, 0]
        return d * (q - zeros.view(np.uint16)[:, index, 0])

    return values


def _ways(bits: int) -> tuple[Stored, ...]:
    """GPTQ with columns that name their groups; and without, for which 4 bits have a format of their own."""
    parts = {"methods": ("gptq",), "shape": _shape(bits), "planes": _gptq(bits)}
    ordered = Stored(
        **parts,
        tensors=_TENSORS | _INDEX,
        when={**GPTQ, "bits": (bits,), "desc_act": (True,)},
        expected={
            "g_idx": _IN_RANGE,
            "bias": NO_BIAS,
        },
    )
    plain = Stored(
        **parts,
        tensors=_TENSORS,
        when={**GPTQ, "bits": (bits,), "desc_act": (None, False)},
        expected={"g_idx": IN_ORDER, "bias": NO_BIAS},
    )
    return (ordered,) if bits == 4 else (ordered, plain)


# Of compressed-tensors numbers and zero points are signed, and packed they are more by half of 2^bits.
_FLOATS = ("float32", "float16", "bfloat16")


def _compressed_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    bits = settings["num_bits"] if "weight_packed" in shapes else 8
    words = shapes.get("weight_packed", shapes.get("weight", ()))
    scales, zeros = shapes["weight_scale"], shapes.get("weight_zero_point")
    if len(words) == 2:
        rows, columns = words[0], words[1] * (32 // bits if "weight_packed" in shapes else 1)
        groups = _groups(settings, columns)
        points = (rows * bits // 32, groups) if "weight_packed" in shapes else (rows, groups)
        fit = scales == (rows, groups) and zeros in (None, points) and not columns % UNIT
        if fit and shapes.get("weight_g_idx", (columns,)) == (columns,):
            return rows, columns
    raise FormatError(
        f"tensors of shapes {', '.join(map(str, shapes.values()))} do not belong together, or columns are "
        f"not in units of {UNIT}."
    )


def _compressed(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    scales, zeros = tensors["weight_scale"], tensors.get("weight_zero_point")
    if "weight_packed" in tensors:
        quants, bits = tensors["weight_packed"], settings["num_bits"]
        columns = quants.shape[1] * 32 // bits
        points = None if zeros is None else numbers(zeros.t(), bits).t()
    else:
        quants, bits = (tensors["weight"].int() + 128).to(uint8), 8
        columns = quants.shape[1]
        points = None if zeros is None else zeros.int() + 128
    if points is None:
        points = quants.new_full(scales.shape, 1 << bits - 1, dtype=int16)
    index = tensors.get("weight_g_idx")
    if index is None:
        size = settings.get("group_size")
        index = quants.new_tensor(np.arange(columns) // (size if size and size > 0 else columns), dtype=int16)
    return planes(quants.contiguous(), scales, points, index)


def _torchao_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    """That of the numbers; groups are as many as there are scales of a row."""
    parts = plain_names(shapes)
    weight, scales = parts["weight"], parts["weight_scale"]
    if len(weight) == len(scales) == 2 and scales[1] and not weight[1] % (UNIT * scales[1]):
        return _compressed_shape(parts, {"group_size": weight[1] // scales[1]})
    raise FormatError(f"_weight_scale of shape {scales} is not that of groups of a weight of shape {weight}.")


def _torchao(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    parts = plain_names(tensors)
    return _compressed(parts, {"group_size": parts["weight"].shape[1] // parts["weight_scale"].shape[1]})


_SHAPE = Expected("int64", lambda found, shape, settings: tuple(found) == shape, "the shape is another")
_NOT_TURNED = {"transform_config": (None, {})}
_OF_ACTIVATIONS = ("input_scale", "input_zero_point")  # those that are fixed are not read


def _compressed_ways(bits: int) -> tuple[Stored, ...]:
    """Packed numbers with and without zero points and g_idx; of 8 bits also one number a byte."""
    parts = {
        "methods": ("compressed-tensors",),
        "shape": _compressed_shape,
        "planes": _compressed,
        "activations": of_compressed_tensors,
    }
    packed, plain = {"weight_packed": ("int32",)}, {"weight": ("int8",)}
    scale, index = {"weight_scale": _FLOATS}, {"weight_g_idx": ("int32",)}
    asymmetric = {**_NOT_TURNED, "symmetric": (False,)}
    symmetric = {**_NOT_TURNED, "symmetric": (None, True)}
    found = [
        Stored(
            **parts,
            tensors=packed | scale | ({"weight_zero_point": ("int32",)} if when is asymmetric else {}) | by,
            when={**when, "format": ("pack-quantized",), "num_bits": (bits,), "actorder": orders},
            expected={"weight_shape": _SHAPE, **({"weight_g_idx": _IN_RANGE} if by else {})},
        )
        for when in (symmetric, asymmetric)
        for by, orders in (({}, (None, False, "weight", "static")), (index, (True, "group")))
    ]
    if bits == 8:
        unpacked = {
            "format": ("int-quantized", "naive-quantized"),
            "actorder": (None, False, "weight", "static"),
        }
        found += [
            Stored(
                **parts,
                tensors=plain | scale,
                when={**symmetric, **unpacked, "strategy": ("group",)},
                expected={"weight_zero_point": NO_ZEROS},
                ignored=_OF_ACTIVATIONS,
            ),
            Stored(
                **parts,
                tensors=plain | scale | {"weight_zero_point": ("int8",)},
                when={**asymmetric, **unpacked},
                ignored=_OF_ACTIVATIONS,
            ),
            Stored(
                methods=("torchao",),
                tensors={
                    "_weight_qdata": ("int8",),
                    "_weight_scale": _FLOATS,
                    "_weight_zero_point": ("int8",),
                },
                shape=_torchao_shape,
                planes=_torchao,
                ignored=("_weight_act_quant_scale", "_weight_act_quant_zero_point"),
                activations=of_torchao,
            ),
        ]
    return tuple(found)


_POINTS = Expected(
    "uint8",
    lambda groups, shape, settings: groups.view("<u2").max(initial=0) < shape[1] // UNIT,
    "a column names a group that is not there",
)
for _bits in (2, 3, 4, 8):
    QuantFormat(
        name=f"int{_bits}_g_idx",
        planes=(
            Plane("quants", 4 * _bits),
            Plane("scales", 4),
            Plane("zeros", 2),
            Plane("groups", 2 * UNIT, shared=True),
        ),
        values=_values(_bits),
        bounds={"groups": _POINTS},
        stored=_ways(_bits) + (_compressed_ways(_bits) if _bits in (4, 8) else ()),
    )
