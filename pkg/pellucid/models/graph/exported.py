"""An exported program as a module: arguments as in the original, guards, mutated buffers, nested results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ...device import device as Device
from ...errors import ArgumentError, FormatError, ShapeError
from ...nn.parameter import Parameter
from ...op.arguments import describe
from ...ops.shape.creation import empty
from ...tensors.dtypes import NAMES
from ...tensors.tensor import Tensor
from ...weights.fields import shown
from .modules import GraphModule
from .nodes import read_graph
from .program import GraphNode
from .reader import StoredTensor
from .sizes import SymbolicSize, parse
from .trees import ArgumentTree, read_spec

# Kinds of inputs that belong to the program, with the field that names them.
_STATE = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
# Kinds of outputs that are written somewhere.
_WRITTEN = {
    "buffer_mutation": "buffer_name", "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}  # fmt: skip


class ExportedModule(GraphModule):
    """The module of an exported program. It is called as the program was that was exported.

    Args:
        name: the file, for messages.
        document: the program, checked.
    """

    def __init__(self, name: str, document: Mapping[str, Any]):
        made, graph = document["graph_module"], document["graph_module"]["graph"]
        inputs, state = _inputs(name, made["signature"]["input_specs"], len(graph["inputs"]))
        read = read_graph(name, graph, [n for kind, n in inputs if kind == "value"], list(state))
        calls = made["module_call_graph"]
        kinds = {c["fqn"].partition("@")[0]: "GraphPart" for c in calls if c["fqn"]}
        super().__init__(read, {value: path for value, (path, _) in state.items()}, kinds)
        signature = next((c["signature"] for c in calls if not c["fqn"] and c.get("signature")), None)
        if signature is None:
            raise FormatError(
                f"{name}: says nothing of how the whole program is called. The file is damaged."
            )
        tuples = made.get("treespec_namedtuple_fields") or {}
        tree = read_spec(f"{name}: in_spec", signature["in_spec"], tuples)
        out = read_spec(f"{name}: out_spec", signature["out_spec"], tuples)
        outputs = [next(iter(o.items())) for o in made["signature"]["output_specs"]]
        unknown = {kind for kind, _ in outputs} - {"user_output", "loss_output", *_WRITTEN}
        returned = sum(kind not in _WRITTEN for kind, _ in outputs)
        if unknown or out.leaves != returned or len(outputs) != len(read.outputs):
            raise FormatError(
                f"{name}: its {len(outputs)} outputs are no results and no changes of buffers "
                f"({', '.join(sorted(unknown)) or f'{returned} results for {out.leaves} places'})."
            )
        self.__dict__.update(
            wanted=state,
            _call=_Signature(name, tree, signature.get("forward_arg_names") or []),
            _out=out,
            _inputs=inputs,
            _written=[
                value.get(_WRITTEN.get(kind, "")) and (kind, value[_WRITTEN[kind]]) for kind, value in outputs
            ],
            _guards=_Guards(name, document, inputs),
        )
        if tree.leaves != len(inputs):
            raise FormatError(f"{name}: in_spec has {tree.leaves} leaves for {len(inputs)} inputs.")

    # By value of the graph: the path of a tensor and its kind.
    wanted: dict[str, tuple[str, str]]
    _call: _Signature
    _out: ArgumentTree
    _inputs: list[tuple[str, Any]]
    _written: list[tuple[str, str] | None]
    _guards: _Guards

    @property
    def nodes(self) -> tuple[GraphNode, ...]:
        """The graph's nodes."""
        return self._graph.nodes

    def take(
        self, stored: Mapping[str, StoredTensor], elements: Mapping[str, Tensor], device: Device
    ) -> None:
        """Make parameters and buffers of loaded elements.

        Args:
            stored: how each tensor lies in them, by path.
            elements: by file.
            device: for those without elements.
        """
        made: dict[tuple, Tensor] = {}
        users = [
            s.file for s in {id(s): s for s in (stored[path] for path, _ in self.wanted.values())}.values()
        ]
        for value, (path, kind) in self.wanted.items():
            s = stored[path]
            owner, attribute = self._state[value]
            key = (s, kind == "parameter")
            if key not in made:
                t = _laid_out(s, elements[s.file], users.count(s.file) == 1, device)
                made[key] = Parameter(t, s.requires_grad) if kind == "parameter" else t
            try:
                if kind == "parameter":
                    owner.register_parameter(attribute, made[key])  # type: ignore[arg-type]
                else:
                    owner.register_buffer(attribute, made[key], persistent=kind == "buffer")
            except KeyError as error:
                raise FormatError(f"{self._graph.where}: nothing can be at {path!r} ({error}).") from None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Args:
            args, kwargs: as in the original; arguments may be given by place or by name.

        Returns:
            What the original returns; classes that are none of Python's own become dataclasses of the same
            fields, which can be read by key and by place, too.

        Raises:
            ArgumentError: the arguments are not those of the program.
            ShapeError: a size is none that the program was made for; the message names it.
            PellucidError: a node refuses its arguments; the message names the node and its source line.
        """
        arguments, leaves = self._call.flatten(args, kwargs)
        values: dict[str, Any] = {}
        for (kind, what), leaf in zip(self._inputs, leaves, strict=True):
            if kind == "value":
                values[what] = leaf
            elif leaf is not what and (type(leaf) is not type(what) or leaf != what):
                raise ArgumentError(
                    f"{self._graph.where}: was exported with the value {what!r}, not {describe(leaf)}. "
                    "Export it "
                    "with the other value."
                )
        self._guards.check(values, arguments)
        results = []
        for written, result in zip(self._written, self.run_graph(values), strict=True):
            if not written:
                results.append(result)
            elif written[0] == "user_input_mutation":
                values[written[1]].copy_(result)
            else:
                self._target(written[1]).copy_(result)
        return self._out.unflatten(iter(results))

    def _target(self, path: str) -> Tensor:
        owner, _, attribute = path.rpartition(".")
        return self.get_submodule(owner).__dict__[attribute]


def _inputs(name: str, specs: list, count: int) -> tuple[list[tuple[str, Any]], dict[str, tuple[str, str]]]:
    """What each run is given, and what belongs to the program.

    Returns:
        Of each input of a run ("value", its name) or ("constant", the value); by value of the graph the path
        and kind of what belongs to it.
    """
    inputs: list[tuple[str, Any]] = []
    state: dict[str, tuple[str, str]] = {}
    if len(specs) != count:
        raise FormatError(f"{name}: the graph has {count} inputs and its signature {len(specs)}.")
    for spec in specs:
        ((kind, told),) = spec.items()
        if kind in _STATE:
            if told["arg"]["name"] in state:
                raise FormatError(f"{name}: two inputs have the name {shown(told['arg']['name'])}.")
            state[told["arg"]["name"]] = (
                told[_STATE[kind]],
                kind if told.get("persistent", True) else "transient",
            )
            continue
        if kind not in ("user_input", "constant_input"):
            raise FormatError(f"{name}: an input of kind {kind} is not known here.")
        ((form, value),) = (told["arg"] if kind == "user_input" else told["value"]).items()
        if isinstance(value, Mapping):
            inputs.append(("value", value.get("name") or value.get("as_name")))
        else:
            inputs.append(("constant", None if form == "as_none" else value))
    return inputs, state


def _laid_out(stored: StoredTensor, elements: Tensor, alone: bool, device: Device) -> Tensor:
    """A tensor of loaded elements. One that nothing shares lies in order of its axes."""
    if 0 in stored.shape:
        return empty(stored.shape, dtype=NAMES[elements.dtype.name], device=device)
    if elements.numel() == 1 and not stored.shape:
        return elements.reshape(())
    t = elements.as_strided(stored.shape, stored.strides, stored.offset)
    return t.contiguous() if alone else t


class _Signature:
    """How a program is called.

    Args:
        where: the file, for messages.
        tree: of positional and keyword arguments.
        names: of the original's arguments, in their order.
    """

    def __init__(self, where: str, tree: ArgumentTree, names: list[str]):
        if [c.kind for c in tree.children] != ["builtins.tuple", "builtins.dict"]:
            raise FormatError(f"{where}: in_spec is no pair of positional and keyword arguments.")
        self._where = where
        args, kwargs = tree.children
        own = [*names[: len(args.children)]]
        own += [f"argument {k}" for k in range(len(own), len(args.children))]
        self._specs = dict(zip((*own, *kwargs.keys), (*args.children, *kwargs.children), strict=False))
        if len(self._specs) != len(args.children) + len(kwargs.children):
            raise FormatError(f"{where}: two arguments of the program have the same name.")
        # Keyword arguments may be given by place, too, in the original's order.
        self._order = [*own, *sorted(kwargs.keys, key=lambda n: names.index(n) if n in names else len(names))]

    def flatten(self, args: tuple, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The arguments by name, and the leaves of all."""
        given = dict(zip(self._order, args, strict=False)) | dict(kwargs)
        twice = [n for n in self._order[: len(args)] if n in kwargs]
        if len(args) > len(self._order) or given.keys() != self._specs.keys() or twice:
            raise ArgumentError(
                f"{self._where}: takes {', '.join(self._specs)}; {len(args)} by place and "
                f"{', '.join(kwargs) or 'none'} by name were given."
            )
        leaves = [leaf for name, spec in self._specs.items() for leaf in spec.flatten(given[name], name)]
        return given, leaves


