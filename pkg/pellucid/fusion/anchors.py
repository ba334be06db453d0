"""Which kernels besides element-by-element ones take part in fusion, and where their data goes in and out.

An input named here is read only through ``load_<input>(i)``, by its linear index in a contiguous tensor, and
few times per element. Outputs are written only through functions ``store_<name>(i, ...)``, every element
once, by its linear index; values that one function stores are at hand together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..kernel.source import PHYSICAL, WGSL_TYPE, KernelSource
from ..op.launches import RegisteredLaunch

_LOADS = {
    "reduce/rows": "x",
    "reduce/columns": "x",
    "reduce/strips": "x",
    "reduce/split_rows": "x",
    "reduce/split_strips": "x",
    "reduce/scan": "x",
    "reduce/scan_direct": "x",
    "norm/softmax_columns": "x",
    "norm/softmax_rows": "x",
    "norm/softmax_held": "x",
    "norm/softmax_parts": "x",
    "norm/rms": "x",
    "norm/layer": "x",
    "norm/rms_held": "x",
    "norm/layer_held": "x",
    "attention/rotary": "x",
    "attention/cache_write": "rows",
}
_STORES = frozenset(
    {
        "reduce/rows", "reduce/columns", "reduce/strips", "reduce/scan", "reduce/scan_direct",
        "reduce/split_rows", "reduce/split_strips",
        "norm/softmax_rows", "norm/softmax_held", "norm/softmax_columns", "norm/softmax_finish",
        "norm/rms", "norm/layer", "norm/rms_held", "norm/layer_held", "norm/gradient",
        "matmul/tiled", "matmul/direct", "matmul/vector", "matmul/vector_columns", "matmul/combine",
        "matmul/quant/direct", "matmul/quant/direct_vector",
        "matmul/quant/tiled", "matmul/quant/tiles", "matmul/quant/tiled_pair",
        "matmul/quant/vector", "matmul/quant/split", "matmul/quant/vectors", "matmul/quant/pair",
        "matmul/quant/direct_vectors", "matmul/quant/direct_pair",
        "conv/direct", "conv/tiled",
        "conv/pool_average", "conv/pool_average_gradient", "conv/pool_max_gradient",
        "attention/rotary", "attention/combine", "attention/prefill", "attention/decode_step",
        "index/select", "index/gather", "index/quant_rows", "quant/dequantize",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A place in a kernel where values are stored.

    Args:
        function: its name.
        line: the whole function, on one line.
        values: binding that is written -> the argument that holds the value.
        types: binding -> WGSL type of the value.
    """

    function: str
    line: str
    values: dict[str, str]
    types: dict[str, str]


_FUNCTION = re.compile(r"^fn (store_\w+)\(i: u32, ([^)]*)\) \{ (.*) \}$", re.M)
_STORE = re.compile(r"(\w+)\[i\] = (\w+);")


@lru_cache(1024)
def _sites(source: KernelSource) -> tuple[Site, ...]:
    found = []
    for m in _FUNCTION.finditer(source.text):
        arguments = dict(part.strip().split(": ") for part in m[2].split(","))
        stores = _STORE.findall(m[3])
        whole = " ".join(f"{b}[i] = {v};" for b, v in stores) == m[3]
        if stores and whole and all(v in arguments for _, v in stores):
            types = {b: source.aliases.get(arguments[v], arguments[v]) for b, v in stores}
            found.append(Site(m[1], m[0], dict(stores), types))
    return tuple(found)


def load_of(node: RegisteredLaunch) -> str | None:
    """The input through which a kernel takes another one's values instead of a tensor."""
    return _LOADS.get(node.source.name)


def sites(node: RegisteredLaunch) -> tuple[Site, ...]:
    """Where a kernel can hand its values on; none where it cannot."""
    if node.map is not None or node.source.name not in _STORES:
        return ()
    return _sites(node.source)


def handed_on(node: RegisteredLaunch) -> frozenset[str]:
    """The outputs of a kernel that others may take over: of types that are stored element by element."""
    names = [(b.name, m) for b, m in zip(node.source.bindings, node.metas, strict=True)]
    return frozenset(
        name
        for site in sites(node)
        for name in site.values
        for b, m in names
        if b == name
        and m is not None
        and m.dtype in PHYSICAL
        and PHYSICAL[m.dtype][1] == 1
        and site.types[name] == WGSL_TYPE[PHYSICAL[m.dtype][2]]
    )
