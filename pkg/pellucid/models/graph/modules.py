"""A graph as a module: its weights are parameters by path, and each call of a submodule can be hooked."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ...device import device as Device
from ...device import get_default_device
from ...errors import ArgumentError, FormatError
from ...nn.hooks import call as call_hooked
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor
from .program import DEVICE, CallSite, Graph

# Which call of a submodule is under way: one that the graph calls twice does not know it by itself.
_current: ContextVar[CallSite | None] = ContextVar("call of a graph", default=None)


class GraphPart(Module):
    """A submodule of a graph: what it computes is a stretch of the graph's nodes.

    Args:
        kind: the name of the class that it had in the program it was made of.
    """

    _kind: str
    _root: GraphModule
    _calls: list[CallSite]

    def __init__(self, kind: str = "GraphPart"):
        super().__init__()
        self.__dict__.update(_kind=kind, _root=None, _calls=[])

    def _get_name(self) -> str:
        return self._kind

    def forward(self, *values: Any) -> Any:
        """Run the part's nodes.

        Args:
            values: what goes in, in the order of use.

        Returns:
            What comes out, in the order of later use: one value by itself, several in a tuple.

        Raises:
            FormatError: the graph does not call this module.
        """
        call = _current.get()
        if call is None or call not in self._calls:
            if not self._calls:
                raise FormatError(f"{self._kind}: the graph holds no nodes of this module.")
            call = self._calls[0]
        return self._root.run_part(call, values)


class GraphModule(GraphPart):
    """A graph with its weights, as a module. Submodules exist for all paths that nodes and weights name.

    Args:
        graph: the nodes.
        state: name of a value of the graph -> path of the parameter or buffer that it is.
        kinds: path -> name of the class, of submodules; those of nodes are known.
        kind: the name of the class of the whole.
    """

    _graph: Graph
    _state: dict[str, tuple[GraphPart, str]]

    def __init__(
        self,
        graph: Graph,
        state: Mapping[str, str],
        kinds: Mapping[str, str] | None = None,
        kind: str = "GraphModule",
    ):
        super().__init__(kind)
        self.__dict__.update(_root=self, _graph=graph, _state={})
        known = dict(kinds or {}) | {call.place.path: call.place.kind for call in graph.all_calls()}
        for path in known:
            self._part(path, known)
        for call in graph.all_calls():
            self._part(call.place.path, known)._calls.append(call)
        for name, path in state.items():
            owner, _, attribute = path.rpartition(".")
            self._state[name] = self._part(owner, known), attribute

    def _part(self, path: str, kinds: Mapping[str, str]) -> GraphPart:
        """The submodule at a path, which is made if it is not there."""
        part: Any = self
        done = ""
        for name in path.split(".") if path else ():
            done = f"{done}.{name}" if done else name
            below = part.__dict__.get(name)
            if below is None:
                below = GraphPart(kinds.get(done, "GraphPart"))
                below.__dict__["_root"] = self
                try:
                    part.add_module(name, below)
                except KeyError as error:
                    raise FormatError(
                        f"{self._graph.where}: no module can be at {path!r} ({error})."
                    ) from None
            elif not isinstance(below, GraphPart):
                raise FormatError(f"{self._graph.where}: {done!r} names a module and something else.")
            part = below
        return part

    def own_state(self) -> dict[str, Any]:
        """The graph's parameters and buffers, by the names of their values."""
        return {name: owner.__dict__.get(attribute) for name, (owner, attribute) in self._state.items()}

    def run_graph(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Run the graph.

        Args:
            inputs: by name.

        Returns:
            The graph's outputs.
        """
        values = self.own_state()
        values[DEVICE] = _place((*inputs.values(), *values.values()))
        values.update(inputs)
        return self._graph.run(values, self._enter if self._is_heard() else None)

    def run_part(self, call: CallSite, inputs: tuple) -> Any:
        """Run one call of a submodule with these inputs."""
        if len(inputs) != len(call.inputs):
            raise ArgumentError(
                f"{call.place.path}: takes {len(call.inputs)} values ({', '.join(call.inputs)}), not "
                f"{len(inputs)}."
            )
        values = self.own_state()
        values[DEVICE] = _place((*inputs, *values.values()))
        values.update(zip(call.inputs, inputs, strict=True))
        results = self._graph.run(values, self._enter if self._is_heard() else None, call)
        return results[0] if len(results) == 1 else tuple(results)

    def _is_heard(self) -> bool:
        return any(m._hooks for m in self.modules() if m is not self)

    def _enter(self, call: CallSite, values: dict[str, Any]) -> bool:
        """Call the submodule of a call, if somebody listens to it."""
        module = self.get_submodule(call.place.path)
        if not module._hooks:
            return False
        token = _current.set(call)
        try:
            result = call_hooked(module, tuple(values[n] for n in call.inputs), {})
        finally:
            _current.reset(token)
        several = (result,) if len(call.outputs) == 1 else result
        values.update(zip(call.outputs, several, strict=True))
        return True


def _place(values: tuple) -> Device:
    """Where the first tensor is."""
    found = next((v._meta.device for v in values if isinstance(v, Tensor)), None)
    return get_default_device() if found is None else found
