"""Dictionaries by the identity of tensors that they do not keep alive: PyTorch's ``torch.utils.weak``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from ..tensors.tensor import Tensor


class WeakIdRef(weakref.ref):
    """A weak reference that is compared by the identity of its object, as tensors compare elements.

    Args:
        key: the object.
        callback: called with the reference when the object is gone.
    """

    __slots__ = ("_id",)

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> WeakIdRef:
        """References are made here."""
        self = super().__new__(cls, key, callback)
        self._id = id(key)
        return self

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        return self is other or (mine is not None and isinstance(other, WeakIdRef) and mine is other())

    def __ne__(self, other: object) -> bool:  # that of its parent compares the objects
        return not self == other


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor: the tensor.
    """

    def __init__(self, tensor: Tensor):
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping):
    """Values by the identity of keys, which go with their keys.

    Args:
        dict: pairs to begin with.

    Source: https://docs.python.org/3/library/weakref.html#weakref.WeakKeyDictionary

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.weak import WeakTensorKeyDictionary
        >>> x = torch.ones(2, device="cpu")
        >>> notes = WeakTensorKeyDictionary({x: "first"})
        >>> notes[x], len(notes)
        ('first', 1)
        >>> del x
        >>> len(notes)
        0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None):
        self.data: dict[WeakIdRef, Any] = {}
        own = weakref.ref(self)

        def gone(key: WeakIdRef) -> None:
            if (found := own()) is not None:
                found.data.pop(key, None)

        self._gone = gone
        self.update({} if dict is None else dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[WeakIdRef(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[WeakIdRef(key, self._gone)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for key in [*self.data]:
            if (found := key()) is not None:
                yield found

    def __contains__(self, key: object) -> bool:
        try:
            return WeakIdRef(key) in self.data
        except TypeError:  # of an object that nothing can refer to weakly
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
