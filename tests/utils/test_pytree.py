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
