"""Arrays that NumPy wrote: one, several in a zip, compressed or not, row by row or column by column."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from pellucid import weights
from pellucid.errors import FormatError

ARRAYS = {
    "a.weight": np.random.default_rng(0).standard_normal((300, 500)).astype(np.float32),
    "doubles": np.random.default_rng(1).standard_normal((40, 30)),
    "half": np.arange(12, dtype=np.float16).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(24, dtype=np.int64).reshape(2, 3, 4)),
    "row": np.asfortranarray(np.arange(3.0)),
    "nothing": np.zeros((0, 4), np.float32),
    "one": np.array(True),
    "complex": np.array([1 + 2j], np.complex64),
}


def written(save, *given, **named):
    file = io.BytesIO()
    save(file, *given, **named)
    return file.getvalue()


def check(checkpoint, arrays):
    found = weights.read(checkpoint, list(checkpoint.values()))
    assert list(checkpoint) == list(arrays)
    for info, raw in zip(checkpoint.values(), found, strict=True):
        array = arrays[info.name]
        assert (info.shape, info.dtype) == (array.shape, array.dtype.name)
        assert raw.tobytes() == array.tobytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_npz(save, server):
    data = written(save, **ARRAYS)
    check(weights.open(data), ARRAYS)
    server.files["/weights.npz"] = data
    opened = weights.open(f"{server.url}/weights.npz")
    assert opened.format == "npz"
    check(opened, ARRAYS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_names_of_any_length(save):
    # Of some lengths the place of the next entry looks as in PyTorch's archives.
    for length in range(1, 70):
        arrays = {"n" * length: ARRAYS["half"]}
        check(weights.open(written(save, **arrays)), arrays)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_npy_is_called_as_its_file(tmp_path, name):
    np.save(tmp_path / "embeddings.npy", ARRAYS[name])
    check(weights.open(tmp_path / "embeddings.npy"), {"embeddings": ARRAYS[name]})


def header(text, size=0):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(size)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            written(np.save, np.array([{}], object), allow_pickle=True),
            r"1 axes of '\|O' are not read. Give numbers",
        ),
        (written(np.save, np.ones(2, ">f4")), r"'>f4' are not read. Give numbers in little endian"),
        (written(np.save, np.ones(9))[:-8], r"needs 72 bytes; the file has 64"),
        (written(np.save, np.ones(9))[:30], r"cut short"),
        (b"\x93NUMPY\x07\x00" + bytes(60), r"version 7.0 of numpy's format is not read"),
        (header("(" * 9000), r"header is '\(\(\(.*must say numbers"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), r"array's header is"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"), r"the file has 0"),
        (header("__import__('os').system('echo')"), r"array's header is"),
    ],
    ids=range(9),
)
def test_what_is_refused(data, words):
    with pytest.raises(FormatError, match=words):
        weights.open(data)


def test_a_bomb_is_not_unpacked_beyond_what_it_announces():
    array = np.zeros(2 << 20, np.uint8)
    data = bytearray(written(np.savez_compressed, x=array))
    directory = data.rfind(b"PK\1\2")
    # The directory and the header of the array announce fewer bytes than there are.
    small = 128 + 1000
    data[directory + 24 : directory + 28] = small.to_bytes(4, "little")
    with pytest.raises(FormatError, match="needs 2,097,152 bytes; the file has 1,000"):
        weights.open(bytes(data))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x.npy", written(np.save, np.zeros(1000, np.uint8)) + bytes(64 << 20))
    data = bytearray(file.getvalue())
    directory = data.rfind(b"PK\1\2")
    data[directory + 24 : directory + 28] = small.to_bytes(4, "little")
    checkpoint = weights.open(bytes(data))
    tracemalloc.start()
    with pytest.raises(FormatError, match="another size or checksum"):
        weights.read(checkpoint, list(checkpoint.values()))
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_other_files_in_a_zip_are_no_arrays():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("readme.txt", "x")
    with pytest.raises(FormatError, match="a zip archive without weights"):
        weights.open(file.getvalue())
