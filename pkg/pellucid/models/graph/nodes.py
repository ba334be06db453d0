"""The nodes of an exported program: from their JSON to functions of the op table."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from ...autograd.grad_mode import enable_grad, no_grad
from ...errors import DTypeError, FormatError
from ...ops.aten import from_aten
from ...weights.fields import shown
from .program import DEVICE, Graph, GraphNode, ModuleCall, Reference, operators
from .schema import DTYPES
from .sizes import FUNCTIONS

_FRAME = re.compile(r'File "([^"\n]*)", line (\d+), in (\S+)(?:\n[ \t]+([^\n]*))?')
_SPECIAL: dict[Any, Any] = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_GRAD_MODE = "torch.ops.higher_order.wrap_with_set_grad_enabled"
_AUTOCAST = "torch.ops.higher_order.wrap_with_autocast"
_COND = "torch.ops.higher_order.cond"
# Functions of numbers, by the names of Python's modules and of PyTorch's.
_NUMBERS: dict[str, Callable[..., Any]] = {
    **{f"_operator.{name}": getattr(operator, name) for name in (
        "add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "eq", "ne", "lt", "le", "gt", "ge", "and_",
        "or_", "not_", "getitem",
    )},
    "_operator.pow": FUNCTIONS["Pow"],
    **{f"math.{name}": getattr(math, name) for name in ("ceil", "floor", "trunc", "sqrt")},
    "builtins.round": round, "torch.sym_float": float, "torch.sym_int": int, "torch.sym_not": operator.not_,
    "torch.sym_max": max, "torch.sym_min": min,
    "torch.sym_ite": lambda condition, yes, no: yes if condition else no,
    "torch._sym_sqrt": math.sqrt,
}  # fmt: skip


def read_graph(where: str, graph: Mapping[str, Any], inputs: list[str], state: list[str]) -> Graph:
    """The graph of a program.

    Args:
        where: the file, for messages.
        graph: as `schema.GRAPH` has it.
        inputs: names of the values that each run is given.
        state: names of those that belong to the program.

    Raises:
        FormatError: the nodes do not fit together.
        MissingError: operators are not known; all of them.
        DTypeError: an element type is none of those here.
    """
    reader = _Reader(where)
    names = {name: name for name in (*inputs, *state)}
    reader.read(graph, names, "", None)
    outputs = [reader.argument(a, names) for a in graph["outputs"]]
    functions = operators(where, [(s[1], s[-1]) for s in reader.steps], reader.find)
    nodes = []
    for name, target, args, kwargs, made, places, mode, line in reader.steps:
        function = functions[target] if mode is None else mode()(functions[target])
        nodes.append(
            GraphNode(name, target.removeprefix("torch.ops."), function, args, kwargs, made, places, line)
        )
    numbers = [names[n] for n in graph.get("sym_int_values") or {} if n in names]
    return Graph(where, nodes, inputs, outputs, state, numbers)


class _Reader:
    """Collects the nodes of a graph and of those within it.

    Args:
        where: the file, for messages.
    """

    def __init__(self, where: str):
        self.where = where
        # Name, operator, arguments, keywords, results, places, grad mode, source line.
        self.steps: list[tuple] = []

    def find(self, target: str) -> Callable[..., Any] | None:
        """What computes an operator; None where nothing does."""
        if target in (_GRAD_MODE, _AUTOCAST):
            return _same
        if target == _COND:
            return _branch
        if target.startswith("torch.ops.aten."):
            return from_aten(target.removeprefix("torch.ops."))
        return _NUMBERS.get(target)

    def read(self, graph: Mapping[str, Any], names: dict[str, str], prefix: str, mode: Any) -> None:
        """Add the nodes of a graph.

        Args:
            graph: as the file has it.
            names: of its values here, by their names there; added to.
            prefix: before the names of its values.
            mode: the grad mode in which they run; None for that of the caller.
        """
        for node in graph["nodes"]:
            made = self._results(node, names, prefix)
            target = node["target"]
            first = node.get("name") or ", ".join(filter(None, made)) or target
            places = _places(node["metadata"].get("nn_module_stack") or "")
            line = _line(node["metadata"].get("stack_trace") or "")
            if target in (_GRAD_MODE, _AUTOCAST):
                self._inline(node, names, prefix, made, mode, first)
                continue
            args, kwargs = [], {}
            for k, given in enumerate(node["inputs"]):
                value = self.argument(given["arg"], names)
                if given.get("kind", 1 if k == 0 else 2) == 2:
                    kwargs[given["name"]] = value
                else:
                    args.append(value)
            if target == _COND:
                kwargs["device"] = Reference(DEVICE)
            one = len(made) == 1 and "as_tensors" not in node["outputs"][0] and target != _COND
            outputs = (made[0] if made else "") if one or not node["outputs"] else made
            self.steps.append((first, target, tuple(args), kwargs, outputs, places, mode, line))

    def _results(self, node: Mapping[str, Any], names: dict[str, str], prefix: str) -> tuple[str, ...]:
        """The names of a node's results here."""
        made: list[str] = []
        outputs = node["outputs"]
        for output in outputs:
            ((kind, value),) = output.items()
            if kind == "as_tensors" and len(outputs) == 1:
                told = [v["name"] for v in value]
            elif kind in ("as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float"):
                told = [value.get("name") or value.get("as_name") or ""]
            elif kind == "as_none":
                told = [""]
            else:
                raise FormatError(
                    f"{self.where}: node {shown(node.get('name') or node['target'])} has a result of kind "
                    f"{kind}, "
                    "which is not known here."
                )
            for name in told:
                if name:
                    names[name] = prefix + name
                made.append(names.get(name, ""))
        return tuple(made)

    def _inline(
        self, node, names: dict[str, str], prefix: str, made: tuple[str, ...], mode, first: str
    ) -> None:
        """Add the nodes of a graph that is called at one place only."""
        given = [a["arg"] for a in node["inputs"]]
        at = next((k for k, a in enumerate(given) if "as_graph" in a), None)
        if at is None:
            raise FormatError(f"{self.where}: node {shown(first)} ({node['target']}) has no graph to call.")
        if node["target"] == _GRAD_MODE:
            mode = enable_grad if given[0].get("as_bool") else no_grad
        elif at > 2 and given[2].get("as_bool"):
            raise FormatError(
                f"{self.where}: node {shown(first)} calls its graph under autocast. Export the model with "
                "the dtype "
                "that it is to run in."
            )
        inner, name = given[at]["as_graph"]["graph"], given[at]["as_graph"]["name"]
        passed = [self.argument(a, names) for a in given[at + 1 :]]
        below = f"{prefix}{name}."
        inside: dict[str, str] = {}
        if len(passed) != len(inner["inputs"]):
            raise FormatError(
                f"{self.where}: node {shown(first)} gives {len(passed)} values to a graph of "
                f"{len(inner['inputs'])} inputs. The file is damaged."
            )
        for value, place in zip(passed, inner["inputs"], strict=True):
            ((_, told),) = place.items()
            if type(value) is Reference and isinstance(told, Mapping):
                inside[told.get("name") or told.get("as_name") or ""] = value.name
        self.read(inner, inside, below, mode)
        results = [self.argument(a, inside) for a in inner["outputs"]]
        if len(results) == 1 and isinstance(results[0], list):
            results = results[0]
        if len(results) != len(made):
            raise FormatError(
                f"{self.where}: node {shown(first)} takes {len(made)} results from a graph of "
                f"{len(results)}. The "
                "file is damaged."
            )
        for result, target in zip(results, made, strict=True):
            self.steps.append((target or first, node["target"], (result,), {}, target, (), None, ""))

    def argument(self, argument: Mapping[str, Any], names: Mapping[str, str]) -> Any:
        """An argument as functions take it, with references for values."""
        ((kind, value),) = argument.items()
        match kind:
            case "as_none" | "as_layout" | "as_memory_format":  # how tensors lie in memory is our matter
                return None
            case "as_tensor":
                return self._reference(value["name"], names)
            case "as_tensors":
                return [self._reference(v["name"], names) for v in value]
            case "as_nested_tensors":
                return [[self._reference(v["name"], names) for v in part] for part in value]
            case "as_sym_int" | "as_sym_bool" | "as_sym_float" | "as_optional_tensor":
                return self._either(value, names)
            case "as_sym_ints" | "as_sym_bools" | "as_sym_floats" | "as_optional_tensors":
                return [self._either(v, names) for v in value]
            case "as_scalar_type":
                if value not in DTYPES:
                    raise DTypeError(f"{self.where}: the element type number {value} is none of those here.")
                return DTYPES[value]
            case "as_device":
                return Reference(DEVICE)
            case "as_float":
                return _SPECIAL.get(value, value)
            case "as_floats":
                return [_SPECIAL.get(v, v) for v in value]
            case "as_float_lists":
                return [[_SPECIAL.get(v, v) for v in part] for part in value]
            case "as_complex":
                real, imaginary = [_SPECIAL.get(value[part], value[part]) for part in ("real", "imag")]
                return complex(real, imaginary)
            case "as_string_to_argument":
                return {name: self.argument(a, names) for name, a in value.items()}
            case "as_graph":
                return self._graph(value["graph"])
            case "as_operator" | "as_custom_obj":
                raise FormatError(f"{self.where}: holds an argument of kind {kind}, which is not known here.")
        return value

    def _either(self, value: Mapping[str, Any], names: Mapping[str, str]) -> Any:
        ((kind, inner),) = value.items()
        if kind == "as_name":
            return self._reference(inner, names)
        if kind == "as_tensor":
            return self._reference(inner["name"], names)
        return None if kind == "as_none" else _SPECIAL.get(inner, inner)

    def _reference(self, name: str, names: Mapping[str, str]) -> Reference:
        # A name that nothing has made is reported by the graph, with the node that uses it.
        return Reference(names.get(name, name))

    def _graph(self, graph: Mapping[str, Any]) -> Graph:
        """A graph that a node calls by itself."""
        inputs = []
        for place in graph["inputs"]:
            ((_, told),) = place.items()
            inputs.append(told.get("name") or told.get("as_name") if isinstance(told, Mapping) else str(told))
        return read_graph(self.where, graph, inputs, [])


