"""The tables of TensorFlow Lite as far as they are read, with the field numbers of its schema.fbs.

Source: https://github.com/google-ai-edge/LiteRT/blob/main/tflite/converter/schema/schema.fbs
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

# Table: its fields as "number name type", with "=default" where that is not 0; * is a vector. A span is a
# vector of bytes that stays in the file; a union's type number is the field before it, see `UNIONS`.
TABLES = {
    "Model": "1 operator_codes *OperatorCode, 2 subgraphs *SubGraph, 4 buffers *Buffer",
    "OperatorCode": "0 deprecated_builtin_code int8, 1 custom_code string, 3 builtin_code int32",
    "SubGraph": "0 tensors *Tensor, 1 inputs *int32, 2 outputs *int32, 3 operators *Operator",
    "Tensor": "0 shape *int32, 1 type int8, 2 buffer uint32, 3 name string, "
    "4 quantization QuantizationParameters, 5 is_variable bool, 6 sparsity Sparsity, "
    "7 shape_signature *int32, 10 external_buffer uint32",
    "QuantizationParameters": "2 scale *float32, 3 zero_point *int64, 4 details_type uint8, "
    "6 quantized_dimension int32",
    "Operator": "0 opcode_index uint32, 1 inputs *int32, 2 outputs *int32, 3 options_type uint8, "
    "4 options union, 5 custom_options *uint8",
    "Buffer": "0 data span, 1 offset uint64, 2 size uint64",
    "Sparsity": "0 traversal_order *int32, 1 block_map *int32, 2 dim_metadata *Dimension",
    "Dimension": "0 format int8, 1 dense_size int32, 2 array_segments_type uint8, 3 array_segments union, "
    "4 array_indices_type uint8, 5 array_indices union",
    "Int32Vector": "0 values *int32",
    "Uint16Vector": "0 values *uint16",
    "Uint8Vector": "0 values *uint8",
    "Other": "",
}
_ACTIVATION = "fused_activation_function int8"
# By number in the union BuiltinOptions. What says how sums are rounded or inputs quantized is not read.
OPTIONS: dict[int, tuple[str, str]] = {
    1: ("Conv2D", f"0 padding int8, 1 stride_w int32, 2 stride_h int32, 3 {_ACTIVATION}, "
        "4 dilation_w_factor int32=1, 5 dilation_h_factor int32=1"),
    2: ("DepthwiseConv2D", "0 padding int8, 1 stride_w int32, 2 stride_h int32, 3 depth_multiplier int32, "
        f"4 {_ACTIVATION}, 5 dilation_w_factor int32=1, 6 dilation_h_factor int32=1"),
    5: ("Pool2D", "0 padding int8, 1 stride_w int32, 2 stride_h int32, 3 filter_width int32, "
        f"4 filter_height int32, 5 {_ACTIVATION}"),
    8: ("FullyConnected", f"0 {_ACTIVATION}, 1 weights_format int8, 2 keep_num_dims bool"),
    9: ("Softmax", "0 beta float32"),
    10: ("Concatenation", f"0 axis int32, 1 {_ACTIVATION}"),
    11: ("Add", f"0 {_ACTIVATION}"),
    12: ("L2Norm", f"0 {_ACTIVATION}"),
    13: ("LocalResponseNormalization", "0 radius int32, 1 bias float32, 2 alpha float32, 3 beta float32"),
    15: ("ResizeBilinear", "2 align_corners bool, 3 half_pixel_centers bool"),
    17: ("Reshape", "0 new_shape *int32"),
    19: ("SpaceToDepth", "0 block_size int32"),
    21: ("Mul", f"0 {_ACTIVATION}"),
    23: ("Gather", "0 axis int32, 1 batch_dims int32"),
    27: ("Reducer", "0 keep_dims bool"),
    28: ("Sub", f"0 {_ACTIVATION}"),
    29: ("Div", f"0 {_ACTIVATION}"),
    30: ("Squeeze", "0 squeeze_dims *int32"),
    32: ("StridedSlice", "0 begin_mask int32, 1 end_mask int32, 2 ellipsis_mask int32, "
         "3 new_axis_mask int32, 4 shrink_axis_mask int32, 5 offset bool"),
    35: ("Split", "0 num_splits int32"),
    37: ("Cast", "0 in_data_type int8, 1 out_data_type int8"),
    40: ("ArgMax", "0 output_type int8"),
    49: ("TransposeConv", f"0 padding int8, 1 stride_w int32, 2 stride_h int32, 3 {_ACTIVATION}"),
    55: ("Shape", "0 out_type int8"),
    57: ("ArgMin", "0 output_type int8"),
    59: ("Pack", "0 values_count int32, 1 axis int32"),
    61: ("OneHot", "0 axis int32"),
    64: ("Unpack", "0 num int32, 1 axis int32"),
    71: ("UnidirectionalSequenceLSTM", "0 cell_activation int8, 1 cell_clip float32, 2 proj_clip float32, "
         "3 time_major bool, 5 diagonal_recurrent_tensors bool"),
    74: ("ResizeNearestNeighbor", "0 align_corners bool, 1 half_pixel_centers bool"),
    75: ("LeakyRelu", "0 alpha float32"),
    77: ("MirrorPad", "0 mode int8"),
    79: ("SplitV", "0 num_splits int32"),
    87: ("ReverseSequence", "0 seq_dim int32, 1 batch_dim int32"),
    94: ("DepthToSpace", "0 block_size int32"),
    101: ("BatchMatMul", "0 adj_x bool, 1 adj_y bool"),
    102: ("Cumsum", "0 exclusive bool, 1 reverse bool"),
    103: ("CallOnce", "0 init_subgraph_index int32"),
    111: ("VarHandle", "0 container string, 1 shared_name string"),
    116: ("Gelu", "0 approximate bool"),
}  # fmt: skip
TABLES |= dict(OPTIONS.values())
_VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}
# By the name of a field: which tables a union may be, by number.
UNIONS: dict[str, dict[int, str]] = {
    "options": {number: name for number, (name, _) in OPTIONS.items()},
    "array_segments": _VECTORS,
    "array_indices": _VECTORS,
}

# The enum BuiltinOperator, from 0 on.
_CODES = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE
BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL
LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT
RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK
ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4
NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL
GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
"""
CODES = tuple(_CODES.split())


class TableField(NamedTuple):
    """A field of a table; ``default`` is what it is where it is absent."""

    number: int
    name: str
    kind: str
    several: bool
    default: float


@cache
def fields(table: str) -> tuple[TableField, ...]:
    """The fields of a table."""
    found = []
    for row in filter(None, TABLES[table].split(", ")):
        number, name, kind = row.split()
        kind, _, given = kind.partition("=")
        default = False if kind == "bool" else int(given or 0)
        found.append(TableField(int(number), name, kind.lstrip("*"), kind[0] == "*", default))
    return tuple(found)