class _Guards:
    """What a program was made for: sizes of its inputs, ranges of symbols, and conditions.

    Args:
        where: the file, for messages.
        document: the program.
        inputs: of a run.
    """

    def __init__(self, where: str, document: Mapping[str, Any], inputs: list[tuple[str, Any]]):
        graph = document["graph_module"]["graph"]
        self._where = where
        self._ranges = {
            symbol: (bounds.get("min_val"), bounds.get("max_val"))
            for symbol, bounds in document["range_constraints"].items()
        }
        self._sizes: dict[str, list[SymbolicSize]] = {}
        self._numbers: dict[str, SymbolicSize] = {}
        for kind, name in inputs:
            if kind != "value":
                continue
            place = f"{where}: input {shown(name)}"
            if name in graph["tensor_values"]:
                self._sizes[name] = [
                    SymbolicSize(place, size) for size in graph["tensor_values"][name]["sizes"]
                ]
            elif name in (graph.get("sym_int_values") or {}):
                self._numbers[name] = SymbolicSize(place, graph["sym_int_values"][name])
        self._guards = []
        for text in document.get("guards_code") or ():
            guard = parse(text)
            if guard is None:
                warnings.warn(
                    f"{where}: the guard {shown(text)} is not understood and not checked.", stacklevel=2
                )
            else:
                self._guards.append((text, guard))

    def check(self, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """Compare the inputs of a run with what the program was made for.

        Raises:
            ArgumentError: an input is no tensor, or no number, where it must be one.
            ShapeError: a size does not fit.
        """
        found: list[tuple[str, int, SymbolicSize]] = []
        for name, sizes in self._sizes.items():
            value = values[name]
            if not isinstance(value, Tensor):
                raise ArgumentError(
                    f"{self._where}: input {name!r} must be a tensor, not {describe(value)}. "
                    "Make one by pellucid.tensor."
                )
            if value.ndim != len(sizes):
                raise ShapeError(
                    f"{self._where}: input {name!r} has shape {tuple(value.shape)}, and {len(sizes)} axes "
                    "were "
                    "expected."
                )
            found += [
                (f"dimension {k} of input {name!r}", int(n), size)
                for k, (n, size) in enumerate(zip(value.shape, sizes, strict=True))
            ]
        for name, size in self._numbers.items():
            if not isinstance(values[name], int):
                raise ArgumentError(
                    f"{self._where}: input {name!r} must be a whole number, not {describe(values[name])}."
                )
            found.append((f"input {name!r}", int(values[name]), size))
        symbols: dict[str, int] = {}
        for place, value, size in sorted(found, key=lambda f: f[2].text not in f[2].symbols):
            if (solved := size.solve(value, symbols)) is None:
                continue
            symbol, number = solved
            symbols[symbol] = number
            low, high = self._ranges.get(symbol, (None, None))
            # As in PyTorch: 0 and 1 are taken where 2 is the least, which is what tracing starts from.
            if (low is not None and number < low and low > 2) or (high is not None and number > high):
                so = "" if number == value else f", so that {symbol} is {number}"
                raise ShapeError(
                    f"{self._where}: {place} is {value}{so}; the program was exported for {symbol} from "
                    f"{low if low is not None else 'any'} to {high if high is not None else 'any'}."
                )
        for place, value, size in found:
            wanted = size.of(symbols)
            if wanted is not None and value != wanted:
                how = f"{wanted}" if size.fixed is not None else f"{size.text} = {wanted}"
                raise ShapeError(
                    f"{self._where}: {place} is {value}; the program was exported for {how}. Export it with "
                    "dynamic_shapes to leave a size open."
                )
        for text, guard in self._guards:
            try:
                holds = guard(arguments)
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
                continue  # of an argument that this call has in another form
            if not holds:
                raise ShapeError(
                    f"{self._where}: the arguments do not meet {text!r}, which the program was exported for."
                )
