"""Layers with an adapter beside a frozen one: LoRA with DoRA, of linear layers and embeddings, and IA3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...autograd.grad_mode import no_grad
from ...nn import functional as F
from ...nn import init
from ...nn.modules.container import ModuleDict
from ...nn.modules.dropout import Dropout
from ...nn.modules.embedding import Embedding
from ...nn.modules.linear import Identity, Linear
from ...nn.modules.module import Module
from ...nn.modules.parameters import ParameterDict
from ...nn.parameter import Parameter
from ...ops.shape.creation import empty, ones, zeros
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor


def is_transposed(layer: Module) -> bool:
    """Whether a layer's weight lies as (inputs, outputs), as GPT-2 has it."""
    return type(layer).__name__ == "Conv1D"


def dense(weight: Tensor) -> Tensor:
    """A weight as float32, dequantized where it is quantized."""
    return weight.dequantize() if weight.dtype.is_quantized else weight.detach().float()


class AdapterLayer(Module, ABC):
    """A frozen layer with adapters by name, of which those in ``active`` count.

    Args:
        base_layer: the layer.

    Attributes:
        active: names of the adapters that count; none gives the layer alone.
        merged: names of those that are part of the layer's weight now.
    """

    def __init__(self, base_layer: Any):
        super().__init__()
        self.base_layer = base_layer
        self.active: tuple[str, ...] = ()
        self.merged: tuple[str, ...] = ()

    @property
    def weight(self) -> Tensor:
        """The frozen layer's weight."""
        return self.base_layer.weight

    @property
    def bias(self) -> Tensor | None:
        """The frozen layer's bias."""
        return getattr(self.base_layer, "bias", None)

    @abstractmethod
    def add(self, name: str, config: Any, path: str) -> None:
        """Make an adapter.

        Args:
            name: of it.
            config: the `LoraConfig` or `IA3Config`.
            path: of the layer.
        """

    @abstractmethod
    def merged_weight(self, names: tuple[str, ...]) -> Tensor:
        """The weight with adapters in it, as float32 in the layer's layout."""

    @no_grad()
    def merge(self) -> None:
        """Make the active adapters part of the layer's weight, which becomes float32 if it was quantized."""
        if self.active and not self.merged:
            weight = self.base_layer.weight
            new = self.merged_weight(self.active)
            vars(self)["_kept"] = {"weight": weight}
            dtype = dt.float32 if weight.dtype.is_quantized else weight.dtype
            self.base_layer.weight = Parameter(new.to(dtype), requires_grad=False)
            self.merged = self.active

    def unmerge(self) -> None:
        """Give the layer the weight that it had."""
        if self.merged:
            for name, kept in vars(self).pop("_kept").items():
                setattr(self.base_layer, name, kept)
            self.merged = ()


class LoraLayer(AdapterLayer):
    """A linear layer or an embedding with low-rank changes.

    Args:
        base_layer: a `nn.Linear`, an `nn.Embedding`, or GPT-2's transposed linear layer.

    Attributes:
        lora_A, lora_B: linear layers by name; ``lora_embedding_A``, ``lora_embedding_B`` matrices of an
            embedding; ``lora_magnitude_vector`` the lengths of rows, by name, with DoRA.
    """

    def __init__(self, base_layer: Any):
        super().__init__(base_layer)
        weight = base_layer.weight
        rows, columns = weight.shape
        self.is_embedding = isinstance(base_layer, Embedding)
        self.is_transposed = is_transposed(base_layer)
        if self.is_transposed or self.is_embedding:
            rows, columns = columns, rows
        self.in_features, self.out_features = columns, rows
        self.scaling: dict[str, float] = {}
        self.lora_dropout = ModuleDict()
        self.lora_A, self.lora_B = ModuleDict(), ModuleDict()
        self.lora_embedding_A, self.lora_embedding_B = ParameterDict(), ParameterDict()
        self.lora_magnitude_vector = ModuleDict()

    def add(self, name: str, config: Any, path: str) -> None:
        where, rank = self.base_layer.weight.device, config.rank_of(path)
        self.scaling[name] = config.scaling_of(path)
        self.lora_dropout[name] = Dropout(config.lora_dropout) if config.lora_dropout else Identity()
        if self.is_embedding:
            a = zeros(rank, self.in_features, device=where, dtype=dt.float32)
            b = init.normal_(empty(self.out_features, rank, device=where, dtype=dt.float32))
            self.lora_embedding_A[name], self.lora_embedding_B[name] = Parameter(a), Parameter(b)
        else:
            a = Linear(self.in_features, rank, bias=False, device=where, dtype=dt.float32)
            b = Linear(rank, self.out_features, bias=False, device=where, dtype=dt.float32)
            if config.init_lora_weights == "gaussian":
                init.normal_(a.weight, std=1 / config.r)
            if config.init_lora_weights is not False:
                init.zeros_(b.weight)
            self.lora_A[name], self.lora_B[name] = a, b
        if config.use_dora:
            self.lora_magnitude_vector[name] = Magnitude(self, name)

    def forward(self, x: Tensor, *args: Any) -> Tensor:
        out = self.base_layer(x, *args)
        for name in () if self.merged else self.active:
            out = out + self.change(name, x, out).to(out.dtype)
        return out

    def change(self, name: str, x: Tensor, base: Tensor) -> Tensor:
        """What an adapter adds.

        Args:
            name: of the adapter.
            x: the layer's input.
            base: what the layer alone gives.
        """
        scaling = self.scaling[name]
        if self.is_embedding:
            chosen = F.embedding(x, self.lora_embedding_A[name].T)
            added = (chosen @ self.lora_embedding_B[name].T) * scaling
            if name not in self.lora_magnitude_vector:
                return added
            share = self.lora_magnitude_vector[name].share(self, name)
            return (share - 1) * base + share * added
        a, b = self.lora_A[name], self.lora_B[name]
        kept = self.lora_dropout[name](x.to(a.weight.dtype))
        if name not in self.lora_magnitude_vector:
            return b(a(kept)) * scaling
        share = self.lora_magnitude_vector[name].share(self, name)
        if self.training and isinstance(self.lora_dropout[name], Dropout):
            base = self.base_layer(kept)
        base = base if self.bias is None else base - self.bias
        return (share - 1) * base + share * b(a(kept)) * scaling

    def matrices(self, name: str) -> tuple[Tensor, Tensor]:
        """A and B of an adapter, without gradients: (rank, inputs) and (outputs, rank)."""
        if self.is_embedding:
            a, b = self.lora_embedding_A[name], self.lora_embedding_B[name]
        else:
            a, b = self.lora_A[name].weight, self.lora_B[name].weight
        return a.detach(), b.detach()

    def delta(self, name: str) -> Tensor:
        """``scaling * B A``: (outputs, inputs)."""
        a, b = self.matrices(name)
        return (b @ a) * self.scaling[name]

    def merged_weight(self, names: tuple[str, ...]) -> Tensor:
        turned = self.is_transposed or self.is_embedding
        weight = dense(self.base_layer.weight)
        weight = weight.T if turned else weight
        for name in names:
            changed = weight + self.delta(name)
            if name in self.lora_magnitude_vector:
                changed = changed * self.lora_magnitude_vector[name].share(self, name).detach().unsqueeze(1)
            weight = changed
        return weight.T.contiguous() if turned else weight


