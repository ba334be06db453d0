"""Devices by name, and the default one. Importing this opens no GPU."""

from __future__ import annotations

from contextvars import ContextVar

from ..errors import ArgumentError, DeviceError

# Kinds that PyTorch has elsewhere: programs name them in defaults, and nothing lies there.
ELSEWHERE = ("cuda", "mps", "xpu", "hpu", "xla", "mtia", "maia", "ipu", "privateuseone")


class device:
    """A device: ``webgpu`` (kernels), ``cpu`` (the numpy reference) or ``meta`` (shapes only).

    Usable as a context manager, as in PyTorch. PyTorch's other kinds, such as ``"cuda:1"``, can be named;
    what asks for a tensor there is refused.

    Args:
        type: ``"webgpu"``, ``"cpu"`` or ``"meta"``; another `device` is returned as it is.
        index: its number, 0: there is one of each.

    Attributes:
        index: the number that was given, of PyTorch's other kinds; else None.

    Raises:
        ArgumentError: it is no name and no device.
        DeviceError: there is no such device.

    Example:
        >>> import pellucid as torch
        >>> with torch.device("cpu"):
        ...     torch.zeros(2).device
        device(type='cpu')
    """

    _known: dict[str, device] = {}
    type: str
    index: int | None = None

    def __new__(cls, type: str | device, index: int | None = None) -> device:
        if isinstance(type, device):
            if index:
                raise ArgumentError(f"device: an index beside {type!r}. Give its name and the index.")
            return type
        if not isinstance(type, str):
            raise ArgumentError(f"device: takes a name or a device, not {type!r}.")
        name = type if index is None else f"{type}:{index}"
        found = cls._known.get(name)
        if found is None:
            kind, colon, number = name.partition(":")
            is_here = kind in ("webgpu", "cpu", "meta") and number in ("", "0")
            if not (is_here or (kind in ELSEWHERE and (number.isdecimal() or not colon))):
                raise _absent(name)
            if is_here and colon:
                return cls(kind)
            found = cls._known[name] = object.__new__(cls)
            found.type = kind
            found.index = int(number) if colon else None
        return found

    def __enter__(self) -> device:
        _chosen.set((*_chosen.get(), resolved(self)))
        return self

    def __exit__(self, *exc) -> None:
        _chosen.set(_chosen.get()[:-1])

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (str(self),)


def _absent(name: str) -> DeviceError:
    return DeviceError(f"device {name!r} does not exist. There are 'webgpu', 'cpu' and 'meta'.")


def resolved(d: str | device | None) -> device:
    """The device that an argument names, the default one for None.

    Args:
        d: a device or its name.

    Raises:
        DeviceError: nothing can lie there.
    """
    if d is None:
        return get_default_device()
    found = device(d)
    if found.type in ELSEWHERE:
        raise _absent(str(found))
    return found


WEBGPU, CPU = device("webgpu"), device("cpu")
# A list, so that set_default_device reaches every context; a ContextVar for `with device(...)`, since tasks
# that take turns have each their own, innermost last.
_process_default = [WEBGPU]
_chosen: ContextVar[tuple[device, ...]] = ContextVar("chosen_devices", default=())


def set_default_device(device: str | device | None) -> None:
    """Choose where tensors are made when nothing else says so (``webgpu`` at first).

    There is no implicit fallback.

    Args:
        device: ``"webgpu"`` or ``"cpu"``; None for ``"webgpu"``.

    Raises:
        DeviceError: there is no such device.

    Example:
        >>> import pellucid as torch
        >>> torch.set_default_device("cpu")
        >>> torch.get_default_device()
        device(type='cpu')
    """
    _process_default[0] = WEBGPU if device is None else resolved(device)


def get_default_device() -> device:
    """The device on which tensors are made when nothing else says so."""
    chosen = _chosen.get()
    return chosen[-1] if chosen else _process_default[0]
