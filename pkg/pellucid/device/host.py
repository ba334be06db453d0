"""The contract between the stream and whoever talks to WebGPU: "The host's contract" in docs/design.md."""

from array import array
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .table import Table

STATUS_SLOT = 0
STATUS_BYTES = 64
# What stands in the place of a launch for the time of a window.
WINDOW = -1
# What every error of a lost device ends with.
AFTER_LOSS = "Tensors on it are gone; call pellucid.webgpu.reset() and load them again."
# What adapters that run on the CPU call themselves, in any of their names.
_SOFTWARE = ("swiftshader", "llvmpipe", "lavapipe", "softpipe", "basic render driver")
# What failures of the test of subgroups have in them (op/kernel/subgroups.py): they are its own to hear of.
TEST_OF_SUBGROUPS = "subgroups (reduce/subgroups)"


@dataclass(frozen=True)
class Info:
    """What a host found: which adapter, what it offers.

    ``immediates`` is the number of bytes of parameters that travel as immediates; 0 means through the arena.
    ``version`` is that of the browser or of the native library.
    """

    host: str
    vendor: str
    architecture: str
    description: str
    features: frozenset[str] = frozenset()
    limits: dict[str, int] = field(default_factory=dict)
    immediates: int = 0
    version: str = ""

    @property
    def is_software(self) -> bool:
        """Whether the adapter runs on the CPU."""
        names = f"{self.vendor} {self.architecture} {self.description}".lower()
        return any(name in names for name in _SOFTWARE)


class Host(Protocol):
    """What `browser` and `native` both implement.

    ``compiles_beside`` says whether `pipeline_later` does. ``taken`` is the window of the last `submit` that
    came so far that an interrupt cannot stop it, ``table`` where the user's measurements outlive the process,
    None for nowhere.
    """

    info: Info
    compiles_beside: bool
    taken: array | None

    @property
    def table(self) -> Table | None: ...

    def pipeline(self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str) -> int: ...
    def pipeline_later(
        self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str, compact: str = ""
    ) -> int: ...
    def launch(
        self, pipeline: int, params: bytes, patches: tuple[int, ...], x: int, y: int, z: int, turn: int = -1
    ) -> int: ...
    def compiled(self, launches: Sequence[int]) -> bool: ...
    def forget(self, launches: Sequence[int], pipelines: Sequence[int]) -> None: ...
    def submit(self, words: array, held: bool = False) -> None: ...
    def write(self, slot: int, nbytes: int, offset: int, data) -> None: ...
    def begin_read(self, slot: int, offset: int, nbytes: int) -> Any: ...
    def read(self, ticket: Any) -> tuple[bytes | bytearray | memoryview, tuple[int, ...]]: ...
    def read_async(
        self, ticket: Any
    ) -> Awaitable[tuple[bytes | bytearray | memoryview, tuple[int, ...]]]: ...
    def drop_read(self, ticket: Any) -> None: ...
    def synchronize(self) -> None: ...
    def synchronize_async(self) -> Awaitable[None]: ...
    def timing(self, on: bool) -> bool: ...
    def timings(self) -> list[tuple[int, int, int]]: ...
    def timings_async(self) -> Awaitable[list[tuple[int, int, int]]]: ...
    def stats(self) -> dict[str, int]: ...
    def trim(self) -> None: ...
    def failure(self) -> str | None: ...
    def close(self) -> None: ...
