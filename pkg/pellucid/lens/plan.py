"""Plans: what is seen and changed in a run, as a small value that JSON holds."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, FormatError
from ..op.arguments import describe
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from ..weights.document import as_bytes, parse_object
from ..weights.fields import FLAG, Field, check, either, listed, number, one_of, record, shown, text, whole
from .changes import METHODS, Change

_MOST = 1 << 16  # entries of a list
_MOST_VALUES = 1 << 23  # of all lists
_ADVICE = "Give what to_json wrote."
_DTYPES = ("float32", "float16", "int64", "int32", "bool")
_ENCODED = record(
    {"dtype": one_of(*_DTYPES), "shape": listed(whole(0), 8), "data": text(1 << 28)},
    "dtype",
    "shape",
    "data",
)
_POSITIONS = listed(whole(-(1 << 31)), _MOST)
_INDICES = listed(whole(0), _MOST)
_CHANGE = record(
    {
        "point": text(1000),
        "method": one_of(*METHODS),
        "value": _ENCODED,
        "other": _ENCODED,
        "strength": number(-1e30, 1e30),
        "least": number(-1e30, 1e30),
        "most": number(-1e30, 1e30),
        "relative": FLAG,
        "order": _INDICES,
        "positions": _POSITIONS,
        "heads": _INDICES,
        "columns": _INDICES,
    },
    "point",
    "method",
)
_LOOK = record(
    {
        "points": either(text(1000), listed(text(1000), _MOST)),
        "top_k": whole(1, 1 << 20),
        "position": whole(-(1 << 31)),
    },
)
_TABLE: dict[str, Field] = {
    "capture": listed(text(1000), _MOST),
    "patch": listed(_CHANGE, _MOST),
    "steer": listed(_CHANGE, _MOST),
    "ablate": listed(_CHANGE, _MOST),
    "lens": _LOOK,
}


@dataclass(frozen=True, eq=False)
class Plan:
    """What is captured and changed in a run of a model.

    Points are addresses (``resid_post.3``), names of all layers (``resid_post``), patterns (``z.*``), hook
    names of TransformerLens, or module paths. What is captured is the value after all changes.

    Args:
        capture: points that are kept.
        patch: address -> the tensor to put there, or a list of `Change` or of its arguments as dictionaries.
        steer: changes along directions: add, project_out, clamp, scale, swap.
        ablate: changes that take something out: zero, mean, resample.
        lens: arguments of a logit lens of every call: ``points``, ``top_k``, ``position``.

    Raises:
        ArgumentError: a change is of another list's methods, or lacks what it needs.

    Example:
        >>> from pellucid import lens
        >>> plan = lens.Plan(
        ...     capture=["attn_probs.0"],
        ...     steer=[{"point": "resid_post.0", "method": "add", "value": [1.0, 0.0], "strength": 4.0}],
        ... )
        >>> lens.Plan.from_json(plan.to_json()).steer[0].strength
        4.0
    """

    names: ClassVar[tuple[str, ...]] = ("patch", "steer", "ablate")
    capture: Any = ()
    patch: Any = ()
    steer: Any = ()
    ablate: Any = ()
    lens: Mapping[str, Any] | None = None
    _held: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        for name in ("capture", *self.names):
            if not isinstance(getattr(self, name), (str, Sequence, Mapping)):
                raise ArgumentError(f"Plan: {name} must be a list, not {describe(getattr(self, name))}.")
        capture = (self.capture,) if isinstance(self.capture, str) else tuple(self.capture)
        if wrong := [p for p in capture if not isinstance(p, str)]:
            raise ArgumentError(f"Plan: capture must be texts, not {describe(wrong[0])}.")
        object.__setattr__(self, "capture", capture)
        patch = self.patch
        if isinstance(patch, Mapping):
            patch = [Change(point, "replace", value) for point, value in patch.items()]
        for group, given in zip(self.names, (patch, self.steer, self.ablate), strict=True):
            object.__setattr__(self, group, tuple(_changes(group, given)))
        if self.lens is not None:
            check("Plan", {"lens": self.lens}, {"lens": _LOOK})

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in the order in which they are made: patch, ablate, steer."""
        return self.patch + self.ablate + self.steer

    def to_json(self) -> str:
        """The plan as text; values of tensors are base64 with dtype and shape. Waits for the device."""
        made: dict[str, Any] = {"capture": list(self.capture)}
        for group in self.names:
            made[group] = [_written(change) for change in getattr(self, group)]
        if self.lens is not None:
            made["lens"] = dict(self.lens)
        return json.dumps({name: value for name, value in made.items() if value})

    @classmethod
    def from_json(cls, source: str | bytes) -> Plan:
        """Read what `to_json` wrote.

        Raises:
            FormatError: it is no plan; names the field.
        """
        try:
            given = parse_object("Plan", as_bytes(source), most=_MOST_VALUES, advice=_ADVICE)
        except TypeError as error:
            raise FormatError(f"Plan: this is no JSON: {error}. {_ADVICE}") from None
        if unknown := sorted(given.keys() - _TABLE.keys()):
            raise FormatError(f"Plan: {shown(unknown[0])} is not known. There are {', '.join(_TABLE)}.")
        check("Plan", given, _TABLE)
        known = dict.fromkeys(f.name for f in fields(Change) if not f.name.startswith("_")).keys()
        for group in cls.names:
            rows = []
            for k, row in enumerate(given.get(group) or []):
                if unknown := sorted(row.keys() - known):
                    raise FormatError(
                        f"Plan: {group}[{k}].{shown(unknown[0])} is not known. There are {', '.join(known)}."
                    )
                values = {n: _read(f"{group}[{k}].{n}", row[n]) for n in ("value", "other") if row.get(n)}
                rows.append({**{n: v for n, v in row.items() if v is not None}, **values})
            given[group] = rows
        try:
            return cls(**given)
        except ArgumentError as error:
            raise FormatError(f"Plan: {error}") from None