def _same(value: Any) -> Any:
    return value


def _branch(condition: Any, yes: Graph, no: Graph, operands: list = [], *, device: Any) -> list[Any]:  # noqa: B006
    """One of two graphs, by a condition that is read."""
    taken = yes if bool(condition) else no
    return taken.run({**dict(zip(taken.inputs, operands, strict=True)), DEVICE: device})


def _places(stack: str) -> tuple[ModuleCall, ...]:
    """The calls of modules of a node, without the whole model."""
    found: list[ModuleCall] = []
    call = ""
    for part in filter(None, stack.split(";")):
        fields = part.split(",", 2)
        if len(fields) != 3 or fields[0].startswith("_empty_nn_module_stack"):
            return ()
        call += f"/{fields[0]}"
        if fields[1]:
            found.append(ModuleCall(call, fields[1].partition("@")[0], fields[2].rpartition(".")[2]))
    return tuple(found)


def _line(trace: str) -> str:
    """The innermost line of a trace that is not PyTorch's own."""
    frames = _FRAME.findall(trace[-(1 << 14) :])
    if not frames:
        return ""
    own = [f for f in frames if "/torch/" not in f[0]]
    file, number, function, code = (own or frames)[-1]
    short = "/".join(file.split("/")[-2:])
    return f'File "{short}", line {number}, in {function}{f": {code[:120]}" if code else ""}'
