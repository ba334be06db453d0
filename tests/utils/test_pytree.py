"""Trees taken apart and put together as by PyTorch."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch.utils._pytree as theirs

from pellucid.errors import ArgumentError
from pellucid.utils import _pytree, hooks

Pair = namedtuple("Pair", "a b")
TREES = [
    1, [1, (2, 3)], {"a": [1], "b": {"c": (2,)}}, OrderedDict(x=1, y=[2, None]), Pair(1, [2]),
    deque([1, 2], 3), defaultdict(list, {"k": [1, 2]}), [], {"a": ()}, [Pair("x", {"y": 1.5}), "z"],
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees(tree):
    leaves, spec = _pytree.tree_flatten(tree)
    wanted, other = theirs.tree_flatten(tree)
    assert leaves == wanted
    assert spec.num_leaves == other.num_leaves
    again = _pytree.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again) is type(tree)
    assert _pytree.tree_map(str, tree) == theirs.tree_map(str, tree)
    assert _pytree.tree_map_only(int, lambda x: -x, tree) == theirs.tree_map_only(int, lambda x: -x, tree)
    assert _pytree.tree_structure(tree) == spec != _pytree.tree_structure([tree, 1])


def test_more_trees_leaves_and_conditions():
    assert _pytree.tree_map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [3, 4]}) == {"x": [4, 6]}
    assert _pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert [*_pytree.tree_iter([1, [2]])] == [1, 2]
    assert _pytree.tree_all(bool, [1, [2]])
    assert not _pytree.tree_any(bool, [0, [0]])
    seen = []
    assert _pytree.tree_map_(seen.append, (1, 2)) == (1, 2)
    assert seen == [1, 2]
    with pytest.raises(ArgumentError, match="has 2 leaves, and there are 1"):
        _pytree.tree_unflatten([1], _pytree.tree_structure([1, 2]))


def test_a_class_that_is_registered():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    _pytree.register_pytree_node(Box, lambda box: ([box.inside], "kept"), lambda values, kept: Box(*values))
    try:
        assert _pytree.tree_map(lambda x: x + 1, [Box(1)])[0].inside == 2
        with pytest.raises(ArgumentError, match="Box is registered already"):
            _pytree.register_pytree_node(Box, list, list)
    finally:
        del _pytree.SUPPORTED_NODES[Box]
    pairs, keys = _pytree._dict_flatten_with_keys({"a": 1})
    assert (pairs[0][0].get({"a": 5}), pairs[0][1], keys) == (5, 1, ["a"])
    assert _pytree.SequenceKey(1).get([4, 5]) == 5


def test_handles():
    table = {}
    with hooks.RemovableHandle(table, print):
        assert len(table) == 1
    assert not table


def test_leaves_with_their_paths():
    point = namedtuple("point", ("x", "y"))
    tree = {"a": [1, 2.0, point(3, "q")], "b": deque([4])}
    for name in ("tree_leaves_with_path", "tree_flatten_with_path"):
        ours, wanted = (getattr(lib, name)(tree) for lib in (_pytree, theirs))
        ours, wanted = (f[0] if name == "tree_flatten_with_path" else f for f in (ours, wanted))
        assert [(_pytree.keystr(p), v) for p, v in ours] == [(theirs.keystr(p), v) for p, v in wanted]
        assert [_pytree.key_get(tree, p) for p, _ in ours] == [1, 2.0, 3, "q", 4]
    for lib in (_pytree, theirs):
        marked = lib.tree_map_with_path(lambda p, x, lib=lib: lib.keystr(p) + str(x), tree)
        assert marked["a"][2].x == "['a'][2].x3"
        assert lib.tree_map_only(int, lambda x: -x, tree)["a"] == [-1, 2.0, point(-3, "q")]
        assert lib.tree_map_only(lambda x: x == 2, lambda x: 9, tree)["a"][1] == 9
        assert lib.tree_any_only(int, lambda x: x > 3, tree)
        assert not lib.tree_all_only(int, lambda x: x > 3, tree)
        assert lib.tree_all(lambda x: x == [1], [[1]], is_leaf=lambda x: x == [1])
        assert lib.is_namedtuple(point(1, 2))
        assert not lib.is_namedtuple_instance((1, 2))
    seen = []
    assert _pytree.tree_map_only_(int, seen.append, tree) is tree
    assert seen == [1, 3, 4]
    assert _pytree.tree_is_leaf(3)
    assert not _pytree.tree_is_leaf([])


def test_a_class_says_its_keys():
    for lib in (_pytree, theirs):
        kind = type("Pair", (), {"__init__": lambda self, a, b: vars(self).update(a=a, b=b)})
        lib.register_pytree_node(
            kind,
            lambda p: ([p.a, p.b], None),
            lambda values, _, kind=kind: kind(*values),
            flatten_with_keys_fn=lambda p, key=lib.GetAttrKey: ([(key("a"), p.a), (key("b"), p.b)], None),
        )
        assert [lib.keystr(p) for p, _ in lib.tree_leaves_with_path(kind(1, [2]))] == [".a", ".b[0]"]
