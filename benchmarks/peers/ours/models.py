"""The networks of the comparison, with the parameters that page/models.js makes."""

from itertools import pairwise
from typing import Any

import numpy as np

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

from .data import uniform

Row = dict[str, Any]
Shapes = list[tuple[str, tuple[int, ...]]]


def fill(shapes: Shapes) -> dict[str, np.ndarray]:
    """Matrices get uniform values by their place in the list, gains ones, other vectors zeros."""
    values = {}
    for place, (name, shape) in enumerate(shapes):
        if len(shape) > 1:
            values[name] = uniform(shape, 1000 + place, shape[0] ** -0.5)
        else:
            values[name] = np.full(shape, float(name.endswith("gain")), np.float32)
    return values


def block_shapes(prefix: str, row: Row) -> Shapes:
    d, ff = row["d"], row["ff"]
    shapes: Shapes = [
        ("gain", (d,)),
        ("shift", (d,)),
        ("q", (d, d)),
        ("k", (d, d)),
        ("v", (d, d)),
        ("o", (d, d)),
        ("ff_gain", (d,)),
        ("ff_shift", (d,)),
        ("up", (d, ff)),
        ("down", (ff, d)),
    ]
    return [(prefix + name, shape) for name, shape in shapes]


def set_linear(layer: nn.Linear, weight: np.ndarray) -> None:
    """The lists have matrices as [inputs, outputs], PyTorch the other way round."""
    layer.weight.data.copy_(torch.from_numpy(np.ascontiguousarray(weight.T)))


def set_norm(layer: Any, gain: np.ndarray, shift: np.ndarray) -> None:
    layer.weight.data.copy_(torch.from_numpy(gain))
    layer.bias.data.copy_(torch.from_numpy(shift))


class Block(nn.Module):
    """Normalise, attend, add; normalise, widen, GELU, narrow, add. Input: [batch, tokens, d]."""

    def __init__(self, row: Row, causal: bool):
        super().__init__()
        d, ff = row["d"], row["ff"]
        self.heads, self.causal = row["heads"], causal
        self.norm, self.ff_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(d, ff, bias=False), nn.Linear(ff, d, bias=False)

    def fill(self, values: dict[str, np.ndarray], prefix: str = "") -> None:
        for name in ("q", "k", "v", "o", "up", "down"):
            set_linear(getattr(self, name), values[prefix + name])
        set_norm(self.norm, values[prefix + "gain"], values[prefix + "shift"])
        set_norm(self.ff_norm, values[prefix + "ff_gain"], values[prefix + "ff_shift"])

    def forward(self, x):
        batch, tokens, d = x.shape
        h = self.norm(x)
        q, k, v = (
            layer(h).view(batch, tokens, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, tokens, d))
        return x + self.down(F.gelu(self.up(self.ff_norm(x)), approximate="tanh"))


class MLP(nn.Module):
    """Linear layers with ReLU between them."""

    def __init__(self, row: Row):
        super().__init__()
        widths = row["widths"]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in pairwise(widths)])

    def fill(self) -> None:
        shapes: Shapes = []
        for i, layer in enumerate(self.layers):
            shapes += [(f"{i}.weight", (layer.in_features, layer.out_features))]
            shapes += [(f"{i}.bias", (layer.out_features,))]
        values = fill(shapes)
        for i, layer in enumerate(self.layers):
            set_linear(layer, values[f"{i}.weight"])
            layer.bias.data.copy_(torch.from_numpy(values[f"{i}.bias"]))

    def matrix(self, name: str) -> nn.Linear:
        """The layer of a matrix of the list, such as `2.weight`."""
        return self.layers[int(name.removesuffix(".weight"))]

    def forward(self, x):
        *hidden, last = self.layers
        for layer in hidden:
            x = F.relu(layer(x))
        return last(x)


class GPT(nn.Module):
    """Embeddings of ids and places, blocks with a causal mask, a norm, a head. Input: ids [batch, tokens]."""

    def __init__(self, row: Row):
        super().__init__()
        self.row = row
        d = row["d"]
        self.ids, self.places = nn.Embedding(row["vocabulary"], d), nn.Embedding(row["tokens"], d)
        self.blocks = nn.ModuleList([Block(row, causal=True) for _ in range(row["layers"])])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, row["vocabulary"], bias=False)

    def fill(self) -> None:
        row, d = self.row, self.row["d"]
        blocks = [shape for i in range(row["layers"]) for shape in block_shapes(f"{i}.", row)]
        ends: Shapes = [("gain", (d,)), ("shift", (d,)), ("head", (d, row["vocabulary"]))]
        starts: Shapes = [("ids", (row["vocabulary"], d)), ("places", (row["tokens"], d))]
        values = fill([*starts, *blocks, *ends])
        self.ids.weight.data.copy_(torch.from_numpy(values["ids"]))
        self.places.weight.data.copy_(torch.from_numpy(values["places"]))
        for i, block in enumerate(self.blocks):
            block.fill(values, f"{i}.")
        set_norm(self.norm, values["gain"], values["shift"])
        set_linear(self.head, values["head"])

    def matrix(self, name: str) -> nn.Linear:
        """The layer of a matrix of the list, such as `0.q` or `head`."""
        layer = self.get_submodule(f"blocks.{name}" if "." in name else name)
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(self, ids):
        x = self.ids(ids) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