def _changes(group: str, given: Iterable[Any]) -> Iterable[Change]:
    for change in given:
        if isinstance(change, Mapping):
            try:
                change = Change(**{"method": METHODS_OF_ONE.get(group), **change})
            except TypeError as error:
                raise ArgumentError(f"Plan: {group}: {error}. See lens.Change.") from None
        if not isinstance(change, Change):
            raise ArgumentError(f"Plan: {group} holds changes or dictionaries, not {describe(change)}.")
        if METHODS[change.method].group != group:
            raise ArgumentError(
                f"Plan: {group} does not take {change.method!r}. It belongs to "
                f"{METHODS[change.method].group}."
            )
        yield change


# Where a list has one method, it need not be named.
METHODS_OF_ONE = {"patch": "replace"}


def _written(change: Change) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for f in fields(change):
        value = getattr(change, f.name)
        if f.name.startswith("_") or value is None:
            continue
        if f.name in ("value", "other"):
            array = (value if isinstance(value, Tensor) else tensor(value)).detach().cpu().numpy()
            if array.dtype.name not in _DTYPES:
                array = array.astype(np.float32)
            data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
            value = {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}
        elif value == f.default:
            continue
        made[f.name] = list(value) if isinstance(value, tuple) else value
    return made


def _read(name: str, value: Mapping[str, Any]) -> Tensor:
    """A tensor on the cpu from its dtype, shape and bytes."""
    try:
        data = base64.b64decode(value["data"], validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"Plan: {name}.data is no base64. The plan is damaged.") from None
    dtype, count = np.dtype(value["dtype"]), 1
    for n in value["shape"]:
        count *= n
    if len(data) != count * dtype.itemsize:
        raise FormatError(
            f"Plan: {name}.data has {len(data)} bytes; {count * dtype.itemsize} are needed for shape "
            f"{value['shape']} of {dtype.name}. The plan is damaged."
        )
    return tensor(np.frombuffer(data, dtype).reshape(value["shape"]).copy(), device="cpu")
