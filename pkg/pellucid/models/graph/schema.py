"""What the documents of an exported program may hold: a table for each of their records.

Source: torch/_export/serde/schema.py of PyTorch, version 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...weights.checkpoint import MOST_DIMENSIONS
from ...weights.fields import FLAG, Field, Misfit, either, listed, named, number, one_of, record, text, whole

VERSION = 8
_MOST = 1 << 20  # nodes, values, weights
_NAME = text(1 << 12)
_COUNT = whole(0, (1 << 63) - 1)
_INT = whole(-(1 << 63), (1 << 64) - 1)
# JSON has no other way to say them.
_FLOAT = either(number(-1.8e308, 1.8e308), one_of("Infinity", "-Infinity", "NaN"))
DTYPES: dict[int, DType] = {
    1: dt.uint8, 2: dt.int8, 3: dt.int16, 4: dt.int32, 5: dt.int64, 6: dt.float16, 7: dt.float32,
    8: dt.float64, 10: dt.complex64, 11: dt.complex128, 12: dt.bool_, 13: dt.bfloat16, 28: dt.uint16,
    34: dt.uint32,
}  # fmt: skip


@dataclass(frozen=True)
class Union(Field):
    """An object with exactly one of some names, whose value fits the field of that name."""

    kinds: Mapping[str, Field]

    def misfit(self, path: str, value: Any) -> Misfit | None:
        if not self.fits(value):
            return Misfit(path, value, self.wanted)
        ((name, inner),) = value.items()
        return self.kinds[name].misfit(f"{path}.{name}", inner)


def union(**kinds: Field) -> Union:
    """An object with one of these names."""
    return Union(
        f"an object with one of {', '.join(kinds)}",
        lambda v: isinstance(v, Mapping) and len(v) == 1 and next(iter(v)) in kinds,
        kinds,
    )


class _Later(Field):
    """The graph of a field of itself."""

    def misfit(self, path: str, value: Any) -> Misfit | None:
        return GRAPH.misfit(path, value)


class _Inner(Field):
    """An argument within an argument."""

    def misfit(self, path: str, value: Any) -> Misfit | None:
        return ARGUMENT.misfit(path, value)


def _all(field: Field) -> Field:
    return listed(field, _MOST)


def _always(value: Any) -> bool:
    return True


_TENSOR = record({"name": _NAME}, "name")
_DEVICE = record({"type": text(64), "index": whole(-1)}, "type")
_EXPRESSION = record({"expr_str": text(1 << 14)}, "expr_str")
_SYM_INT = union(as_expr=_EXPRESSION, as_int=_INT)
_NUMBER = union(as_name=_NAME, as_int=_INT)
_REAL = union(as_name=_NAME, as_float=_FLOAT)
_TRUTH = union(as_name=_NAME, as_bool=FLAG)
_OPTIONAL = union(as_tensor=_TENSOR, as_none=FLAG)
_COMPLEX = record({"real": _FLOAT, "imag": _FLOAT}, "real", "imag")
META = record(
    {
        "dtype": whole(0, 255),
        "sizes": listed(_SYM_INT, MOST_DIMENSIONS),
        "strides": listed(_SYM_INT, MOST_DIMENSIONS),
        "storage_offset": _SYM_INT,
        "requires_grad": FLAG,
        "device": _DEVICE,
    },
    "dtype", "sizes", "strides", "storage_offset", "requires_grad",
)  # fmt: skip
ARGUMENT = union(
    as_none=FLAG, as_tensor=_TENSOR, as_tensors=_all(_TENSOR), as_int=_INT, as_ints=_all(_INT),
    as_float=_FLOAT, as_floats=_all(_FLOAT), as_string=text(), as_strings=_all(text()),
    as_sym_int=_NUMBER, as_sym_ints=_all(_NUMBER), as_scalar_type=whole(0, 255),
    as_memory_format=whole(0, 255), as_layout=whole(0, 255), as_device=_DEVICE, as_bool=FLAG,
    as_bools=_all(FLAG), as_sym_bool=_TRUTH, as_sym_bools=_all(_TRUTH),
    as_graph=record({"name": _NAME, "graph": _Later("a graph", _always)}, "name", "graph"),
    as_optional_tensors=_all(_OPTIONAL), as_custom_obj=record({"name": _NAME}, "name"), as_operator=_NAME,
    as_sym_float=_REAL, as_sym_floats=_all(_REAL), as_optional_tensor=_OPTIONAL, as_complex=_COMPLEX,
    as_nested_tensors=_all(_all(_TENSOR)), as_int_lists=_all(_all(_INT)),
    as_float_lists=_all(_all(_FLOAT)),
    as_string_to_argument=named(_NAME, _Inner("an argument", _always), _MOST),
)  # fmt: skip
_NODE = record(
    {
        "target": _NAME,
        "inputs": _all(record({"name": text(1 << 12), "arg": ARGUMENT, "kind": whole(0, 2)}, "name", "arg")),
        "outputs": _all(ARGUMENT),
        "metadata": named(_NAME, text(1 << 20), 64),
        "name": _NAME,
    },
    "target", "inputs", "outputs", "metadata",
)  # fmt: skip
GRAPH = record(
    {
        "inputs": _all(ARGUMENT),
        "outputs": _all(ARGUMENT),
        "nodes": _all(_NODE),
        "tensor_values": named(_NAME, META, _MOST),
        "sym_int_values": named(_NAME, _SYM_INT, _MOST),
    },
    "inputs", "outputs", "nodes", "tensor_values",
)  # fmt: skip
_CONSTANT = union(as_none=FLAG, as_int=_INT, as_float=_FLOAT, as_string=text(), as_bool=FLAG)


def _state(name: str, **more: Field) -> Field:
    return record({"arg": _TENSOR, name: _NAME, **more}, "arg", name, *more)


_SPEC = text(1 << 20)
_SIGNATURE = record(
    {
        "in_spec": _SPEC,
        "out_spec": _SPEC,
        "forward_arg_names": _all(_NAME),
    },
    "in_spec", "out_spec",
)  # fmt: skip
PROGRAM = {
    "graph_module": record(
        {
            "graph": GRAPH,
            "signature": record(
                {
                    "input_specs": _all(
                        union(
                            user_input=record({"arg": ARGUMENT}, "arg"),
                            parameter=_state("parameter_name"),
                            buffer=_state("buffer_name", persistent=FLAG),
                            tensor_constant=_state("tensor_constant_name"),
                            custom_obj=_state("custom_obj_name"),
                            token=record({"arg": _TENSOR}, "arg"),
                            constant_input=record({"name": _NAME, "value": _CONSTANT}, "name", "value"),
                        )
                    ),
                    "output_specs": _all(
                        union(
                            user_output=record({"arg": ARGUMENT}, "arg"),
                            loss_output=record({"arg": _TENSOR}, "arg"),
                            buffer_mutation=_state("buffer_name"),
                            parameter_mutation=_state("parameter_name"),
                            user_input_mutation=_state("user_input_name"),
                            gradient_to_parameter=_state("parameter_name"),
                            gradient_to_user_input=_state("user_input_name"),
                            token=record({"arg": _TENSOR}, "arg"),
                        )
                    ),
                },
                "input_specs", "output_specs",
            ),
            "module_call_graph": _all(record({"fqn": text(1 << 12), "signature": _SIGNATURE}, "fqn")),
            "treespec_namedtuple_fields": named(
                _NAME, record({"field_names": _all(_NAME)}, "field_names"), 1 << 12
            ),
        },
        "graph", "signature", "module_call_graph",
    ),
    "range_constraints": named(
        _NAME, record({"min_val": _INT, "max_val": _INT}), _MOST
    ),
    "schema_version": record({"major": whole(0), "minor": whole(0)}, "major", "minor"),
    "guards_code": listed(text(1 << 14), 1 << 14),
}  # fmt: skip
_PAYLOAD = record(
    {"path_name": _NAME, "is_param": FLAG, "use_pickle": FLAG, "tensor_meta": META},
    "path_name", "is_param", "use_pickle",
)  # fmt: skip
PAYLOADS = {"config": named(_NAME, _PAYLOAD, _MOST)}
