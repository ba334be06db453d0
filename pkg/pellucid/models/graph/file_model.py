"""A module that runs the graph of a file; its submodules are the nodes, by their names."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from ...device import device as Device
from ...errors import ArgumentError, DTypeError, ShapeError, SourceError
from ...nn.parameter import Buffer, Parameter
from ...tensors.construct import as_tensor, tensor
from ...tensors.tensor import Tensor
from ...weights import parsing
from ...weights.checkpoint import Checkpoint, TensorInfo
from ...weights.fields import shown
from ...weights.place import Place, find
from ...weights.source import Source
from ..loading import LoadOptions, load_tensors
from .lowered import FileGraph, GraphStep, GraphValue, Lowered
from .modules import GraphModule
from .program import DEVICE, Graph, GraphNode, ModuleCall, Reference


class FileModel(GraphModule):
    """A graph that is called like a module: tensors in the graph's order or by name.

    One output is a tensor, several are a tuple in the graph's order; `run` has onnxruntime's form. Values of
    nodes are seen and replaced through `pellucid.lens`, whose paths are the nodes' names.

    Attributes:
        inputs, outputs: what the file declares: names, dtypes, shapes.
    """

    inputs: list[GraphValue]
    outputs: list[GraphValue]
    device: Device

    def __init__(self, graph: FileGraph, constants: Mapping[str, Tensor], device: Device):
        early = {name: x for name, x in constants.items() if name in graph.early}
        nodes = [_node(step, early, graph.early) for step in graph.steps]
        taken = {node.places[0].path for node in nodes}
        paths = {name: _path(name, taken) for name in constants if name not in early}
        outputs = [early.get(o.name, Reference(o.name)) for o in graph.outputs]
        program = Graph(graph.name, nodes, [i.name for i in graph.inputs], outputs, paths)
        super().__init__(program, paths, kind=type(self).__name__)
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


class GraphReading:
    """A file's graph, read by blocking or by awaiting."""

    def graph(self, steps: parsing.Steps) -> Any:
        return parsing.now(steps)

    async def graph_async(self, steps: parsing.Steps) -> Any:
        return await parsing.later(steps)


def load_graph(
    source: Any,
    kind: str,
    read: Callable[[Source], parsing.Steps],
    options: LoadOptions,
    where: dict[str, Any],
) -> Generator[tuple, Any, tuple[FileGraph, dict[str, Tensor]]]:
    """A file's graph and its constants: early ones on the cpu device, the others on the model's.

    Gives the steps that wait, as `load_tensors` does.

    Args:
        source: the file, as a user gives it.
        kind: of the format, as files end.
        read: steps that give the graph, and the sources in which weights lie.
        options: where to, and how.
        where: as in `pellucid.weights.find`.

    Raises:
        PellucidError: as ``read`` and `load_tensors`.
    """
    file = find(source, **where)
    if isinstance(file, Place):
        raise SourceError(f"{file.name}: is a folder. Give the .{kind} file's own address, or filename=.")
    shards = [file]
    try:
        graph, shards = yield GraphReading(), "graph", (read(file),), {}
        used = {n for step in graph.steps for n in step.inputs} | {o.name for o in graph.outputs}
        here: dict[str, Tensor] = {}
        away: list[TensorInfo] = []
        for name, value in graph.constants.items():
            if name not in used:
                continue
            if isinstance(value, TensorInfo):
                away.append(value._replace(name=name))
            else:
                here[name] = tensor(value, device="cpu" if name in graph.early else options.device)
        loaded = yield from load_tensors(Checkpoint(file.name, kind, away, {}, shards), away, options)
    finally:
        for shard in {id(s): s for s in (file, *shards)}.values():
            shard.close()
    return graph, here | loaded


def _node(step: GraphStep, constants: Mapping[str, Tensor], early: set[str]) -> GraphNode:
    names = tuple(step.outputs)
    return GraphNode(
        step.name,
        step.operator.name,
        Lowered(step, early),
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
