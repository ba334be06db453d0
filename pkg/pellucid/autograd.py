"""The graph and the walk through it: backward, grad, grad modes. Derivatives themselves stand in the op
table."""

from __future__ import annotations

import functools
import heapq
import inspect
import itertools
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from .errors import GradientError, ShapeError
from .meta import Meta

if TYPE_CHECKING:
    from .op import Op
    from .tensor import Tensor

# Stands for the node of a tensor that requires grad and was not computed. The graph's edge to it is the
# tensor itself.
LEAF: Any = type("Leaf", (), {"__repr__": lambda self: "LEAF"})()

_grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)
_sequence = itertools.count()


def is_grad_enabled() -> bool:
    """Whether ops record the graph now."""
    return _grad_enabled.get()


class set_grad_enabled:
    """Switch recording on or off; as a function, a context manager or a decorator.

    Args:
        mode: whether ops record.
    """

    def __init__(self, mode: bool):
        self._mode = mode
        self._before = [_grad_enabled.get()]
        _grad_enabled.set(mode)

    def __enter__(self):
        if not self._before:
            self._before.append(_grad_enabled.get())
            _grad_enabled.set(self._mode)

    def __exit__(self, *exc):
        _grad_enabled.set(self._before.pop())

    def __call__(self, function):
        if self._before:  # made for the decoration only
            self.__exit__()
        return _within(function, lambda: set_grad_enabled(self._mode))


def _within(function: Callable, mode: Callable[[], Any]) -> Callable:
    """A function whose body runs in a mode, also where it pauses: whoever waits for it keeps their own."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def paused(*args, **kwargs):
            made = function(*args, **kwargs)
            resume, value = made.send, None
            try:
                while True:
                    with mode():
                        given = resume(value)
                    try:
                        resume, value = made.send, (yield given)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume, value = made.throw, error
            except StopIteration as end:
                return end.value
            finally:
                with mode():
                    made.close()

        return paused
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args, **kwargs):
            with mode():
                return await function(*args, **kwargs)

        return awaited

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with mode():
            return function(*args, **kwargs)

    return wrapped


class _Mode:
    _mode: bool

    def __init__(self):
        self._before: list[bool] = []

    def __enter__(self):
        self._before.append(_grad_enabled.get())
        _grad_enabled.set(self._mode)

    def __exit__(self, *exc):
        _grad_enabled.set(self._before.pop())

    def __new__(cls, function=None) -> Any:
        self = object.__new__(cls)
        if function is None:
            return self
        self.__init__()
        return self(function)

    def __call__(self, function):
        return _within(function, type(self))


class no_grad(_Mode):
    """Ops within do not record; also a decorator.

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(2, requires_grad=True, device="cpu")
        >>> with torch.no_grad():
        ...     (x * 2).requires_grad
        False
    """

    _mode = False


class enable_grad(_Mode):
    """Ops within record again, inside `no_grad`; also a decorator."""

    _mode = True


inference_mode = no_grad


def _title(o: Any) -> str:
    """The name of an op, or of what stands for one in the graph, as users know it."""
    return getattr(o, "public", o.name)


class _Saved:
    """A value kept for the derivative: the storage and how to look at it, never the tensor, so that no cycle
    arises."""

    __slots__ = ("index", "meta", "node", "offset", "storage", "version")

    def __init__(self, t: Tensor):
        self.storage, self.meta, self.offset = t._storage, t._meta, t._offset
        self.version = t._storage.version
        node = t._node
        self.node = t if node is LEAF else node
        self.index = t._index

    def unpack(self, o: Op, name: str, keep_graph: bool) -> Tensor:
        if self.storage.version != self.version:
            raise GradientError(
                f"{_title(o)}: {name!r}, needed for the gradient, was changed in place after it was used "
                f"(version {self.storage.version}, expected {self.version}). Use a form without "
                "underscore, or clone it first."
            )
        t = _tensor()(self.storage, self.meta, self.offset)
        if keep_graph and self.node is not None:
            node = self.node() if isinstance(self.node, weakref.ref) else self.node
            if isinstance(node, Node):
                t._node, t._index = node, self.index
            elif node is not None:
                return node
        return t


@functools.cache
def _tensor() -> type[Tensor]:
    from .tensor import Tensor

    return Tensor


class Node:
    """One recorded op: what its formulas need, and where the gradients of its inputs go.

    An edge is a leaf tensor, a (node, output index) pair, or None.
    """

    __slots__ = (
        "__weakref__",
        "edges",
        "hooks",
        "op",
        "outputs",
        "released",
        "retained",
        "saved",
        "sequence",
    )

    def __init__(self, o: Op, edges: dict[str, Any], saved: dict[str, Any]):
        self.op = o
        self.edges = edges
        self.saved = saved
        self.sequence = next(_sequence)
        self.outputs: tuple[Meta, ...] = ()
        self.hooks: dict[int, dict] | None = None
        self.retained: dict[int, weakref.ref] | None = None
        self.released = False

    def name(self) -> str:
        """The node's name as PyTorch prints it, such as AddBackward0."""
        return "".join(part.capitalize() for part in _title(self.op).split("_")) + "Backward0"

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        """The gradients of the inputs from those of the results, of which some may be None."""
        # Without the first, only results without a derivative were used.
        return {} if grads[0] is None else _input_gradients(self, grads, keep_graph)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def edge(t: Tensor) -> Any:
    """Where a gradient for ``t`` goes."""
    node = t._node
    if node is None:
        return None
    return t if node is LEAF else (node, t._index)


