"""``torch.compile(model, backend="pellucid")``: PyTorch's programs run by Pellucid, forward and backward.

Source: https://pytorch.org/docs/stable/torch.compiler_custom_backends.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...autograd.grad_mode import under
from ...errors import ArgumentError, DTypeError
from ...ops.aten import from_aten
from ...tensors.construct import tensor
from ...tensors.dtypes import NAMES
from ...tensors.tensor import Tensor
from .desktop import from_torch

__all__ = ["backend"]


def backend(
    program: Any, example_inputs: Any, *, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """What ``torch.compile(backend="pellucid")`` calls for each graph that it finds.

    AOTAutograd makes a graph of ATen of the forward and one of the backward pass; both run here. Arguments
    are copied to the device, a tensor that did not change since only once; results are copied back.

    Args:
        program: a ``torch.fx.GraphModule``.
        example_inputs: its arguments.
        options: ``device``: where it runs; the default device if not given.

    Returns:
        What is called in the program's place.

    Raises:
        MissingError: operators are not known here.

    Example:
        >>> fast = torch.compile(model, backend="pellucid", options={"device": "cpu"})  # doctest: +SKIP
    """
    from torch._dynamo.backends.common import aot_autograd

    device = (options or {}).get("device")

    def compiler(graph: Any, _: Any) -> Callable[..., Any]:
        return _Lowered(graph, device)

    return aot_autograd(fw_compiler=compiler, decompositions=_decompositions())(program, example_inputs)


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """What PyTorch takes operators apart into, of those that are not in the op table."""
    from torch._decomp import decomposition_table

    return {
        op: function
        for op, function in decomposition_table.items()
        if str(op).startswith("aten.") and not _is_known(str(op))
    }


def _is_known(name: str) -> bool:
    try:
        return bool(from_aten(name))
    except ArgumentError:
        return False


class _Lowered:
    """A graph of ATen that is called with PyTorch's tensors; made for each set of sizes when it comes."""

    def __init__(self, graph: Any, device: Any):
        from torch.utils.weak import WeakIdKeyDictionary

        self.graph, self.device = graph, device
        self._boxed_call = True  # arguments come as one list, which is emptied
        self._programs: dict[Any, Any] = {}
        self._kept: Any = WeakIdKeyDictionary()
        (self._results,) = next(n for n in graph.graph.nodes if n.op == "output").args

    def __call__(self, given: list[Any]) -> list[Any]:
        args = tuple(given)
        given.clear()
        key = tuple((a.shape, a.dtype) if hasattr(a, "shape") else a for a in args)
        if key not in self._programs:
            self._programs[key] = self._made(args)
        output = under(False, self._programs[key], *map(self._ours, args))
        results = list(output) if isinstance(output, (tuple, list)) else [output]
        return [self._theirs(x, node) for x, node in zip(results, self._results, strict=True)]

    def _made(self, args: tuple) -> Any:
        import torch

        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of export, about what is no concern here
            examples = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
            return from_torch(self.graph, examples, device=self.device)

    def _ours(self, x: Any) -> Any:
        if not hasattr(x, "detach"):
            return x
        version, found = self._kept.get(x, (None, None))
        if version != x._version:
            kind = str(x.dtype).removeprefix("torch.")
            if kind not in NAMES:
                raise DTypeError(f"torch.compile: {kind} is no dtype here.")
            array = x.detach().cpu()
            found = tensor(
                (array.float() if kind == "bfloat16" else array).numpy(),
                dtype=NAMES[kind],
                device=self.device,
            )
            self._kept[x] = x._version, found
        return found

    def _theirs(self, x: Any, node: Any) -> Any:
        import torch

        if not isinstance(x, Tensor):
            return x
        example = node.meta["val"] if hasattr(node, "meta") else None
        array = torch.from_numpy(np.array(x.numpy()))
        wanted = getattr(torch, x.dtype.name)
        if example is None or example.is_contiguous():
            return array.to(wanted)
        # What follows counts on the strides that PyTorch would have made.
        order = sorted(range(array.ndim), key=lambda k: -int(example.stride(k)))
        back = [order.index(k) for k in range(array.ndim)]
        return array.to(wanted).permute(order).contiguous().permute(back)
