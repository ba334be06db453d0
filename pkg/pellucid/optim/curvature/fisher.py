"""Fisher information of a model's parameters, from gradients of single examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.grad_mode import under
from ...autograd.mapped import vmap
from ...autograd.transforms import grad, jacrev
from ...errors import ArgumentError
from ...nn.func import functional_call
from ...nn.modules.module import Module
from ...ops.norm.softmax import softmax
from ...ops.shape.joining import cat
from ...tensors.tensor import Tensor


def trained(where: str, model: Any) -> dict[str, Tensor]:
    """Parameters by name, of which derivatives are wanted."""
    if not isinstance(model, Module):
        raise ArgumentError(f"{where}: model must be a Module, not {type(model).__name__}.")
    found = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise ArgumentError(f"{where}: no parameter of the model requires grad.")
    return found


def flat(gradients: dict[str, Tensor], lead: int) -> Tensor:
    """Derivatives by name as columns of one matrix, behind so many axes that they have in front."""
    return cat([g.reshape(*g.shape[:lead], -1) for g in gradients.values()], -1)


def per_example_gradients(model: Module, loss: Callable[..., Tensor], x: Tensor, *targets: Tensor) -> Tensor:
    """The gradient of the loss of each example, by all parameters.

    Args:
        model: a module.
        loss: of ``model(x)`` and targets of a batch of one, to one number.
        x: inputs (examples, ...).
        targets: (examples, ...) each.

    Returns:
        (examples, parameters), in the order of ``named_parameters()``.

    Source: Goodfellow 2015, "Efficient per-example gradient computations"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.optim import curvature
        >>> model = torch.nn.Linear(2, 1, bias=False, device="cpu")
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> curvature.per_example_gradients(model, lambda y: y.sum(), x)
        tensor([[1., 2.],
                [3., 4.]], device='cpu')
    """
    params = trained("per_example_gradients", model)

    def single(params: dict[str, Tensor], x: Tensor, *targets: Tensor) -> Tensor:
        return loss(functional_call(model, params, (x.unsqueeze(0),)), *(t.unsqueeze(0) for t in targets))

    in_dims = (None, 0, *(0 for _ in targets))
    return flat(under(False, vmap(grad(single), in_dims), params, x, *targets), 1)


def output_jacobian(model: Module, x: Tensor) -> Tensor:
    """Derivatives of each example's outputs by all parameters: (examples, outputs, parameters)."""
    params = trained("output_jacobian", model)

    def single(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, params, (x.unsqueeze(0),)).reshape(-1)

    return flat(under(False, vmap(jacrev(single), (None, 0)), params, x), 2)


def fisher(model: Module, x: Tensor, labels: Tensor | None = None, *, diagonal: bool = False) -> Tensor:
    """The Fisher information of a classifier's parameters, a mean over examples.

    ``E[g g']`` with g the gradient of ``log p(y | x)``: over the model's own classes, or, with labels, the
    empirical one.

    Args:
        model: a module that gives logits (examples, classes).
        x: inputs (examples, ...).
        labels: (examples,) classes, for the empirical Fisher.
        diagonal: only the diagonal.

    Returns:
        (parameters, parameters), or (parameters,).

    Source: Kunstner, Balles and Hennig 2019, "Limitations of the empirical Fisher approximation"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.optim import curvature
        >>> model = torch.nn.Linear(3, 2, device="cpu")
        >>> curvature.fisher(model, torch.randn(4, 3, device="cpu")).shape
        Size([8, 8])
    """
    jacobian = output_jacobian(model, x)
    share = softmax(under(False, model, x).reshape(len(x), -1), -1)
    classes = share.shape[-1]
    # Gradients of log p(c | x) are rows of (1_c - p) J.
    inner = (share.unsqueeze(1) * jacobian.transpose(1, 2)).sum(-1)
    if labels is not None:
        index = labels.reshape(-1, 1, 1).expand(len(x), 1, jacobian.shape[-1])
        rows = jacobian.gather(1, index).squeeze(1) - inner
    else:
        rows = (jacobian - inner.unsqueeze(1)) * share.sqrt().unsqueeze(-1)
        rows = rows.reshape(len(x) * classes, -1)
    return (rows * rows).sum(0) / len(x) if diagonal else rows.t() @ rows / len(x)
