"""The training step: forward, backward, clipping and the optimizer's update, captured as one submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..autograd.grad_mode import under
from ..errors import ArgumentError, GradientError
from ..nn.modules.module import Module
from ..nn.utils import get_total_norm
from ..op.jit import compile
from ..ops.elementwise.comparison import where
from ..ops.shape.joining import stack
from ..optim.amp import GradScaler, autocast
from ..optim.optimizer import Optimizer
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from ..utils._pytree import tree_map


def placed(batch: Any, device: Any) -> Any:
    """A batch whose tensors are on a device."""
    return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, batch)


class TrainingStep:
    """A step of training for some batches, each of which adds to the gradients.

    A step with one batch is one captured function. With several, the backward of a batch is one and the
    update another; all their replays go to the device in one submission. Gradients that are not finite are
    not applied: the step then leaves parameters finite, and its report tells.

    Args:
        model: what is trained.
        optimizer: what changes it.
        args: a `TrainingArguments`.
        loss_of: the loss of a batch, a tensor: ``loss_of(model, batch, items)``. ``items`` is None or the
            tensor that ``count`` gives for all batches of the step.
        count: how much a batch counts for, a tensor, or None: batches count alike.

    Attributes:
        scaler: of losses in float16.
        was_skipped: the last step changed nothing, since gradients were not finite in float16.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        args: Any,
        loss_of: Callable[[Module, Any, Any], Any],
        count: Callable[[Any], Any],
    ):
        self.was_skipped = False
        self._count, device = count, next(model.parameters()).device.type
        self.scaler = GradScaler(device, enabled=args.fp16)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        scaler, max_norm = self.scaler, args.max_grad_norm
        half = dt.bfloat16 if args.bf16 else dt.float16 if args.fp16 else None

        def forward(batch: Any, items: Any) -> Tensor:
            with nullcontext() if half is None else autocast(device, half):
                loss = loss_of(model, batch, items)
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                raise ArgumentError(f"compute_loss: must give a tensor of one element, not {loss!r}.")
            if loss._node is None:
                raise GradientError(
                    "compute_loss: the loss hangs on no parameter that requires grad. Nothing can be trained."
                )
            return loss.reshape(())

        def add(batch: Any, share: Any, items: Any) -> Tensor:
            loss = forward(batch, items)
            loss = loss if share is None else loss * share
            scaler.scale(loss).backward()
            return loss.detach().float()

        def update() -> Tensor:
            scaler.unscale_(optimizer)
            grads = [p.grad for p in parameters if p.grad is not None]
            norm = get_total_norm([g.detach() for g in grads])
            if scaler.is_enabled():
                factor = (max_norm / (norm + 1e-6)).clamp(max=1.0) if max_norm else None
            else:
                factor = (max_norm / (norm + 1e-6)).clamp(max=1.0) if max_norm else norm * 0 + 1
                factor = where(norm.isfinite(), factor, 0.0)
            if factor is not None:
                for p in parameters:
                    if p.grad is not None:
                        p.grad = p.grad.detach().nan_to_num(0.0, 0.0, 0.0) * factor
            scaler.step(optimizer)
            optimizer.zero_grad()
            return norm.float()

        def whole(batch: Any, items: Any) -> Tensor:
            loss = add(batch, None, items)
            return stack([loss, under(False, update)])

        def finish(losses: list[Tensor]) -> Tensor:
            return stack([stack(losses).sum(), under(False, update)])

        captured = args.torch_compile and device == "webgpu" and not args.fp16
        take = compile if captured and not args.gradient_checkpointing else lambda function: function
        self._whole, self._add, self._finish = take(whole), take(add), take(finish)

    def __call__(self, batches: Sequence[Any]) -> Tensor:
        """Take a step.

        Args:
            batches: on the model's device.

        Returns:
            (2,) the loss and the norm of the gradients before they were clipped, not waited for.
        """
        counts = [self._count(batch) for batch in batches]
        items = None if counts[0] is None else stack(counts).sum()
        if len(batches) == 1:
            report = self._whole(batches[0], items)
        else:
            shares = [1 / len(batches) if n is None else n / items for n in counts]
            losses = [self._add(b, share, items) for b, share in zip(batches, shares, strict=True)]
            report = self._finish(losses)
        if self.scaler.is_enabled():
            scale = self.scaler.get_scale()
            self.scaler.update()
            self.was_skipped = self.scaler.get_scale() < scale
        return report

    def explain(self) -> str:
        """What became of the captured functions."""
        functions = [self._whole, self._add, self._finish]
        return "\n".join(str(f.explain()) for f in functions if hasattr(f, "explain"))


__all__ = ["TrainingStep", "placed"]
