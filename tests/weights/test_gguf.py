"""The GGUF reader against the library that defines the format, and against files that are wrong."""

import struct

import gguf
import numpy as np
import pytest

from pellucid import weights
from pellucid.errors import FormatError
from pellucid.quant.formats.blocks import GGUF_TYPES
from weights import samples
from weights.samples import gguf_pair as pair
from weights.samples import gguf_raw as raw
from weights.samples import gguf_tensor as tensor


def compare(path):
    """Every key, description and byte, as the library reads them."""
    checkpoint = weights.open(path)
    reader = gguf.GGUFReader(path)
    keys = {k: f for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert list(checkpoint.metadata) == list(keys)
    for key, value in keys.items():
        assert checkpoint.metadata[key] == value.contents(), key
    infos = list(checkpoint.values())
    assert [t.name for t in infos] == [t.name for t in reader.tensors]
    for info, want, got in zip(infos, reader.tensors, weights.read(checkpoint, infos), strict=True):
        assert info.shape == tuple(int(n) for n in want.shape)[::-1]
        assert info.start == want.data_offset
        assert GGUF_TYPES[want.tensor_type.value][0] == info.dtype
        assert got.tobytes() == np.asarray(want.data).tobytes()
    return checkpoint


def test_a_good_file_is_what_the_library_reads(tmp_path):
    samples.gguf_file(tmp_path / "model.gguf")
    checkpoint = compare(tmp_path / "model.gguf")
    assert checkpoint["quantized.Q4_1"].dtype == "q4_1"
    assert checkpoint["quantized.Q4_1"].shape == (4, 64)
    assert type(checkpoint.metadata["t.bool"]) is bool


def test_smollm2_is_what_the_library_reads():
    from paths import WEIGHTS

    checkpoint = compare(WEIGHTS / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert (len(checkpoint), checkpoint.numel) == (272, 134_515_008)


def test_block_sizes_are_the_librarys():
    ours = {number: sizes[1:] for number, sizes in GGUF_TYPES.items()}
    theirs = {kind.value: sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    q8_1 = gguf.GGMLQuantizationType.Q8_1.value
    assert theirs.pop(q8_1) == (32, 40)  # float32 scales; the format's own are halves since 2023
    assert ours.pop(q8_1) == (32, 36)
    assert ours == theirs


def test_version_2_is_read():
    data = raw([pair(b"k", 4, struct.pack("<I", 7))], [tensor()], version=2)
    checkpoint = weights.open(data)
    assert checkpoint.metadata == {"k": 7}
    assert checkpoint["x"].nbytes == 32


def test_another_alignment():
    data = raw([pair(b"general.alignment", 4, struct.pack("<I", 64))], [tensor()])
    head = len(data) - 64
    start = weights.open(data)["x"].start
    assert start % 64 == 0
    assert start - head < 64


def test_nested_arrays_are_read():
    inner = struct.pack("<IQ2B", 0, 2, 1, 2)
    data = raw([pair(b"k", 9, struct.pack("<IQ", 9, 2) + inner + inner)])
    assert weights.open(data).metadata == {"k": [b"\1\2", b"\1\2"]}


def nested(levels: int) -> bytes:
    """An array in an array, as deep as told."""
    value = struct.pack("<IQB", 0, 1, 5)
    for _ in range(levels - 1):
        value = struct.pack("<IQ", 9, 1) + value
    return pair(b"k", 9, value)


def array(kind: int, count: int, content: bytes = b"") -> bytes:
    return pair(b"k", 9, struct.pack("<IQ", kind, count) + content)


U32 = struct.pack("<I", 1)
MALFORMED = {
    "wrong magic": (raw(magic=b"GGML"), "of another format"),
    "only the magic": (b"GGUF", "cut short"),
    "version 1": (raw(version=1), "GGUF version 1"),
    "version 4": (raw(version=4), "GGUF version 4"),
    "big-endian": (raw(order=">"), "big-endian"),
    "2**60 tensors": (raw(tensor_count=1 << 60), "claims 1,152,921,504,606,846,976 tensors"),
    "2**60 keys": (raw(pair_count=1 << 60), "claims 0 tensors and 1,152"),
    "100,000 keys in 88 bytes": (raw(pair_count=100_000), "a name has 0 bytes|cut short"),
    "truncated pair": (raw([pair(b"k", 4, U32)])[:40], "cut short"),
    "key of 2**63 bytes": (raw([struct.pack("<Q", 1 << 63)]), "claims 9,223"),
    "key that is not UTF-8": (raw([pair(b"\xff\xfe", 4, U32)]), "not UTF-8"),
    "key without a name": (raw([pair(b"", 4, U32)]), "a name has 0 bytes"),
    "key twice": (raw([pair(b"k", 4, U32), pair(b"k", 4, U32)]), "occurs twice"),
    "unknown type": (raw([pair(b"k", 13, U32)]), "unknown type 13"),
    "bool of 2": (raw([pair(b"k", 7, b"\2")]), "the bool 2"),
    "string of 2**62 bytes": (raw([pair(b"k", 8, struct.pack("<Q", 1 << 62))]), "claims"),
    "string that is not UTF-8": (raw([pair(b"k", 8, samples.gguf_string(b"\x80"))]), "not UTF-8"),
    "array of 2**60 bytes": (raw([array(0, 1 << 60)]), "elements"),
    "array of 2**60 strings": (raw([array(8, 1 << 60)]), "elements"),
    "array of a million strings in 100 bytes": (raw([array(8, 1 << 20)]), "cut short"),
    "array of arrays without end": (raw([array(9, 1 << 15)]), "cut short|unknown type"),
    "array with an unknown type": (raw([array(99, 1)]), "unknown type 99"),
    "arrays 5 deep": (raw([nested(5)]), "deeper than 4"),
    "arrays 10,000 deep": (raw([nested(10_000)]), "deeper than 4"),
    "array string that is not UTF-8": (raw([array(8, 1, samples.gguf_string(b"\xc3("))]), "not UTF-8"),
    "alignment of 0": (raw([pair(b"general.alignment", 4, struct.pack("<I", 0))]), "alignment is 0"),
    "alignment of 24": (raw([pair(b"general.alignment", 4, struct.pack("<I", 24))]), "alignment is 24"),
    "alignment of text": (
        raw([pair(b"general.alignment", 8, samples.gguf_string(b"32"))]),
        "alignment is '32'",
    ),
    "alignment of 64 bits": (raw([pair(b"general.alignment", 10, struct.pack("<Q", 32))]), "alignment is 32"),
    "tensor name twice": (raw([], [tensor(), tensor(offset=32)]), "'x' occurs twice"),
    "tensor name of 256 bytes": (raw([], [tensor(b"x" * 256)]), "a name has 256 bytes"),
    "5 dimensions": (raw([], [tensor(dims=(1, 1, 1, 1, 8))]), "claims 5 dimensions"),
    "2**31 dimensions": (raw([], [tensor(rank=1 << 31)]), "dimensions"),
    "unknown tensor type": (raw([], [tensor(kind=99)]), "type 99, which is unknown"),
    "removed tensor type": (raw([], [tensor(kind=4)]), "type 4, which was removed"),
    "row that is no whole block": (raw([], [tensor(dims=(33,), kind=8)]), "multiple of 32"),
    "shape of 2**64 elements": (raw([], [tensor(dims=(1 << 32, 1 << 32))]), "64 bits can count"),
    "unaligned offset": (raw([], [tensor(offset=8)]), "no multiple of the alignment"),
    "offset of 2**63": (raw([], [tensor(offset=1 << 63)]), "64 bits can count"),
    "past the end": (raw([], [tensor(dims=(17,))]), "cut short"),
    "offset past the end": (raw([], [tensor(offset=96)]), "cut short"),
    "overlap": (raw([], [tensor(b"x"), tensor(b"y", dims=(4,))]), "inside tensor"),
    "no data": (raw([], [tensor()], b""), "cut short"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    data, message = MALFORMED[name]
    with pytest.raises(FormatError, match=message) as caught:
        weights.open(data)
    assert str(caught.value).startswith("bytes: ")


def split(folder, count: int, said: int | None = None) -> None:
    """A model split into files, as llama.cpp names them."""
    for number in range(1, count + 1):
        pairs = [pair(b"split.count", 2, struct.pack("<H", said or count))] if number == 1 else []
        data = raw(pairs, [tensor(b"x%d" % number)], bytes([number]) * 64)
        (folder / f"m-{number:05}-of-{count:05}.gguf").write_bytes(data)


def test_a_split_model_is_one_checkpoint(tmp_path):
    split(tmp_path, 3)
    checkpoint = weights.open(tmp_path)
    assert list(checkpoint) == ["x1", "x2", "x3"]
    assert [a[0] for a in weights.read(checkpoint, list(checkpoint.values()))] == [1, 2, 3]


def test_a_split_model_is_opened_by_its_first_file(tmp_path):
    split(tmp_path, 2, said=3)
    with pytest.raises(FormatError, match=r"split into 3 files.*-00001-of-00003"):
        weights.open(tmp_path / "m-00001-of-00002.gguf")
