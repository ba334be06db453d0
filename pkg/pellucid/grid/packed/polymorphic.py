"""Polymorphic parameters: a float32 master, and versions of it in other kinds of numbers, cached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from ...autograd.batching import is_batched
from ...autograd.composed import composed
from ...autograd.grad_mode import no_grad
from ...device.storage import Storage
from ...device.stream import stream
from ...errors import DTypeError, WeightError
from ...nn.modules.module import Module
from ...nn.utils.parametrize import is_parametrized, register_parametrization
from ...tensors import dtypes
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor
from .numbers import Precision, precision
from .packing import PackedTensor, check_group, fake_quantize, pack
from .planes import kernel_weight
from .readers import is_read_by_kernels, unpacks, watch

MASTER = precision("float32")


@dataclass
class _Version:
    packed: PackedTensor
    # The master that it was made of: its memory, where it lies in that, and how often that had been written.
    storage: Storage
    place: tuple
    written: int

    @cached_property
    def weight(self) -> Tensor | None:
        """As kernels unpack it; see `kernel_weight`."""
        return kernel_weight(self.packed)

    def is_of(self, master: Tensor) -> bool:
        """Whether a master still is the one that this was made of."""
        here = master._storage is self.storage and master._version == self.written
        return here and _place(master) == self.place


def _place(master: Tensor) -> tuple:
    return master._offset, tuple(master.shape), tuple(master.stride())


def _version(packed: PackedTensor, master: Tensor) -> _Version:
    return _Version(packed, master._storage, _place(master), master._version)


class Polymorphic(Module):
    """A parametrization (``nn.utils.parametrize``): modules see the parameter in another kind of number.

    The parameter itself stays float32, the master: optimizers change it, and its gradient is that of the
    version (straight-through estimator). Versions are packed once, cached beside each other, and packed anew
    when the master was written.

    While a layer of PyTorch's runs (`Linear`, `Embedding`, convolutions, recurrent layers and cells), its
    kernels unpack the bits themselves, forward and backward: there is no float copy of the version.
    Elsewhere, in kinds of 64 bits and groups that no kernel reads, and where ``vmap`` brings a master for
    each example, it is unpacked to float32.

    Args:
        dtype: the kind of number that is seen, for `precision`.
        group, scale_dtype: which numbers share a scale, and its type, as in `pack`.

    Attributes:
        active: the kind of number that is seen.

    Source: Courbariaux, Bengio and David 2015, "BinaryConnect", for masters that gradients of versions change

    Example:
        >>> import pellucid
        >>> layer = pellucid.nn.Linear(8, 4, device="cpu")
        >>> seen = pellucid.grid.Polymorphic("binary")
        >>> layer = pellucid.nn.utils.parametrize.register_parametrization(layer, "weight", seen)
        >>> len(set(layer.weight.abs().flatten().tolist()))
        1
        >>> seen.version(layer.parametrizations.weight.original).nbytes
        8
    """

    def __init__(
        self, dtype: str | DType | Precision, group: str | int = "tensor", scale_dtype: str | None = None
    ):
        super().__init__()
        self.versions: dict[tuple, _Version] = {}
        self.morph(dtype, group, scale_dtype)

    def morph(
        self, dtype: str | DType | Precision, group: str | int = "tensor", scale_dtype: str | None = None
    ) -> None:
        """Let another kind of number be seen; versions that there are stay."""
        check_group(group, scale_dtype)
        self.active, self.group = precision(dtype), group
        self.scale_dtype = None if scale_dtype is None else precision(scale_dtype).name

    def version(self, master: Tensor) -> PackedTensor:
        """The master in the active kind of number, from the cache if that is as new."""
        if stream().capturing is not None:
            # A replay begins with what the master then is.
            return pack(master.detach(), self.active, self.group, self.scale_dtype)
        return self._current(master).packed

    def weight(self, master: Tensor) -> Tensor | None:
        """The same as a weight that kernels unpack; None where there is none."""
        if stream().capturing is not None:
            return kernel_weight(self.version(master))
        return self._current(master).weight

    def _current(self, master: Tensor) -> _Version:
        key = (self.active.name, self.group, self.scale_dtype)
        # What was made of another or an older master is of no use, whichever kind it is. (A new dictionary
        # would be an attribute that is assigned, after which captured functions are looked at anew.)
        for old in [k for k, v in self.versions.items() if not v.is_of(master)]:
            del self.versions[old]
        if key not in self.versions:
            packed = pack(master.detach(), self.active, self.group, self.scale_dtype)
            self.versions[key] = _version(packed, master)
        return self.versions[key]

    def adopt(self, master: Tensor, packed: PackedTensor) -> None:
        """Make packed bits the active version, and the master what they say."""
        with no_grad():
            master.copy_(packed.to(master.device).unpack())
        small = None if packed.factor is None else "float8_e4m3fn"
        self.morph(packed.precision, packed.group, small)
        version = _version(packed.to(master.device), master)
        self.versions = {(self.active.name, self.group, self.scale_dtype): version}

    def forward(self, master: Tensor) -> Tensor:
        if self.active is MASTER:
            return master
        if is_batched(master):
            # A product by as many weights as examples is one of a batch of floats.
            return fake_quantize(master, self.active, self.group, self.scale_dtype)
        if is_read_by_kernels(self) and (weight := self.weight(master)) is not None:
            return _read(master, weight)
        return _seen(master, self)

    def __deepcopy__(self, memo) -> Polymorphic:
        return Polymorphic(self.active, self.group, self.scale_dtype)  # a copy has a master of its own

    def __reduce__(self):
        return Polymorphic, (self.active.name, self.group, self.scale_dtype)

    def extra_repr(self) -> str:
        return f"{self.active.name}, group={self.group!r}"


@composed(name="polymorphic", master=lambda g: g)
def _seen(master: Tensor, by: Polymorphic) -> Tensor:
    return by.version(master).unpack()


@composed(name="polymorphic", master=lambda g: g)
def _read(master: Tensor, weight: Tensor) -> Tensor:
    return weight.detach()


def morph(
    module: Module,
    dtype: str | DType | Precision,
    pattern: str = "*",
    group: str | int = "tensor",
    scale_dtype: str | None = None,
) -> Module:
    """Let a module compute with its parameters in another kind of number, and return the module.

    Parameters keep their float32 masters, which optimizers go on to change; "float32" shows these again.

    Args:
        module: with all that is inside of it.
        dtype: one of the 21 kinds, for `precision`.
        pattern: of the names of parameters that change, such as "*weight".
        group, scale_dtype: as in `pack`.

    Raises:
        DTypeError: there is no such kind, or a parameter is not float32.
        RangeError: group or scale_dtype is not one of `pack`.

    Example:
        >>> import pellucid
        >>> layer = pellucid.grid.morph(pellucid.nn.Linear(64, 64, device="cpu"), "int4", "weight")
        >>> len(layer.weight.unique()) <= 16, pellucid.grid.stored_bytes(layer)
        (True, 2308)
    """
    p = precision(dtype)
    check_group(group, scale_dtype)
    plain = [(path, m) for path, m in module.named_modules() if "parametrizations" not in path.split(".")]
    places = []
    for path, owner in plain:
        for name in [*_chains(owner), *dict(owner.named_parameters(recurse=False))]:
            if fnmatchcase(full := _joined(path, name), pattern):
                if getattr(owner, name).dtype is not dtypes.float32:
                    raise DTypeError(
                        f"morph: {full} is {getattr(owner, name).dtype}, but masters are float32. Convert "
                        "the module with .float() first."
                    )
                places.append((owner, name))
    for owner, name in places:
        chain = _chains(owner).get(name, ())
        if chain and isinstance(chain[-1], Polymorphic):
            chain[-1].morph(p, group, scale_dtype)
        elif p is not MASTER:
            _give(owner, name, Polymorphic(p, group, scale_dtype))
    return module


def _give(owner: Module, name: str, seen: Polymorphic) -> None:
    register_parametrization(owner, name, seen)
    if unpacks(owner):
        watch(owner)


def stored(module: Module) -> dict[str, Tensor | PackedTensor]:
    """Parameters and buffers by name, those in another kind of number than float32 as packed bits.

    Args:
        module: morphed or not.

    Returns:
        As ``state_dict()``, but `weight` instead of `parametrizations.weight.original`.

    Example:
        >>> import pellucid
        >>> pellucid.grid.stored(pellucid.nn.ReLU())
        {}
    """
    found: dict[str, Tensor | PackedTensor] = {}
    for name, value in module.state_dict().items():
        owner, _, rest = f".{name}".partition(".parametrizations.")
        seen = rest and polymorphic(module.get_submodule(owner[1:]), rest.removesuffix(".original"))
        if not seen:
            found[name] = value
        else:
            name = _joined(owner[1:], rest.removesuffix(".original"))
            found[name] = value if seen.active is MASTER else seen.version(seen_master(module, name))
    return found


def restore(module: Module, state: Mapping[str, Tensor | PackedTensor]) -> Module:
    """Give a module what `stored` told of another one, with the kinds of numbers, and return the module.

    Args:
        module: with the same parameters and buffers, morphed or not.
        state: by name; masters become what packed bits say.

    Raises:
        WeightError: names or shapes are others; nothing is changed.

    Example:
        >>> import pellucid
        >>> one, two = (pellucid.nn.Linear(2, 2, device="cpu") for _ in range(2))
        >>> two = pellucid.grid.restore(two, pellucid.grid.stored(pellucid.grid.morph(one, "int8")))
        >>> bool((one.weight == two.weight).all())
        True
    """
    have = {name: tuple(value.shape) for name, value in stored(module).items()}
    given = {name: tuple(value.shape) for name, value in state.items()}
    if wrong := sorted(n for n in have.keys() | given.keys() if have.get(n) != given.get(n)):
        told = ", ".join(f"{n}: {given.get(n)} for {have.get(n)}" for n in wrong)
        raise WeightError(f"restore: what is stored does not fit this module: {told}.")
    for name, value in state.items():
        owner, _, last = name.rpartition(".")
        place = module.get_submodule(owner)
        if isinstance(value, PackedTensor):
            if polymorphic(place, last) is None:
                _give(place, last, Polymorphic(MASTER))
            seen = polymorphic(place, last)
            if seen is None:
                raise WeightError(f"restore: {name} is parametrized otherwise. Take these away first.")
            seen.adopt(seen_master(module, name), value)
        else:
            if (seen := polymorphic(place, last)) is not None:
                seen.morph(MASTER)
            with no_grad():
                getattr(place, last).copy_(value.to(getattr(place, last).device))
    return module


def stored_bytes(module: Module) -> int:
    """Bytes of a module's parameters and buffers as they are stored, with the scales of packed ones.

    Args:
        module: morphed or not.

    Example:
        >>> import pellucid
        >>> layer = pellucid.nn.Linear(64, 64, bias=False, device="cpu")
        >>> pellucid.grid.stored_bytes(pellucid.grid.morph(layer, "binary"))  # not 16384
        516
    """
    return sum(_bytes(value) for value in stored(module).values())


def _bytes(value: Tensor | PackedTensor) -> int:
    if isinstance(value, PackedTensor):
        return value.nbytes
    # A frozen weight has no elements of its own: its bytes are those of its planes.
    return value._storage.nbytes if value.dtype.is_quantized else value.numel() * value.element_size()


def seen_parameters(module: Module) -> Iterator[Tensor]:
    """The parameters of a module as it computes with them: versions, where it is morphed."""
    for name, _ in module.named_parameters():
        path, _, rest = f".{name}".partition(".parametrizations.")
        full = _joined(path[1:], rest.rpartition(".")[0]) if rest else name
        owner, _, last = full.rpartition(".")
        yield getattr(module.get_submodule(owner), last)


def seen_master(module: Module, name: str) -> Tensor:
    """The master behind a polymorphic parameter."""
    owner, _, last = name.rpartition(".")
    return _chains(module.get_submodule(owner))[last].original


def _chains(module: Module) -> dict[str, Any]:
    """The parametrizations of a module by name."""
    known: Any = getattr(module, "parametrizations", None)
    return dict(known.items()) if is_parametrized(module) else {}


def polymorphic_names(module: Module) -> list[str]:
    """The parametrized parameters of a module."""
    return list(_chains(module))


def polymorphic(module: Module, name: str) -> Polymorphic | None:
    """The parametrization of a parameter, if it is a polymorphic one without others."""
    chain = _chains(module).get(name, ())
    return chain[0] if len(chain) == 1 and isinstance(chain[0], Polymorphic) else None


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


__all__ = ["Polymorphic", "morph", "restore", "stored", "stored_bytes"]
