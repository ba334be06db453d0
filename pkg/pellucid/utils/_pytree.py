"""Nested containers taken apart into leaves and put together again: PyTorch's ``torch.utils._pytree``."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import UnionType
from typing import Any

from ..errors import ArgumentError

PyTree = Any
Context = Any


@dataclass(frozen=True)
class TreeSpec:
    """The structure of a tree: the type of a container, what it needs besides its children, and theirs.

    Args:
        type: the container's type; None of a leaf.
        context: what its kind of container keeps, such as the keys of a dict.
        children_specs: the structures of its children.
    """

    type: Any
    context: Context
    children_specs: list[TreeSpec] = field(default_factory=list)

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """`tree_unflatten` of these leaves."""
        return tree_unflatten(leaves, self)


@dataclass(frozen=True)
class MappingKey:
    """Where a child lies in a dict.

    Args:
        key: its key.
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child."""
        return mapping[self.key]


@dataclass(frozen=True)
class SequenceKey:
    """Where a child lies in a list or tuple.

    Args:
        idx: its place.
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child."""
        return sequence[self.idx]


@dataclass(frozen=True)
class GetAttrKey:
    """Where a child lies in a named tuple, or another object.

    Args:
        name: of the attribute.
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The child."""
        return getattr(obj, self.name)


def _dict_flatten(d: dict) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict) -> tuple[list[tuple[MappingKey, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


LeafSpec = PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None)
# How each type of container is taken apart, into children and context, and put together.
SUPPORTED_NODES: dict[type, tuple[Callable, Callable]] = {
    list: (lambda x: (x, None), lambda values, _: list(values)),
    tuple: (lambda x: (list(x), None), lambda values, _: tuple(values)),
    deque: (lambda x: (list(x), x.maxlen), deque),
    dict: (_dict_flatten, _dict_unflatten),
    OrderedDict: (_dict_flatten, lambda values, keys: OrderedDict(_dict_unflatten(values, keys))),
    defaultdict: (
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda values, kept: defaultdict(kept[0], zip(kept[1], values, strict=True)),
    ),
}

# Those of classes that say their keys.
_WITH_KEYS: dict[type, Callable] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    flatten_with_keys_fn: Callable | None = None,
    **more: Any,
) -> None:
    """Let a class be a container.

    Args:
        cls: the class.
        flatten_fn: gives the children of one and what it needs besides.
        unflatten_fn: makes one from children and that.
        flatten_with_keys_fn: as ``flatten_fn``, with pairs of key and child.
        more: what PyTorch needs to write trees to files; not used here.

    Raises:
        ArgumentError: it is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ArgumentError(f"register_pytree_node: {cls.__name__} is registered already.")
    SUPPORTED_NODES[cls] = flatten_fn, unflatten_fn
    if flatten_with_keys_fn is not None:
        _WITH_KEYS[cls] = flatten_with_keys_fn


_register_pytree_node = register_pytree_node


def _node(tree: PyTree) -> tuple[Callable, Callable] | None:
    kind = type(tree)
    if kind not in SUPPORTED_NODES and isinstance(tree, tuple) and hasattr(kind, "_make"):
        return lambda x: (list(x), kind), lambda values, made: made(*values)
    return SUPPORTED_NODES.get(kind)


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree and its structure.

    Args:
        tree: nested containers; what is no container is a leaf.
        is_leaf: says of a container that it is a leaf.
    """
    leaves: list[Any] = []

    def walk(value: PyTree) -> TreeSpec:
        found = None if is_leaf is not None and is_leaf(value) else _node(value)
        if found is None:
            leaves.append(value)
            return _LEAF
        children, context = found[0](value)
        return TreeSpec(type(value), context, [walk(child) for child in children])

    return leaves, walk(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """A tree of a structure, from its leaves.

    Raises:
        ArgumentError: there are more or fewer leaves than the structure has.
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ArgumentError(
            f"tree_unflatten: the structure has {treespec.num_leaves} leaves, and there are {len(given)}."
        )
    rest = iter(given)

    def build(spec: TreeSpec) -> PyTree:
        if spec.type is None:
            return next(rest)
        values = [build(child) for child in spec.children_specs]
        if spec.type in SUPPORTED_NODES:
            return SUPPORTED_NODES[spec.type][1](values, spec.context)
        return spec.context(*values)

    return build(treespec)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterable[Any]:
    """The leaves of a tree, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """The tree with a function of its leaves, and of those of others of its structure, in their place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(
    func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """Call a function on the leaves; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator of a function of leaves: others than those of some types, or that meet a condition, stay.

    Args:
        type_or_types_or_pred: a type, several, or a condition.
    """
    chosen = type_or_types_or_pred
    by_type = isinstance(chosen, (type, tuple, UnionType))

    def meets(leaf: Any) -> bool:
        return isinstance(leaf, chosen) if by_type else chosen(leaf)

    return lambda func: lambda leaf: func(leaf) if meets(leaf) else leaf


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable,
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """`tree_map` of the leaves of some types, or that meet a condition; the others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    func: Callable,
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:
    """Call a function on the leaves of some types, or that meet a condition; returns the tree."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether a condition holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Whether a condition holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:
    """Whether a condition holds for all leaves of some types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:
    """Whether a condition holds for a leaf of some types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


# Leaves with their paths


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> list[tuple[tuple, Any]]:
    """The leaves of a tree, each behind its path of keys."""
    found: list[tuple[tuple, Any]] = []

    def walk(path: tuple, value: PyTree) -> None:
        node = None if is_leaf is not None and is_leaf(value) else _node(value)
        if node is None:
            found.append((path, value))
            return
        for key, child in zip(_keys(value), node[0](value)[0], strict=True):
            walk((*path, key), child)

    walk((), tree)
    return found


def _keys(value: PyTree) -> list[Any]:
    """What leads from a container to each of its children."""
    if isinstance(value, dict):
        return [MappingKey(key) for key in value]
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and fields is not None:
        return [GetAttrKey(name) for name in fields]
    with_keys = _WITH_KEYS.get(type(value))
    if with_keys is not None:
        return [key for key, _ in with_keys(value)[0]]
    node = _node(value)
    assert node is not None
    return [SequenceKey(k) for k in range(len(node[0](value)[0]))]


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """The leaves of a tree, each behind its path of keys, and its structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> PyTree:
    """The tree with a function of path and leaf, and of the leaves of other trees, in the place of each."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    values = [func(path, leaf, *more) for (path, leaf), *more in zip(found, *others, strict=True)]
    return tree_unflatten(values, spec)


def keystr(kp: Iterable[Any]) -> str:
    """A path of keys as Python writes it, such as ``['a'][0]``."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What lies at a path of keys."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a tree is one leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _node(tree) is None


def is_namedtuple(obj: Any) -> bool:
    """Whether something is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether something is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether something is a named tuple."""
    return is_namedtuple_class(type(obj))
