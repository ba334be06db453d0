"""A universal loader: layers recognised by the names and shapes of tensors, without any description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ...errors import FormatError, WeightError
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.checkpoint import Checkpoint
from ...weights.folder import open as open_file
from ..fields import OF_NETWORK
from ..layers import Layer
from ..network import GridNetwork
from ..packed.polymorphic import restore, stored
from .tensors import load_tensors

Shape = tuple[int, ...]
# In which order parts of a model and of a block run; what is not named here runs where layers do.
ORDER = (
    "*emb*", "*wte", "*input_layernorm", "*attn_norm", "*ln_1", "*self_attn", "*attention", "*attn",
    "*post_attention_layernorm", "*ffn_norm", "*ln_2", "*mlp", "*feed_forward", "*layers*", "*blocks*",
    "*norm", "*ln_f", "*lm_head", "*output",
)  # fmt: skip
DIGITS = 9  # of a layer's number
OTHERS = ORDER.index("*layers*")
ATTENTION = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight")
GATED = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")


@dataclass
class Archetype:
    """A layer that was recognised.

    Args:
        name: what its tensors' names begin with.
        type: of `LAYERS`.
        fields: of its specification, as far as they are known.
        tensors: by parameter of the layer, names of tensors; one behind "T:" is transposed, "0" is zeros.
        confidence: 0 to 1.
        notes: what the tensors do not say, and what was taken instead.
    """

    name: str
    type: str
    fields: dict[str, Any]
    tensors: dict[str, str]
    confidence: float
    notes: list[str] = field(default_factory=list)

    @property
    def specification(self) -> dict[str, Any]:
        """The fields as `Layer` takes them."""
        return {"type": self.type, **self.fields}


@dataclass
class Detection:
    """What was recognised in a checkpoint: layers in the order in which they run, and tensors of none."""

    layers: list[Archetype]
    unmatched: list[str]

    @property
    def confidence(self) -> float:
        """That of the layer that is least certain; 0 if there is none."""
        return min((a.confidence for a in self.layers), default=0.0)

    def __str__(self) -> str:
        rows = [
            f"{a.confidence:4.2f}  {a.type:22} {a.name}  {'; '.join(a.notes)}".rstrip() for a in self.layers
        ]
        return "\n".join([*rows, *(f"      unmatched              {name}" for name in self.unmatched)])


def detect_layers(source: Any, hints: Mapping[str, Mapping[str, Any]] | None = None) -> Detection:
    """Recognise the layers of a checkpoint by the names and shapes of its tensors: only the header is read.

    Heads of attention, sizes of images and activations are not in shapes. What is taken instead is told, and
    lowers the confidence, unless a hint says it.

    Args:
        source: a path, URL, bytes, what `weights.open` gave, or shapes by name.
        hints: by patterns of layers' names, fields of their specification; `type` decides between those that
            the shapes allow.

    Returns:
        Layers with their confidence, and tensors that belong to none.

    Raises:
        FormatError: a hint fits no layer, or has no fields.

    Example:
        >>> from pellucid.grid import detect_layers
        >>> found = detect_layers({"0.weight": (8, 4), "0.bias": (8,), "1.weight": (8,)})
        >>> [(a.type, a.name) for a in found.layers]
        [('dense', '0'), ('rms_norm', '1')]
    """
    shapes, used = _shapes(source), set()
    hints = _checked({} if hints is None else hints)
    groups: dict[str, dict[str, Shape]] = {}
    for name, shape in shapes.items():
        owner, _, last = name.rpartition(".")
        parent, _, middle = owner.rpartition(".")
        # Projections of attention and of a gated layer belong together.
        if f"{middle}.{last}" in (*ATTENTION, *GATED):
            owner, last = parent, f"{middle}.{last}"
        groups.setdefault(owner, {})[last] = shape
    layers: list[Archetype] = []
    unmatched: list[str] = []
    for name in sorted(groups, key=_rank):
        given: dict[str, Any] = {}
        for pattern, fields in hints.items():
            if fnmatchcase(name, pattern):
                given |= fields
                used.add(pattern)
        found = _recognised(name, groups[name], given)
        if found is None:
            unmatched += [f"{name}.{part}" if name else part for part in groups[name]]
            continue
        if given.get("type", found.type) != found.type:
            raise FormatError(
                f"detect_layers: {name} has the shapes of {found.type}, not of {given['type']}."
            )
        if layers and _is_apart(layers[-1].name, name) and "activation" not in layers[-1].fields:
            layers[-1].confidence = min(layers[-1].confidence, 0.5)
            layers[-1].notes.append(f"what has no tensors, such as an activation, lies before {name}")
        found.fields |= {k: v for k, v in given.items() if k != "type"}
        layers.append(found)
    if unused := sorted(hints.keys() - used):
        raise FormatError(
            f"detect_layers: hints fit no layer: {', '.join(unused)}. There are {sorted(groups)}."
        )
    return Detection(_blocks(layers), unmatched)


def load_universal(
    source: Any,
    hints: Mapping[str, Mapping[str, Any]] | None = None,
    least: float = 0.6,
    strict: bool = True,
    device: Any = None,
) -> tuple[GridNetwork, Detection]:
    """A network of a checkpoint that nothing describes.

    Args:
        source, hints: as in `detect_layers`, but for shapes.
        least: confidence below which a layer is refused, so that no wrong guess is silent.
        strict: whether tensors that belong to no layer are refused, too.
        device: of the parameters; the default if None.

    Returns:
        The network, a cell for each layer, and what was recognised.

    Raises:
        WeightError: a layer is too uncertain, or a tensor belongs to none; the text says which hints help.
        FormatError: hints do not fit.

    Example:
        >>> import pellucid
        >>> layer = pellucid.nn.Linear(4, 2, device="cpu")
        >>> net, found = pellucid.grid.load_universal(pellucid.weights.save(layer.state_dict()), device="cpu")
        >>> x = pellucid.ones(1, 4, device="cpu")
        >>> bool((net(x) == layer(x)).all()), found.confidence
        (True, 0.9)
    """
    checkpoint = source if isinstance(source, Checkpoint) else open_file(source)
    found = detect_layers(checkpoint, hints)
    if uncertain := [a for a in found.layers if a.confidence < least]:
        told = "; ".join(
            f"{a.name} as {a.type} ({a.confidence:.2f}: {', '.join(a.notes)})" for a in uncertain[:5]
        )
        raise WeightError(
            f"load_universal: these are too uncertain: {told}. Give hints, such as "
            f"{{{uncertain[0].name!r}: {{'type': {uncertain[0].type!r}}}}} with fields that are not known."
        )
    if not found.layers or (strict and found.unmatched):
        raise WeightError(
            f"load_universal: these tensors belong to no layer: {', '.join(found.unmatched[:8]) or '-'}. "
            "Give hints for them, or strict=False to leave them out."
        )
    net = GridNetwork(len(found.layers), 1, 1, 1)
    for z, archetype in enumerate(found.layers):
        layer = Layer(archetype.specification, f"layer {archetype.name}", device)
        have = stored(layer)
        names = {key: name.removeprefix("T:") for key, name in archetype.tensors.items() if name != "0"}
        values = load_tensors(checkpoint, dict.fromkeys(names.values()))
        state: dict[str, Tensor] = {}
        for key, name in archetype.tensors.items():
            if name == "0":
                state[key] = tensor([0.0], device="cpu").expand(tuple(have[key].shape)).contiguous()
            else:
                value = values[names[key]].float()
                state[key] = value.T.contiguous() if name.startswith("T:") else value
        net.place((z, 0, 0, 0), restore(layer, state))
    return net, found


def _checked(hints: Any) -> Mapping[str, Mapping[str, Any]]:
    """Hints that are fields of layers by patterns of names."""
    if not isinstance(hints, Mapping):
        raise FormatError(
            f"detect_layers: hints are fields by patterns of layers' names, not {type(hints).__name__}."
        )
    for pattern, fields in hints.items():
        if not isinstance(pattern, str):
            raise FormatError(f"detect_layers: the pattern of a hint is a text, not {pattern!r}.")
        if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
            kind = type(fields).__name__
            raise FormatError(f"detect_layers: the hint {pattern} must be fields by name, not {kind}.")
        if beside := sorted(fields.keys() & OF_NETWORK):
            raise FormatError(f"detect_layers: the hint {pattern} can't say {', '.join(beside)} of a layer.")
    return hints


def _shapes(source: Any) -> dict[str, Shape]:
    if isinstance(source, Mapping) and not isinstance(source, Checkpoint):
        for name, shape in source.items():
            right = isinstance(shape, (tuple, list)) and all(isinstance(n, int) and n >= 0 for n in shape)
            if not isinstance(name, str) or not right:
                raise FormatError(
                    f"detect_layers: shapes are lengths of axes by names of tensors, not {name!r}: {shape!r}."
                )
        return {name: tuple(shape) for name, shape in source.items()}
    checkpoint = source if isinstance(source, Checkpoint) else open_file(source)
    return {name: info.shape for name, info in checkpoint.items()}


def _is_apart(before: str, name: str) -> bool:
    """Whether two layers of a Sequential have others between them."""
    (one, _, first), (other, _, second) = before.rpartition("."), name.rpartition(".")
    numbers = all(part.isdecimal() and len(part) <= DIGITS for part in (first, second))
    return one == other and numbers and int(second) > int(first) + 1


def _rank(name: str) -> tuple:
    """A key that sorts names by numbers as numbers, and parts of blocks in the order in which they run."""
    key, path = [], ""
    for part in name.split("."):
        path = f"{path}.{part}" if path else part
        place = next((k for k, p in enumerate(ORDER) if fnmatchcase(part, p)), OTHERS)
        number = int(part) if part.isdecimal() and len(part) <= DIGITS else -1
        key.append((0 if number >= 0 else place, number, re.sub(r"\d+", lambda m: m[0].zfill(9), part)))
    return tuple(key)


def _recognised(name: str, parts: dict[str, Shape], given: Mapping[str, Any]) -> Archetype | None:
    """The layer of some tensors; what a hint says of it is certain."""
    path = f"{name}." if name else ""
    kind = given.get("type")
    if set(parts) == set(ATTENTION):
        return _attention(name, parts, given)
    if set(parts) == set(GATED):
        gate, up, down = (parts[p] for p in GATED)
        if len(gate) == 2 and gate == up == down[::-1]:
            hidden, width = gate
            tensors = {f"layer.{p}": path + p for p in GATED}
            return Archetype(name, "swiglu", {"d_model": width, "output_height": hidden}, tensors, 0.95)
        return None
    if "weight_ih_l0" in parts:
        return _recurrent(name, parts)
    weight, bias = parts.get("weight"), parts.get("bias")
    if not weight or set(parts) - {"weight", "bias"}:
        return None
    tensors = {"layer.weight": f"{path}weight", "layer.bias": f"{path}bias" if bias else "0"}
    if len(weight) == 1:
        if bias is None:
            fields = {"d_model": weight[0]}
            return Archetype(name, "rms_norm", fields, {"layer.weight": f"{path}weight"}, 0.85, ["eps 1e-5"])
        return Archetype(name, "layer_norm", {"d_model": weight[0]}, tensors, 0.9) if bias == weight else None
    if len(weight) > 2:
        return _convolution(name, weight, bias, tensors, given)
    rows, columns = map(int, weight)
    if bias is None:
        named = bool(re.search(r"emb|wte|wpe|token", name.lower()))
        if kind == "embedding" or (kind is None and named):
            fields = {"vocab_size": rows, "embedding_dim": columns}
            return Archetype(name, "embedding", fields, {"layer.weight": f"{path}weight"}, 0.9)
        # A dense layer without bias and an embedding have the same shapes.
        sure = kind == "dense" or name.rpartition(".")[2] in ("lm_head", "output") or "proj" in name
        fields = {"input_height": columns, "output_height": rows}
        notes = [] if sure else ["or an embedding"]
        return Archetype(name, "dense", fields, tensors, 0.9 if sure else 0.65, notes)
    if bias == (rows,):
        fields = {"input_height": columns, "output_height": rows}
        return Archetype(name, "dense", fields, tensors, 0.9)
    if bias == (columns,):  # as GPT-2 has them
        tensors["layer.weight"] = f"T:{path}weight"
        fields = {"input_height": rows, "output_height": columns}
        return Archetype(name, "dense", fields, tensors, 0.8, ["columns first"])
    return None


def _attention(name: str, parts: dict[str, Shape], given: Mapping[str, Any]) -> Archetype | None:
    q, k, v, o = (parts[p] for p in ATTENTION)
    if (
        any(0 in shape for shape in (q, k))
        or k != v
        or len(q) != 2
        or o != (q[1], q[0])
        or k[1:] != q[1:]
        or q[0] % k[0]
    ):
        return None
    group, notes = q[0] // k[0], []
    heads = given.get("num_heads")
    confidence = 0.9 if heads else 0.4
    if not heads:
        size = next((n for n in (128, 64, 32, 16, 8, 4, 2) if k[0] % n == 0 and q[0] // n >= 4), k[0])
        heads = q[0] // size
        notes.append(f"num_heads {heads} is a guess")
    if type(heads) is not int or heads < 1 or q[0] % heads or heads % group:
        raise FormatError(
            f"detect_layers: {name}: {heads!r} heads do not fit queries of {q[0]} and keys of {k[0]}."
        )
    if "rope_freq_base" not in given:
        notes.append("rope_freq_base 10000")
    fields = {"d_model": q[1], "num_heads": heads, "num_kv_heads": heads // group, "head_dim": q[0] // heads}
    path = f"{name}." if name else ""
    return Archetype(
        name, "multi_head_attention", fields, {f"layer.{p}": path + p for p in ATTENTION}, confidence, notes
    )


def _recurrent(name: str, parts: dict[str, Shape]) -> Archetype | None:
    inputs, hidden = parts["weight_ih_l0"], parts.get("weight_hh_l0", ())
    wanted = {f"{p}_l0" for p in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    if set(parts) != wanted or len(hidden) != 2 or inputs[0] != hidden[0]:
        return None
    if 0 in (*inputs, *hidden) or hidden[0] % hidden[1]:
        return None
    kind = {4: "lstm", 1: "rnn"}.get(hidden[0] // hidden[1])
    if kind is None:
        return None
    path = f"{name}." if name else ""
    tensors = {f"layer.layer.{p}": path + p for p in sorted(wanted)}
    return Archetype(name, kind, {"input_height": inputs[1], "output_height": hidden[1]}, tensors, 0.95)


def _convolution(
    name: str, weight: Shape, bias: Shape | None, tensors: dict[str, str], given: Mapping[str, Any]
) -> Archetype | None:
    axes, sides = len(weight) - 2, set(weight[2:])
    if axes > 3 or len(sides) != 1:
        return None
    turned = str(given.get("type", "")).startswith("conv_transposed") or (
        bias is not None and bias == weight[1:2] != weight[:1]
    )
    if bias is not None and bias != (weight[1:2] if turned else weight[:1]):
        return None
    channels, filters = (weight[0], weight[1]) if turned else (weight[1], weight[0])
    kind = f"conv_transposed_{axes}d" if turned else f"cnn{axes}"
    lengths = ("input_depth", "input_height", "input_width")[-axes:] if axes > 1 else ("input_height",)
    unknown = [n for n in (*lengths, "stride", "padding") if n not in given]
    fields = {"input_channels": channels, "filters": filters, "kernel_size": sides.pop()}
    notes = [f"{', '.join(unknown)} not known"] if unknown else []
    return Archetype(name, kind, fields, tensors, 0.3 if unknown else 0.9, notes)


def _blocks(layers: list[Archetype]) -> list[Archetype]:
    """A norm before attention or a gated layer of the same block, and this, as a residual."""
    found: list[Archetype] = []
    for layer in layers:
        before = found[-1] if found else None
        if (
            before is not None
            and layer.type in ("multi_head_attention", "swiglu")
            and before.type in ("rms_norm", "layer_norm")
            and before.name.rpartition(".")[0] == layer.name.rpartition(".")[0] != ""
        ):
            inner = (before, layer)
            tensors = {f"layer.layer.{n}.{k}": t for n, a in enumerate(inner) for k, t in a.tensors.items()}
            fields = {"sequential_layers": [a.specification for a in inner]}
            notes = ["a residual behind its norm", *before.notes, *layer.notes]
            confidence = min(a.confidence for a in inner)
            found[-1] = Archetype(layer.name, "residual", fields, tensors, confidence, notes)
        else:
            found.append(layer)
    return found
