"""Kernels: WGSL sources and their holes, variants by device, turns of loops, autotuning."""

from ...device.resources import add_text
from .source import KernelSource, load


def define(name: str, text: str) -> KernelSource:
    """Have a text stand for ``wgsl/<name>.wgsl``: the kernel of a program's own op, by the rules of
    wgsl/README.md.

    Raises:
        FileExistsError: there is a kernel of that name.
        KernelError: its header says something of fusion that does not fit.
    """
    add_text(f"wgsl/{name}.wgsl", text)
    return load(name)
