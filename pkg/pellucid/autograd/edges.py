"""Where tensors stand in the graph: edges to nodes and to leaves, what PyTorch calls its nodes, and views,
which move when their base is written. The class of tensors is made with it, so tensors are `Any` here."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ..tensors.meta import Meta

# Stands for the node of a tensor that requires grad and was not computed. The graph's edge to it is the
# tensor itself.
LEAF: Any = type("Leaf", (), {"__repr__": lambda self: "LEAF"})()
# Grows when a tensor that exists is given other memory, another layout or place in the graph, or a hook.
version = 0


def note_change() -> None:
    """Note, before it happens, that a tensor becomes another one, whatever its values."""
    global version
    version += 1


def edge(t: Any) -> Any:
    """Where a gradient for ``t`` goes."""
    node = t._node
    if node is None:
        return None
    return t if node is LEAF else (node, t._index)


class ViewReference(weakref.ref):
    """A weak reference that is found by itself: those of Python ask their tensor for its hash, in Python."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def note_view(base: Any, view: Any) -> None:
    """Let a tensor know its views: their places in the graph change when it is written in place."""
    views = base._views
    if views is None:
        base._views = views = {}
    views[ViewReference(view, views.pop)] = None


def views_of(base: Any) -> list[Any]:
    """The views of a tensor that are alive and were taken where ops record."""
    return [v for found in list(base._views or ()) if (v := found()) is not None]


__all__ = ["LEAF", "edge", "labelled", "note_change", "note_view", "views_of"]


# What PyTorch's nodes are called where it is not the function's name, and which of several they are.
_OTHERWISE = {
    "batch_norm": "NativeBatchNorm", "cholesky": "LinalgCholeskyEx", "cholesky_ex": "LinalgCholeskyEx",
    "dropout": "Mul",
    **{f"conv{kind}{n}d": "Convolution" for kind in ("", "_transpose") for n in (1, 2, 3)},
    "eigh": "LinalgEigh", "logsigmoid": "LogSigmoid", "selu": "Elu",
    "solve_triangular": "LinalgSolveTriangular", "inv": "LinalgInvEx", "log1p": "Log1P",
    "lu_factor": "LinalgLuFactorEx", "eig": "LinalgEig", "conj_physical": "Conj",
    "layer_norm": "NativeLayerNorm", "norm": "LinalgVectorNorm", "qr": "LinalgQr", "relu6": "Hardtanh",
    "solve": "LinalgSolveEx", "square": "Pow", "svd": "LinalgSvd", "to": "ToCopy",
}  # fmt: skip
_WHOLE = {
    "copy": "torch::autograd::CopyBackwards",
    **dict.fromkeys(("setitem", "copy_slices"), "torch::autograd::CopySlices"),
}
_PRODUCTS: dict[tuple[int | None, int | None], str] = {(1, 1): "Dot", (2, 1): "Mv", (2, 2): "Mm"}
# Functions whose nodes have names that depend on what they save.
TOLD = {
    "sum", "mean", "prod", "median", "squeeze", "max", "min", "pow", "clamp", "matmul", "max_pool", "linear",
}  # fmt: skip


def _tensor(saved: dict[str, Any], name: str) -> Meta | None:
    """The meta of an argument that a node keeps, by itself or with its tensor; None for a number."""
    kept = saved.get(f"{name}_meta", saved.get(name))
    found = getattr(kept, "meta", kept)
    return found if isinstance(found, Meta) else None


def name_of(node: Any) -> str:
    """PyTorch's name of a node."""
    if (label := getattr(node, "label", None)) is not None:
        return label
    public, saved = node.public.removeprefix("linalg."), node.saved
    if public in _WHOLE:
        return _WHOLE[public]
    number = 0
    base = "".join(part.capitalize() for part in public.split("_"))
    base = _OTHERWISE.get(public, f"Linalg{base}" if public != node.public else base)
    if public in ("sum", "mean", "prod", "median", "squeeze"):
        number = int(saved.get("dim") is not None)
        number += public == "squeeze" and isinstance(saved.get("dim"), tuple)
    elif public in ("lerp", "remainder"):
        other = _tensor(saved, "weight" if public == "lerp" else "other")
        number = int(other is not None)
    elif public in ("max", "min"):
        number = int("dim" not in saved)
    elif public == "pow":
        has_exponent = _tensor(saved, "exponent") is not None
        number = int(has_exponent) + (has_exponent and _tensor(saved, "input") is None)
    elif public == "clamp":
        number = int(_tensor(saved, "min") is None and _tensor(saved, "max") is None)
    elif public == "matmul":
        ranks = [found and found.rank for found in (_tensor(saved, "input"), _tensor(saved, "other"))]
        base = _PRODUCTS.get((ranks[0], ranks[1]), "UnsafeView")
    elif public == "max_pool" and (axes := len(saved["windows"].image)) > 1:
        base = f"MaxPool{axes}DWithIndices"
    elif public == "linear":
        has_bias = "bias" in node.edges or saved.get("bias_meta") is not None
        rank = node.outputs[0].rank
        base = ("Addmm" if has_bias else "Mm") if rank == 2 else "View" if has_bias else "UnsafeView"
        if rank == 1 and not has_bias:
            base, number = "Squeeze", 4
    return f"{base}Backward{number}"


def labelled(name: str, made: Any, given: Sequence[Any] = ()) -> Any:
    """A tensor, or several, that several ops made where PyTorch has one node, whose name their nodes have.

    Args:
        name: such as MseLossBackward0.
        made: what the last of these ops made.
        given: what it was made of, whose nodes keep their names where one of it is the result.
    """
    for t in made if isinstance(made, tuple) else (made,):
        node = getattr(t, "_node", None)  # what stands for a tensor may answer with anything
        if (
            node is not None
            and node is not LEAF
            and all(getattr(g, "_node", None) is not node for g in given)
        ):
            node.label = name
    return made


def told_by(node: Any) -> dict[str, Any]:
    """What a node keeps whose saved tensors go: what its name depends on."""
    return {name: getattr(value, "meta", value) for name, value in node.saved.items()}