class Magnitude(Module):
    """The lengths of the rows of ``W + scaling * B A``, which DoRA trains.

    Args:
        layer: whose.
        name: of the adapter.

    Attributes:
        weight: (outputs,).
        squares: of the lengths of the frozen weight's rows.
    """

    squares: Tensor

    def __init__(self, layer: LoraLayer, name: str):
        super().__init__()
        with no_grad():
            rows = dense(layer.base_layer.weight)
            rows = rows.T if layer.is_transposed or layer.is_embedding else rows
            self.register_buffer("squares", (rows**2).sum(1), persistent=False)
            self.weight = Parameter(self.lengths(layer, name))

    def lengths(self, layer: LoraLayer, name: str) -> Tensor:
        """The lengths of now, without a gradient; the frozen weight stays as it is stored.

        ``|w + s d|^2 = |w|^2 + 2 s w.d + s^2 |d|^2``, where ``w.d`` are rows of ``W A^T`` times rows of B.
        """
        a, b = layer.matrices(name)
        weight = layer.base_layer.weight.detach()
        turned = layer.is_transposed or layer.is_embedding
        across = (a @ dense(weight)).T if turned else F.linear(a, weight).T
        s = layer.scaling[name]
        return (self.squares + (2 * s * across * b + s * s * (b @ (a @ a.T)) * b).sum(1)).sqrt()

    def share(self, layer: LoraLayer, name: str) -> Tensor:
        """By how much rows are longer or shorter than they would be."""
        with no_grad():
            lengths = self.lengths(layer, name)
        return self.weight / lengths


class IA3Layer(AdapterLayer):
    """A linear layer whose output, or input, is scaled.

    Args:
        base_layer: the layer.
        is_feedforward: scale the input.

    Attributes:
        ia3_l: the factors by name: (outputs, 1), or (1, inputs) of a feed-forward.
    """

    def __init__(self, base_layer: Any, is_feedforward: bool):
        super().__init__(base_layer)
        self.is_feedforward, self.is_transposed = is_feedforward, is_transposed(base_layer)
        rows, columns = base_layer.weight.shape
        if self.is_transposed:
            rows, columns = columns, rows
        self.in_features, self.out_features = columns, rows
        self.ia3_l = ParameterDict()

    def add(self, name: str, config: Any, path: str) -> None:
        shape = (1, self.in_features) if self.is_feedforward else (self.out_features, 1)
        factors = ones(shape, device=self.base_layer.weight.device, dtype=dt.float32)
        self.ia3_l[name] = Parameter(factors if config.init_ia3_weights else init.normal_(factors))

    def forward(self, x: Tensor) -> Tensor:
        if self.merged or not self.active:
            return self.base_layer(x)
        factors = self.ia3_l[self.active[0]].flatten()
        for name in self.active[1:]:
            factors = factors * self.ia3_l[name].flatten()
        if self.is_feedforward:
            return self.base_layer((x * factors).to(x.dtype))
        out = self.base_layer(x)
        return (out * factors).to(out.dtype)

    def merged_weight(self, names: tuple[str, ...]) -> Tensor:
        weight = dense(self.base_layer.weight)
        for name in names:
            factors = self.ia3_l[name].detach()
            weight = weight * (factors.T if self.is_transposed else factors)
        return weight

    @no_grad()
    def merge(self) -> None:
        bias = self.bias if self.active and not self.merged and not self.is_feedforward else None
        super().merge()
        if bias is not None:
            vars(self)["_kept"]["bias"] = bias
            for name in self.merged:
                bias = bias * self.ia3_l[name].flatten()
            self.base_layer.bias = Parameter(bias.detach(), requires_grad=False)


__all__ = ["AdapterLayer", "IA3Layer", "LoraLayer", "dense", "is_transposed"]
