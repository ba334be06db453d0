"""Influence of training examples on a loss, and the neural tangent kernel, by which examples act on each
other.
"""

from __future__ import annotations

from collections.abc import Callable

from ...autograd.grad_mode import under
from ...errors import RangeError
from ...nn.modules.module import Module
from ...ops.matmul.dense import matmul
from ...ops.shape.joining import cat
from ...optim.curvature.fisher import output_jacobian, per_example_gradients
from ...optim.curvature.products import conjugate_gradients, hessian_vector_product, walked
from ...tensors.tensor import Tensor


def influence(
    model: Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    damping: float = 1e-3,
    steps: int = 100,
) -> Tensor:
    """How the loss of a test would change with the weight of each training example.

    ``-g_test' (H + damping I)^-1 g_n``: above 0, the example does harm. Leaving one out changes the test's
    loss by about ``-influence / examples``. H is that of the training loss, by conjugate gradients.

    Args:
        model: trained to its optimum.
        loss: of outputs and targets of a batch, to their mean.
        train: inputs and targets (examples, ...).
        test: inputs and targets, one or several.
        damping: added to H; more where the optimum is not reached.
        steps: of conjugate gradients, at most.

    Returns:
        (examples,)

    Raises:
        RangeError: damping is negative, or H is not positive definite with it.

    Source: Koh and Liang 2017, "Understanding black-box predictions via influence functions", equation 2

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> model = torch.nn.Linear(1, 1, bias=False, device="cpu")
        >>> model.weight.data = torch.tensor([[2.0]], device="cpu")
        >>> x, y = torch.tensor([[1.0], [1.0]], device="cpu"), torch.tensor([[1.0], [3.0]], device="cpu")
        >>> loss = torch.nn.functional.mse_loss
        >>> lens.influence(model, loss, (x, y), (x[:1], y[:1]), damping=0.0)
        tensor([-2.,  2.], device='cpu')
    """
    if not damping >= 0:
        raise RangeError(f"influence: damping must be at least 0, not {damping!r}.")
    params = [p for p in model.parameters() if p.requires_grad]

    def solved() -> list[Tensor]:
        right = [g.detach() for g in walked(loss(model(test[0]), test[1]), params)]
        total = loss(model(train[0]), train[1])

        def product(v: list[Tensor]) -> list[Tensor]:
            return [h + a * damping for h, a in zip(hessian_vector_product(total, params, v), v, strict=True)]

        return conjugate_gradients(product, right, steps=steps)

    way = cat([s.reshape(-1) for s in under(True, solved)])
    return -(per_example_gradients(model, loss, *train) * way).sum(-1)


def neural_tangent_kernel(model: Module, x: Tensor, other: Tensor | None = None) -> Tensor:
    """How a step on one example moves the outputs of another: ``J(x) J(other)'``.

    Args:
        model: a module of (examples, ...) to (examples, outputs).
        x: inputs (examples, ...).
        other: inputs (others, ...); x itself if None.

    Returns:
        (examples, others, outputs, outputs)

    Source: Jacot, Gabriel and Hongler 2018, "Neural tangent kernel: convergence and generalization in neural
        networks"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> lens.neural_tangent_kernel(torch.nn.Linear(2, 1, device="cpu"), x)[..., 0, 0]
        tensor([[ 6., 12.],
                [12., 26.]], device='cpu')
    """
    first = output_jacobian(model, x)
    second = first if other is None else output_jacobian(model, other)
    product = matmul(first.flatten(0, 1), second.flatten(0, 1).t())
    return product.unflatten(0, first.shape[:2]).unflatten(2, second.shape[:2]).transpose(1, 2)
