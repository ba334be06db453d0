"""Reading pickles that hold tensors, with an interpreter of its own that can call nothing of Python's.

Only the opcodes that `torch.save` writes are known, and only the names of one table: what else a pickle asks
for is refused before anything is made of it. A program may allow functions and classes of its own besides.

Source: Python's pickletools.py (opcodes); https://pytorch.org/docs/stable/notes/serialization.html
"""

from __future__ import annotations

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict
from collections.abc import Callable, Mapping
from struct import unpack_from
from types import MappingProxyType
from typing import Any, NoReturn

from ...device import device as Device
from ...errors import FormatError, UnsafeError
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
# Modules of which nothing may be called, even where it is allowed.
NEVER = ("sys", "os", "posix", "nt")
_SIMPLE = (str, bytes, int, float, bool, type(None), DType)


def full_path(module: str, name: str) -> str:
    """A name as Python has it today, where protocol 2 writes that of Python 2; of PyTorch's layers without
    the file that they are in."""
    if (module, name) in NAME_MAPPING:
        module, name = NAME_MAPPING[module, name]
    else:
        module = IMPORT_MAPPING.get(module, module)
    return f"torch.nn.{name}" if module.startswith("torch.nn.modules.") else f"{module}.{name}"


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
        allowed: functions that it may call besides, and classes of which it may make objects, by their full
            paths.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        tensor: Callable,
        parameter: Callable,
        storage: Callable[[tuple], Any],
        start: int = 0,
        allowed: Mapping[str, Any] = MappingProxyType({}),
    ):
        self._data, self._name, self._storage, self._at = data, name, storage, start
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._made = names(tensor, parameter)
        self._allowed = allowed
        if len(data) > _MOST_BYTES:
            self._refuse(f"it has {len(data)} bytes, and at most {_MOST_BYTES} are read")

    def _refuse(self, what: str) -> NoReturn:
        raise UnsafeError(f"{self._name}: at byte {self._at} of its pickle, {what}.")

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

    def _top(self, *kinds: Any) -> Any:
        if not self._stack or type(self._stack[-1]) not in kinds:
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
        module, name = self._line(), self._line()
        if (found := self._made.get(f"{module} {name}", _NOTHING)) is not _NOTHING:
            return found
        path = full_path(module, name)
        if path.partition(".")[0] in NEVER:
            self._refuse(f"{path[:200]!r} is asked for, of a module that no file may call")
        if path not in self._allowed:
            self._refuse(
                f"{path[:200]!r} is asked for, which is not known. Files are read without executing them: "
                "save tensors and containers of them, such as a state_dict(). If you trust that function or "
                "class, allow it by torch.serialization.add_safe_globals([...]) and torch.load the file; if "
                "you trust who wrote it, torch.load(..., weights_only=False) executes it"
            )
        return self._allowed[path]

    def _may(self, what: Any) -> bool:
        """Whether something is itself allowed, whatever it says that it equals."""
        return any(what is one for one in self._allowed.values())

    def _reduce(self) -> Any:
        function, arguments = self._last(2)
        known = any(function is one for one in self._made.values()) or self._may(function)
        if not known or not callable(function) or not isinstance(arguments, tuple):
            self._refuse("something is called that is no function, or none that may be called")
        return self._called(function, *arguments)

    def _new(self) -> Any:
        kind, arguments = self._last(2)
        if not isinstance(kind, type) or not self._may(kind) or not isinstance(arguments, tuple):
            self._refuse("an object is made of a class that is not allowed")
        return self._called(kind.__new__, kind, *arguments)

    def _called(self, function: Callable, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except FormatError as error:
            self._refuse(str(error).rstrip("."))
        except (TypeError, ValueError, RuntimeError) as error:
            self._refuse(f"values do not make a {getattr(function, '__name__', 'value')}: {error!s:.200}")

    def _build(self) -> Any:
        target, state = self._last(2)
        if self._may(type(target)):
            self._set_state(target, state)
            return target
        if type(target) is not OrderedDict or not isinstance(state, dict) or set(state) - {"_metadata"}:
            self._refuse("attributes are given to an object that may have none")
        vars(target).update(state)
        return target

    def _set_state(self, target: Any, state: Any) -> None:
        """Give an object its state, as pickle does."""
        if hasattr(target, "__setstate__"):
            self._called(target.__setstate__, state)
            return
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        if not all(part is None or isinstance(part, dict) for part in parts):
            self._refuse("the state of an object is no dictionary")
        own, slots = parts
        if own and not hasattr(target, "__dict__"):
            self._refuse("attributes are given to an object that may have none")
        if own:
            vars(target).update(own)
        for name, value in (slots or {}).items():
            self._called(setattr, target, name, value)

    def _set_items(self, values: list[Any]) -> Any:
        target = self._top(dict, OrderedDict)
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
    b"\x81": Unpickler._new,
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
