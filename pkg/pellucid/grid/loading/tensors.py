"""Tensors of a checkpoint by name, in the dtypes of safetensors; roles in a language model by their names."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from ...errors import DTypeError, WeightError
from ...tensors import dtypes
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.checkpoint import Checkpoint, TensorInfo
from ...weights.folder import open as open_file
from ...weights.load import read
from ..packed.numbers import PRECISIONS


def load_tensors(source: Any, names: Iterable[str] | None = None, device: Any = "cpu") -> dict[str, Tensor]:
    """Tensors of a checkpoint; only the bytes of those that are asked for are read.

    Args:
        source: a path, URL, bytes, or what `weights.open` gave.
        names: of the tensors; all if None.
        device: where they are put.

    Returns:
        By name, in the file's dtype. float8 and float4 become float32, uint64 int64.

    Raises:
        WeightError: there is no tensor of a name, or a uint64 is beyond int64.
        DTypeError: a tensor has a dtype of which no numbers are known.

    Example:
        >>> import pellucid
        >>> data = pellucid.weights.save({"x": pellucid.ones(2, device="cpu")})
        >>> pellucid.grid.load_tensors(data)["x"].tolist()
        [1.0, 1.0]
    """
    checkpoint = source if isinstance(source, Checkpoint) else open_file(source)
    wanted = list(checkpoint) if names is None else list(names)
    if missing := [name for name in wanted if name not in checkpoint]:
        raise WeightError(f"load_tensors: {checkpoint.name} has no tensor {', '.join(missing[:5])}.")
    infos = [checkpoint[name] for name in wanted]
    return {
        info.name: _numbers(info, data).to(device)
        for info, data in zip(infos, read(checkpoint, infos), strict=True)
    }


def _numbers(info: TensorInfo, data: np.ndarray) -> Tensor:
    name = info.dtype
    if name == "bfloat16":
        wide = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return tensor(wide.reshape(info.shape), device="cpu").to(dtypes.bfloat16)
    if name == "uint64":
        whole = data.view(np.uint64)
        if whole.size and whole.max() > np.iinfo(np.int64).max:
            raise WeightError(f"load_tensors: {info.name} has numbers beyond int64.")
        return tensor(whole.astype(np.int64).reshape(info.shape), device="cpu")
    if name == "float8_e8m0fnu":
        with np.errstate(over="ignore"):
            powers = np.where(data == 255, np.nan, np.exp2(data.astype(np.float64) - 127))
        return tensor(powers.astype(np.float32).reshape(info.shape), device="cpu")
    if name == "float4_e2m1fn":
        codes = np.stack([data & 15, data >> 4], axis=-1).reshape(info.shape)
        return tensor(PRECISIONS[name].values()[codes], device="cpu")
    if name in ("float8_e4m3fn", "float8_e5m2"):
        return tensor(PRECISIONS[name].values()[data].reshape(info.shape), device="cpu")
    known = dtypes.NAMES.get(name)
    if known is None or known.numpy is None:
        raise DTypeError(f"load_tensors: {info.name} is {name}, of which no numbers are known here.")
    return tensor(data.view(known.numpy).reshape(info.shape).copy(), device="cpu")


class Roles(NamedTuple):
    """Which tensors of a language model are its embeddings, its head and its last norm; None is none.

    Args:
        embeddings, lm_head, final_norm: names.
    """

    embeddings: str | None
    lm_head: str | None
    final_norm: str | None

    @property
    def tied(self) -> bool:
        """Whether there is no head, so that it is the embeddings."""
        return self.lm_head is None and self.embeddings is not None


PATTERNS = {
    "embeddings": (
        "*embed_tokens.weight", "*wte.weight", "*word_embeddings.weight", "*embed_in.weight",
        "*tok_embeddings.weight", "token_embd.weight", "*embedding.weight", "*embeddings.weight",
    ),
    "lm_head": ("*lm_head.weight", "*embed_out.weight", "output.weight", "*output_layer.weight"),
    "final_norm": (
        "model.norm.weight", "norm.weight", "*final_layernorm.weight", "*final_layer_norm.weight",
        "*ln_f.weight", "output_norm.weight", "*norm_f.weight", "*model.final_norm.weight",
    ),
}  # fmt: skip


def find_roles(names: Iterable[str]) -> Roles:
    """The roles of tensors by the names that Llama, Qwen, Mistral, Phi, GPT-2, GPT-NeoX and others use.

    Args:
        names: of all tensors.

    Example:
        >>> from pellucid.grid import find_roles
        >>> find_roles(["model.embed_tokens.weight", "model.norm.weight"]).tied
        True
    """
    known = list(names)

    def first(role: str) -> str | None:
        return next((n for p in PATTERNS[role] for n in known if fnmatchcase(n, p)), None)

    return Roles(first("embeddings"), first("lm_head"), first("final_norm"))
