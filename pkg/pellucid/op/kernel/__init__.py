"""Kernels: WGSL sources and their holes, variants by device, turns of loops, autotuning.

What most declarations of kernels need is here by name.
"""

from ...device.resources import add_text
from .element_types import NATIVE, physical, register_type
from .launch import Launch, Params, flag, per_element, per_line
from .source import KernelSource, load
from .turns import PIECE
from .variants import LONG, is_direct, rows_of

__all__ = [
    "LONG",
    "NATIVE",
    "PIECE",
    "KernelSource",
    "Launch",
    "Params",
    "define",
    "flag",
    "is_direct",
    "load",
    "per_element",
    "per_line",
    "physical",
    "register_type",
    "rows_of",
]


def define(name: str, text: str) -> KernelSource:
    """Have a text stand for ``wgsl/<name>.wgsl``: the kernel of a program's own op, by the rules of
    wgsl/README.md.

    Raises:
        FileExistsError: there is a kernel of that name.
        KernelError: its header says something of fusion that does not fit.
    """
    add_text(f"wgsl/{name}.wgsl", text)
    return load(name)
