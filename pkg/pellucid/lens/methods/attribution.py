"""Direct logit attribution: what each layer, head or neuron adds to a logit by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...autograd.derivatives import grad
from ...autograd.grad_mode import under
from ...errors import ArgumentError
from ...nn.modules.norm import LayerNorm
from ...ops.shape.creation import ones
from ...ops.shape.joining import cat, stack
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..points import pick_points, points
from ..run import ids_of, run
from .gradients import states


@dataclass
class Attribution:
    """Shares of logits, by what wrote them into the residual.

    Args:
        names: of the components, such as ``embed``, ``z.3:5`` (head 5 of layer 3), ``mlp_out.2``.
        values: (components, batch, tokens).
        rest: (batch, tokens), what of the logits belongs to none: biases of the final norm and the head.
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


def logit_directions(model: Any, ids: Tensor, tokens: list[int], position: int) -> tuple[Tensor, Tensor]:
    """Directions of the last residual along which logits grow, with the final norm's scale as it is there.

    Args:
        model: a causal language model.
        ids: (batch, time).
        tokens: ids of the logits.
        position: where.

    Returns:
        Directions (batch, tokens, dim), and the logits themselves (batch, tokens).
    """
    last = list(pick_points(model, "resid_post"))[-1]
    seen = states(model, ids, ["final_norm", last])
    logits = under(True, lambda: seen.output.logits[:, position][:, tokens])
    sums = under(True, lambda: [logits[:, k].sum() for k in range(len(tokens))])
    # Through the head, with whatever scales its logits.
    slopes: Any = [grad(one, seen["final_norm"], retain_graph=True) for one in sums]
    rows = [slope[0][:, position] for slope in slopes]
    norm, residual = model.get_submodule(points(model)["final_norm"].path), seen[last][:, position].detach()
    return under(False, lambda: _through(norm, stack(rows, 1), residual)), logits.detach()


def _through(norm: Any, rows: Tensor, residual: Tensor) -> Tensor:
    """Directions behind a norm as such before it, where its scale does not change."""
    if isinstance(norm, LayerNorm):
        if norm.weight is not None:
            rows = rows * (norm.weight + int(getattr(norm, "counts_from_one", False)))
        rows = rows - rows.mean(-1, keepdim=True)
        residual = residual - residual.mean(-1, keepdim=True)
    else:
        # A norm of ones is its weight, whatever that counts from.
        one = ones(1, residual.shape[-1], device=residual.device)
        rows = rows * (norm.forward(one) * (1 + norm.eps) ** 0.5)
    return rows / (residual.square().mean(-1, keepdim=True) + norm.eps).sqrt().unsqueeze(1)


def direct_logit_attribution(
    model: Any, ids: Any, tokens: int | Sequence[int], *, by: str = "layer", position: int = -1
) -> Attribution:
    """What each part of a model writes into the residual along the direction of a token.

    ``logit = sum of components . direction``, with the final norm's scale taken as it is. For a
    logit difference subtract two tokens' values. Where a model bends its logits by a soft cap, shares are
    those of its slope there.

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
    # A norm between attention's last product and the residual: the point is not the attention itself.
    if by != "layer" and not known["z.0"].path.startswith(known["attn_out.0"].path + "."):
        raise ArgumentError(
            f"direct_logit_attribution: {type(model).__name__} has norms between {by}s and the residual, so "
            "that these do not add up. Use by='layer'."
        )
    # What some models multiply all that they add to the residual by.
    scale = getattr(getattr(model, "config", None), "residual_scale", 1.0)
    # Where a position adds its own embedding to that of the token, layers begin with their sum.
    names = [f"{n}.{k}" for k in range(layers) for n in ("attn_out", "mlp_out")]
    fine = {"layer": [], "head": [f"head_out.{k}" for k in range(layers)]}
    fine["neuron"] = [f"mlp_mid.{k}" for k in range(layers)]
    seen = run(model, ids, Plan(capture=["resid_pre.0", *names, *fine[by]]))
    chosen = [tokens] if isinstance(tokens, int) else list(tokens)
    directions, logits = logit_directions(model, ids, chosen, position)

    def along(value: Tensor) -> Tensor:
        return (directions @ value.unsqueeze(-1)).squeeze(-1)

    made_names, made = ["embed"], [along(seen["resid_pre.0"][:, position]).unsqueeze(0)]
    for name in names:
        whole = along(seen[name][:, position]) * scale
        layer = name.split(".")[1]
        if by == "head" and name.startswith("attn"):
            heads = seen[f"head_out.{layer}"][:, position]
            parts = (heads @ directions.transpose(1, 2)).permute(1, 0, 2) * scale
            made_names += [f"z.{layer}:{h}" for h in range(parts.shape[0])]
        elif by == "neuron" and name.startswith("mlp"):
            end = model.get_submodule(known[f"mlp_mid.{layer}"].path)
            parts = _neurons(end, seen[f"mlp_mid.{layer}"][:, position], directions) * scale
            made_names += [f"mlp_mid.{layer}:{n}" for n in range(parts.shape[0])]
        else:
            made_names.append(name)
            made.append(whole.unsqueeze(0))
            continue
        made.append(parts)
        # The bias behind heads and neurons is a part of no one of them.
        made_names.append(f"{name}:bias")
        made.append((whole - parts.sum(0)).unsqueeze(0))
    values = cat(made)
    return Attribution(made_names, values, logits - values.sum(0))


def _neurons(end: Any, mid: Tensor, directions: Tensor) -> Tensor:
    """(neurons, batch, tokens): activations times the gradient through the last matrix, quantized or not."""
    made = []
    for k in range(directions.shape[1]):
        x = mid.detach().requires_grad_(True)
        out = under(True, lambda x=x, k=k: (end.forward(x) * directions[:, k]).sum())
        made.append(mid * grad(out, x)[0])
    return stack(made, -1).transpose(0, 1)
