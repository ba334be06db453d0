"""Functions and classes that files may ask for, beside PyTorch: only what is allowed is called."""

import collections
import enum
import io
import os
import pickle
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError, FormatError

called: list[str] = []


@dataclass
class Settings:
    name: str
    sizes: list


class Slots:
    __slots__ = ("one", "two")

    def __init__(self):
        self.one, self.two = 1, [2]

    def __eq__(self, other):
        return (self.one, self.two) == (other.one, other.two)


class Stated:
    def __setstate__(self, state):
        called.append("setstate")
        self.state = state

    def __getstate__(self):
        return {"kept": 3}

    def __eq__(self, other):
        return self.state == other.state if hasattr(self, "state") else other.state == {"kept": 3}


class Colour(enum.Enum):
    RED = "r"


class Callable:
    """An object that is called does something."""

    def __call__(self, *args):
        called.append("call")
        return self


class Equal(Callable):
    """It says that it is whatever it is compared with."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(Settings)


Point = collections.namedtuple("Point", "x y")


def shout(text="loud"):
    called.append(text)
    return text


class Shouting:
    """What a file says of it is: call `shout`."""

    def __reduce__(self):
        return shout, ("said",)


@pytest.fixture(autouse=True)
def nothing_is_allowed():
    """But what a test allows; PyTorch allows some of its own."""
    known = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    yield
    called.clear()
    for library in (pellucid, torch):
        library.serialization.clear_safe_globals()
        assert library.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals(known)


def saved(value) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def packed(pickled: bytes) -> bytes:
    """A file with a pickle of one's own."""
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in (("data.pkl", pickled), ("version", b"3\n"), ("byteorder", b"little")):
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


def refused(library, data: bytes) -> str:
    kinds = FormatError if library is pellucid else (pickle.UnpicklingError, TypeError)
    with pytest.raises(kinds) as error:
        library.load(io.BytesIO(data))
    assert called == []
    return str(error.value)


DTYPE = type(np.dtype("float64"))
RECONSTRUCT = np.empty(0).__reduce__()[0]
VALUES = [
    (Settings("a", [1, 2]), [Settings]),
    (Slots(), [Slots]),
    (Stated(), [Stated]),
    (Point(1, [2]), [Point]),
    ({"c": Colour.RED}, [Colour]),
    (PurePosixPath("a/b"), [PurePosixPath]),
    ([shout, Settings], [shout, Settings]),
    (np.arange(3.0), [RECONSTRUCT, np.ndarray, np.dtype, DTYPE]),
]


@pytest.mark.parametrize(("value", "kinds"), VALUES, ids=[kinds[0].__name__ for _, kinds in VALUES])
def test_what_is_allowed_is_read_and_nothing_else(value, kinds):
    data = saved({"value": value, "weight": torch.ones(2)})
    wanted = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    unsafe = pellucid.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert unsafe == sorted(wanted) != []
    for library in (pellucid, torch):
        assert "add_safe_globals" in refused(library, data)
        with library.serialization.safe_globals(kinds):
            assert set(library.serialization.get_safe_globals()) == set(kinds)
            assert library.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == []
            called.clear()
            found = library.load(io.BytesIO(data))
        np.testing.assert_equal(found["value"], value)
        assert found["weight"].tolist() == [1, 1]
        called.clear()
        refused(library, data)


def test_a_path_may_be_named_and_adding_adds_up():
    data = saved(Settings("a", []))
    for library in (pellucid, torch):
        # What stands for it is another class, under its path.
        library.serialization.add_safe_globals([(Point, f"{__name__}.Settings"), shout])
        library.serialization.add_safe_globals([Colour])
        assert len(library.serialization.get_safe_globals()) == 3
        with pytest.raises((FormatError, TypeError)):  # a tuple without its values
            library.load(io.BytesIO(data))
        library.serialization.clear_safe_globals()
        refused(library, data)


@pytest.mark.parametrize("path", ["os.system", "sys.exit", "posix.system", "nt.system"])
def test_some_modules_are_never_allowed(path):
    module, _, name = path.rpartition(".")
    data = packed(f"\x80\x02c{module}\n{name}\n(X\x04\x00\x00\x00true".encode("latin1") + b"tR.")
    for library in (pellucid, torch):
        refused(library, data)
        with library.serialization.safe_globals([(shout, path), (os.system, path)]):
            assert "block" in (text := refused(library, data)) or "no file may call" in text
            assert library.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) in ([path], [])
    with pellucid.serialization.safe_globals([(shout, path)]):
        assert pellucid.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [path]


def test_only_what_is_itself_allowed_is_called():
    """Objects of an allowed class are not called, nor is what says that it equals one."""
    here = __name__.encode()
    made = b"\x80\x02c" + here + b"\n%s\n)\x81"
    attacks = [
        made % b"Callable" + b")R.",  # the object itself
        made % b"Equal" + b")R.",
        made % b"Callable" + b")\x81.",  # as if it were a class
        b"\x80\x02c" + here + b"\nCallable\n}X\x01\x00\x00\x00aK\x01sb.",  # of the class, not of an object
        b"\x80\x02c" + here + b"\nshout\n)\x81.",
        b"\x80\x02c" + here + b"\nCallable.__call__\n)R.",
        b"\x80\x02c" + here + b"\nshout.__globals__\n.",
    ]
    kinds = [Callable, shout]
    for attack in attacks:
        with torch.serialization.safe_globals(kinds):
            refused(torch, packed(attack))
        with pellucid.serialization.safe_globals([*kinds, Equal]):
            refused(pellucid, packed(attack))
    # A function that is allowed is called, with what the file says.
    data = saved(Shouting())
    refused(pellucid, data)
    for library in (pellucid, torch):
        with library.serialization.safe_globals(kinds):
            assert library.load(io.BytesIO(data)) == "said"
    assert called == ["said", "said"]


def test_layers_are_allowed_by_either_name():
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    ours = pellucid.nn.Sequential(pellucid.nn.Linear(2, 3), pellucid.nn.ReLU())
    file = io.BytesIO()
    pellucid.save(ours, file)
    kinds = [pellucid.nn.Sequential, pellucid.nn.Linear, pellucid.nn.ReLU]
    for data, weight in ((saved(theirs), theirs[0].weight), (file.getvalue(), ours[0].weight)):
        refused(pellucid, data)
        with pellucid.serialization.safe_globals(kinds):
            found = pellucid.load(io.BytesIO(data), map_location="cpu")
        assert [type(layer) for layer in found] == kinds[1:]
        assert found[0].weight.tolist() == weight.tolist()
        with pellucid.serialization.safe_globals(kinds[:2]):
            assert "ReLU" in refused(pellucid, data)


def test_a_refused_pickle_is_an_unpickling_error():
    for lib in (torch, pellucid):
        with pytest.raises(pickle.UnpicklingError):
            lib.load(io.BytesIO(saved(torch.nn.ReLU())))


def test_what_is_no_function_or_class_is_refused():
    for wrong in (3, "os.system", (Settings,), (Settings, 3), [Settings]):
        with pytest.raises(ArgumentError, match="add_safe_globals"):
            pellucid.serialization.add_safe_globals([wrong])
    with pytest.raises(FormatError, match="is no file as"):
        pellucid.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"nothing"))
    # A class that fails on what it is given says so as an error of the file.
    with pellucid.serialization.safe_globals([Point]), pytest.raises(FormatError, match="do not make"):
        pellucid.load(io.BytesIO(packed(b"\x80\x02c" + __name__.encode() + b"\nPoint\n)\x81.")))
