"""One-hot rows: 1 where the class is the value, else 0."""

from __future__ import annotations

import numpy as np

from ...op.declaration import Call, op
from ...op.kernel import Launch, load
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from .bounds import outside

# Elements from which on workgroups are larger.
_MANY = 1 << 18


def _launch(call: Call) -> Launch:
    count, classes = call.out.numel, call["classes"]
    lanes = 256 if count >= _MANY else 64
    rows, columns = divmod(lanes, classes)
    file = load("index/one_hot").fill({"WORKGROUP": f"{lanes}u"})
    params = {"count": count, "classes": classes, "rows": rows, "columns": columns}
    return Launch(file, -(-count // (4 * lanes)), params)


def _reference(ids, classes):
    outside(ids, classes, "one_hot")
    return (ids[..., None] == np.arange(classes)).astype(np.int64)


@op(
    public="one_hot",
    dtype=lambda call: (dt.int64, dt.int64),
    shape=lambda call: Size((*call["ids"].shape, call["classes"])),
    kernel=_launch,
    reference=_reference,
    grad=None,
)
def one_hot_rows(ids: Tensor, classes: int) -> Tensor:
    """`nn.functional.one_hot` of int64 classes whose number is known, at least one."""
