"""Programs written for PyTorch, unchanged: `install` makes ``import torch`` find Pellucid."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ...errors import PellucidError
from ...tensors.absent import message, public, refuse
from ...tensors.dtypes import DType
from ...tensors.formats import layout, memory_format
from ...tensors.shape import Size
from .rooms import ROOMS, room
from .row import kind

__all__ = ["install", "is_installed", "module_of", "room"]

# Packages whose modules have PyTorch's paths; what PyTorch has in a module that is not here, its package has.
_PACKAGES = ("nn", "optim", "autograd", "utils", "distributions", "func", "testing")
# Those whose modules are attributes by now.
_shown: set[str] = set()


class _Facade(ModuleType):
    """``torch`` itself: Pellucid with the version of PyTorch whose names it has."""

    def __init__(self, package: ModuleType):
        super().__init__("torch", package.__doc__)
        self.__path__ = []
        self.__version__ = room("version").__version__
        self._package = package

    def __getattr__(self, name: str) -> Any:
        found = room(name) if _has_row(name) else getattr(self._package, name)
        if name in _PACKAGES:
            _show_modules(found, name)
        return found

    def __dir__(self) -> Iterable[str]:
        return sorted({*vars(self), *dir(self._package)})


def _show_modules(package: ModuleType, path: str) -> None:
    """Let PyTorch's modules within a package of its own be attributes of it, as its package imports them."""
    names = vars(package)
    own = names.get("__getattr__")
    if path in _shown or own is None:
        return
    _shown.add(path)

    known = public().get(f"modules of torch.{path}", frozenset())
    asked: set[str] = set()

    def found(name: str) -> Any:
        # The search asks the package, too.
        if name in known and not name.startswith("_") and name not in asked:
            asked.add(name)
            try:
                if (module := module_of(f"{path}.{name}")) is not None:
                    return module
            finally:
                asked.remove(name)
        return own(name)

    names["__getattr__"] = found
    for name, value in [*names.items()]:
        if isinstance(value, ModuleType) and f"modules of torch.{path}.{name}" in public():
            _show_modules(value, f"{path}.{name}")


class _Existing(Loader):
    """Gives a module that exists already under another name, and leaves it as it is."""

    def __init__(self, module: ModuleType):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        path = (module.__spec__.name if module.__spec__ else "").removeprefix("torch.")
        module.__spec__ = self._spec or module.__spec__
        if path in _PACKAGES:
            _show_modules(module, path)


class _Release(Distribution):
    """What ``importlib.metadata`` says of ``torch``: its version, and no files."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: torch\nVersion: {room('version').__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"torch: {path} is no file, for pellucid.compat stands for torch.")


class _Finder(MetaPathFinder):
    """Finds ``torch.<path>`` in the package, or among the rooms of the table."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        head, _, rest = fullname.partition(".")
        if head != "torch" or not rest:
            return None
        found = module_of(rest)
        if found is None:
            if _is_known(rest):
                raise ModuleNotFoundError(message(fullname), name=fullname)
            return None
        return ModuleSpec(fullname, _Existing(found), is_package=True)

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()):  # noqa: B008
        return [_Release()] if context.name == "torch" else []


def _has_row(path: str) -> bool:
    """Whether the table says what a module is: of what the package itself has, only of ``jit``, since
    `pellucid.jit` is another, and of those that have names of the package and others."""
    return path in ROOMS and (path in ("jit", "export", "onnx") or path not in sys.modules["pellucid"]._LAZY)


def module_of(path: str) -> ModuleType | None:
    """The module that stands for ``torch.<path>``, or None."""
    if _has_row(path):
        return room(path)
    package, _, last = path.rpartition(".")
    if path.partition(".")[0] in _PACKAGES:
        try:
            if find_spec(f"pellucid.{path}") is not None:
                return _answering(import_module(f"pellucid.{path}"), path)
        except ModuleNotFoundError:  # of the package that it would be in
            pass
    parent = module_of(package) if package else sys.modules["pellucid"]
    found = getattr(parent, last, None)
    if isinstance(found, ModuleType):
        return _answering(found, path)
    return room(path, at=package) if last in public().get(f"modules of torch.{package}", ()) else None


def _answering(module: ModuleType, path: str) -> ModuleType:
    """A module of the package that also gives what its package has, as PyTorch may have it in this module,
    and says of the rest that it is missing."""
    names, package = vars(module), path.rpartition(".")[0]
    if "__getattr__" in names or not module.__name__.startswith("pellucid."):
        return module

    def other(name: str) -> Any:
        around = vars(module_of(package)) if package and name[0] != "_" else {}
        value = around.get(name)
        if value is None or isinstance(value, ModuleType):
            refuse(f"torch.{path}", name, names)
        return value

    names["__getattr__"] = other
    return module


def _is_known(path: str) -> bool:
    package, _, last = path.rpartition(".")
    return last in public().get(f"modules of torch.{package}" if package else "torch", ())


def is_installed() -> bool:
    """Whether ``import torch`` finds Pellucid."""
    return isinstance(sys.modules.get("torch"), _Facade)


def install() -> ModuleType:
    """Let ``import torch`` and its submodules find Pellucid, in this process, from now on.

    What only answers questions, such as ``torch.cuda.is_available()``, answers truthfully. What PyTorch has
    and Pellucid has not is an error at the call or the attribute, which says so. A second call changes
    nothing.

    Returns:
        The module ``torch``.

    Raises:
        PellucidError: PyTorch itself is imported already; a process has one ``torch``.

    Example:
        >>> import pellucid
        >>> torch = pellucid.compat.install()
        >>> import torch.nn.functional as F
        >>> F.relu(torch.tensor([-1.0, 2.0], device="cpu")).tolist()
        [0.0, 2.0]
        >>> torch.cuda.is_available()
        False
    """
    known = sys.modules.get("torch")
    if isinstance(known, _Facade):
        return known
    if known is not None:
        raise PellucidError(
            "compat.install: PyTorch itself is imported already, and a process has one torch. Call it first."
        )
    package = sys.modules["pellucid"]
    torch = _Facade(package)
    torch.__spec__ = ModuleSpec("torch", _Existing(torch), is_package=True)
    sys.modules["torch"] = torch
    # What programs print, and read again, is called as there.
    DType.package = memory_format.package = layout.package = "torch"
    Size.prefix = "torch."
    sys.meta_path.insert(0, _Finder())
    # Rooms within modules that are the package's own become attributes of these.
    for path in ROOMS:
        parent, _, last = path.rpartition(".")
        if parent and parent not in ROOMS and (found := module_of(parent)) is not None:
            vars(found).setdefault(last, room(path))
    # Programs ask what a layer is, also of classes that are missing here: making one is what is refused.
    for place in ("nn", "optim", "optim.lr_scheduler"):
        own = vars(import_module(f"pellucid.{place}"))
        for name in public()[f"torch.{place}"] - own.keys():
            if name[0].isupper():
                own[name] = kind(f"torch.{place}.{name}")
    # PyTorch's layers are also names of the package that their modules are in.
    layers = vars(import_module("pellucid.nn"))
    within = vars(import_module("pellucid.nn.modules"))
    within.update({name: value for name, value in layers.items() if name[0].isupper()})
    return torch
