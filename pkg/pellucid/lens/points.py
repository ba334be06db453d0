"""Points: addresses of what models compute, alike on all architectures, and TransformerLens' hook names.

An address is a name and the number of a layer, as in ``resid_post.3``. Where the point is follows from the
model's attribute names: those of Llama, but for what its class says in ``points``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..errors import WeightError
from .paths import checked, matches, pick

# What modules of Llama's shape are called. A class that says ``points`` has other names for some.
PARTS: dict[str, str] = {
    "layer": "model.layers.{}",
    "attention": "self_attn",
    "attention_norm": "input_layernorm",
    "attend": "attend",
    "attention_end": "o_proj",
    "mlp": "mlp",
    "mlp_norm": "post_attention_layernorm",
    "mlp_gate": "gate_proj",
    "mlp_end": "down_proj",
    "embedding": "model.embed_tokens",
    "norm": "model.norm",
    "head": "lm_head",
}
HIDDEN = ("batch", "position", "dim")
HEADS = ("batch", "position", "head", "head_dim")
SCORES = ("batch", "head", "position", "key")


@dataclass(frozen=True)
class Kind:
    """What points of one name are.

    Args:
        place: the module; ``{attention}`` and so on are the names of parts, ``<`` behind it what goes in
            instead of what comes out, ``<2`` its third argument, ``:1`` the second part of columns.
        axes: of the value.
        alias: TransformerLens' name.
        form: how the value lies in what the module gets or returns: ``whole``, ``columns`` (heads side by
            side), ``turned`` (heads before positions), or what is computed from it: ``scores``, ``probs``,
            ``each_head``.
    """

    place: str
    axes: tuple[str, ...] = HIDDEN
    alias: str = ""
    form: str = "whole"


# Forms of values that are computed beside the model's own: changed ones take the place of what it has.
BESIDE = ("scores", "probs", "each_head")
# In the order in which a layer computes them.
BEFORE = {"embed": Kind("{embedding}", alias="hook_embed")}
LAYER = {
    "resid_pre": Kind("{layer}<", alias="blocks.{}.hook_resid_pre"),
    "attn_in": Kind("{attention_norm}", alias="blocks.{}.ln1.hook_out"),
    "q": Kind("{attention}.q_proj", HEADS, "blocks.{}.attn.hook_q", "columns"),
    "k": Kind("{attention}.k_proj", HEADS, "blocks.{}.attn.hook_k", "columns"),
    "rot_q": Kind("{attention}.{attend}<0", HEADS, "blocks.{}.attn.hook_rot_q", "turned"),
    "rot_k": Kind("{attention}.{attend}<1", HEADS, "blocks.{}.attn.hook_rot_k", "turned"),
    "v": Kind("{attention}.{attend}<2", HEADS, "blocks.{}.attn.hook_v", "turned"),
    "attn_scores": Kind("{attention}.{attend}", SCORES, "blocks.{}.attn.hook_attn_scores", "scores"),
    "attn_probs": Kind("{attention}.{attend}", SCORES, "blocks.{}.attn.hook_pattern", "probs"),
    "z": Kind("{attention}.{attention_end}<", HEADS, "blocks.{}.attn.hook_z", "columns"),
    "head_out": Kind(
        "{attention}.{attention_end}",
        ("batch", "position", "head", "dim"),
        "blocks.{}.attn.hook_result",
        "each_head",
    ),
    "attn_out": Kind("{attention}", alias="blocks.{}.hook_attn_out"),
    "resid_mid": Kind("{mlp_norm}<", alias="blocks.{}.hook_resid_mid"),
    "mlp_in": Kind("{mlp_norm}", alias="blocks.{}.ln2.hook_out"),
    "mlp_pre": Kind("{mlp}.{mlp_gate}", ("batch", "position", "neuron"), "blocks.{}.mlp.hook_pre"),
    "mlp_mid": Kind("{mlp}.{mlp_end}<", ("batch", "position", "neuron"), "blocks.{}.mlp.hook_post"),
    "mlp_out": Kind("{mlp}", alias="blocks.{}.hook_mlp_out"),
    "resid_post": Kind("{layer}", alias="blocks.{}.hook_resid_post"),
}
AFTER = {
    "final_norm": Kind("{norm}", alias="ln_final.hook_out"),
    "logits": Kind("{head}", ("batch", "position", "vocab"), "unembed.hook_out"),
}
KINDS = {**BEFORE, **LAYER, **AFTER}


@dataclass(frozen=True)
class Point:
    """One place in a model where a value is seen and changed.

    Args:
        address: ``name.layer``, or the name alone.
        path: of the module.
        argument: which of its arguments the value is; None for what it returns.
        kind: what points of the name are.
        alias: TransformerLens' name, or empty.
        layer: its number, or None.
        part: which part of the columns, where they are of several kinds; -1 for all.
        head_dim: columns of a head.
        sizes: numbers of heads of the parts.
    """

    address: str
    path: str
    argument: int | None
    kind: Kind = field(repr=False)
    alias: str = ""
    layer: int | None = None
    part: int = field(default=-1, repr=False)
    head_dim: int = field(default=0, repr=False)
    sizes: tuple[int, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The address without the layer."""
        return self.address.split(".")[0]

    @property
    def axes(self) -> tuple[str, ...]:
        """What the axes of the value are."""
        return self.kind.axes


