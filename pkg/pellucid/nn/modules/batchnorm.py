"""Layers that normalize by channel: batch, instance and group norm, local response norm."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...autograd.grad_mode import unrecorded
from ...errors import DeviceError, ShapeError
from ...op.arguments import number
from ...ops.shape.creation import empty, ones, zeros
from ...tensors.construct import tensor
from ...tensors.dtypes import DType, int64
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional, init
from ..parameter import Parameter
from .module import Module


class _ChannelNorm(Module):
    """What batch and instance norm have in common: numbers of channels.

    Args:
        num_features: how many channels.
        eps: added to the variance.
        momentum: how far running statistics move towards a batch's; None makes them the mean of all batches.
        affine: whether there are a weight and a bias.
        track_running_stats: whether there are running statistics, which `eval` uses.
        device, dtype: of the parameters; the defaults if None.
        bias: whether there is a bias beside the weight.

    Attributes:
        weight, bias: (num_features,), ones and zeros; or None.
        running_mean, running_var: buffers (num_features,), zeros and ones; or None.
        num_batches_tracked: a buffer, int64, how many batches moved them; or None.
    """

    _version = 2
    # How many axes inputs have, and whether they may lack the batch.
    _ranks: tuple[int, ...] = ()
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype: DType | None = None,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = n = index(num_features, f"{type(self).__name__}: num_features")
        self.eps = eps
        if momentum is not None:
            number(momentum, f"{type(self).__name__}: momentum")
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        given = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(n, **given)) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(n, **given) if tracked else None)
        self.register_buffer("running_var", ones(n, **given) if tracked else None)
        count = tensor(0, dtype=int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        # Dictionaries without a version, such as those of programs that chose from one, may lack the count.
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    @no_grad
    def reset_running_stats(self) -> None:
        """Forget all batches."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if self._ranks and input.dim() not in self._ranks:
            wanted = " or ".join(f"{n}D" for n in self._ranks)
            raise ShapeError(f"expected {wanted} input (got {input.dim()}D input)")

    def _factor(self) -> float | Tensor:
        """Count this batch; how far it moves the statistics."""
        factor = 0.0 if self.momentum is None else self.momentum
        if not (self.training and self.track_running_stats) or self.num_batches_tracked is None:
            return factor
        with unrecorded():
            self.num_batches_tracked.add_(1)
            return factor if self.momentum is not None else 1.0 / self.num_batches_tracked.float()

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = self._factor()
        training = self.training or (self.running_mean is None and self.running_var is None)
        tracks = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if tracks else None,
            self.running_var if tracks else None,
            self.weight,
            self.bias,
            training,
            factor,  # type: ignore[arg-type]  a tensor, where it is the mean of all batches
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """`functional.batch_norm` of (batch, channels) or (batch, channels, length)."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`functional.batch_norm` of (batch, channels, height, width)."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """`functional.batch_norm` of (batch, channels, depth, height, width)."""

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of several processes: there is one here, so it is that of its batch.

    Args:
        num_features: how many channels.
        eps: added to the variance.
        momentum: how far running statistics move towards a batch's; None makes them the mean of all batches.
        affine: whether there are a weight and a bias.
        track_running_stats: whether there are running statistics, which `eval` uses.
        process_group: None; there is one process.
        device, dtype: of the parameters; the defaults if None.
        bias: whether there is a bias beside the weight.

    Raises:
        DeviceError: there is a group of processes.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device=None,
        dtype: DType | None = None,
        bias: bool = True,
    ):
        if process_group is not None:
            raise DeviceError("SyncBatchNorm: there is one process and one device. Leave process_group out.")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ShapeError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with batch norms over processes in the place of its batch norms.

        Args:
            module: with its children; where it is no batch norm itself, it is changed and returned.
            process_group: None; there is one process.
        """
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            settings = module.eps, module.momentum, module.affine, module.track_running_stats, process_group
            made = cls(module.num_features, *settings, bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            setattr(made, name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_ChannelNorm):
    """`_ChannelNorm` without parameters and statistics unless they are asked for."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype: DType | None = None,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        bare = input.dim() == self._ranks[0]
        x = input.unsqueeze(0) if bare else input
        if x.shape[1] != self.num_features and self.affine:
            raise ShapeError(f"expected {self.num_features} channels, got an input of {tuple(input.shape)}")
        out = functional.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if bare else out


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` of (batch, channels, length), the batch left out or not."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`functional.instance_norm` of (batch, channels, height, width), the batch left out or not."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`functional.instance_norm` of (batch, channels, depth, height, width), the batch left out or not."""

    _ranks = (4, 5)


class GroupNorm(Module):
    """`functional.group_norm`: the channels of a group together.

    Args:
        num_groups: how many groups.
        num_channels: how many channels, a multiple of the groups.
        eps: added to the variance.
        affine: whether there are a weight and a bias.
        device, dtype: of the parameters; the defaults if None.
        bias: whether there is a bias beside the weight.

    Attributes:
        weight, bias: (num_channels,), ones and zeros; or None.

    Raises:
        ShapeError: the channels are not a multiple of the groups.
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype: DType | None = None,
        bias: bool = True,
    ):
        super().__init__()
        num_groups = index(num_groups, "GroupNorm: num_groups")
        num_channels = index(num_channels, "GroupNorm: num_channels")
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"GroupNorm: num_channels {num_channels} must be divisible by num_groups {num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """`functional.local_response_norm`: divided by a power of what neighbouring channels hold.

    Args:
        size: how many neighbours.
        alpha, beta, k: numbers of the formula.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of (batch, channels, height, width), under its older name.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.CrossMapLRN2d.html
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ShapeError(
                f"CrossMapLRN2d: takes (batch, channels, height, width), not {tuple(input.shape)}."
            )
        return super().forward(input)


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LocalResponseNorm", "SyncBatchNorm",
]  # fmt: skip
