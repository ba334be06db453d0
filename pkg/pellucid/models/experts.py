"""Mixture of experts: gated feed-forwards of which each token takes some, and the router that chooses.

Shazeer et al. 2017, "Outrageously large neural networks". The weights of all experts are one matrix, float or
quantized. Only rows of chosen experts are read: they are gathered, then multiplied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.index.sort import topk
from ..ops.matmul.dense import matmul
from ..ops.norm.softmax import softmax
from ..ops.shape.creation import arange, empty
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from .activations import activation
from .decoder import Decoder, DecoderLayer, FeedForward
from .language_model import CausalLM

_EXPERT = re.compile(r"(.*\.experts)\.([0-9]{1,5})\.(.*)", re.ASCII)


def check_experts(where: str, taken: int, count: int) -> None:
    """Refuse tokens that take more experts than there are.

    Raises:
        FormatError: they do.
    """
    if taken > count:
        raise FormatError(f"{where}: a token takes {taken} experts of {count}. The file is damaged.")


class ExpertLinear(Module):
    """A product with the weight of an expert of each row's own.

    Args:
        experts: how many there are.
        inputs, outputs: columns before and after.
        bias: whether each has one.

    Attributes:
        weight: (experts * outputs, inputs), those of an expert beside each other; float or quantized.
        bias: (experts, outputs), or None.
    """

    def __init__(self, experts: int, inputs: int, outputs: int, bias: bool = False):
        super().__init__()
        self.outputs = outputs
        self.weight = Parameter(empty(experts * outputs, inputs).normal_(0, 0.02))
        self.bias = Parameter(empty(experts, outputs).zero_()) if bias else None

    def forward(self, input: Tensor, chosen: Tensor) -> Tensor:
        """(tokens, taken, inputs) and the experts (tokens, taken) to (tokens, taken, outputs)."""
        out = self.product(input, chosen)
        return out if self.bias is None else out + F.embedding(chosen, self.bias)

    def product(self, input: Tensor, chosen: Tensor) -> Tensor:
        """What `forward` gives without the bias."""
        rows = chosen.unsqueeze(-1) * self.outputs + arange(self.outputs, device=input.device)
        return matmul(F.embedding(rows, self.weight), input.unsqueeze(-1)).squeeze(-1)


class ExpertConv1D(ExpertLinear):
    """A product with the weight of an expert of each row's own, which lies transposed.

    Args:
        experts, inputs, outputs, bias: as in `ExpertLinear`.

    Attributes:
        weight: (experts * inputs, outputs).
        bias: (experts, outputs), or None.
    """

    def __init__(self, experts: int, inputs: int, outputs: int, bias: bool = False):
        super().__init__(experts, inputs, outputs, bias)
        self.transposed_parts = experts
        self.weight = Parameter(empty(experts * inputs, outputs).normal_(0, 0.02))

    def product(self, input: Tensor, chosen: Tensor) -> Tensor:
        columns = input.shape[-1]
        rows = chosen.unsqueeze(-1) * columns + arange(columns, device=input.device)
        return matmul(input.unsqueeze(-2), F.embedding(rows, self.weight)).squeeze(-2)


class Experts(Module):
    """Gated feed-forwards, ``down(act(gate(x)) * up(x))`` each.

    Args:
        config: the model's.
        count: how many there are.
        columns: between the products of each.
        names: of the products gate, up and down.
    """

    def __init__(self, config: Any, count: int, columns: int, names: tuple[str, str, str]):
        super().__init__()
        self.count, self.names = count, names
        self.activation = activation(config.activation)
        self.add_products(config, columns)

    def add_products(self, config: Any, columns: int) -> None:
        """Make the products."""
        count, names, dim = self.count, self.names, config.hidden_size
        for name, inputs, outputs in zip(names, (dim, dim, columns), (columns, columns, dim), strict=True):
            setattr(self, name, ExpertLinear(count, inputs, outputs))

    def forward(self, x: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        """What the experts of each token say, added by their shares.

        Args:
            x: (tokens, dim).
            chosen: (tokens, taken), numbers of experts.
            shares: (tokens, taken).
        """
        # No more is gathered at once than all experts have.
        step = max(self.count // chosen.shape[1], 1)
        parts = [
            self._some(x[k : k + step], chosen[k : k + step], shares[k : k + step])
            for k in range(0, x.shape[0], step)
        ]
        return cat(parts) if len(parts) > 1 else parts[0]

    def _some(self, x: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        x = x.unsqueeze(1).expand(-1, chosen.shape[1], -1)
        down = getattr(self, self.names[2])
        return (down(self.mixed(x, chosen), chosen) * shares.unsqueeze(-1)).sum(1)

    def mixed(self, x: Tensor, chosen: Tensor) -> Tensor:
        """What is between the products: (tokens, taken, columns)."""
        gate, up = (getattr(self, name) for name in self.names[:2])
        return self.activation(gate(x, chosen)) * up(x, chosen)


class Router(Linear):
    """Which experts each token takes: the most likely ones, and their shares.

    Args:
        config: the model's, with ``num_experts``, ``num_experts_per_tok`` and ``norm_topk_prob``.
        bias: whether there is one.
    """

    def __init__(self, config: Any, bias: bool = False):
        super().__init__(config.hidden_size, config.num_experts, bias=bias)
        self.taken, self.is_normed = config.num_experts_per_tok, config.norm_topk_prob

    def logits(self, x: Tensor) -> Tensor:
        """What the softmax is of: (tokens, experts)."""
        return F.linear(x, self.weight, self.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        shares, chosen = topk(softmax(self.logits(x), -1), self.taken, -1)
        return shares / shares.sum(-1, True) if self.is_normed else shares, chosen


class SparseFeedForward(Module):
    """A router and its experts: each token takes the most likely ones.

    Args:
        config: the model's, with what the router takes, ``expert_columns``, ``expert_names`` and
            ``shared_columns``.
    """

    def __init__(self, config: Any):
        super().__init__()
        self.gate = Router(config)
        self.experts = Experts(config, config.num_experts, config.expert_columns, config.expert_names)
        self.has_shared = config.shared_columns > 0
        if self.has_shared:
            self.shared_expert = FeedForward(config, config.shared_columns)
            self.shared_expert_gate = Linear(config.hidden_size, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        shares, chosen = self.gate(flat)
        out = self.experts(flat, chosen, shares)
        if self.has_shared:
            out = out + self.shared_expert(flat) * self.shared_expert_gate(flat).sigmoid()
        return out.reshape(x.shape)


class SparseDecoderLayer(DecoderLayer):
    """A layer with experts, where the configuration's ``is_sparse(layer)`` says so."""

    sparse_class: ClassVar[type[Any]] = SparseFeedForward

    def add_mlp(self, config: Any, layer: int) -> None:
        kind = self.sparse_class if config.is_sparse(layer) else FeedForward
        setattr(self, self.names.mlp, kind(config))


