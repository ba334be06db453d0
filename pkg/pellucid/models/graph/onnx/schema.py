"""The messages of ONNX as far as they are read: protobuf classes out of a table, with onnx.proto's numbers.

A tensor has one field more: ``span``, in the place of bytes that `skim` left in the file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ....errors import MissingError

# Message: its fields as "number name type"; * is repeated. Types are protobuf's, or another message.
MESSAGES = {
    "Model": "1 ir_version int64, 2 producer_name string, 3 producer_version string, 7 graph Graph, "
    "8 opset_import *Opset, 14 metadata_props *Entry, 25 functions *Function",
    "Opset": "1 domain string, 2 version int64",
    "Entry": "1 key string, 2 value string",
    "Graph": "1 node *Node, 2 name string, 5 initializer *Tensor, 11 input *ValueInfo, 12 output *ValueInfo, "
    "13 value_info *ValueInfo, 15 sparse_initializer *Other",
    "Node": "1 input *string, 2 output *string, 3 name string, 4 op_type string, 5 attribute *Attribute, "
    "7 domain string, 8 overload string",
    "Function": "1 name string, 4 input *string, 5 output *string, 6 attribute *string, 7 node *Node, "
    "9 opset_import *Opset, 10 domain string, 11 attribute_proto *Attribute, 13 overload string",
    "Attribute": "1 name string, 2 f float, 3 i int64, 4 s bytes, 5 t Tensor, 6 g Graph, 7 floats *float, "
    "8 ints *int64, 9 strings *bytes, 10 tensors *Tensor, 11 graphs *Graph, 20 type int32, "
    "21 ref_attr_name string, 22 sparse_tensor Other",
    "Tensor": "1 dims *int64, 2 data_type int32, 4 float_data *float, 5 int32_data *int32, "
    "6 string_data *bytes, 7 int64_data *int64, 8 name string, 9 raw_data bytes, 10 double_data *double, "
    "11 uint64_data *uint64, 13 external_data *Entry, 14 data_location int32, 1000 span *int64",
    "ValueInfo": "1 name string, 2 type Type",
    "Type": "1 tensor_type TensorType, 4 sequence_type Other, 5 map_type Other, 8 sparse_tensor_type Other, "
    "9 optional_type Other",
    "TensorType": "1 elem_type int32, 2 shape Shape",
    "Shape": "1 dim *Dimension",
    "Dimension": "1 dim_value int64, 2 dim_param string",
    "Other": "",
}


def fields(message: str) -> list[tuple[int, str, str]]:
    """Number, name and type of a message's fields; a repeated one's type begins with an asterisk."""
    rows = [row.split() for row in MESSAGES[message].split(", ") if row]
    return [(int(number), name, kind) for number, name, kind in rows]


@cache
def message_class(message: str) -> Any:
    """The class of a message, made once.

    Raises:
        MissingError: the package protobuf is not installed.
    """
    return _classes()[message]


@cache
def _classes() -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingError(
            "onnx: reading needs the package protobuf. Run `pip install 'pellucid[onnx]'`, in a page "
            "`await micropip.install('protobuf')`."
        ) from None
    kinds = descriptor_pb2.FieldDescriptorProto
    # proto3, whose parser refuses texts that are not UTF-8.
    file = descriptor_pb2.FileDescriptorProto(
        name="pellucid/onnx.proto", package="pellucid.onnx", syntax="proto3"
    )
    for message in MESSAGES:
        described = file.message_type.add(name=message)
        for number, name, kind in fields(message):
            inner = kind.lstrip("*")
            field = described.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            if inner in MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".pellucid.onnx.{inner}"
            else:
                field.type = getattr(kinds, f"TYPE_{inner.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"pellucid.onnx.{message}"))
        for message in MESSAGES
    }
