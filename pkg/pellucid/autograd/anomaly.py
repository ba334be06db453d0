"""Looking for anomalies: a backward that makes NaN says which op did, and where that was called."""

from __future__ import annotations

import sys
from linecache import getline
from pathlib import Path
from typing import Any

from ..errors import GradientError, warn
from ..op.arguments import boolean
from ..tensors.tensor import Tensor
from .engine import anomalies
from .nodes import Node, sites

PACKAGE = str(Path(__file__).parents[1]), "<string>"  # where code of the package begins
_state = {"on": False, "nan": True}


def _site() -> str:
    """The line of the program that calls into the package now."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "a line inside the package"
    code = frame.f_code
    text = getline(code.co_filename, frame.f_lineno).strip()
    return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}: {text}'


def _run(node: Node, grads: list, keep_graph: bool) -> dict[str, Any]:
    """The gradients of a node, looked at.

    Raises:
        GradientError: one has a NaN.
    """
    where = f"The forward call was {getattr(node, 'site', 'made before anomalies were looked for')}"
    try:
        found = node.gradients(grads, keep_graph)
    except Exception as error:
        error.add_note(f"{node.name()}: {where}")
        raise
    flat = [g for value in found.values() for g in (value if isinstance(value, list) else [value])]
    for k, g in enumerate(flat if _state["nan"] else ()):
        if isinstance(g, Tensor) and g.is_floating_point() and bool(g.detach().isnan().any()):
            raise GradientError(f"Function '{node.name()}' returned nan values in its {k}th output. {where}")
    return found


def _switch(on: bool, check_nan: bool) -> None:
    _state["on"], _state["nan"] = on, check_nan
    sites[:], anomalies[:] = ([_site], [_run]) if on else ([], [])


class set_detect_anomaly:
    """Switch the search for anomalies on or off; as a function or a context manager.

    Nodes then remember the line of their forward call, and a walk reads every gradient: it is slow.

    Args:
        mode: whether to search.
        check_nan: whether a NaN in a gradient is an error; else only errors get the line.

    Raises:
        GradientError: from a walk: a node made NaN.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.set_detect_anomaly
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = _state["on"], _state["nan"]
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _switch(*self._before)


class detect_anomaly(set_detect_anomaly):
    """`set_detect_anomaly` for a ``with``.

    Args:
        check_nan: as there.

    Source: https://pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([0.0], requires_grad=True, device="cpu")
        >>> with torch.autograd.detect_anomaly():
        ...     try:
        ...         (x.sqrt() * 0).sum().backward()
        ...     except RuntimeError as error:
        ...         print(str(error)[:66])
        Function 'SqrtBackward0' returned nan values in its 0th output. Th
    """

    def __init__(self, check_nan: bool = True):
        warn("Anomalies are looked for: every gradient is read, which is slow, and for debugging only.")
        self._check = check_nan
        self._before = _state["on"], _state["nan"]

    def __enter__(self) -> None:
        self._before = _state["on"], _state["nan"]
        _switch(True, self._check)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Look for anomalies, or stop looking."""
    _switch(boolean(enabled, "set_anomaly_enabled: enabled"), boolean(check_nan, "check_nan"))


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for."""
    return _state["on"]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN in a gradient is an error where anomalies are looked for."""
    return _state["nan"]


__all__ = [
    "detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled",
    "set_detect_anomaly",
]  # fmt: skip