def points(model: Any) -> dict[str, Point]:
    """All points of a model by address, in the order in which they are computed.

    Args:
        model: a module. Points whose modules it does not have are left out.

    Raises:
        ArgumentError: the model is no module.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
        >>> lens.points(model)["z.0"].axes
        ('batch', 'position', 'head', 'head_dim')
        >>> lens.points(model)["z.0"].alias, lens.points(model)["z.0"].path
        ('blocks.0.attn.hook_z', 'model.layers.0.self_attn.o_proj')
    """
    checked(model, "")
    modules = dict(model.named_modules())
    said: Mapping[str, str | None] = getattr(model, "points", {})
    parts = {**PARTS, **{name: word for name, word in said.items() if name in PARTS}}
    found: dict[str, Point] = {}

    def add(names: dict[str, Kind], layer: int | None, words: dict[str, str]) -> None:
        for name, kind in names.items():
            place = said.get(name, kind.place)
            if place is None:
                continue
            if name in LAYER and "{layer}" not in place:
                place = "{layer}." + place
            path, argument, part = _place(place.format_map(words))
            attention = modules.get(f"{words['layer']}.{words['attention']}")
            if path not in modules or (len(kind.axes) == 4 and attention is None):
                continue
            address = name if layer is None else f"{name}.{layer}"
            columns, sizes = _heads(model, attention)
            found[address] = Point(
                address, path, argument, kind, kind.alias.format(layer), layer, part, columns, sizes
            )

    layer = 0
    add(BEFORE, None, parts)
    while (path := parts["layer"].format(layer)) in modules:
        add(LAYER, layer, {**parts, "layer": path})
        layer += 1
    add(AFTER, None, parts)
    return found


def _place(text: str) -> tuple[str, int | None, int]:
    """A module's path, which argument, which part of the columns."""
    path, _, part = text.partition(":")
    path, is_input, argument = path.partition("<")
    return path, int(argument or 0) if is_input else None, int(part) if part else -1


def _heads(model: Any, attention: Any) -> tuple[int, tuple[int, ...]]:
    """Columns of a head, and numbers of heads of queries, keys and values."""
    config = getattr(model, "config", None)
    heads = getattr(config, "num_attention_heads", 1)
    shared = getattr(config, "kv_heads", heads)
    columns = getattr(attention, "head_dim", None) or getattr(config, "hidden_size", 0) // heads
    return columns, (heads, shared, shared)


def pick_points(model: Any, pattern: str | list[str] | tuple[str, ...]) -> dict[str, Point]:
    """The points whose addresses or aliases fit a pattern or one of several, in the model's order.

    A name alone stands for that of all layers. A pattern that fits no point is passed over.
    """
    patterns = checked(model, pattern)
    # Patterns of module paths begin with other words: they cost no search.
    first = {"blocks", *KINDS, *(k.alias for k in KINDS.values() if k.alias)}
    if not any(p.split(".")[0] in first for p in patterns):
        return {}
    return {
        address: point
        for address, point in points(model).items()
        if any(
            p not in ("*", "**")
            and (p == point.name or matches(address, p) or (point.alias and matches(point.alias, p)))
            for p in patterns
        )
    }


def point(model: Any, address: str) -> Point:
    """One point, by address or alias.

    Raises:
        WeightError: the model has none of that name.
    """
    found = pick_points(model, address)
    if len(found) != 1:
        some = ", ".join(list(points(model))[:8])
        count = f"{len(found)} points fit" if found else "there is no point"
        raise WeightError(
            f"lens: {count} {address!r} in {type(model).__name__}. Addresses look like {some}, ..."
        )
    return next(iter(found.values()))


@lru_cache(4096)
def canonical(name: str) -> str:
    """The address of a hook name of TransformerLens; other names stay.

    Example:
        >>> canonical("blocks.3.attn.hook_pattern")
        'attn_probs.3'
    """
    layer = next((word for word in name.split(".") if word.isdecimal()), None)
    for address, kind in KINDS.items():
        if kind.alias and kind.alias.format(layer) == name:
            return address if layer is None else f"{address}.{layer}"
    return name


def places(model: Any, pattern: str) -> dict[str, Point]:
    """The points, or else the modules as points, that fit a pattern.

    Raises:
        WeightError: nothing fits.
    """
    if found := pick_points(model, pattern):
        return found
    try:
        return {path: Point(path, path, None, Kind("")) for path in pick(model, pattern)}
    except WeightError as error:
        raise WeightError(f"{error} Points are listed by lens.points(model).") from None