def note_view(base: Tensor, view: Tensor) -> None:
    """Let a tensor know its views: their places in the graph change when it is written in place."""
    views = base.__dict__.setdefault("_views", {})
    key = id(view)
    views[key] = weakref.ref(view, lambda _: views.pop(key, None))


def views_of(base: Tensor) -> list[Tensor]:
    """The views of a tensor that are alive and were taken where ops record."""
    return [v for found in list(base.__dict__.get("_views", {}).values()) if (v := found()) is not None]


def prepare(o: Op, values: tuple) -> Node:
    """The node of a call, before its results exist."""
    edges: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    Tensor = _tensor()
    composite = o.grad == "composite"
    for a, value in zip(o.arguments, values, strict=True):
        inputs[a.name] = value
        if not composite and a.name not in o.grad:
            if (
                a.role in ("tensor", "operand", "optional")
                and isinstance(value, Tensor)
                and value._node is not None
            ):
                edges[a.name] = None
            continue
        if a.role == "tensors":
            found = [(edge(t), t._meta) for t in value]
            if any(e is not None for e, _ in found):
                edges[a.name] = found
        elif isinstance(value, Tensor) and value._node is not None:
            edges[a.name] = (edge(value), value._meta)
    edges = {k: v for k, v in edges.items() if v is not None}
    if composite:
        wanted = set(inputs)
    else:
        wanted = set().union(*(o.grad[name][1] for name in edges)) if edges else set()
    saved: dict[str, Any] = {}
    for name in wanted:
        source = name.removesuffix("_meta")
        if source != name and source in inputs:
            value = inputs[source]
            saved[name] = (
                value._meta
                if isinstance(value, Tensor)
                else [t._meta for t in value]
                if isinstance(value, (list, tuple))
                else None
            )
        elif name in inputs:
            saved[name] = _save(inputs[name], Tensor)
    return Node(o, edges, saved)


