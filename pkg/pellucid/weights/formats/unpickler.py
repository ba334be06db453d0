"""Reading pickles that hold tensors, with an interpreter of its own that can call nothing of Python's.

Only the opcodes that `torch.save` writes are known, and only the names of one table: what else a pickle asks
for is refused before anything is made of it.

Source: Python's pickletools.py (opcodes); https://pytorch.org/docs/stable/notes/serialization.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from struct import unpack_from
from typing import Any, NoReturn

from ...device import device as Device
from ...errors import FormatError
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.formats import strided
from ...tensors.shape import Size

# Names of storages' types, which say the dtype of what is in them.
STORAGES: dict[str, DType] = {
    "FloatStorage": dt.float32, "DoubleStorage": dt.float64, "HalfStorage": dt.float16,
    "BFloat16Storage": dt.bfloat16, "ByteStorage": dt.uint8, "CharStorage": dt.int8,
    "ShortStorage": dt.int16, "IntStorage": dt.int32, "LongStorage": dt.int64, "BoolStorage": dt.bool_,
    "ComplexFloatStorage": dt.complex64, "ComplexDoubleStorage": dt.complex128,
}  # fmt: skip
_MOST_BYTES = 64 << 20
_LONGEST_INTEGER = 32
_SIMPLE = (str, bytes, int, float, bool, type(None), DType)


class _Mark:
    """Where a sequence of values begins on the stack."""


class Unpickler:
    """One pickle.

    Args:
        data: its bytes.
        name: what errors call the file.
        tensor: makes a tensor of what `torch._utils._rebuild_tensor_v2` is given.
        parameter: makes a parameter of a tensor and whether it requires grad.
        storage: makes a storage of what a persistent id says.
        start: where it begins in the bytes.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        tensor: Callable,
        parameter: Callable,
        storage: Callable[[tuple], Any],
        start: int = 0,
    ):
        self._data, self._name, self._storage, self._at = data, name, storage, start
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._made = names(tensor, parameter)
        if len(data) > _MOST_BYTES:
            self._refuse(f"it has {len(data)} bytes, and at most {_MOST_BYTES} are read")

    def _refuse(self, what: str) -> NoReturn:
        raise FormatError(f"{self._name}: at byte {self._at} of its pickle, {what}.")

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            self._refuse(f"{count} bytes are announced, and {len(self._data) - self._at} are left")
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: str, size: int) -> Any:
        return unpack_from(form, self._take(size))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + 256)
        if end < 0:
            self._refuse("a name has no end")
        text = self._take(end - self._at).decode("utf-8", "replace")
        self._at += 1
        return text

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _Mark:
            self._refuse("a value is asked for where there is none")
        return self._stack.pop()

    def _top(self, kind: Any) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            self._refuse("values are added to what is no container of theirs")
        return self._stack[-1]

    def _marked(self) -> list[Any]:
        for k in range(len(self._stack) - 1, -1, -1):
            if self._stack[k] is _Mark:
                values = self._stack[k + 1 :]
                del self._stack[k:]
                return values
        self._refuse("a sequence ends that did not begin")

    def _last(self, count: int) -> list[Any]:
        return [self._pop() for _ in range(count)][::-1]

    @property
    def end(self) -> int:
        """Where it ends in the bytes, once it is read."""
        return self._at

    def load(self) -> Any:
        """The value of the pickle.

        Raises:
            FormatError: it is broken, or asks for what is not known.
        """
        push = self._stack.append
        while True:
            code = self._take(1)
            if code == b".":
                return self._pop()
            if (step := _STEPS.get(code)) is None:
                self._refuse(f"opcode {code!r} is none of those that torch.save writes")
            made = step(self)
            if made is not _NOTHING:
                push(made)

    def _global(self) -> Any:
        name = f"{self._line()} {self._line()}"
        if name not in self._made:
            self._refuse(
                f"{name.replace(' ', '.')[:200]!r} is asked for, which is not known. Files are read without "
                "executing them: save tensors and containers of them, such as a state_dict(). If you trust "
                "who wrote it, torch.load(..., weights_only=False) executes it"
            )
        return self._made[name]

    def _reduce(self) -> Any:
        function, arguments = self._last(2)
        if not callable(function) or not isinstance(arguments, tuple):
            self._refuse("something is called that is no function")
        try:
            return function(*arguments)
        except FormatError as error:
            self._refuse(str(error).rstrip("."))
        except (TypeError, ValueError, RuntimeError) as error:
            self._refuse(f"values do not make a {getattr(function, '__name__', 'value')}: {error!s:.200}")

    def _build(self) -> Any:
        target, state = self._last(2)
        if not isinstance(target, OrderedDict) or not isinstance(state, dict) or set(state) - {"_metadata"}:
            self._refuse("attributes are given to an object that may have none")
        vars(target).update(state)
        return target

    def _set_items(self, values: list[Any]) -> Any:
        target = self._top(dict)
        if len(values) % 2:
            self._refuse("a key has no value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[self._key(key)] = value
        return _NOTHING

    def _key(self, key: Any) -> Any:
        """A key, which is simple: a deep tuple would be hashed deeper than the stack is."""
        parts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, _SIMPLE) for part in parts):
            self._refuse(f"a {type(key).__name__} is a key; keys are numbers and texts")
        return key

    def _append(self, values: list[Any]) -> Any:
        self._top(list).extend(values)
        return _NOTHING

    def _add(self) -> Any:
        values = self._marked()
        self._top(set).update(map(self._key, values))
        return _NOTHING

    def _remember(self, place: int) -> Any:
        if not self._stack:
            self._refuse("nothing is remembered")
        self._memo[place] = self._stack[-1]
        return _NOTHING

    def _recall(self, place: int) -> Any:
        if place not in self._memo:
            self._refuse(f"value {place} is recalled, which was not kept")
        return self._memo[place]

    def _integer(self) -> int:
        length = self._number("<B", 1)
        if length > _LONGEST_INTEGER:
            self._refuse(f"an integer has {length} bytes")
        return int.from_bytes(self._take(length), "little", signed=True)

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            self._refuse(f"a text is not UTF-8 ({error.reason})")

    def _persistent(self) -> Any:
        found = self._pop()
        if not isinstance(found, tuple):
            self._refuse("a storage is named by something else than a tuple")
        return self._storage(found)

    def _protocol(self) -> Any:
        if (version := self._number("<B", 1)) != 2:
            self._refuse(f"protocol {version} is announced; torch.save writes protocol 2")
        return _NOTHING


