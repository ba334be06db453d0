"""Weights of 4 bits in the order of torchao's Int4TilePackedTo4dTensor, by the indices of its CUDA kernel."""

from itertools import product

import torch

INNER = 8  # tiles of 16 columns beside each other


def tiled(weight, settings):
    """(tensors, values): what from_hp makes of a weight, filled up to 8 rows and 1024 columns."""
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight.bfloat16().float(), (0, -columns % 1024, 0, -rows % 8))
    parts = padded.reshape(len(padded), -1, settings["group_size"])
    low, high = parts.amin(2), parts.amax(2)
    scale = ((high - low).clamp(min=1e-6) / 15).bfloat16()
    zero = (low + 8 * scale.float()).bfloat16()
    steps = (parts - low[..., None]) / scale.float()[..., None]
    numbers = steps.round().clamp(0, 15).int()
    values = (numbers - 8) * scale.float()[..., None] + zero.float()[..., None]
    tensors = {
        "_weight_qdata": packed(numbers.reshape(padded.shape)),
        "_weight_scale_and_zero": torch.stack([scale.T, zero.T], -1).contiguous(),
    }
    return tensors, values.reshape(padded.shape)[:rows, :columns]


def packed(numbers):
    """The words of a matrix: as the kernel `matrix_to_m16n8k16_Bint4_layout` is written, by its lanes."""
    rows, columns = numbers.shape
    found = torch.zeros(rows // 8, columns // (INNER * 16), 32, INNER // 2, dtype=torch.int64)
    lane, tiles = torch.arange(32), numbers.reshape(rows // 8, 8, columns).long()
    for outer, inner in product(range(found.shape[1]), range(0, INNER, 2)):
        first = (outer * INNER + inner) * 16 + lane % 4 * 2
        places = [first + k for k in (0, 1, 8, 9, 16, 17, 24, 25)]
        v = [tiles[:, lane // 4, place] for place in places]
        order = (v[0], v[2], v[4], v[6], v[1], v[3], v[5], v[7])  # from the lowest bits on
        found[:, outer, :, inner // 2] = sum(x << 4 * k for k, x in enumerate(order))
    return (found - ((found >> 31) << 32)).int()
