"""K-FAC: natural gradient steps, with the Fisher matrix of each linear layer as a Kronecker product."""

from __future__ import annotations

from typing import Any

from ..autograd.derivatives import grad
from ..autograd.grad_mode import is_grad_enabled
from ..errors import ArgumentError, RangeError
from ..nn.hooks import for_recording
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..ops.linalg.solvers import inv_ex
from ..ops.norm.softmax import softmax
from ..ops.random.distributions import rand_like, randn_like
from ..ops.shape.creation import eye, zeros_like
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, kept


class KFAC(Optimizer):
    """``W -= lr * G^-1 dW A^-1``, with A the mean of inputs times inputs and G of output gradients.

    The Fisher matrix of a layer is taken as the Kronecker product of both, so its inverse is that of two
    small matrices. Layers other than `nn.Linear` take steps of gradient descent. The loss must be a mean
    over the batch.

    Args:
        model: a module, whose linear layers it listens to.
        momentum: share of the last step that is kept.
        damping: added to both factors, ``sqrt(damping)`` each with the ratio of their traces.
        decay: of the running means of A and G.
        inverse_every: steps between two inversions.
        kl_clip: the step is shortened so that ``lr^2 * step * gradient`` stays below; None does not.

    Raises:
        ArgumentError: it is no module.
        RangeError: a number is out of range.

    Source: Martens and Grosse 2015, "Optimizing neural networks with Kronecker-factored approximate
        curvature"; Ba, Grosse and Martens 2017, "Distributed second-order optimization", for the clip

    Example:
        >>> import pellucid as torch
        >>> model = torch.nn.Linear(2, 1, device="cpu")
        >>> optimizer = torch.optim.KFAC(model, lr=0.5, momentum=0.0, kl_clip=None)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 10.0], [1.0, 10.0], [2.0, 0.0]], device="cpu")
        >>> for _ in range(30):
        ...     optimizer.zero_grad()
        ...     y = model(x)
        ...     optimizer.observe(y, "squared_error")
        ...     loss = (y - x.sum(1, keepdim=True)).square().mean()
        ...     loss.backward()
        ...     optimizer.step()
        >>> loss.item() < 1e-2
        True
    """

    def __init__(
        self,
        model: Module,
        lr: float = 0.01,
        momentum: float = 0.9,
        damping: float = 1e-3,
        decay: float = 0.95,
        weight_decay: float = 0.0,
        inverse_every: int = 1,
        kl_clip: float | None = 1e-2,
    ):
        if not isinstance(model, Module):
            raise ArgumentError(
                f"KFAC: takes the model itself, not {type(model).__name__}: it hooks its layers."
            )
        if (
            not damping > 0
            or not 0 <= decay < 1
            or inverse_every < 1
            or (kl_clip is not None and not kl_clip > 0)
        ):
            raise RangeError(
                f"KFAC: damping={damping!r} and kl_clip={kl_clip!r} must be above 0, decay={decay!r} at "
                "least 0 and "
                f"below 1, inverse_every={inverse_every!r} at least 1."
            )
        super().__init__(
            model.parameters(),
            {
                "lr": lr,
                "momentum": momentum,
                "damping": damping,
                "decay": decay,
                "weight_decay": weight_decay,
                "inverse_every": inverse_every,
                "kl_clip": kl_clip,
                "step": 0,  # how many were taken, which says when factors are inverted
            },
        )
        self._layers = [m for m in model.modules() if isinstance(m, Linear)]
        self._seen: dict[int, tuple[Tensor, Tensor]] = {}
        # Whether gradients of outputs are noted: always until `observe` was called, then only within it.
        self._notes = True
        for layer in self._layers:
            layer.register_forward_hook(self._hear)

    @for_recording
    def _hear(self, layer: Any, inputs: tuple, output: Tensor) -> None:
        """Note a layer's input, and its output's gradient when that comes."""
        if not is_grad_enabled() or not output.requires_grad:
            return
        x = inputs[0].detach().reshape(-1, layer.in_features)

        def note(g: Tensor) -> None:
            if not self._notes:
                return
            # The loss is a mean, so gradients are those of examples over their number.
            rows = g.detach().reshape(-1, layer.out_features)
            self._seen[id(layer)] = x, rows * rows.shape[0]

        output.register_hook(note)

    def observe(self, output: Tensor, loss: str) -> None:
        """Take G from gradients by targets that the model draws from what it predicts.

        Call it between the model and ``backward()``. Random numbers are those of `manual_seed`.

        Args:
            output: of the model, (batch, ...), with its graph.
            loss: ``"cross_entropy"`` of logits (batch, classes), or ``"squared_error"``, half of which is
                minus the logarithm of a normal density.

        Raises:
            RangeError: no such loss.

        Source: Martens and Grosse 2015, section 5
        """
        rows = output.detach().reshape(-1, output.shape[-1])
        if loss == "cross_entropy":
            share = softmax(rows, -1)
            # The first of a race at these rates: `multinomial` would wait to look at what it is given.
            waits = rand_like(share).neg().log1p().neg().clamp(min=1e-10)
            drawn = (share / waits).argmax(-1, keepdim=True)
            slope = share - zeros_like(share).scatter(1, drawn, 1.0)
        elif loss == "squared_error":
            slope = randn_like(rows)
        else:
            raise RangeError(f"observe: loss {loss!r} is neither 'cross_entropy' nor 'squared_error'.")
        weights = [layer.weight for layer in self._layers]
        self._notes = True
        self._seen.clear()
        slope = slope.reshape(output.shape) / rows.shape[0]
        grad(output, weights, slope, retain_graph=True, allow_unused=True)
        self._notes = False

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        lr, decay, clip = float(group["lr"]), float(group["decay"]), group["kl_clip"]
        return (
            lr,
            lr**2 / (1.0 if clip is None else clip),
            float(group["momentum"]),
            float(group["weight_decay"]),
            decay,
            1 - decay,
            group["damping"] ** 0.5,
        )

    def _repeat(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[float, ...]:
        group["step"] += 1
        return self._numbers(group, {})

    def _kernel(self, group: dict[str, Any]) -> Any:
        settings = group["momentum"], group["weight_decay"], group["kl_clip"] is not None
        return *map(bool, settings), self._inverts(group)

    def _inverts(self, group: dict[str, Any]) -> bool:
        """Whether factors are inverted at the step that comes."""
        return group["step"] % group["inverse_every"] == 0

    def _factors(self, layer: Any, keep: float, take: float, root: float) -> None:
        """Follow A and G, and invert them with their damping."""
        state = self.state[layer.weight]
        if (seen := self._seen.pop(id(layer), None)) is not None:
            x, g = seen
            if layer.bias is not None:
                x = cat([x, x[:, :1] * 0 + 1], 1)
            for name, rows in (("A", x), ("G", g)):
                new = rows.t() @ rows / rows.shape[0]
                if name in state:
                    state[name].mul_(keep).add_(new * take)
                else:  # the first running mean is the first value, as if it had always been there
                    state[name] = kept(new)
        if "A" in state and (self._inverts(self.param_groups[0]) or "A_inverse" not in state):
            a, g = state["A"], state["G"]
            ratio = ((a.trace() / a.shape[0]) / (g.trace() / g.shape[0] + 1e-12) + 1e-12).sqrt()
            for name, factor, share in (("A", a, ratio), ("G", g, 1 / ratio)):
                identity = eye(factor.shape[0], dtype=factor.dtype, device=factor.device)
                _hold(state, f"{name}_inverse", inv_ex(factor + identity * (share * root))[0])

    def _update_all(self) -> None:
        group = self.param_groups[0]
        numbers: Any = None
        for p in group["params"]:
            if p.grad is not None:
                numbers = self._numbers_of(p, group, self.state[p])
        if numbers is None:
            return
        lr, clipped, momentum, decay, keep, take, root = numbers
        steps: dict[int, Tensor] = {}
        layer: Any
        for layer in self._layers:
            if layer.weight.grad is None:
                continue
            self._factors(layer, keep, take, root)
            state = self.state[layer.weight]
            if "A_inverse" not in state:
                continue
            g = layer.weight.grad
            if layer.bias is not None:
                g = cat([g, layer.bias.grad.unsqueeze(1)], 1)
            made = state["G_inverse"] @ g @ state["A_inverse"]
            if layer.bias is not None:
                steps[id(layer.bias)] = made[:, -1]
                made = made[:, :-1]
            steps[id(layer.weight)] = made
        share: Any = None
        if group["kl_clip"] is not None and steps:
            parts = [(steps[id(p)] * p.grad).sum() for p in group["params"] if id(p) in steps]
            total = sum(parts[1:], parts[0]) * clipped
            share = (total.abs() + 1e-30).rsqrt().clamp(max=1.0)
        for p in group["params"]:
            if p.grad is None:
                continue
            step = p.grad
            if id(p) in steps:
                step = steps[id(p)] if share is None else steps[id(p)] * share
            if group["weight_decay"]:
                step = step + p * decay
            if group["momentum"]:
                state = self.state[p]
                before = state.get("momentum_buffer")
                step = _hold(state, "momentum_buffer", step if before is None else before * momentum + step)
            p.sub_(step * lr)
        group["step"] += 1


def _hold(state: dict[str, Any], name: str, value: Tensor) -> Tensor:
    """Keep a value where the last one lies, so that a step can be replayed; returns what is kept."""
    if name in state:
        return state[name].copy_(value)
    state[name] = kept(value.clone())
    return state[name]