_NOTHING = object()
_STEPS: dict[bytes, Callable[[Unpickler], Any]] = {
    b"\x80": Unpickler._protocol,
    b"(": lambda u: _Mark,
    b"c": Unpickler._global,
    b"R": Unpickler._reduce,
    b"b": Unpickler._build,
    b"Q": Unpickler._persistent,
    b"N": lambda u: None,
    b"\x88": lambda u: True,
    b"\x89": lambda u: False,
    b"J": lambda u: u._number("<i", 4),
    b"K": lambda u: u._number("<B", 1),
    b"M": lambda u: u._number("<H", 2),
    b"G": lambda u: u._number(">d", 8),
    b"\x8a": Unpickler._integer,
    b"X": lambda u: u._text(u._number("<I", 4)),
    b"U": lambda u: u._text(u._number("<B", 1)),
    b")": lambda u: (),
    b"]": lambda u: [],
    b"}": lambda u: {},
    b"\x8f": lambda u: set(),
    b"t": lambda u: tuple(u._marked()),
    b"\x85": lambda u: tuple(u._last(1)),
    b"\x86": lambda u: tuple(u._last(2)),
    b"\x87": lambda u: tuple(u._last(3)),
    b"a": lambda u: u._append(u._last(1)),
    b"e": lambda u: u._append(u._marked()),
    b"s": lambda u: u._set_items(u._last(2)),
    b"u": lambda u: u._set_items(u._marked()),
    b"\x90": Unpickler._add,
    b"q": lambda u: u._remember(u._number("<B", 1)),
    b"r": lambda u: u._remember(u._number("<I", 4)),
    b"h": lambda u: u._recall(u._number("<B", 1)),
    b"j": lambda u: u._recall(u._number("<I", 4)),
}


# What a pickle may call: each looks at what it is given.


def names(tensor: Callable, parameter: Callable) -> dict[str, Any]:
    """What stands for PyTorch's names in a pickle of tensors.

    Args:
        tensor, parameter: as for `Unpickler`.
    """
    return {
        "collections OrderedDict": _ordered,
        "builtins set": _set,
        "__builtin__ set": _set,
        "_codecs encode": _bytes,
        "torch Size": _size,
        "torch device": Device,
        "torch.serialization _get_layout": lambda name: strided,
        "torch._utils _rebuild_tensor": lambda *parts: tensor(*parts, False, None),
        "torch._utils _rebuild_tensor_v2": tensor,
        "torch._utils _rebuild_parameter": parameter,
        **{f"torch {d.name}": d for d in dt.NAMES.values()},
        **{f"torch {name}": d for name, d in STORAGES.items()},
    }


def _ordered(*given: Any) -> OrderedDict:
    if given:
        raise FormatError("an OrderedDict is made of values; torch.save makes an empty one")
    return OrderedDict()


def _set(values: Any = ()) -> set:
    if not all(isinstance(value, _SIMPLE) for value in values):
        raise FormatError("a set holds something else than numbers and texts")
    return set(values)


def _bytes(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise FormatError("bytes are written in another way than pickle does")
    return text.encode("latin1")


def _size(lengths: Any) -> Size:
    return Size(whole(lengths, "a Size"))


def whole(values: Any, what: str) -> tuple[int, ...]:
    """Numbers that are not negative, as a tuple.

    Raises:
        FormatError: there is something else.
    """
    if not isinstance(values, (tuple, list)) or not all(type(v) is int and 0 <= v < 1 << 62 for v in values):
        raise FormatError(f"{what} is not made of whole numbers")
    return tuple(values)
