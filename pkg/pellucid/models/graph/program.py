"""A computation graph: nodes that call functions of the op table, run in order.

A reader makes the nodes: `operators` looks their functions up, `Graph` checks that the nodes fit together,
and `GraphModule` of `modules.py` runs them as a module with submodules. Nothing here knows a file format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import ArgumentError, FormatError, MissingError, PellucidError

# The value that says on which device a run takes place; nodes that make tensors refer to it.
DEVICE = "<device>"
# What Python raises where an argument is of another kind than a function expects.
_MISTAKES = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, AssertionError)


@dataclass(frozen=True)
class Reference:
    """A reference to a value of the graph, in the arguments of a node and in the graph's outputs."""

    name: str


class ModuleCall(NamedTuple):
    """A call of a module that nodes belong to.

    Attributes:
        call: names the call: a module that is called twice has two.
        path: of the module.
        kind: the name of its class.
    """

    call: str
    path: str
    kind: str


@dataclass(frozen=True)
class GraphNode:
    """One step of a graph.

    Args:
        name: for messages.
        operator: what the file calls the function, for messages.
        function: what is called.
        args, kwargs: plain values, `Reference` references, and lists, tuples and dictionaries of both.
        outputs: the name of the result; of a function with several results their names, "" for one that
            nobody uses.
        places: the calls of modules that the node belongs to, outermost first; not the whole model.
        where: the source line, or what else helps to find the node.
    """

    name: str
    operator: str
    function: Callable[..., Any]
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    outputs: str | tuple[str, ...] = ""
    places: tuple[ModuleCall, ...] = ()
    where: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its results."""
        return (self.outputs,) if isinstance(self.outputs, str) else self.outputs

    def __str__(self) -> str:
        path = f" in module {self.places[-1].path!r}" if self.places else ""
        return f"node {self.name!r} ({self.operator}){path}{f', {self.where}' if self.where else ''}"

    def run(self, values: dict[str, Any]) -> None:
        """Call the function and note its results.

        Args:
            values: by name.

        Raises:
            PellucidError: the function refuses its arguments; the message begins with the node.
        """
        try:
            result = self.function(
                *[filled(a, values) for a in self.args],
                **{n: filled(a, values) for n, a in self.kwargs.items()},
            )
            if isinstance(self.outputs, str):
                values[self.outputs] = result
            else:
                values.update(zip(self.outputs, result, strict=True))
            values.pop("", None)
        except PellucidError as error:
            if str(error).startswith("node "):  # of a graph within this one
                raise
            raise type(error)(f"{self}: {error}") from error
        except _MISTAKES as error:
            raise ArgumentError(
                f"{self}: its arguments are not those of the operator ({type(error).__name__}: {error}). "
                "The file is damaged, or made for another version of the operator."
            ) from error


def filled(argument: Any, values: Mapping[str, Any]) -> Any:
    """An argument with values for the references in it."""
    kind = type(argument)
    if kind is Reference:
        return values[argument.name]
    if kind is list or kind is tuple:
        return kind([filled(a, values) for a in argument])
    if kind is dict:
        return {n: filled(a, values) for n, a in argument.items()}
    return argument


def references(argument: Any) -> Iterator[str]:
    """The names of all values that an argument refers to."""
    if type(argument) is Reference:
        yield argument.name
    elif isinstance(argument, (list, tuple)):
        for a in argument:
            yield from references(a)
    elif isinstance(argument, Mapping):
        for a in argument.values():
            yield from references(a)


class CallSite:
    """The nodes ``start`` to ``stop`` as one call of a module.

    Attributes:
        place: which call.
        calls: the calls within it, in order.
        inputs: values from before that it uses, in the order of their use; not the graph's state.
        outputs: values of its own that are used later, in the order of that use.
    """

    def __init__(self, place: ModuleCall, start: int):
        self.place, self.start, self.stop = place, start, start
        self.calls: list[CallSite] = []
        self.inputs: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<CallSite {self.place.path!r}: nodes {self.start} to {self.stop}>"


class Graph:
    """Nodes in the order in which they run.

    Args:
        where: the file, for messages.
        nodes: the steps.
        inputs: names of the values that each run is given.
        outputs: what a run returns: `Reference` references and plain values.
        state: names of the values that belong to the graph: weights, buffers, constants.
        numbers: names of values that are no tensors; they stand last where values go in or come out of calls.

    Raises:
        FormatError: a name is given twice, or used before it is there.
    """

    def __init__(
        self,
        where: str,
        nodes: Iterable[GraphNode],
        inputs: Iterable[str],
        outputs: Iterable[Any],
        state: Iterable[str] = (),
        numbers: Iterable[str] = (),
    ):
        self.where, self.nodes = where, tuple(nodes)
        self.inputs, self.outputs, self.state = tuple(inputs), tuple(outputs), tuple(state)
        made = self._check()
        self.last = self._last_uses(made)
        self.calls = self._find_calls()
        self._find_borders(made, frozenset(numbers))

    def _check(self) -> dict[str, int]:
        """The number of the node that makes each value; -1 for what is given."""
        made: dict[str, int] = {DEVICE: -1}
        for name in (*self.state, *self.inputs):
            if name in made:
                raise FormatError(f"{self.where}: the name {name!r} is given to two inputs of the graph.")
            made[name] = -1
        for k, node in enumerate(self.nodes):
            for name in references((node.args, node.kwargs)):
                if name not in made:
                    raise FormatError(
                        f"{self.where}: {node} uses {name!r}, which nothing before it makes. The file is "
                        "damaged."
                    )
            for name in filter(None, node.names):
                if name in made:
                    raise FormatError(
                        f"{self.where}: {node} makes {name!r}, which is there already. The file is damaged."
                    )
                made[name] = k
        for name in references(self.outputs):
            if name not in made:
                raise FormatError(
                    f"{self.where}: the output {name!r} is made by no node. The file is damaged."
                )
        return made

    def _last_uses(self, made: dict[str, int]) -> list[tuple[str, ...]]:
        """By node, the values that nobody needs after it."""
        last = {name: k for name, k in made.items() if name not in self.state and name != DEVICE}
        for k, node in enumerate(self.nodes):
            last.update({n: k for n in references((node.args, node.kwargs)) if n in last})
        for name in references(self.outputs):
            last.pop(name, None)
        gone: list[list[str]] = [[] for _ in self.nodes]
        for name, k in last.items():
            if k >= 0:
                gone[k].append(name)
        return [tuple(names) for names in gone]

    def _find_calls(self) -> list[CallSite]:
        """The calls of modules, as a tree. Of a call in several stretches the last one counts."""
        places = [node.places for node in self.nodes]
        # What has no place of its own, such as the size of a tensor, belongs to where both neighbours are.
        after: tuple[ModuleCall, ...] = ()
        following = []
        for own in reversed(places):
            after = own or after
            following.append(after)
        before: tuple[ModuleCall, ...] = ()
        for k, later in enumerate(reversed(following)):
            places[k] = before = places[k] or _common(before, later)
        top: list[CallSite] = []
        latest: dict[str, tuple[list[CallSite], CallSite]] = {}
        stack: list[CallSite] = []
        for k, own in enumerate(places):
            depth = len(_common(tuple(c.place for c in stack), own))
            del stack[depth:]
            for place in own[depth:]:
                siblings = stack[-1].calls if stack else top
                call = CallSite(place, k)
                if place.call in latest:
                    known, earlier = latest[place.call]
                    at = known.index(earlier)
                    known[at : at + 1] = earlier.calls
                siblings.append(call)
                latest[place.call] = siblings, call
                stack.append(call)
            for call in stack:
                call.stop = k + 1
        return top

    def all_calls(self, calls: list[CallSite] | None = None) -> Iterator[CallSite]:
        """Every call, outer ones before those within them."""
        for call in self.calls if calls is None else calls:
            yield call
            yield from self.all_calls(call.calls)

    def _find_borders(self, made: dict[str, int], numbers: frozenset[str]) -> None:
        """Say of every call what goes in and what comes out."""
        uses: dict[str, list[int]] = {}
        for k, node in enumerate(self.nodes):
            for name in references((node.args, node.kwargs)):
                uses.setdefault(name, []).append(k)
        for name in references(self.outputs):
            uses.setdefault(name, []).append(len(self.nodes))
        own = {*self.state, DEVICE}
        for call in self.all_calls():
            inside = self.nodes[call.start : call.stop]
            used = dict.fromkeys(n for node in inside for n in references((node.args, node.kwargs)))
            given = [n for n in used if n not in own and made[n] < call.start]
            call.inputs = tuple(sorted(given, key=numbers.__contains__))
            later = {
                n: next(k for k in uses[n] if k >= call.stop)
                for node in inside
                for n in node.names
                if n and uses.get(n, [-1])[-1] >= call.stop
            }
            call.outputs = tuple(sorted(later, key=lambda n: (n in numbers, later[n])))

    def run(
        self,
        values: dict[str, Any],
        enter: Callable[[CallSite, dict[str, Any]], bool] | None = None,
        part: CallSite | None = None,
    ) -> list[Any]:
        """Run the nodes, or those of one call.

        Args:
            values: by name, those of ``inputs`` and ``state``; changed: results are added, and what nobody
                needs any more is taken out.
            enter: is asked before each call of a module; where it returns True it has run the call itself.
            part: the call.

        Returns:
            The outputs, of the graph or of the call.

        Raises:
            PellucidError: a node refuses its arguments.
        """
        if part is None:
            self._stretch(0, len(self.nodes), self.calls, values, enter)
            return [filled(output, values) for output in self.outputs]
        self._stretch(part.start, part.stop, part.calls, values, enter)
        return [values[name] for name in part.outputs]

    def _stretch(self, start: int, stop: int, calls: list[CallSite], values: dict[str, Any], enter) -> None:
        if enter is not None:
            for call in calls:
                self._steps(start, call.start, values)
                if enter(call, values):
                    for names in self.last[call.start : call.stop]:
                        for name in names:
                            values.pop(name, None)
                else:
                    self._stretch(call.start, call.stop, call.calls, values, enter)
                start = call.stop
        self._steps(start, stop, values)

    def _steps(self, start: int, stop: int, values: dict[str, Any]) -> None:
        for k in range(start, stop):
            self.nodes[k].run(values)
            for name in self.last[k]:
                values.pop(name, None)


def _common(a: tuple[ModuleCall, ...], b: tuple[ModuleCall, ...]) -> tuple[ModuleCall, ...]:
    """The calls that both are within."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x.call != y.call:
            break
        count += 1
    return a[:count]


def operators(
    where: str, wanted: Iterable[tuple[str, str]], find: Callable[[str], Callable[..., Any] | None]
) -> dict[str, Callable[..., Any]]:
    """The functions of all operators of a graph.

    Args:
        where: the file, for messages.
        wanted: each operator with a place where it occurs.
        find: the function of an operator; None, or an `ArgumentError`, where there is none.

    Raises:
        MissingError: operators are not known; all of them, with their first places.
    """
    found: dict[str, Callable[..., Any]] = {}
    missing: dict[str, list[str]] = {}
    for operator, place in wanted:
        if operator in found:
            continue
        if operator not in missing:
            try:
                function = find(operator)
            except ArgumentError:
                function = None
            if function is not None:
                found[operator] = function
                continue
        missing.setdefault(operator, []).append(place)
    if missing:
        rows = [
            f"{name} ({', '.join(places[:3])}{f' and {len(places) - 3} more' if len(places) > 3 else ''})"
            for name, places in missing.items()
        ]
        raise MissingError(
            f"{where}: {len(missing)} operators are not known here: {'; '.join(rows)}. Export the model "
            "without them, or declare them with pellucid.op."
        )
    return found
