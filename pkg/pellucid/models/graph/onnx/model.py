"""A module that runs the graph of an ONNX file; its submodules are the nodes, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....device import device as Device
from ....errors import ArgumentError, DTypeError, OutOfMemoryError, PellucidError, ShapeError
from ....nn.parameter import Buffer, Parameter
from ....tensors.construct import as_tensor
from ....tensors.tensor import Tensor
from ....weights.fields import shown
from ..modules import GraphModule
from ..program import DEVICE, Graph, GraphNode, ModuleCall, Reference
from .graph import GraphValue, OnnxGraph, OnnxStep

_REMEMBERED = 16  # results of a step that follow from shapes


class _Lowered:
    """What a node calls: the operator's function, of inputs that are where and what it takes.

    Early values (shapes, axes and what is computed of them) live on the cpu device, whatever the model's is:
    so Python can read them without waiting. They are computed once for the same arguments.
    """

    def __init__(self, step: OnnxStep, early: set[str]):
        self.step = step
        self.kept = [name in early for name in step.inputs]
        # What a function asks for beside the node's own: how many outputs it has, a place to keep things.
        asked = {"outputs": len(step.outputs), "kept": {}}
        own = {n: v for n, v in asked.items() if n in step.operator.attributes}
        self.attributes = {**step.attributes, **own}
        kinds = step.operator.inputs
        self.kinds = [kinds[min(k, len(kinds) - 1)] for k in range(len(step.inputs))]
        self._measures = step.operator.name in ("Shape", "Size")
        self._known: dict[Any, tuple[tuple, Any]] = {}
        self._moved: dict[tuple[int, Device], tuple[Tensor, Tensor]] = {}

    def __call__(self, device: Device, *inputs: Tensor | None) -> Any:
        step = self.step
        if not step.early:
            return self._call([self._placed(*each, device) for each in zip(self.kinds, self.kept, inputs)])
        key = inputs[0].shape if self._measures and inputs[0] is not None else tuple(map(id, inputs))
        if key in self._known:
            return self._known[key][1]
        if len(self._known) >= _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        result = self._call([x if k == "Tensor" else _read(k, x) for k, x in zip(self.kinds, inputs)])
        # The arguments stay alive, so no other tensor gets their ids.
        self._known[key] = (() if self._measures else inputs), result
        return result

    def _call(self, given: list[Any]) -> Any:
        try:
            result = self.step.operator.function(*given, **self.attributes)
        except MemoryError as error:
            raise OutOfMemoryError(f"takes more memory than there is ({error}).") from error
        except NotImplementedError as error:
            if isinstance(error, PellucidError):
                raise
            raise ArgumentError(str(error)) from error
        names = self.step.outputs
        made = result if isinstance(result, (tuple, list)) else (result,)
        if any(name and (k >= len(made) or made[k] is None) for k, name in enumerate(names)):
            raise ArgumentError(f"outputs are {', '.join(names)}, and not all of them are computed here.")
        return made[0] if len(names) == 1 else made[: len(names)]

    def _placed(self, kind: str, kept: bool, x: Tensor | None, device: Device) -> Any:
        if kind != "Tensor":
            return _read(kind, x)
        if x is None or x.device == device or x.device.type != "cpu":
            return x
        if not kept:
            return x.to(device)
        key = id(x), device
        if key not in self._moved:
            if len(self._moved) >= _REMEMBERED:
                self._moved.pop(next(iter(self._moved)))
            self._moved[key] = x, x.to(device)
        return self._moved[key][1]


def _read(kind: str, value: Tensor | None) -> Any:
    """An input as Python numbers."""
    if value is None:
        return None
    numbers = value.reshape(-1).tolist()
    if kind != "Number":
        return numbers
    if len(numbers) != 1:
        raise ShapeError(f"takes one number where it is given {len(numbers)}.")
    return numbers[0]


class OnnxModel(GraphModule):
    """A graph that is called like a module: tensors in the graph's order or by name.

    One output is a tensor, several are a tuple in the graph's order; `run` has onnxruntime's form. Values of
    nodes are seen and replaced through `pellucid.lens`, whose paths are the nodes' names.

    Attributes:
        inputs, outputs: what the file declares: names, dtypes, shapes.

    Source: https://onnx.ai/onnx/repo-docs/IR.html
    """

    inputs: list[GraphValue]
    outputs: list[GraphValue]
    device: Device

    def __init__(self, graph: OnnxGraph, constants: Mapping[str, Tensor], device: Device):
        early = {name: x for name, x in constants.items() if name in graph.early}
        nodes = [_node(step, early, graph.early) for step in graph.steps]
        taken = {node.places[0].path for node in nodes}
        paths = {name: _path(name, taken) for name in constants if name not in early}
        outputs = [early.get(o.name, Reference(o.name)) for o in graph.outputs]
        program = Graph(graph.name, nodes, [i.name for i in graph.inputs], outputs, paths)
        super().__init__(program, paths, kind="OnnxModel")
        self.__dict__.update(inputs=graph.inputs, outputs=graph.outputs, device=device)
        for name, (owner, attribute) in self._state.items():
            x = constants[name]
            kept = Parameter(x, requires_grad=False) if x.dtype.is_floating_point else Buffer(x)
            setattr(owner, attribute, kept)
        self.eval()

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Run the graph.

        Args:
            inputs: tensors or numpy arrays in the graph's order; or one mapping of them by name.
            named: the same by name.

        Returns:
            The output, or a tuple of the outputs in the graph's order.

        Raises:
            ArgumentError: inputs are missing, or too many.
            DTypeError, ShapeError: one is not what the file declares; or the graph contradicts itself.
        """
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs, named = (), {**inputs[0], **named}
        values = self._results(self._given(inputs, named))
        return values[0] if len(values) == 1 else tuple(values)

    def run(self, output_names: Iterable[str] | None, input_feed: Mapping[str, Any]) -> list[Tensor]:
        """The outputs of these names, or all: onnxruntime's ``InferenceSession.run``, with tensors.

        Args:
            output_names: which; None for all.
            input_feed: tensors or numpy arrays by name.

        Raises:
            ArgumentError: there is no such output; otherwise as `forward`.
        """
        known = [o.name for o in self.outputs]
        wanted = known if output_names is None else list(output_names)
        if not set(wanted) <= set(known):
            raise ArgumentError(f"run: outputs are {', '.join(known)}, not {shown(wanted)}.")
        values = dict(zip(known, self._results(self._given((), dict(input_feed)))))
        return [values[name] for name in wanted]

    def _results(self, inputs: dict[str, Tensor]) -> list[Tensor]:
        device = next(
            (x.device for x in (*self.parameters(), *self.buffers(), *inputs.values())), self.device
        )
        return [x.to(device) for x in self.run_graph(inputs)]

    def _given(self, inputs: tuple, named: dict[str, Any]) -> dict[str, Tensor]:
        names = [i.name for i in self.inputs]
        given = {**dict(zip(names, inputs)), **named}
        if set(given) != set(names) or len(given) != len(inputs) + len(named):
            raise ArgumentError(
                f"{self._graph.where}: inputs are {', '.join(map(repr, self.inputs)) or 'none'}; given are "
                f"{len(inputs)} by place and {', '.join(named) or 'none'} by name. Give each once."
            )
        lengths: dict[str, int] = {}
        return {i.name: self._checked(i, given[i.name], lengths) for i in self.inputs}

    def _checked(self, declared: GraphValue, value: Any, lengths: dict[str, int]) -> Tensor:
        x = value if isinstance(value, Tensor) else as_tensor(value, device=self.device)
        what = f"{self._graph.where}: input {declared!r}"
        if declared.dtype is not None and x.dtype is not declared.dtype:
            raise DTypeError(f"{what} is given as {x.dtype.name}. Convert it with .to().")
        if declared.shape is not None:
            fits = len(declared.shape) == len(x.shape)
            for wanted, length in zip(declared.shape, x.shape) if fits else ():
                expected = lengths.setdefault(wanted, length) if isinstance(wanted, str) else wanted
                fits = fits and expected in (None, length)
            if not fits:
                raise ShapeError(f"{what} is given with shape {tuple(x.shape)}; other lengths: {lengths}.")
        return x


def _node(step: OnnxStep, constants: Mapping[str, Tensor], early: set[str]) -> GraphNode:
    names = tuple(step.outputs)
    return GraphNode(
        step.name,
        step.operator.name,
        _Lowered(step, early),
        (Reference(DEVICE), *[constants.get(n, Reference(n)) if n else None for n in step.inputs]),
        {},
        names[0] if len(names) == 1 else names,
        (ModuleCall(step.name, _path(step.name, set()), step.operator.name),),
    )


def _path(name: str, taken: set[str]) -> str:
    """A name as the path of a submodule or weight: its levels are not empty, and no attributes of modules."""
    path = ".".join(f"{n}_" if not n or hasattr(GraphModule, n) else n for n in name.split("."))
    while path in taken:
        path += "_"
    return path
