"""A linear layer or convolution with the batch norm behind it as one layer, for inference."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ...errors import RangeError
from ...ops.shape.creation import zeros_like
from ...tensors.tensor import Tensor
from ..parameter import Parameter


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution that does what it did with the batch norm behind it.

    Args:
        conv_w, conv_b: of the convolution.
        bn_rm, bn_rv, bn_eps, bn_w, bn_b: running mean and variance, eps, weight and bias of the norm.
        transpose: whether the convolution is transposed, and outputs lie along the second axis.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_weights.html
    """
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (bn_rv + bn_eps).rsqrt()
    scale = scale if bn_w is None else scale * bn_w
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    moved = (bias - bn_rm) * scale
    moved = moved if bn_b is None else moved + bn_b
    weight = (conv_w * scale.reshape(*shape)).to(conv_w.dtype)
    wants = conv_w.requires_grad, bias.requires_grad
    return Parameter(weight.detach(), wants[0]), Parameter(moved.to(conv_w.dtype).detach(), wants[1])


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """`fuse_conv_bn_weights` of a linear layer.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.fuse_linear_bn_weights.html
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that also does what the batch norm behind it does.

    Raises:
        RangeError: one of them is in training.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_eval.html
    """
    if conv.training or bn.training:
        raise RangeError("fuse_conv_bn_eval: both must be in eval. Call eval() of both.")
    fused = deepcopy(conv)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *statistics, transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that also does what the batch norm behind it does.

    Raises:
        RangeError: one of them is in training, or they have other numbers of columns.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.fuse_linear_bn_eval.html
    """
    if linear.out_features != bn.num_features:
        raise RangeError(
            f"fuse_linear_bn_eval: the layer has {linear.out_features} outputs, the norm {bn.num_features} "
            "features."
        )
    return fuse_conv_bn_eval(linear, bn)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
