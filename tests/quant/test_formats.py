"""The table of formats and the numpy twins, against the PyPI package gguf."""

import gguf
import numpy as np
import pytest

from pellucid.errors import FormatError, ShapeError
from pellucid.quant import FORMATS, dequantize_planes, repack_blocks
from pellucid.quant.planes import dequantize_rows, join_planes
from quant.samples import BLOCKS, PLANES, any_blocks, sampled, widths

ROWS = (1, 2, 37)


def reference(raw, name, rows, columns):
    kind = gguf.GGMLQuantizationType(FORMATS[name].gguf_type)
    with np.errstate(over="ignore"):  # the largest exponents of MXFP4
        values = gguf.quants.dequantize(raw.reshape(rows, -1), kind)
    return values.astype(np.float32).reshape(rows, columns)


def made(name, rows, columns, device, seed=0, odd=False):
    """(a weight, its values by gguf or by a formula of its own)."""
    weight, values, raw = sampled(name, rows, columns, np.random.default_rng(seed), device, odd)
    return weight, reference(raw, name, rows, columns) if name in BLOCKS else values


def same_bits(a, b):
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


def test_every_format_has_samples():
    assert {*BLOCKS, *PLANES} == set(FORMATS)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_table_agrees_with_gguf(name):
    f = FORMATS[name]
    kind = gguf.GGMLQuantizationType[name.upper()]
    assert f.gguf_type == kind.value
    assert (f.block, f.block_bytes) == gguf.GGML_QUANT_SIZES[kind]
    assert f.dtype.is_quantized
    assert repr(f.dtype) == f"pellucid.{name}"


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", PLANES)
def test_values_of_planes_are_bit_exact(name, rows):
    rng = np.random.default_rng(rows)
    for columns in widths(name):
        planes, expected = PLANES[name](rows, columns, rng, True)
        words = join_planes(planes, FORMATS[name], rows, columns)
        assert words.nbytes == FORMATS[name].layout(rows, columns).nbytes
        assert same_bits(dequantize_planes(words, FORMATS[name], rows, columns), expected)
        chosen = np.array([rows - 1, 0, rows // 2])
        assert same_bits(dequantize_rows(words, FORMATS[name], rows, columns, chosen), expected[chosen])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", BLOCKS)
def test_dequantization_is_bit_exact(name, rows):
    rng = np.random.default_rng(rows)
    for columns in widths(name):
        raw = any_blocks(name, rows, columns, rng)
        words = repack_blocks(raw, FORMATS[name], rows, columns)
        assert words.nbytes == FORMATS[name].layout(rows, columns).nbytes
        expected = reference(raw, name, rows, columns)
        assert same_bits(dequantize_planes(words, FORMATS[name], rows, columns), expected)
        chosen = np.array([rows - 1, 0, rows // 2])
        assert same_bits(dequantize_rows(words, FORMATS[name], rows, columns, chosen), expected[chosen])


@pytest.mark.parametrize("name", FORMATS)
def test_planes_do_not_overlap_and_begin_at_16_bytes(name):
    f = FORMATS[name]
    for rows, columns in ((1, 256), (7, 512), (16, 768)):
        layout = f.layout(rows, columns)
        ends = []
        for start, plane in zip(layout.starts, f.planes, strict=True):
            assert start % 4 == 0
            assert not ends or 4 * start >= ends[-1]
            ends.append(4 * start + plane.rows(rows) * plane.row_bytes(layout.units))
        assert ends[-1] <= layout.nbytes
        assert layout.nbytes % 16 == 0


def test_bytes_are_those_of_the_file_within_padding():
    for f in map(FORMATS.get, BLOCKS):
        more = f.layout(64, 1024).nbytes - f.raw_bytes(64, 1024) - len(f.codebook)
        assert 0 <= more < 16 * len(f.planes)


@pytest.mark.parametrize("name", [n for n in BLOCKS if FORMATS[n].block > 1])
def test_a_row_must_be_whole_blocks(name):
    with pytest.raises(ShapeError, match=f"{name}: a row of 40 columns is not whole blocks"):
        FORMATS[name].layout(1, 40)


def test_the_number_of_bytes_must_fit():
    with pytest.raises(FormatError, match=r"shape \(2, 64\) takes 80 bytes, and 79 are given"):
        repack_blocks(np.zeros(79, np.uint8), FORMATS["q4_1"], 2, 64)
