"""The Laplace approximation: a normal posterior of parameters about a trained optimum, and what it
predicts.
"""

from __future__ import annotations

import math

from ...autograd.grad_mode import under
from ...errors import RangeError
from ...nn import functional as F
from ...nn.modules.module import Module
from ...ops.linalg.solvers import slogdet
from ...ops.linalg.triangular import cholesky, cholesky_inverse
from ...ops.norm.softmax import softmax
from ...ops.shape.creation import eye
from ...tensors.tensor import Tensor
from .fisher import output_jacobian, trained


class LaplacePosterior:
    """A normal posterior of all parameters of a small network, with the curvature of Gauss and Newton.

    ``p(w | data) = N(w*, (sum_n J' L J + precision I)^-1)``, with J the derivatives of outputs and L the
    second derivatives of the loss by them.

    Args:
        model: trained to its optimum with weight decay ``precision``.
        x: inputs (examples, ...) of its training.
        task: ``"regression"`` (squared error) or ``"classification"`` (cross entropy of logits).
        precision: of the prior.
        noise: of regression: the standard deviation of targets.

    Attributes:
        covariance: (parameters, parameters), in the order of ``named_parameters()``.

    Raises:
        RangeError: no such task, or a number that is not above 0.

    Source: MacKay 1992, "A practical Bayesian framework for backpropagation networks"; Daxberger et al. 2021,
        "Laplace redux"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.optim.curvature import LaplacePosterior
        >>> model = torch.nn.Linear(1, 1, bias=False, device="cpu")
        >>> LaplacePosterior(model, torch.tensor([[1.0], [2.0]], device="cpu"), "regression").covariance
        tensor([[0.1667]], device='cpu')
    """

    def __init__(self, model: Module, x: Tensor, task: str, *, precision: float = 1.0, noise: float = 1.0):
        if task not in ("regression", "classification"):
            raise RangeError(f"LaplacePosterior: task {task!r} is neither 'regression' nor 'classification'.")
        for name, value in (("precision", precision), ("noise", noise)):
            if not value > 0:
                raise RangeError(f"LaplacePosterior: {name} must be above 0, not {value!r}.")
        self.model, self.task, self.precision, self.noise = model, task, precision, noise
        jacobian = output_jacobian(model, x)
        if task == "regression":
            rows = jacobian.reshape(-1, jacobian.shape[-1]) / noise
            curvature = rows.t() @ rows
        else:
            share = softmax(under(False, model, x), -1)
            inner = (share.unsqueeze(1) * jacobian.transpose(1, 2)).sum(-1)
            rows = ((jacobian - inner.unsqueeze(1)) * share.sqrt().unsqueeze(-1)).flatten(0, 1)
            curvature = rows.t() @ rows
        identity = eye(curvature.shape[0], dtype=curvature.dtype, device=curvature.device)
        self._hessian = curvature + identity * precision
        self.covariance = cholesky_inverse(cholesky(self._hessian))

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the posterior says of new inputs, with the model linear in its parameters.

        Args:
            x: (examples, ...).

        Returns:
            For regression means and variances of targets, (examples, outputs) each. For classification
            probabilities, drawn towards each other by the probit approximation, and variances of logits.

        Source: MacKay 1992, "The evidence framework applied to classification networks", equation 10
        """
        mean = under(False, self.model, x)
        jacobian = output_jacobian(self.model, x)
        variance = ((jacobian @ self.covariance) * jacobian).sum(-1).reshape(mean.shape)
        if self.task == "regression":
            return mean, variance + self.noise**2
        return softmax(mean / (1 + variance * (math.pi / 8)).sqrt(), -1), variance

    def log_marginal_likelihood(self, x: Tensor, y: Tensor) -> Tensor:
        """The evidence of the data, by which precision and noise are chosen.

        Args:
            x: inputs of the training.
            y: targets (examples, outputs), or classes (examples,).

        Source: MacKay 1992, "Bayesian interpolation", equation 4.4
        """
        output = under(False, self.model, x)
        if self.task == "regression":
            count = output.numel()
            fit = (output - y).square().sum() / (-2 * self.noise**2)
            fit = fit - count * math.log(self.noise * math.sqrt(2 * math.pi))
        else:
            fit = -F.cross_entropy(output, y, reduction="sum")
        square = sum((p * p).sum() for p in trained("LaplacePosterior", self.model).values())
        size = self.covariance.shape[0]
        prior = square * (-self.precision / 2) + size / 2 * math.log(self.precision)
        return fit + prior - slogdet(self._hessian)[1] / 2
