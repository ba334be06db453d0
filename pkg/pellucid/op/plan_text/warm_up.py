"""Warm-up of the planner while a device opens: kernels of everyday calls are written, as far as no device is
asked, and compiled beside the program once it is open. A browser takes a tenth of a second and more to open
one, in which Python has nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ...device import device
from ...device.host import Host
from ...device.stream import stream
from ...errors import PellucidError
from ...tensors.dtypes import bool_, float32
from ...tensors.meta import meta
from ...tensors.tensor import Tensor
from ..elementwise import Elementwise
from ..kernel.source import KernelSource, load
from ..kernel.turns import code_of_turns
from ..launches import compile_ahead
from ..plan import NoStorage
from ..planning import Op
from ..schema import OPS

# Of tensors x of two axes, b of one and c of bools.
_CALLS = (
    ("mul", "x", "x"), ("add", "x", "x"), ("sub", "x", "x"), ("div", "x", "x"), ("mul", "x", 0.5),
    ("add", "x", "b"), ("gt", "x", 0.0), ("where", "c", "x", "x"), ("abs", "x"), ("exp", "x"), ("tanh", "x"),
    ("relu", "x"), ("neg", "x"), ("filled", (2, 4), 0.5, "float32", "webgpu"),
)  # fmt: skip
# Of rows, whose kernels are chosen once the device is known.
_OF_ROWS = (("sum", "rows", -1),)
# The kernels that are written, and the ops' public names.
_written: dict[str, tuple[KernelSource, str]] = {}
_FILES = "elementwise/map_many", "reduce/rows", "matmul/tiled"


def _operands() -> dict[Any, Any]:
    webgpu = device("webgpu")
    named: dict[Any, Any] = {"float32": float32, "webgpu": webgpu}
    kinds = {"x": ((2, 4), float32), "b": ((4,), float32), "c": ((2, 4), bool_), "rows": ((4, 64), float32)}
    return named | {n: Tensor(NoStorage(), meta(shape, d, webgpu), 0) for n, (shape, d) in kinds.items()}


def write_kernel(name: str, *arguments: Any) -> None:
    """Write the kernel of a call of an elementwise op, whose text is remembered.

    Args:
        name: the op's.
        arguments: names of operands, of a dtype and a device, and numbers; the others have their defaults.
    """
    o = OPS[name]
    assert isinstance(o, Op)
    assert isinstance(o.kernel, Elementwise)
    source = o.kernel.launch(o.inferred(_values(o, arguments))).source
    _written[source.finish(immediate=True)] = source, o.public


def _values(o: Op, arguments: tuple) -> tuple:
    operands = _operands()
    values = [operands.get(a, a) for a in arguments]
    return (*values, *[a.default for a in o.arguments[len(values) :]])


def compile_written(host: Host) -> None:
    """Compile the kernels that were written, and those of rows, where that is done beside Python."""
    if host.info.is_software or not host.compiles_beside:
        return
    with suppress(PellucidError):  # whoever needs one hears of it
        for source, op in _written.values():
            compile_ahead(source, op)
        for name, *arguments in _OF_ROWS:
            o = OPS[name]
            assert isinstance(o, Op)
            o.plan(_values(o, tuple(arguments)))


def read_kernel(file: str) -> None:
    """Read a kernel's file, the names of what can be filled in it, and its turns."""
    source = load(file)
    source.declares("")
    code_of_turns(source)


def warm_up() -> list[Callable[[], Any]]:
    """The steps, each short; what they write is compiled when the device is open."""
    stream().on_open.append(compile_written)
    return [
        *[partial(write_kernel, *call) for call in _CALLS],
        *[partial(read_kernel, file) for file in _FILES],
    ]
