"""Direct logit attribution: what each layer, head or neuron adds to a logit by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...autograd.derivatives import grad
from ...autograd.grad_mode import under
from ...errors import ArgumentError
from ...nn import functional as F
from ...nn.modules.norm import LayerNorm
from ...ops.shape.creation import ones
from ...ops.shape.joining import cat, stack
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..points import PARTS, points
from ..run import ids_of, run


@dataclass
class Attribution:
    """Shares of logits, by what wrote them into the residual.

    Args:
        names: of the components, such as ``embed``, ``z.3:5`` (head 5 of layer 3), ``mlp_out.2``.
        values: (components, batch, tokens).
        rest: (batch, tokens), what belongs to none: biases of the final norm and the head.
    """

    names: list[str]
    values: Tensor
    rest: Tensor

    @property
    def total(self) -> Tensor:
        """The logits: (batch, tokens)."""
        return self.values.sum(0) + self.rest

    def top(self, k: int = 10, token: int = 0) -> list[tuple[str, float]]:
        """The components that add most, by size, for one token of the first row."""
        found = self.values[:, 0, token].tolist()
        order = sorted(range(len(found)), key=lambda c: -abs(found[c]))
        return [(self.names[c], found[c]) for c in order[:k]]


def module_of(model: Any, part: str) -> Any:
    """A module by the name of a part, such as ``norm`` or ``head``; see `pellucid.lens.points`."""
    return model.get_submodule(getattr(model, "points", {}).get(part) or PARTS[part])


def logit_directions(model: Any, residual: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Directions of the last residual along which logits grow, with the final norm's scale as it is there.

    Args:
        model: a causal language model.
        residual: (batch, dim), the last one.
        tokens: (batch, tokens) ids.

    Returns:
        Directions (batch, tokens, dim), and what logits have besides (batch, tokens).
    """
    norm, head = module_of(model, "norm"), module_of(model, "head")
    rows = F.embedding(tokens, head.weight)
    rest = rows.sum(-1) * 0
    if isinstance(norm, LayerNorm):
        centred = residual - residual.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        if norm.bias is not None:
            rest = rest + (rows * norm.bias).sum(-1)
        rows = rows if norm.weight is None else rows * norm.weight
        rows = rows - rows.mean(-1, keepdim=True)
    else:
        # A norm of ones is its weight, whatever that counts from.
        one = ones(1, residual.shape[-1], device=residual.device)
        rows = rows * (norm(one) * (1 + norm.eps) ** 0.5)
        scale = (residual.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    if getattr(head, "bias", None) is not None:
        rest = rest + head.bias[tokens]
    return rows / scale.unsqueeze(1), rest


def direct_logit_attribution(
    model: Any, ids: Any, tokens: int | Sequence[int], *, by: str = "layer", position: int = -1
) -> Attribution:
    """What each part of a model writes into the residual along the direction of a token.

    ``logit = sum of components . direction``, with the final norm's scale taken as it is. For a
    logit difference subtract two tokens' values.

    Args:
        model: a causal language model whose residual is the sum of embedding, attention and feed-forward.
        ids: (batch, time).
        tokens: ids of the logits.
        by: ``layer`` (attention and feed-forward of each), ``head``, or ``neuron`` (of the feed-forwards).
        position: where.

    Returns:
        An `Attribution`.

    Source: Elhage et al. 2021, "A mathematical framework for transformer circuits"; nostalgebraist 2020,
        "interpreting GPT: the logit lens"
    """
    if by not in ("layer", "head", "neuron"):
        raise ArgumentError(f"direct_logit_attribution: by must be layer, head or neuron, not {by!r}.")
    ids, known = ids_of(model, ids), points(model)
    layers = 1 + max(p.layer for p in known.values() if p.layer is not None)
    last = f"resid_post.{layers - 1}"
    # Where a position adds its own embedding to that of the token, layers begin with their sum.
    names = [f"{n}.{k}" for k in range(layers) for n in ("attn_out", "mlp_out")]
    fine = {"layer": [], "head": [f"head_out.{k}" for k in range(layers)]}
    fine["neuron"] = [f"mlp_mid.{k}" for k in range(layers)]
    seen = run(model, ids, Plan(capture=["resid_pre.0", last, *names, *fine[by]]))
    chosen = tensor([tokens] if isinstance(tokens, int) else list(tokens), device=ids.device)
    residual = seen[last][:, position]
    directions, rest = under(False, logit_directions, model, residual, chosen.expand(ids.shape[0], -1))

    def along(value: Tensor) -> Tensor:
        return (directions @ value.unsqueeze(-1)).squeeze(-1)

    made_names, made = ["embed"], [along(seen["resid_pre.0"][:, position]).unsqueeze(0)]
    for name in names:
        whole = along(seen[name][:, position])
        layer = name.split(".")[1]
        if by == "head" and name.startswith("attn"):
            heads = seen[f"head_out.{layer}"][:, position]
            parts = (heads @ directions.transpose(1, 2)).permute(1, 0, 2)
            made_names += [f"z.{layer}:{h}" for h in range(parts.shape[0])]
        elif by == "neuron" and name.startswith("mlp"):
            end = model.get_submodule(known[f"mlp_mid.{layer}"].path)
            parts = _neurons(end, seen[f"mlp_mid.{layer}"][:, position], directions)
            made_names += [f"mlp_mid.{layer}:{n}" for n in range(parts.shape[0])]
        else:
            made_names.append(name)
            made.append(whole.unsqueeze(0))
            continue
        made.append(parts)
        # The bias behind heads and neurons is a part of no one of them.
        made_names.append(f"{name}:bias")
        made.append((whole - parts.sum(0)).unsqueeze(0))
    return Attribution(made_names, cat(made), rest)


def _neurons(end: Any, mid: Tensor, directions: Tensor) -> Tensor:
    """(neurons, batch, tokens): activations times the gradient through the last matrix, quantized or not."""
    made = []
    for k in range(directions.shape[1]):
        x = mid.detach().requires_grad_(True)
        out = under(True, lambda x=x, k=k: (F.linear(x, end.weight) * directions[:, k]).sum())
        made.append(mid * grad(out, x)[0])
    return stack(made, -1).transpose(0, 1)
