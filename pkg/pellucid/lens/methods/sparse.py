"""Sparse autoencoders and transcoders: a state as few of many features; reading, finding, steering."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from ...autograd.grad_mode import under
from ...device.steps import later, now
from ...errors import FormatError, RangeError
from ...nn import functional as F
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...ops.elementwise.comparison import where
from ...ops.index.sort import topk
from ...ops.shape.creation import zeros_like
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.fields import shown
from ..changes import Change
from ..plan import Plan
from ..run import ids_of, run
from .arrays import read_arrays

# Names of a matrix in the layouts of SAELens, Gemma Scope, dictionary_learning and EleutherAI's `sparsify`,
# and whether it lies the other way there.
_LAYOUTS: dict[str, tuple[tuple[str, bool], ...]] = {
    "encoder": (("W_enc", False), ("w_enc", False), ("encoder.weight", True)),
    "encoder_bias": (("b_enc", False), ("encoder.bias", False)),
    "decoder": (("W_dec", False), ("w_dec", False), ("decoder.weight", True)),
    "decoder_bias": (("b_dec", False), ("bias", False), ("decoder.bias", False)),
    "threshold": (("threshold", False), ("log_threshold", False)),
    "skip": (("W_skip", True), ("w_skip", True), ("affine_skip_connection", True)),
}


class SparseCoder(Module):
    """A sparse autoencoder, or a transcoder, which gives another point's value than it reads.

    ``features = act((x - before) @ encoder + encoder_bias)``, ``out = features @ decoder + decoder_bias``,
    with ``x @ skip`` added where there is one. ``before`` is the decoder's bias where ``centres`` says so.
    ``act`` is ReLU, ReLU above a threshold for each feature (JumpReLU), or ReLU of the ``top_k`` largest.

    Args:
        encoder: (dim, features).
        decoder: (features, out_dim).
        encoder_bias: (features,), or None.
        decoder_bias: (out_dim,), or None.
        threshold: (features,), or None.
        top_k: features that stay, or None.
        centres: whether the decoder's bias is taken off first.
        skip: (dim, out_dim), or None.

    Source: Bricken et al. 2023, "Towards monosemanticity"; Rajamanoharan et al. 2024, "Jumping ahead";
        Gao et al. 2024, "Scaling and evaluating sparse autoencoders"; Dunefsky et al. 2024, "Transcoders find
        interpretable LLM feature circuits"
    """

    encoder: Tensor
    decoder: Tensor
    encoder_bias: Tensor | None
    decoder_bias: Tensor | None
    threshold: Tensor | None
    skip: Tensor | None

    def __init__(
        self,
        encoder: Tensor,
        decoder: Tensor,
        encoder_bias: Tensor | None = None,
        decoder_bias: Tensor | None = None,
        threshold: Tensor | None = None,
        *,
        top_k: int | None = None,
        centres: bool = False,
        skip: Tensor | None = None,
    ):
        super().__init__()
        given = {
            "encoder": encoder, "decoder": decoder, "encoder_bias": encoder_bias,
            "decoder_bias": decoder_bias, "threshold": threshold, "skip": skip,
        }  # fmt: skip
        for name, value in given.items():
            setattr(self, name, None if value is None else Parameter(value.detach(), requires_grad=False))
        self.top_k, self.centres = top_k, centres

    @property
    def features(self) -> int:
        """How many features there are."""
        return self.encoder.shape[1]

    def encode(self, x: Tensor) -> Tensor:
        """How strong each feature is: (..., dim) to (..., features)."""
        if self.centres and self.decoder_bias is not None:
            x = x - self.decoder_bias
        y = x @ self.encoder
        y = y if self.encoder_bias is None else y + self.encoder_bias
        if self.threshold is not None:
            return where(y > self.threshold, F.relu(y), zeros_like(y))
        y = F.relu(y)
        if self.top_k is None:
            return y
        values, ids = topk(y, self.top_k, -1)
        return zeros_like(y).scatter(-1, ids, values)

    def decode(self, features: Tensor) -> Tensor:
        """What features stand for: (..., features) to (..., out_dim)."""
        out = features @ self.decoder
        return out if self.decoder_bias is None else out + self.decoder_bias

    def forward(self, x: Tensor) -> Tensor:
        """The reconstruction, or what a transcoder predicts."""
        out = self.decode(self.encode(x))
        return out if self.skip is None else out + x @ self.skip

    def direction(self, feature: int) -> Tensor:
        """What one feature writes: (out_dim,)."""
        self._check(feature)
        return self.decoder.detach()[feature]

    def steer(self, point: str, feature: int, strength: float = 1.0, **where: Any) -> Change:
        """A change that adds a feature at a point, for the ``steer`` list of a plan.

        Args:
            point: an address.
            feature: its number.
            strength: of the feature.
            where: ``positions`` and other arguments of a `Change`.
        """
        return Change(point, "add", self.direction(feature), strength=strength, **where)

    def _check(self, feature: int) -> None:
        if not 0 <= feature < self.features:
            raise RangeError(f"SparseCoder: there are {self.features} features, and no {feature}.")

    @classmethod
    def load(
        cls,
        source: Any,
        *,
        top_k: int | None = None,
        centres: bool | None = None,
        device: Any = None,
    ) -> SparseCoder:
        """From a file of the usual layouts: SAELens, Gemma Scope, dictionary_learning, `sparsify`.

        Args:
            source: path or address of an ``.npz`` or of safetensors, a File, or name -> array.
            top_k: features that stay, which files do not say; of the ``cfg.json`` beside them it is ``k``.
            centres: whether the decoder's bias is taken off first, which files do not say; by default it
                is in layouts that call it ``bias``, or the encoder ``encoder.weight``.
            device: where.

        Raises:
            FormatError: matrices are missing, or do not fit each other.
            SourceError: the file cannot be had.
        """
        return now(_read(cls, source, top_k, centres, device))

    @classmethod
    async def load_async(
        cls,
        source: Any,
        *,
        top_k: int | None = None,
        centres: bool | None = None,
        device: Any = None,
    ) -> SparseCoder:
        """The awaitable twin of `load`."""
        return await later(_read(cls, source, top_k, centres, device))


def _read(
    cls: type[SparseCoder], source: Any, top_k: int | None, centres: bool | None, device: Any
) -> Generator[tuple, Any, SparseCoder]:
    """Steps that make a coder of a file."""
    arrays = yield from read_arrays("SparseCoder", source)
    found: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    for name, layouts in _LAYOUTS.items():
        for key, turned in layouts:
            if key in arrays and name not in found:
                value = arrays[key]
                found[name] = np.ascontiguousarray(value.T) if turned and value.ndim == 2 else value
                names[name] = key
    if missing := [n for n in ("encoder", "decoder") if n not in found]:
        raise FormatError(
            f"SparseCoder: there is no {missing[0]} among {shown(sorted(arrays))}. Names of the usual "
            f"layouts are {', '.join(key for key, _ in _LAYOUTS[missing[0]])}."
        )
    if names.get("threshold") == "log_threshold":
        found["threshold"] = np.exp(found["threshold"])
    _check_shapes(found)
    if centres is None:
        centres = names.get("decoder_bias") == "bias" or names["encoder"] == "encoder.weight"
    made = {name: tensor(value, device=device) for name, value in found.items()}
    return cls(**made, top_k=top_k, centres=centres)


def _check_shapes(found: Mapping[str, np.ndarray]) -> None:
    encoder, decoder = found["encoder"], found["decoder"]
    if encoder.ndim != 2 or decoder.ndim != 2 or encoder.shape[1] != decoder.shape[0]:
        raise FormatError(
            f"SparseCoder: an encoder of shape {encoder.shape} and a decoder of {decoder.shape} do not go "
            "together: (dim, features) and (features, dim) are needed."
        )
    (dim, features), out = encoder.shape, decoder.shape[1]
    wanted = {
        "encoder_bias": (features,), "threshold": (features,), "decoder_bias": (out,), "skip": (dim, out),
    }  # fmt: skip
    for name, shape in wanted.items():
        if name in found and found[name].shape != shape:
            raise FormatError(f"SparseCoder: {name} is of shape {found[name].shape}; it must be {shape}.")


def top_features(
    model: Any, ids: Any, coder: SparseCoder, point: str, *, k: int = 5
) -> list[list[tuple[int, float]]]:
    """The strongest features of each token. Waits for the device.

    Args:
        model: a causal language model.
        ids: (1, time).
        coder: what reads the point.
        point: an address, such as ``resid_post.12``.
        k: so many of each.

    Returns:
        [position] -> [(feature, strength), ...], strongest first; those that are zero are left out.
    """
    x = run(model, ids_of(model, ids), Plan(capture=[point]))[point][0]
    values, found = under(False, lambda: topk(coder.encode(x), min(k, coder.features), -1))
    return [
        [(int(f), v) for f, v in zip(fs, vs, strict=True) if v > 0]
        for fs, vs in zip(found.tolist(), values.tolist(), strict=True)
    ]