class SparseDecoder(Decoder):
    """A decoder with experts."""

    layer_class = SparseDecoderLayer


class SparseCausalLM(CausalLM):
    """A model with experts and a head over the vocabulary.

    A folder has a weight for each expert: they become one.

    Args:
        config: of the class's ``config_class``.
    """

    model_class = SparseDecoder
    gguf_experts: ClassVar[dict[str, str]] = {
        "ffn_gate_inp": "gate",
        "ffn_gate_exps": "experts.gate_proj",
        "ffn_up_exps": "experts.up_proj",
        "ffn_down_exps": "experts.down_proj",
        "ffn_gate_inp_shexp": "shared_expert_gate",
        "ffn_gate_shexp": "shared_expert.gate_proj",
        "ffn_up_shexp": "shared_expert.up_proj",
        "ffn_down_shexp": "shared_expert.down_proj",
    }

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        order: dict[str, int] = {}
        found = super().paths(names)
        for name, path in found.items():
            if match := _EXPERT.fullmatch(path):
                found[name], order[name] = f"{match[1]}.{match[3]}", int(match[2])
        return dict(sorted(found.items(), key=lambda item: order.get(item[0], 0)))

    def folder_names(self, path: str, shape: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
        stem, is_expert, name = path.partition(".experts.")
        if not is_expert:
            return super().folder_names(path, shape)
        experts: Any = self.get_submodule(f"{stem}.experts")
        one = shape[0] // experts.count, *shape[1:]
        return [(f"{stem}.experts.{k}.{name}", one) for k in range(experts.count)]

    def gguf_shape(self, path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        if "shared_expert_gate" in path:
            return shape[1:]
        stem, is_expert, name = path.partition(".experts.")
        if not is_expert or not name.endswith(".weight"):
            return super().gguf_shape(path, shape)
        experts: Any = self.get_submodule(f"{stem}.experts")
        count = experts.count
        return count, shape[0] // count, shape[1]

    def gguf_paths(self) -> dict[str, str]:
        mlp = f"{self.layers_path}.{{}}.{self._names.mlp}."
        own = {f"blk.{{}}.{name}": mlp + path for name, path in self.gguf_experts.items()}
        return {**super().gguf_paths(), **own}
