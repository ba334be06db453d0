"""Which kernels besides element-by-element ones take part in fusion, and where their data goes in and out.

An input named here is read only through ``load_<input>(i)``, by its linear index in a contiguous tensor, and
few times per element; the output is written only through ``store_out(i, value)``, every element once, by its
linear index.
"""

from __future__ import annotations

from ..launches import Node

_LOADS = {
    "reduce/rows": "x",
    "reduce/columns": "x",
    "reduce/scan": "x",
    "softmax/rows": "x",
    "softmax/parts": "x",
    "norm/rms": "x",
    "norm/layer": "x",
    "attention/rotary": "x",
    "attention/cache_write": "rows",
}
_STORES = frozenset(
    {
        "reduce/rows", "reduce/columns", "reduce/scan",
        "softmax/rows", "softmax/finish", "norm/rms", "norm/layer",
        "matmul/tiled", "matmul/direct", "matmul/vector", "matmul/vector_columns",
        "matmul/quant_direct", "matmul/quant_direct_vector", "matmul/quant_tiled", "matmul/quant_vector",
        "attention/rotary", "attention/combine", "attention/prefill",
        "index/select", "index/gather", "index/quant_rows", "quant/dequantize",
    }
)  # fmt: skip


def load_of(node: Node) -> str | None:
    """The input through which a kernel takes another one's value instead of a tensor."""
    return _LOADS.get(node.source.name)


def stores(node: Node) -> bool:
    """Whether a kernel can hand its values on instead of storing them."""
    return node.source.name in _STORES
