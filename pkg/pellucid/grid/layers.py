"""Types of layers of a grid: a table from the fields of a specification to modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import FormatError, PellucidError, ShapeError
from ..nn import functional as F
from ..nn.modules.container import Sequential
from ..nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm, RMSNorm
from ..nn.modules.rnn import LSTM, RNN
from ..ops.random.generator import fork_rng
from ..tensors.construct import tensor
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor
from .attention import RotaryAttention
from .branches import Parallel
from .clustering import KMeans
from .fields import Fields, refuse_deep
from .packed.numbers import Precision, precision
from .packed.polymorphic import morph
from .softmax import SoftmaxVariant

MOST_CELLS = 1 << 20  # of a grid over which branches are scattered
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "mish": F.mish,
}


class SwiGLU(Module):
    """``(silu(x W_gate) * (x W_up)) W_down``: the gated layer of Llama.

    Args:
        d_model: length of the input's last axis and of the result's.
        hidden: numbers in between.
        device, dtype: of the parameters; the defaults if None.

    Source: Shazeer 2020, "GLU Variants Improve Transformer"

    Example:
        >>> import pellucid
        >>> pellucid.grid.SwiGLU(4, 8, device="cpu")(pellucid.zeros(2, 4, device="cpu")).shape
        Size([2, 4])
    """

    def __init__(self, d_model: int, hidden: int, device=None, dtype=None):
        super().__init__()
        self.gate_proj = Linear(d_model, hidden, False, device, dtype)
        self.up_proj = Linear(d_model, hidden, False, device, dtype)
        self.down_proj = Linear(hidden, d_model, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(input)) * self.up_proj(input))


class Recurrent(Module):
    """The outputs of a recurrent layer at all times, without its last state."""

    def __init__(self, layer: Module):
        super().__init__()
        self.layer = layer

    def forward(self, input: Tensor) -> Tensor:
        return self.layer(input)[0]


class Residual(Module):
    """``x + f(x)``; without an f, the input: a link then brings what is added.

    Args:
        layer: f, or None.

    Source: He et al. 2015, "Deep Residual Learning for Image Recognition"

    Example:
        >>> import pellucid
        >>> pellucid.grid.Residual(pellucid.nn.ReLU())(pellucid.ones(1, device="cpu")).item()
        2.0
    """

    def __init__(self, layer: Module | None = None):
        super().__init__()
        self.layer = layer

    def forward(self, input: Tensor) -> Tensor:
        return input if self.layer is None else input + self.layer(input)


@dataclass(frozen=True)
class LayerType:
    """A row of the table: what the layer is made of, and the shape in which it takes one example.

    Args:
        build: from the fields and the settings (device, dtype) to the module.
        shape: from the fields to the axes behind the batch, for layers that also take them flat.
    """

    build: Callable[[Fields, dict[str, Any]], Module]
    shape: Callable[[Fields], tuple[int, ...]] | None = None


def _conv(kind: Callable[..., Module], axes: tuple[str, ...], transposed: bool = False) -> LayerType:
    def build(f: Fields, own: dict[str, Any]) -> Module:
        more = {"output_padding": f.count("output_padding", 0, 0)} if transposed else {}
        if transposed and more["output_padding"] >= f.count("stride", 1):
            raise FormatError(f"{f.where}: output_padding must be smaller than stride.")
        return kind(
            f.count("input_channels", 1), f.count("filters"), f.count("kernel_size", 3),
            f.count("stride", 1), f.count("padding", 0, 0), **more, **own,
        )  # fmt: skip

    return LayerType(build, lambda f: (f.count("input_channels", 1), *[f.count(name) for name in axes]))


def _recurrent(kind: Callable[..., Module]) -> LayerType:
    def build(f: Fields, own: dict[str, Any]) -> Module:
        inputs = f.either("input_height", "d_model")
        return Recurrent(kind(inputs, f.count("output_height", inputs), batch_first=True, **own))

    return LayerType(build)


def _dense(f: Fields, own: dict[str, Any]) -> Module:
    return Linear(f.either("input_height", "d_model"), f.either("output_height", "d_model"), **own)


def _attention(f: Fields, own: dict[str, Any]) -> Module:
    heads = f.count("num_heads", 4)
    return RotaryAttention(
        f.count("d_model"), heads, f.count("num_kv_heads", heads),
        f.count("head_dim") if "head_dim" in f else None, f.positive("rope_freq_base", 10000.0), **own,
        tile_size=f.count("tile_size", 0, 0) if f.flag("use_tiling") else None,
    )  # fmt: skip


def _softmax(f: Fields, own: dict[str, Any]) -> Module:
    kind = f.text("softmax_type", "standard")
    if kind == "grid":
        return SoftmaxVariant(kind, rows=f.count("softmax_rows"), columns=f.count("softmax_cols"))
    if kind == "hierarchical":
        return SoftmaxVariant(kind, levels=f.counts("hierarchy_levels"))
    if kind == "temperature":
        return SoftmaxVariant(kind, temperature=f.positive("temperature", 1.0))
    if kind == "gumbel":
        tau = f.positive("temperature", 1.0)
        if f.flag("gumbel_noise", True):
            return SoftmaxVariant(kind, tau=tau)
        return SoftmaxVariant("temperature", temperature=tau)
    if kind == "masked":
        mask = f.items("mask")
        if not all(isinstance(m, int) and m in (0, 1) for m in mask):
            raise FormatError(f"{f.where}: mask must be true and false, or 1 and 0, not {mask!r}.")
        return SoftmaxVariant(kind, mask=tensor([bool(m) for m in mask], device=own.get("device")))
    if kind == "entmax":
        alpha = f.number("entmax_alpha", 1.5)
        if alpha < 1:
            raise FormatError(f"{f.where}: entmax_alpha must be at least 1, not {alpha}.")
        return SoftmaxVariant(kind, alpha=alpha)
    if kind == "mixture":
        raise FormatError(f"{f.where}: a mixture of softmaxes takes a prior, so it is no layer of a grid.")
    return SoftmaxVariant(kind)


def _parallel(f: Fields, own: dict[str, Any]) -> Module:
    branches = [built(b, f"{f.where}, branch {k}", own) for k, b in enumerate(f.items("parallel_branches"))]
    combine = f.text("combine_mode", "concat")
    more: dict[str, Any] = {}
    if combine == "filter":
        more["gate"] = built(f.values.get("gate"), f"{f.where}, gate", own)
        more["top_k"] = f.count("top_k") if "top_k" in f else None
    if combine == "grid_scatter":
        more["grid"] = f.counts("grid")
        if prod(more["grid"]) > MOST_CELLS:
            raise FormatError(f"{f.where}: a grid of {more['grid']} has more than {MOST_CELLS} cells.")
        more["places"] = f.items("places") if "places" in f else None
    return Parallel(branches, combine, **more)


def _sequence(f: Fields, own: dict[str, Any], needed: bool) -> list[Module]:
    layers = f.items("sequential_layers", None if needed else [])
    return [built(b, f"{f.where}, layer {k}", own) for k, b in enumerate(layers)]


def _residual(f: Fields, own: dict[str, Any]) -> Module:
    layers = _sequence(f, own, needed=False)
    return Residual(Sequential(*layers) if layers else None)


LAYERS: dict[str, LayerType] = {
    "dense": LayerType(_dense, lambda f: (f.either("input_height", "d_model"),)),
    "multi_head_attention": LayerType(_attention),
    "swiglu": LayerType(
        lambda f, own: SwiGLU(f.count("d_model"), f.count("output_height", 4 * f.count("d_model")), **own)
    ),
    "rms_norm": LayerType(lambda f, own: RMSNorm(f.count("d_model"), eps=1e-5, **own)),
    "cnn1": _conv(Conv1d, ("input_height",)),
    "cnn2": _conv(Conv2d, ("input_height", "input_width")),
    "cnn3": _conv(Conv3d, ("input_depth", "input_height", "input_width")),
    "rnn": _recurrent(RNN),
    "lstm": _recurrent(LSTM),
    "layer_norm": LayerType(lambda f, own: LayerNorm(f.count("d_model"), **own)),
    "conv_transposed_1d": _conv(ConvTranspose1d, ("input_height",), transposed=True),
    "conv_transposed_2d": _conv(ConvTranspose2d, ("input_height", "input_width"), transposed=True),
    "conv_transposed_3d": _conv(
        ConvTranspose3d, ("input_depth", "input_height", "input_width"), transposed=True
    ),
    "embedding": LayerType(
        lambda f, own: Embedding(
            f.count("vocab_size"), f.either("embedding_dim", "d_model"), **own
        )
    ),
    "kmeans": LayerType(
        lambda f, own: KMeans(
            f.count("num_clusters"), f.count("d_model"), f.number("kmeans_temperature", 1.0),
            f.text("output_mode", "probabilities"), **own,
        )
    ),
    "softmax": LayerType(_softmax),
    "parallel": LayerType(_parallel),
    "sequential": LayerType(lambda f, own: Sequential(*_sequence(f, own, needed=True))),
    "residual": LayerType(_residual),
}  # fmt: skip


NESTED = ("parallel", "sequential", "residual")  # of layers, each of which is looked at itself
LARGEST = 1 << 30  # parameters of a layer


def _refuse_huge(kind: str, f: Fields) -> None:
    """Refuse a layer that no device holds before memory is asked for."""
    with fork_rng():
        sketch = LAYERS[kind].build(f, {"device": "meta"})
    count = sum(p.numel() for p in sketch.parameters())
    if count > LARGEST:
        raise FormatError(f"{f.where}: {kind} would have {count} parameters; at most {LARGEST} are made.")


class Layer(Module):
    """A layer of a grid: the module that its specification names, then an activation.

    Args:
        specification: fields by name, as in JSON; `type` says which row of the table. Capitals of it and
            of `activation` do not matter.
        where: the layer, for errors.
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        specification: the fields, without the position.

    Raises:
        FormatError: a field is missing or unusable; the text names the layer and the field.

    Example:
        >>> import pellucid
        >>> fields = {"type": "dense", "input_height": 3, "output_height": 2, "activation": "relu"}
        >>> pellucid.grid.Layer(fields)(pellucid.ones(1, 3)).shape
        Size([1, 2])
    """

    def __init__(self, specification: dict[str, Any], where: str = "layer", device=None, dtype=None):
        super().__init__()
        fields = Fields(specification, where)
        refuse_deep(specification, where)
        kind = fields.text("type").lower()
        if kind not in LAYERS:
            raise FormatError(f"{where}: type must be one of {', '.join(LAYERS)}, not {kind!r}.")
        self.activation = fields.text("activation", "linear").lower()
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise FormatError(f"{where}: activation must be one of {known}, not {self.activation!r}.")
        own = {name: v for name, v in (("device", device), ("dtype", dtype)) if v is not None}
        try:
            if kind not in NESTED:
                _refuse_huge(kind, fields)
            self.layer = LAYERS[kind].build(fields, own)
            shape = LAYERS[kind].shape
            self.shape = None if shape is None else shape(fields)
        except FormatError:
            raise
        except (ValueError, TypeError, RuntimeError) as error:
            raise FormatError(f"{where}: {kind} can't be made of these fields: {error}") from error
        named = {"type": kind, "activation": self.activation}
        self.specification = {name: named.get(name, value) for name, value in specification.items()}
        try:
            self.morph_as_specified()
        except PellucidError as error:
            raise FormatError(f"{where}: {error}") from error

    def morph(
        self, dtype: str | DType | Precision, group: str | int = "tensor", scale_dtype: str | None = None
    ) -> Layer:
        """Compute with parameters in another kind of number (`morph`), and say so in the specification."""
        morph(self, dtype, group=group, scale_dtype=scale_dtype)
        said = {"dtype": precision(dtype).name, "group": group, "scale_dtype": scale_dtype}
        self.specification = {k: v for k, v in (self.specification | said).items() if v is not None}
        return self

    def morph_as_specified(self) -> None:
        """Compute in the kind of number that the specification says, if it says one."""
        fields = Fields(self.specification, "specification")
        if "dtype" in fields:
            how = {name: fields.values[name] for name in ("group", "scale_dtype") if name in fields}
            morph(self, fields.text("dtype"), **how)

    def forward(self, input: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](self.layer(self._shaped(input)))

    def _shaped(self, input: Tensor) -> Tensor:
        """The input in the axes that the layer takes, if it comes flat or in those of another layer."""
        shape = self.shape
        if shape is None or tuple(input.shape[-len(shape) :]) == shape:
            return input
        if input.dim() < 2 or prod(input.shape[1:]) != prod(shape):
            raise ShapeError(
                f"{self.specification['type']}: an example must have {prod(shape)} numbers, of the shape "
                f"{shape}, but the input is {tuple(input.shape)}."
            )
        return input.reshape(input.shape[0], *shape)


def built(specification: Any, where: str, own: dict[str, Any]) -> Layer:
    """The layer of a specification that stands inside of another."""
    if not isinstance(specification, dict):
        raise FormatError(f"{where}: a layer is an object with fields, not {specification!r}.")
    return Layer(specification, where, **own)
