"""What becomes of weights on the way into a GGUF, as llama.cpp's converter does it.

`DecoderConfig.gguf_settings` says which settings a GGUF has decided. A model whose value differs, such as one
of a folder, has its weights changed by the row of `CHANGES`.

Source: https://github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np


class TensorChange(NamedTuple):
    """How a parameter, seen as a matrix, becomes a tensor of the file; what is None stays.

    Attributes:
        path: of the parameter that the file has there.
        parts: how many matrices, one below the other, are transposed first; 0 for none.
        rows, columns: which ones, in which order.
        values: what becomes of numbers.
    """

    path: str
    parts: int = 0
    rows: np.ndarray | None = None
    columns: np.ndarray | None = None
    values: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay whole and their numbers what they are."""
        return not self.parts and self.columns is None and self.values is None


def changes(model: Any, path: str, settings: Iterable[str]) -> list[TensorChange]:
    """What a parameter becomes: one tensor, or several.

    Args:
        model: whose parameter it is.
        path: of the parameter.
        settings: that a GGUF has otherwise.
    """
    found = [TensorChange(path)]
    for setting in settings:
        found = [new for change in found for new in CHANGES[setting](model, change)]
    return found


def _interleaved(model: Any, change: TensorChange) -> list[TensorChange]:
    """The halves of each head's queries and keys one by one in turns."""
    config, names = model.config, model.config.module_names
    heads = {names.query: config.num_attention_heads, names.key: config.kv_heads}
    count = heads.get(change.path.split(".")[-2])
    if count is None or not change.path.endswith((".weight", ".bias")):
        return [change]
    rows = np.arange(count * config.columns).reshape(count, 2, -1).swapaxes(1, 2)
    return [change._replace(rows=rows.reshape(-1))]


def _by_kind(model: Any, change: TensorChange) -> list[TensorChange]:
    """All queries, then all keys, then all values, where a head has them beside each other."""
    config = model.config
    if change.path.split(".")[-2] != config.module_names.joined:
        return [change]
    heads = config.num_attention_heads + 2 * config.kv_heads
    groups = np.arange(heads * config.columns).reshape(config.kv_heads, -1, config.columns)
    rows = np.concatenate([part.reshape(-1) for part in (groups[:, :-2], groups[:, -2], groups[:, -1])])
    return [change._replace(rows=rows)]


def _upright(model: Any, change: TensorChange) -> list[TensorChange]:
    """Rows for outputs, where a layer has columns for them."""
    is_weight = change.path.endswith(".weight")
    return [change._replace(parts=_of_owner(model, change, "transposed_parts"))] if is_weight else [change]


def _with_one(model: Any, change: TensorChange) -> list[TensorChange]:
    """Weights of norms that count from one, with the one."""
    is_one = change.path.endswith(".weight") and _of_owner(model, change, "counts_from_one")
    return [change._replace(values=lambda x: x + 1)] if is_one else [change]


def _as_rates(model: Any, change: TensorChange) -> list[TensorChange]:
    """Rates, where there are logarithms of their negatives."""
    return [change._replace(values=lambda x: -np.exp(x))] if change.path.endswith(".A_log") else [change]


def _in_turn(model: Any, change: TensorChange) -> list[TensorChange]:
    """Value heads so that they take the key heads in turn, where neighbours share one."""
    c, (*_, owner, name) = model.config, change.path.split(".")
    if ".linear_attn." not in change.path or owner == "norm":
        return [change]
    order = np.arange(c.linear_num_value_heads).reshape(c.linear_num_key_heads, -1).T.reshape(-1, 1)
    each = (
        1 if owner in ("in_proj_a", "in_proj_b") or name in ("A_log", "dt_bias") else c.linear_value_head_dim
    )
    chosen = (order * each + np.arange(each)).reshape(-1)
    if owner == "out_proj":
        return [change._replace(columns=chosen)]
    if owner in ("in_proj_qkv", "conv1d"):
        keys = 2 * c.key_columns
        chosen = np.concatenate([np.arange(keys), keys + chosen])
    return [change._replace(rows=chosen)]


def _gates_of_values(model: Any, change: TensorChange) -> list[TensorChange]:
    """Queries, keys and values in one tensor, and gates of values in another, where a key head has all of
    its own beside each other."""
    if ".in_proj_qkvz." not in change.path:
        return [change]
    c = model.config
    keys, columns = (
        c.linear_num_key_heads,
        [c.linear_key_head_dim] * 2 + [c.inner // c.linear_num_key_heads] * 2,
    )
    rows = np.split(np.arange(c.convolved + c.inner).reshape(keys, -1), np.cumsum(columns)[:-1], axis=1)
    *first, gates = (part.reshape(-1) for part in rows)
    return [
        change._replace(path=change.path.replace("_qkvz", "_qkv"), rows=np.concatenate(first)),
        change._replace(path=change.path.replace("_qkvz", "_z"), rows=gates),
    ]


def _keys_of_latent(model: Any, change: TensorChange) -> list[TensorChange]:
    """Keys of the latent in one tensor, transposed for each head, and values in another."""
    if ".kv_b_proj." not in change.path:
        return [change]
    c = model.config
    rows = np.arange(c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim))
    values = rows.reshape(c.num_attention_heads, -1)[:, c.qk_nope_head_dim :]
    keys = change._replace(parts=c.num_attention_heads, columns=np.arange(c.qk_nope_head_dim))
    names = [change.path.replace("kv_b_proj", name) for name in ("k_b_proj", "v_b_proj")]
    return [keys._replace(path=names[0]), change._replace(path=names[1], rows=values.reshape(-1))]


def _apart(model: Any, change: TensorChange) -> list[TensorChange]:
    """Gates and ups of experts in two tensors, where one has them in turns."""
    found = _upright(model, change)[0] if ".experts." in change.path else change
    if "gate_up_proj" not in change.path:
        return [found]
    config = model.config
    rows = np.arange(2 * config.num_experts * config.intermediate_size)
    names = [change.path.replace("gate_up_proj", f"{name}_proj") for name in ("gate", "up")]
    return [found._replace(path=name, rows=rows[k::2]) for k, name in enumerate(names)]


def _from_first(model: Any, change: TensorChange) -> list[TensorChange]:
    """Of a table of positions the rows that are used."""
    if not change.path.endswith("position_embeddings.weight"):
        return [change]
    c = model.config
    return [change._replace(rows=np.arange(c.first_position, c.max_position_embeddings))]


def _of_owner(model: Any, change: TensorChange, attribute: str) -> int:
    """What the module of a parameter says of itself; 0 where it says nothing."""
    return getattr(model.get_submodule(change.path.rpartition(".")[0]), attribute, 0)


CHANGES: dict[str, Callable[[Any, TensorChange], list[TensorChange]]] = {
    "first_position": _from_first,
    "rope_interleaved": _interleaved,
    "joined_by_head": _by_kind,
    "transposed": _upright,
    "norms_from_one": _with_one,
    "rates_are_logs": _as_rates,
    "key_heads_in_turn": _in_turn,
    "gates_apart": _apart,
    "keys_apart": _keys_of_latent,
    "value_gates_apart": _gates_of_values,
}
"""What is done to each parameter, by setting."""