def _save(value: Any, Tensor: type) -> Any:
    if isinstance(value, Tensor):
        return _Saved(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return [_save(v, Tensor) for v in value]
    return value


def recorder(o: Op) -> Any:
    """The function ``record(plan, *arguments)`` that runs a plan and, if gradients are wanted, hangs the
    results into the graph.

    Written per op at its declaration, like its call path: which arguments have edges and which values are
        saved is known then.
    """
    if o.grad is None or o.grad == "composite" or any(a.role == "tensors" for a in o.arguments):

        def record(plan, *values):
            out = plan(*values)
            if o.grad is not None and is_grad_enabled():
                _attach(o, values, out)
            return out

        return record
    names = [a.name for a in o.arguments]
    roles = {a.name: a.role for a in o.arguments}
    results = [f"out[{k}]" for k in range(len(o.outputs))] if o.result else ["out"]
    lines = [
        f"def record(plan, {', '.join(names)}):",
        f"    out = plan({', '.join(names)})",
        f"    if not enabled() or {results[0]}._meta.dtype.kind != 'f':",
        "        return out",
        "    edges = {}",
    ]
    for name in o.grad:
        node = f"{name}._node" if roles[name] == "tensor" else f"getattr({name}, '_node', None)"
        lines += [
            f"    n = {node}",
            "    if n is not None:",
            f"        edges[{name!r}] = ({name} if n is LEAF else (n, {name}._index), {name}._meta)",
        ]
    lines += ["    if not edges:", "        return out", "    saved = {}"]
    wanted = {w: [k for k, (_, names_of) in o.grad.items() if w in names_of] for w in o.saved}
    after = []
    for w, users in sorted(wanted.items()):
        condition = (
            "" if len(users) == len(o.grad) == 1 else f"if {' or '.join(f'{u!r} in edges' for u in users)}: "
        )
        source = w.removesuffix("_meta")
        if w in o.outputs:
            after.append(
                f"    {condition}keep_result(node, {w!r}, {results[o.outputs.index(w)]}, "
                f"{o.outputs.index(w)})"
            )
        elif w not in roles:
            lines.append(f"    {condition}saved[{w!r}] = getattr({source}, '_meta', None)")
        elif roles[w] == "tensor":
            lines.append(f"    {condition}saved[{w!r}] = Saved({w})")
        elif roles[w] in ("operand", "optional"):
            lines.append(f"    {condition}saved[{w!r}] = Saved({w}) if hasattr({w}, '_node') else {w}")
        else:
            lines.append(f"    {condition}saved[{w!r}] = {w}")
    lines.append("    node = Node(o, edges, saved)")
    lines.append(f"    node.outputs = ({', '.join(f'{r}._meta' for r in results)},)")
    lines += after
    for k, r in enumerate(results):
        if k:
            lines.append(f"    if {r}._meta.dtype.kind == 'f': {r}._node, {r}._index = node, {k}")
        else:
            lines.append(f"    {r}._node = node")
    lines.append("    return out")
    scope: dict[str, Any] = {
        "enabled": _grad_enabled.get,
        "LEAF": LEAF,
        "Saved": _Saved,
        "Node": Node,
        "keep_result": _keep_result,
        "o": o,
    }
    exec("\n".join(lines), scope)
    return scope["record"]


def _keep_result(node: Node, name: str, result: Tensor, index: int = 0) -> None:
    """Save a result for the formulas. The node holds itself through its own result only weakly."""
    kept = node.saved[name] = _Saved(result)
    kept.node, kept.index = weakref.ref(node), index


def _attach(o: Op, values: tuple, out: Any) -> None:
    """Hang fresh results into the graph."""
    results = out if o.result else (out,)
    if not results[0]._meta.dtype.is_floating_point:
        return
    node = prepare(o, values)
    if not node.edges:
        return
    finish(node, results)
    for k, t in enumerate(results):
        if t._meta.dtype.is_floating_point:
            t._node, t._index = node, k


def finish(node: Node, results: Sequence[Tensor]) -> None:
    """Tell a node its results, and save those that its formulas need."""
    node.outputs = tuple(t._meta for t in results)
    o = node.op
    if o.grad == "composite":
        return
    for k, name in enumerate(o.outputs):
        if any(name in o.grad[i][1] for i in node.edges):
            _keep_result(node, name, results[k], k)


# The walk


def sum_to(g: Tensor, shape: Sequence[int]) -> Tensor:
    """Undo broadcasting: sum a gradient to the shape of the input that it belongs to."""
    have = g._meta.shape
    if have == tuple(shape):
        return g
    if len(have) < len(shape):  # an assigned value may have leading axes of length 1 that its place has not
        return sum_to(g.reshape((1,) * (len(shape) - len(have)) + tuple(have)), shape)
    lead = len(have) - len(shape)
    dims = list(range(lead)) + [k + lead for k, n in enumerate(shape) if n == 1 and have[k + lead] != 1]
    if dims:
        g = g.sum(tuple(dims), keepdim=True)
    return g.reshape(tuple(shape))


def freed(where: str) -> GradientError:
    """The error of a second walk through a graph that the first one freed."""
    return GradientError(
        f"{where}: backward a second time through a graph whose saved values were freed. "
        "Give retain_graph=True to the first backward."
    )


def _input_gradients(node: Node, grads: list, keep_graph: bool) -> dict[str, Any]:
    o = node.op
    if node.released:
        raise freed(_title(o))
    if o.grad == "composite":
        return _composite_gradients(node, grads, keep_graph)

    def value(name: str) -> Any:
        if name == "g":
            return grads[0]
        if name == "needs":
            return frozenset(node.edges)
        return _unpack(node.saved[name], o, name, keep_graph)

    found = {}
    for name in node.edges:
        formula, wanted = o.grad[name]
        found[name] = formula(**{w: value(w) for w in wanted})
    return found


def _unpack(saved: Any, o: Op, name: str, keep_graph: bool) -> Any:
    if isinstance(saved, _Saved):
        return saved.unpack(o, name, keep_graph)
    if isinstance(saved, list) and saved and isinstance(saved[0], _Saved):
        return [s.unpack(o, name, keep_graph) for s in saved]
    return saved


def _composite_gradients(node: Node, grads: list, keep_graph: bool) -> dict[str, Any]:
    """Differentiate the op's definition at the saved inputs."""
    o = node.op
    args = {a.name: _unpack(node.saved[a.name], o, a.name, keep_graph) for a in o.arguments}
    wanted: list[tuple[str, Tensor]] = []
    for name in node.edges:
        for k, t in enumerate(args[name]) if isinstance(args[name], list) else [(None, args[name])]:
            if keep_graph and t._node is not None:
                # A new handle on the same value, so that the gradient stops here although the graph goes on.
                t = t.view_as(t)
            else:
                t = t.detach()
                t._node = LEAF
            if k is None:
                args[name] = t
            else:
                args[name][k] = t
            wanted.append((name, t))
    with enable_grad():
        positional = [args[a.name] for a in o.arguments if not a.keyword]
        out = cast(Callable, o.composite)(
            *positional, **{a.name: args[a.name] for a in o.arguments if a.keyword}
        )
    outputs = list(out) if isinstance(out, tuple) else [out]
    roots = [(t, g) for t, g in zip(outputs, grads, strict=True) if g is not None and t._node is not None]
    results = _walk(roots, [t for _, t in wanted], keep_graph, keep_graph)
    found: dict[str, Any] = {}
    for (name, _), g in zip(wanted, results, strict=True):
        if isinstance(args[name], list):
            found.setdefault(name, []).append(g)
        else:
            found[name] = g
    return found


def _walk(
    roots: list[tuple[Tensor, Tensor]], inputs: list[Tensor] | None, keep_saved: bool, create_graph: bool
) -> list[Tensor | None]:
    """Walk from the roots in reverse order of recording. With ``inputs`` return their gradients, else
    accumulate into leaves."""
    pending: dict[Node, list] = {}
    leaves: dict[int, list] = {}
    order: list[tuple[int, Node]] = []
    wanted: dict[tuple, list[int]] = {}
    results: list[Tensor | None] = [None] * len(inputs or [])
    for k, t in enumerate(inputs or []):
        wanted.setdefault((id(t),) if t._node is LEAF else (t._node, t._index), []).append(k)

    def send(target: Any, g: Tensor) -> None:
        if isinstance(target, tuple):
            node, index = target
            slots = pending.get(node)
            if slots is None:
                slots = pending[node] = [None] * len(node.outputs)
                heapq.heappush(order, (-node.sequence, node))
            slots[index] = g if slots[index] is None else slots[index] + g
        else:
            found = leaves.setdefault(id(target), [target, None])
            found[1] = g if found[1] is None else found[1] + g

    token = _grad_enabled.set(create_graph)
    try:
        for t, g in roots:
            send(edge(t), g)
        while order:
            node = heapq.heappop(order)[1]
            grads = pending.pop(node)
            for k, g in enumerate(grads):
                if g is None:
                    continue
                for hook in list((node.hooks or {}).get(k, {}).values()):
                    g = _hooked(hook, g)
                grads[k] = g
                if node.retained and (t := node.retained.get(k, lambda: None)()) is not None:
                    t.grad = g
                for place in wanted.get((node, k), ()):
                    results[place] = g
            for name, g in node.gradients(grads, create_graph).items():
                targets = node.edges[name]
                pairs = zip(targets, g, strict=True) if isinstance(targets, list) else [(targets, g)]
                for (target, m), part in pairs:
                    if target is not None and part is not None:
                        part = sum_to(part, m.shape)
                        send(target, part if part._meta.dtype is m.dtype else part.to(m.dtype))
            if not keep_saved:
                node.released = bool(node.saved)
                node.saved = {}
        handed: set[int] = {id(g._storage) for _, g in roots}
        for leaf, g in leaves.values():
            for hook in list((leaf._hooks or {}).values()):
                g = _hooked(hook, g)
            if inputs is not None:
                for place in wanted.get((id(leaf),), ()):
                    results[place] = g
                continue
            if leaf.grad is None:
                # Two leaves must never share memory, nor a leaf and a view: later in-place changes would show
                # in both.
                if not create_graph and (
                    not g._meta.is_contiguous
                    or id(g._storage) in handed
                    or g._meta.nbytes != g._storage.nbytes
                ):
                    g = g.clone()
                handed.add(id(g._storage))
                leaf.grad = g
            elif create_graph:
                leaf.grad = leaf.grad + g
            else:
                leaf.grad.add_(g)
    finally:
        _grad_enabled.reset(token)
    return results


def _hooked(hook: Any, g: Tensor) -> Tensor:
    changed = hook(g)
    return g if changed is None else changed


def _roots(
    tensors: Sequence[Tensor], gradients: Sequence[Tensor | None], where: str
) -> list[tuple[Tensor, Tensor]]:
    from .ops.creation import ones_like

    roots = []
    for t, g in zip(tensors, gradients, strict=True):
        if t._node is None:
            raise GradientError(
                f"{where}: the tensor does not require grad and has no grad_fn. Compute it from tensors "
                "with requires_grad=True."
            )
        if g is None:
            if t._meta.numel != 1:
                raise GradientError(
                    f"{where}: grad can be created implicitly only for one element, and shape is "
                    f"{tuple(t._meta.shape)}. Give a gradient, or reduce first."
                )
            with no_grad():
                g = ones_like(t)
        elif g._meta.shape != t._meta.shape:
            raise ShapeError(
                f"{where}: the gradient has shape {tuple(g._meta.shape)}, the tensor "
                f"{tuple(t._meta.shape)}. They must be equal."
            )
        roots.append((t, g))
    return roots


def backward(
    tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None
) -> None:
    """Add to ``.grad`` of every leaf the derivative of the sum of ``tensors`` with respect to it.

    Args:
        tensors: a tensor or several; without ``grad_tensors`` each must have one element.
        grad_tensors: the incoming gradients, same shapes.
        retain_graph: keep what the graph saved for another walk (``create_graph`` if not given).
        create_graph: record the walk, for derivatives of derivatives.
        inputs: add to these leaves only.

    Raises:
        GradientError: nothing requires grad, the graph was freed, or a saved value was changed.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.backward.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([3.0], requires_grad=True, device="cpu")
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [6.0]
    """
    tensors = [tensors] if isinstance(tensors, _tensor()) else list(tensors)
    if grad_tensors is None:
        grad_tensors = [None] * len(tensors)
    elif isinstance(grad_tensors, _tensor()):
        grad_tensors = [grad_tensors]
    roots = _roots(tensors, grad_tensors, "backward")
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _walk(roots, None, keep, create_graph)
        return
    inputs = [inputs] if isinstance(inputs, _tensor()) else list({id(t): t for t in inputs}.values())
    for t, g in zip(inputs, _walk(roots, inputs, keep, create_graph), strict=True):
        if g is not None:
            with set_grad_enabled(create_graph):
                t.grad = g if t.grad is None else t.grad + g


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
):
    """The gradients of the sum of ``outputs`` with respect to ``inputs``, as a tuple; ``.grad`` is not
    touched.

    Args:
        outputs: a tensor or several.
        inputs: a tensor or several, leaves or not.
        grad_outputs: the incoming gradients.
        retain_graph, create_graph: as in `backward`.
        allow_unused: give None for inputs that did not take part, instead of an error.

    Returns:
        A tuple of tensors, one per input.

    Raises:
        GradientError: as `backward`, and for an input that did not take part.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.grad.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor(2.0, requires_grad=True, device="cpu")
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> torch.autograd.grad(first, x)[0].item()
        12.0
    """
    outputs = [outputs] if isinstance(outputs, _tensor()) else list(outputs)
    inputs = [inputs] if isinstance(inputs, _tensor()) else list(inputs)
    if grad_outputs is None:
        grad_outputs = [None] * len(outputs)
    elif isinstance(grad_outputs, _tensor()):
        grad_outputs = [grad_outputs]
    for t in inputs:
        if t._node is None:
            raise GradientError(
                "grad: one of the inputs does not require grad. Make it with requires_grad=True before it "
                "is used."
            )
    roots = _roots(outputs, grad_outputs, "grad")
    results = _walk(roots, inputs, create_graph if retain_graph is None else retain_graph, create_graph)
    if not allow_unused and any(g is None for g in results):
        raise GradientError(
            "grad: one of the inputs did not take part in the outputs. Give allow_unused=True to get None "
            "for it."
        )
    return tuple(results)
