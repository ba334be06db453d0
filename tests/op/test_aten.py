"""ATen's operators by name: arguments in the order of PyTorch's own schemas, and its values."""

import inspect
import re
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError
from pellucid.op.public import EXPORTS, IN_PLACE, METHODS, OURS, OVERLOADS
from pellucid.op.schema import OPS
from pellucid.ops.aten import _LAYOUT, from_aten

A = torch.tensor([[0.1, 0.9, 0.4], [0.7, 0.3, 0.6]])
B = torch.tensor([[0.6, 0.2, 0.5], [0.3, 0.8, 0.1]])
WHOLE, SMALL = torch.tensor([[5, -3, 8], [1, 0, 2]]), torch.tensor([[2, 1, 3], [1, 2, 1]])
IMAGE, KERNEL = torch.arange(32.0).reshape(1, 2, 4, 4) / 10, torch.arange(16.0).reshape(2, 2, 2, 2) / 10
LINE, TAPS = IMAGE.reshape(1, 2, 16), KERNEL.reshape(2, 2, 4)
DEFINITE = torch.tensor([[2.0, 0.5, 0.3], [0.5, 3.0, 0.2], [0.3, 0.2, 1.5]])
SWAPS = torch.tensor([2, 2, 3], dtype=torch.int32)
PLACES = torch.tensor([[1, 0, 1]])
Q = torch.arange(24.0).reshape(1, 2, 3, 4) / 24
TARGET, ROWS = torch.tensor([2, 0]), torch.tensor([1, 0, 1])
SETTINGS = [1], [0], [1], False, [0], 1
# Arguments by operator or overload, where those that the schema's types make are not fit.
GIVEN = {
    "acosh": [A + 1], "matmul": [A, B.T], "mm": [A, B.T], "linear": [A, B], "dot": [A[0], B[0]],
    "mv": [A, B[0]], "outer": [A[0], B[0]], "bmm": [A[None], B.T[None]], "addmm": [A[:, :2], A, B.T],
    "baddbmm": [A[None, :, :2], A[None], B.T[None]], "conv1d": [LINE, TAPS], "conv2d": [IMAGE, KERNEL],
    "conv1d.padding": [LINE, TAPS, None, [1], "same"],
    "conv2d.padding": [IMAGE, KERNEL, None, [1, 1], "valid"], "conv_transpose1d": [LINE, TAPS],
    "conv_transpose2d": [IMAGE, KERNEL], "convolution": [LINE, TAPS, None, *SETTINGS],
    "max_pool1d": [LINE, [2]], "max_pool2d": [IMAGE, [2]], "avg_pool1d": [LINE, [2]],
    "conv3d": [IMAGE[None], KERNEL[:, :1, None]], "conv3d.padding": [
        IMAGE[None], KERNEL[:, :1, None], None, [1, 1, 1], "valid"],
    "conv_transpose3d": [IMAGE[None], KERNEL[:1, :, None]], "max_pool1d_with_indices": [LINE, [2]],
    "max_pool3d": [IMAGE[None], [2]], "max_pool3d_with_indices": [IMAGE[None], [2]],
    "avg_pool3d": [IMAGE[None], [2]], "adaptive_avg_pool3d": [IMAGE[None], [1, 2, 3]],
    "_adaptive_avg_pool3d": [IMAGE[None], [1, 2, 3]], "adaptive_max_pool1d": [LINE, [3]],
    "adaptive_max_pool2d": [IMAGE, [3, 2]], "adaptive_max_pool3d": [IMAGE[None], [1, 2, 3]],
    "constant_pad_nd": [A, [1, 2], 2.0], "pixel_shuffle": [IMAGE.reshape(1, 4, 2, 4), 2],
    "pixel_unshuffle": [IMAGE, 2], "channel_shuffle": [IMAGE, 2], "native_channel_shuffle": [IMAGE, 2],
    "grid_sampler": [IMAGE, IMAGE.reshape(1, 4, 4, 2), 0, 0, False],
    "grid_sampler_2d": [IMAGE, IMAGE.reshape(1, 4, 4, 2), 1, 1, False],
    "grid_sampler_3d": [IMAGE[None], IMAGE[..., :3].reshape(1, 2, 2, 2, 3), 0, 0, False],
    "affine_grid_generator": [A[None], [1, 1, 2, 3], False],
    "im2col": [IMAGE, [2, 2], [1, 1], [0, 0], [1, 1]],
    "col2im": [IMAGE.reshape(1, 8, 4), [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]],
    "avg_pool2d": [IMAGE, [2]], "max_pool2d_with_indices": [IMAGE, [2, 2]],
    "adaptive_avg_pool1d": [LINE, [3]], "adaptive_avg_pool2d": [IMAGE, [3, 2]],
    "_adaptive_avg_pool2d": [IMAGE, [3, 2]], "embedding": [A, PLACES], "index_select": [A, 1, TARGET],
    "fake_quantize_per_channel_affine": [A, B[0], SWAPS, 1, -8, 7],
    "fake_quantize_per_tensor_affine.tensor_qparams": [A, B[0, :1], SWAPS[:1], -8, 7],
    "gather": [A, 0, PLACES], "take_along_dim": [A, PLACES, 0], "scatter.src": [A, 0, PLACES, B],
    "scatter.value": [A, 0, PLACES, 2.0], "scatter.reduce": [A, 0, PLACES, B, {"reduce": "add"}],
    "scatter.value_reduce": [A, 0, PLACES, 2.0, {"reduce": "add"}], "scatter_.src": [A, 0, PLACES, B],
    "scatter_.value": [A, 0, PLACES, 2.0], "scatter_.reduce": [A, 0, PLACES, B, {"reduce": "add"}],
    "scatter_.value_reduce": [A, 0, PLACES, 2.0, {"reduce": "add"}], "scatter_add": [A, 0, PLACES, B],
    "scatter_add_": [A, 0, PLACES, B], "index_add": [A, 1, TARGET, B[:, :2]],
    "index_add_": [A, 1, TARGET, B[:, :2]], "index_put": [A, [PLACES[0]], torch.tensor(2.0)],
    "index_put_": [A, [PLACES[0]], torch.tensor(2.0)],
    "index_put.default": [A, [None, TARGET], torch.tensor(2.0)],
    "index_put_.default": [A, [None, TARGET], torch.tensor(2.0)], "index.Tensor": [A, [None, TARGET]],
    "masked_select": [A, A > 0.5], "masked_fill.Scalar": [A, A > 0.5, 2.0],
    "masked_fill.Tensor": [A, A > 0.5, torch.tensor(2.0)], "where.self": [A > 0.5, A, B],
    "where.ScalarOther": [A > 0.5, A, 2.0], "where.ScalarSelf": [A > 0.5, 2.0, B],
    "where.Scalar": [A > 0.5, 2.0, 3.0], "clamp.default": [A, 0.3, 0.6], "clip.default": [A, 0.3, 0.6],
    "topk": [A, 2], "softmax": [A, 1], "one_hot": [TARGET, 4], "glu": [IMAGE, 1], "layer_norm": [A, [3]],
    "rms_norm": [A, [3], B[0], 1e-5], "native_layer_norm": [A, [3], None, B[0], 1e-5],
    "group_norm": [A, 3], "native_group_norm": [A, None, None, 2, 3, 1, 1, 1e-5],
    "batch_norm": [A, None, None, None, None, True, 0.1, 1e-5, False],
    "native_batch_norm": [A, None, None, None, None, True, 0.1, 1e-5],
    "instance_norm": [IMAGE, None, None, None, None, True, 0.1, 1e-5, False],
    "norm.ScalarOpt_dim_dtype": [A, 2, [1], True, {"dtype": torch.float32}],
    "norm.ScalarOpt_dtype": [A, 3, {"dtype": torch.float32}], "norm.ScalarOpt_dim": [A, 3, [1]],
    "cat": [[A, B], 1], "stack": [[A, B], 1], "hstack": [[A, B]], "vstack": [[A, B]], "dstack": [[A, B]],
    "column_stack": [[A, B]], "broadcast_tensors": [[A, B[0]]], "expand": [A[:1], [2, -1]],
    "broadcast_to": [A, [2, 2, 3]], "view_as_real": [torch.complex(A, B)],
    "view_as_complex": [torch.stack([A, B], -1)], "view.default": [A, [3, 2]], "view.dtype": [A, torch.int32],
    "_unsafe_view": [A, [3, 2]], "reshape": [A, [3, -1]], "permute": [A, [1, 0]], "flip": [A, [1]],
    "repeat": [A, [2, 1]], "tile": [A, [2, 1]], "roll": [A, [1], [1]], "unflatten": [A, 1, [3, 1]],
    "transpose": [A, 0, 1], "movedim.int": [A, 0, 1], "movedim.intlist": [A, [0, 1], [1, 0]],
    "as_strided": [A, [2, 2], [1, 2], 1], "narrow": [A, 1, 1, 2], "select": [A, 1, 2],
    "slice": [A, 1, 1, 9223372036854775807, 1], "chunk": [A, 2, 1], "split.Tensor": [A, 2, 1],
    "split.sizes": [A, [1, 2], 1], "split_with_sizes": [A, [1, 2], 1], "unsafe_split": [A, 2, 1],
    "unsafe_split_with_sizes": [A, [1, 2], 1], "squeeze.dim": [A[:1], 0], "squeeze.dims": [A[:1], [0, 1]],
    "repeat_interleave.self_Tensor": [A, TARGET, 0], "repeat_interleave.self_int": [A, 2, 1],
    "pad": [A, [1, 2]], "scaled_dot_product_attention": [Q, Q, Q], "cosine_similarity": [A, B],
    "cross_entropy_loss": [A, TARGET], "nll_loss": [A, TARGET, None, 2], "nll_loss_nd": [A, TARGET],
    "full": [[2, 3], 2.5], "full_like": [A, 2.5], "linspace": [0, 1, 5], "eye.default": [3],
    "eye.m": [2, 3], "arange.default": [5], "arange.start": [1, 5], "arange.start_step": [1, 5, 2],
    "ones": [[2, 3]], "zeros": [[2, 3]], "scalar_tensor": [2.5], "normal_": [A], "tril": [A, 1],
    "max.other": [A, B], "min.other": [A, B], "copy": [A, B], "pow.Scalar": [2.0, A],
    "bitwise_and.Scalar_Tensor": [6, WHOLE], "bitwise_or.Scalar_Tensor": [6, WHOLE],
    "bitwise_xor.Scalar_Tensor": [6, WHOLE], "bitwise_left_shift.Scalar_Tensor": [6, SMALL],
    "bitwise_right_shift.Scalar_Tensor": [6, SMALL], "remainder.Scalar_Tensor": [6.5, A],
    "add.Scalar": [A, 2, 3], "sub.Scalar": [A, 2, 3], "rsub.Scalar": [A, 2, 3],
    "add.Tensor": [A, B, {"alpha": 2}], "addcmul": [A, B, A, {"value": 2}],
    "addcdiv": [A, B, A, {"value": 2}],
    **{f"{name}.Tensor_mode": [A, B, {"rounding_mode": "floor"}] for name in ("div", "divide")},
    **{f"{name}.Scalar_mode": [A, 0.3, {"rounding_mode": "trunc"}] for name in ("div", "divide")},
    "sum.dim_IntList": [A, [1], True],
    "mean.dim": [A, [1]], "logsumexp": [A, [1]], "std.correction": [A, [1], {"correction": 0}],
    "var.correction": [A, [1], {"correction": 0}], "std_mean.correction": [A, [1], {"correction": 0}],
    "var_mean.correction": [A, [1], {"correction": 0}], "argsort.stable": [A, {"stable": True, "dim": 0}],
    "sort.stable": [A, {"stable": True, "dim": 0}], "_softmax": [A, 1, False],
    "alpha_dropout": [A, 0.5, False], "feature_alpha_dropout": [A, 0.5, False], "pdist": [A],
    "bilinear": [A[:, :1], A[:, 1:], A.reshape(1, 1, 6)[..., :2]],
    "_log_softmax": [A, 1, False], "_to_copy": [A, {"dtype": torch.float16}], "dropout": [A, 0.5, False],
    "diagonal": [A], "gelu": [A, {"approximate": "tanh"}], "lerp.Scalar": [A, B, 0.3],
    "clamp.Tensor": [A, B, B + 0.1], "fill.Tensor": [A, torch.tensor(2.0)], "pow_.Scalar": [A, 2.0],
    "hardtanh": [A, 0.2, 0.5], "atan2": [A, B], "as_strided_scatter": [A, B[:, :2], [2, 2], [1, 2]],
    "as_strided_copy": [A, [2, 2], [1, 2]], "atleast_1d.Sequence": [[A, B]], "atleast_2d.Sequence": [[A, B]],
    "atleast_3d.Sequence": [[A, B]], "atleast_1d.default": [A], "atleast_2d.default": [A],
    "atleast_3d.default": [A], "block_diag": [[A, B]], "cartesian_prod": [[A[0], B[0]]],
    "combinations": [A[0]], "diagonal_scatter": [A, B[0, :2]], "dsplit.int": [A[None], 3],
    "dsplit.array": [A[None], [1]], "expand_copy": [A[:1], [2, -1]], "meshgrid.default": [[A[0], B[1]]],
    "meshgrid.indexing": [[A[0], B[1]], {"indexing": "xy"}], "permute_copy": [A, [1, 0]],
    "select_scatter": [A, B[0], 0, 1], "split_with_sizes_copy": [A, [1, 2], 1],
    "tensor_split.tensor_indices_or_sections": [A, torch.tensor([1]), 1], "vander": [A[0]],
    "view_copy.default": [A, [3, 2]], "view_copy.dtype": [A, torch.int32], "diag": [A[0]],
    "bincount": [TARGET], "bucketize.Tensor": [A, B[0].sort()[0]], "bucketize.Scalar": [0.5, B[0].sort()[0]],
    "index_copy": [A, 1, TARGET, B[:, :2]], "index_copy_": [A, 1, TARGET, B[:, :2]],
    "index_fill.int_Scalar": [A, 1, TARGET, 2.0], "index_fill_.int_Scalar": [A, 1, TARGET, 2.0],
    "index_fill.int_Tensor": [A, 1, TARGET, torch.tensor(2.0)], "searchsorted.Tensor": [B[0].sort()[0], A],
    "index_fill_.int_Tensor": [A, 1, TARGET, torch.tensor(2.0)], "searchsorted.Scalar": [B[0].sort()[0], 0.5],
    "masked_scatter": [A, A > 0.5, B], "masked_scatter_": [A, A > 0.5, B], "nonzero_static": [A, {"size": 3}],
    "put": [A, TARGET, B[0, :2]], "put_": [A, TARGET, B[0, :2]], "take": [A, TARGET],
    "einsum": ["ij,kj->ik", [A, B]], "tensordot": [A, B, [0, 1], [0, 1]], "cross": [A, B],
    "addmv": [A[0, :2], A, B[0]], "addr": [A, A[:, 0], B[0]], "addbmm": [A[:, :2], A[None], B.T[None]],
    "vdot": [A[0], B[0]], "quantile.default": [A, torch.tensor([0.2, 0.7]), 1],
    "nanquantile.default": [A, torch.tensor([0.2, 0.7]), 1], "nanquantile.scalar": [A, 0.3],
    "arccosh": [A + 1], "clip.Tensor": [A, B, B + 0.1],
    "special_zeta": [A + 2, B], "special_zeta.self_scalar": [2.0, B],
    "special_zeta.other_scalar": [A + 2, 0.5],
    "cosine_embedding_loss": [A, B, TARGET - 1], "multi_margin_loss": [A, TARGET],
    "multilabel_margin_loss": [A, WHOLE.clamp(-1, 2)], "prelu": [A - 0.5, B[0]],
    "round.decimals": [A, {"decimals": 1}], "scatter_reduce": [A, 1, TARGET[:, None], B, "amax"],
    "index_reduce": [A, 1, TARGET, B[:, :2], "amax"], "histogram.bin_ct": [A, 4],
    "histogram.bins_tensor": [A, B[0].sort()[0]],
    **{name: [DEFINITE] for name in (
        "cholesky", "cholesky_ex", "cholesky_inverse", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv",
        "inv_ex", "inverse", "ldl_factor", "ldl_factor_ex", "logdet", "matrix_exp", "slogdet", "svd",
    )},
    "cholesky_solve": [B.T, DEFINITE], "householder_product": [B.T, A[0, :2]], "orgqr": [B.T, A[0, :2]],
    "ormqr": [B.T, A[0, :2], A.T], "matrix_power": [DEFINITE, 2], "multi_dot": [[DEFINITE, B.T]],
    "chain_matmul": [[DEFINITE, B.T]], "solve": [DEFINITE, B.T], "solve_ex": [DEFINITE, B.T],
    "solve_triangular": [DEFINITE, B.T, {"upper": True}], "triangular_solve": [B.T, DEFINITE],
    "linalg_lu_solve": [DEFINITE, SWAPS, B.T], "lu_solve": [B.T, DEFINITE, SWAPS],
    "lu_unpack": [DEFINITE, SWAPS], "ldl_solve": [DEFINITE, SWAPS, B.T], "tensorinv": [DEFINITE, 1],
    "tensorsolve": [DEFINITE, A[0]], "nuclear_norm": [A, [0, 1]], "linalg_norm.ord_str": [A, "fro"],
    "linalg_matrix_norm.default": [A, 1], "linalg_cond.p_str": [DEFINITE, "fro"],
    "stft": [LINE[0, 0], 4, {"return_complex": True}], "istft": [torch.complex(A.T, B.T), 4],
}  # fmt: skip
GIVEN |= {
    "to.dtype": [A, torch.int32], "to.device": [A, "cpu", torch.float16], "to.other": [A, WHOLE],
    "type_as": [A, WHOLE],
    "to.dtype_layout": [A, {"dtype": torch.int32}], "new_full": [A, [2], 1.5], "new_ones": [A, [2]],
    "new_zeros": [A, [2]],
    "_native_batch_norm_legit": [IMAGE, None, None, TARGET / 2, ROWS[:2] + 1.0, True, 0.1, 1e-5],
    "_native_batch_norm_legit_no_training": [
        IMAGE, None, None, TARGET / 2, ROWS[:2] + 1.0, 0.1, 1e-5],
    "_native_batch_norm_legit.no_stats": [IMAGE, None, None, True, 0.1, 1e-5],
    "native_dropout": [A, 0.5, False], "_safe_softmax": [torch.log(A.round()), 1],
    "_prelu_kernel": [A - 0.5, B], "_cdist_forward": [A, B, 2.0, None],
    "_unsafe_index.Tensor": [A, [None, TARGET]], "item": [A[0, 0]], "_local_scalar_dense": [WHOLE[0, 1]],
    **{f"reflection_pad{k}d": [x, [1, 1] * k] for k, x in ((1, LINE), (2, IMAGE), (3, IMAGE[None]))},
    **{f"replication_pad{k}d": [x, [1, 1] * k] for k, x in ((1, LINE), (2, IMAGE), (3, IMAGE[None]))},
    **{f"{name}{k}d.vec": [x, [5] * k, None] for name in ("upsample_nearest", "_upsample_nearest_exact")
       for k, x in ((1, LINE), (2, IMAGE), (3, IMAGE[None]))},
    "upsample_linear1d.vec": [LINE, None, False, [2.0]],
    "upsample_bilinear2d.vec": [IMAGE, [5, 3], True, None],
    "upsample_trilinear3d.vec": [IMAGE[None], [1, 5, 3], False, None],
    "upsample_bicubic2d.vec": [IMAGE, None, False, [2.0, 1.5]],
    "_upsample_bilinear2d_aa.vec": [IMAGE, [2, 3], False, None],
    "_upsample_bicubic2d_aa.vec": [IMAGE, None, False, [0.5, 0.75]],
    "_upsample_bilinear2d_aa": [IMAGE, [2, 3], True, None, None],
    "_upsample_bicubic2d_aa": [IMAGE, [2, 3], False, 0.5, 0.75],
    "_fft_r2c": [A, [0, 1], 1, True], "_fft_c2c": [torch.complex(A, B), [1], 2, False],
    "_fft_c2r": [torch.complex(A, B), [1], 2, 4], "sym_size.int": [A, 1], "sym_stride.int": [A, 0],
    "_assert_tensor_metadata": [A, [2, 3], None, torch.float32], "_assert_scalar": [True, ""],
    "sym_constrain_range": [3, {"min": 1, "max": 4}], "sym_constrain_range_for_size": [3, {"min": 1}],
    **{f"__{name}__": [WHOLE, SMALL] for name in ("and", "or", "xor", "lshift", "rshift")},
    **{f"__{name}__.Scalar": [WHOLE, 2] for name in ("and", "or", "xor", "lshift", "rshift")},
}  # fmt: skip
STATE, GATES = torch.tensor([[[0.1, -0.4]]]), {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
for layer, gates in GATES.items():
    weights = [torch.linspace(-1, 1, gates * 2 * k).reshape(-1, k) for k in (3, 2)]
    state = [STATE, STATE / 2] if layer == "lstm" else STATE
    GIVEN |= {
        f"{layer}.input": [A[:, None], state, weights, False, 1, 0.0, False, False, False],
        f"{layer}.data": [A, ROWS[:2] ** 0, state, weights, False, 1, 0.0, False, False],
        f"{layer}_cell": [A[:1], [s[0] for s in state] if layer == "lstm" else STATE[0], *weights],
    }
# Values that chance or the memory makes, or whose signs are not defined: only shape and dtype are compared.
RANDOM = {
    "new_empty": [A, [2]],
    "rand": [[2, 3]], "randn": [[2, 3]], "randint.default": [9, [2, 3]], "randint.low": [2, 9, [2, 3]],
    "randperm": [5], "rand_like": [A], "randn_like": [A], "bernoulli.default": [A],
    "bernoulli.p": [A, 0.5], "empty": [[2, 3]],
    "empty_like": [A], "normal_": [A], "uniform_": [A], "rand.generator": [[2, 3], {"generator": None}],
    "randn.generator": [[2, 3], {"generator": None}],
    "randint.low_generator": [2, 9, [2, 3], {"generator": None}],
    "linalg_eigh.default": [DEFINITE], "linalg_eig.default": [DEFINITE],
    "randperm.generator": [5, {"generator": None}], "randint_like.default": [A, 9],
    "randint_like.low_dtype": [A, 2, 9], "normal.Tensor_Tensor": [A, B], "normal.Tensor_float": [A],
    "normal.float_Tensor": [1.0, B], "normal.float_float": [1.0, 2.0, [2, 3]], "multinomial": [A, 2],
    "poisson.default": [A], "binomial.default": [A, B],
    "exponential_": [A], "cauchy_": [A], "log_normal_": [A], "geometric_": [A, 0.5],
    "bernoulli_.float": [A], "bernoulli_.Tensor": [A, B],
    "random_.from": [A, 2, 9], "random_.to": [A, 9], "random_": [A], "empty_permuted": [[2, 3], [1, 0]],
    "empty_strided": [[2, 3], [1, 2]], "new_empty_strided": [A, [2, 3], [1, 2]],
}  # fmt: skip
# Defaults that mean the same.
ALIKE = ((0, "valid"), ("fro", 2))
INTEGERS = ("bitwise", "logical", "gcd", "lcm")
# Their tensors are those of PyTorch's quantization.
NOT_RUN = {"dequantize.self"}
IN_PLACE_OVERLOADS = sorted(
    f"{name}.{kind}"
    for name, o in IN_PLACE.items()
    for packet, _, kind in (overload.partition(".") for overload in OVERLOADS)
    if packet == o.name and kind in getattr(torch.ops.aten, name).overloads()
)
ALL = (
    sorted({n for n, (f, _) in OVERLOADS.items() if f.__module__.startswith("pellucid.")})
    + IN_PLACE_OVERLOADS
)


def schema(overload: str):
    packet, _, kind = overload.partition(".")
    return getattr(getattr(torch.ops.aten, packet), kind)._schema


def sample(overload: str) -> list:
    packet, _, kind = overload.partition(".")
    for table in (RANDOM, GIVEN):
        name = OVERLOADS[overload][0].__name__ if overload in OVERLOADS else ""
        for key in (
            overload,
            packet,
            overload.replace("_.", "."),
            packet.removesuffix("_"),
            f"{name}.{kind}",
            name,
        ):
            if key in table:
                return table[key]
    whole = packet.startswith(INTEGERS)
    made: list = []
    for k, a in enumerate(schema(overload).arguments):
        if a.kwarg_only or (a.has_default_value() and k):
            break
        kind = str(a.type)
        if kind == "Tensor":
            made.append((WHOLE if not made else SMALL) if whole else (A if not made else B))
        else:
            made.append({"number": 2 if whole else 0.5, "int": 1, "float": 0.5, "bool": True}.get(kind, [1]))
    return made


def ours(value) -> Any:
    if isinstance(value, torch.Tensor):
        return pellucid.tensor(value.tolist(), dtype=ours(value.dtype), device="cpu")
    if isinstance(value, torch.dtype):
        return getattr(pellucid, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return [ours(v) for v in value]
    return {k: ours(v) for k, v in value.items()} if isinstance(value, dict) else value


def flat(value) -> list:
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("overload", ALL)
def test_arguments_line_up(overload):
    wanted = schema(overload).arguments
    taken = inspect.signature(from_aten(f"aten.{overload}")).parameters
    places = [p for p in taken.values() if p.kind is not p.KEYWORD_ONLY]
    for k, a in enumerate(wanted):
        if a.kwarg_only:
            assert a.name in taken or a.name in _LAYOUT, a.name
            continue
        p = places[k]
        # `self` is `input` in Python; `from` is a word of it, and what goes in front is given by place.
        assert p.name == a.name or k == 0 or a.name in ("self", "from") or overload == "uniform_.default", (
            p.name,
            a.name,
        )
        if p.default is not p.empty and a.has_default_value():
            plain = [list(v) if isinstance(v, tuple) else v for v in (p.default, a.default_value)]
            # PyTorch's schema repeats a number in a list; an empty one is our None.
            mine, theirs = plain
            same = (
                mine == theirs
                or (mine is None)
                or (isinstance(theirs, list) and all(n == mine for n in theirs))
            )
            assert same or a.name in _LAYOUT or (mine, theirs) in ALIKE, (a.name, mine, theirs)
    asked = {a.name for a in wanted}
    rest = [p for p in places[len([a for a in wanted if not a.kwarg_only]) :] if p.default is p.empty]
    assert not [p.name for p in rest if p.name not in asked]


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("overload", sorted(set(ALL) - NOT_RUN))
def test_values_are_those_of_pytorch(overload):
    packet, _, kind = overload.partition(".")
    given = [g.clone() if isinstance(g, torch.Tensor) else g for g in sample(overload)]
    named: Any = given.pop() if given and isinstance(given[-1], dict) else {}
    makes = "device" in {a.name for a in schema(overload).arguments if a.kwarg_only}
    cpu = {"device": "cpu"} if makes else {}
    mine = from_aten(f"aten.{overload}")(*ours(given), **ours(named), **cpu)
    theirs = getattr(getattr(torch.ops.aten, packet), kind)(*given, **named)
    for a, b in zip(flat(mine), flat(theirs), strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        if packet not in RANDOM and overload not in RANDOM:
            torch.testing.assert_close(torch.tensor(a.tolist(), dtype=b.dtype), b, rtol=1e-5, atol=1e-6)


def test_every_op_is_one_of_aten_or_says_why_not():
    import_module("pellucid.nn.functional")
    known = {function for function, _ in OVERLOADS.values()} | set(OURS)
    own = [o for o in OPS.values() if o.function.__module__.startswith("pellucid.") and o.public == o.name]
    assert [o.name for o in own if o.call not in known] == []
    public = [(n, f) for names in (*EXPORTS.values(), METHODS) for n, f in names.items()]
    assert [
        n
        for n, f in public
        if f.__module__.startswith("pellucid.")
        and getattr(f, "newer", getattr(f, "declared", f)) not in known
    ] == []
    assert all(reason.strip() for reason in OURS.values())


def test_what_aten_has_and_pellucid_has_not_is_refused():
    with pytest.raises(
        ArgumentError, match=r"no operator aten\.addd\.Tensor\. There are: .*aten\.add\.Tensor"
    ):
        from_aten("aten.addd.Tensor")
    table = ours(A)
    with pytest.raises(ArgumentError, match=r"aten\.embedding\.default: sparse=True is not computed here"):
        from_aten("aten.embedding.default")(table, ours(TARGET), -1, False, True)


def test_sources_are_pages_of_pytorch():
    for name, f in {name: f for names in (*EXPORTS.values(), METHODS) for name, f in names.items()}.items():
        if f.__module__.startswith("pellucid."):
            for page in re.findall(r"generated/torch\.([\w.]+)\.html", f.__doc__ or ""):
                assert attrgetter(page)(torch).__doc__, name
