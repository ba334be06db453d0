"""The names in a tree of modules: walking it, and finding what is at a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from ..errors import RangeError
from ..tensors.tensor import Tensor
from .parameter import Parameter

M = TypeVar("M", bound="Tree")


class Tree(Generic[M]):
    """What every module knows of the modules, parameters and buffers in and below it.

    ``M`` is the class of modules, which is made with this one.
    """

    # PyTorch's, which programs read.
    dump_patches = call_super_init = False
    # Attribute -> parameter, buffer or module, in the order of registration.
    _kinds: dict[str, str]
    # Buffers that are not saved.
    _transient: frozenset[str] = frozenset()

    def _own(self, kind: str) -> dict[str, Any]:
        """The attributes of one kind, None among them."""
        here = self.__dict__
        return {name: here[name] for name, k in self._kinds.items() if k == kind}

    # A snapshot each: to change one, assign the attribute.

    @property
    def _parameters(self) -> dict[str, Parameter | None]:
        return self._own("parameter")

    @property
    def _buffers(self) -> dict[str, Tensor | None]:
        return self._own("buffer")

    @property
    def _modules(self) -> dict[str, M | None]:
        return self._own("module")

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        return set(self._transient)

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, M]]:
        """This module under the name ``prefix`` and all below it by path, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, m in self._own("module").items():
            if m is not None:
                yield from m.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[M]:
        """This module and all below it, each once; without ``remove_duplicate`` as often as it is there."""
        for _, m in self.named_modules(remove_duplicate=remove_duplicate):
            yield m

    def named_children(self) -> Iterator[tuple[str, M]]:
        """The modules directly below by name, each once."""
        memo = set()
        for name, m in self._own("module").items():
            if m is not None and m not in memo:
                memo.add(m)
                yield name, m

    def children(self) -> Iterator[M]:
        """The modules directly below, each once."""
        for _, m in self.named_children():
            yield m

    def _named(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        memo = set()
        tree = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, m in tree:
            for name, value in m._own(kind).items():
                if value is None or value in memo:
                    continue
                if remove_duplicate:
                    memo.add(value)
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters by path; one that is shared comes once, under its first name."""
        return self._named("parameter", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters of this module and all below it, each once."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers by path, each once."""
        return self._named("buffer", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers of this module and all below it, each once."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def get_submodule(self, target: str) -> M:
        """The module at a path such as ``"layers.0.mlp"``; this one for ``""``.

        Raises:
            AttributeError: there is none.
        """
        m: M = self  # type: ignore[assignment]
        for part in target.split(".") if target else []:
            found = m.__dict__.get(part) if m._kinds.get(part) == "module" else None
            if found is None:
                raise AttributeError(
                    f"{type(m).__name__} has no submodule {part!r} (of {target!r}). There are: "
                    f"{', '.join(m._own('module')) or 'none'}."
                )
            m = found
        return m

    def set_submodule(self, target: str, module: M, strict: bool = False) -> None:
        """Put a module at a path such as ``"layers.0.mlp"``.

        Args:
            target: the path.
            module: what comes there.
            strict: whether there must be one already.

        Raises:
            ValueError: the path is empty.
            AttributeError: there is nothing on the way, or, with ``strict``, at its end.
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise RangeError(f"set_submodule: {target!r} names no submodule.")
        if not isinstance(module, Tree):
            raise ValueError(f"set_submodule: {type(module).__name__} is not a Module.")
        if strict:
            self.get_submodule(target)
        setattr(self.get_submodule(path), name, module)

    def _get(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        m = self.get_submodule(path)
        if m._kinds.get(name) != kind:
            raise AttributeError(
                f"{type(m).__name__} has no {kind} {name!r} (of {target!r}). There are: "
                f"{', '.join(m._own(kind)) or 'none'}."
            )
        return m.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path.

        Raises:
            AttributeError: there is none.
        """
        return self._get(target, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path.

        Raises:
            AttributeError: there is none.
        """
        return self._get(target, "buffer")

    def apply(self, fn: Callable[[M], Any]) -> M:
        """Call ``fn`` on every module below and on this one, children first; returns this one."""
        for m in self.children():
            m.apply(fn)
        fn(self)  # type: ignore[arg-type]
        return self  # type: ignore[return-value]


__all__ = ["Tree"]
