"""Graphs as a reader makes them: order, borders of modules, hooks, errors."""

import pytest

import pellucid
from pellucid import lens
from pellucid.errors import ArgumentError, FormatError, MissingError, ShapeError
from pellucid.models.graph.modules import GraphModule
from pellucid.models.graph.program import Graph, GraphNode, ModuleCall, Reference, operators
from pellucid.ops.aten import from_aten

X, W, A, B, C, D = map(Reference, "xwabcd")
TOP, LEFT = ModuleCall("f", "f", "Block"), ModuleCall("f.l", "f.l", "Linear")
TWICE = ModuleCall("f.l@1", "f.l", "Linear")


def node(name, operator, *args, places=(), outputs=None, where=""):
    function = from_aten(f"aten.{operator}")
    return GraphNode(name, operator, function, args, {}, outputs or name, places, where)


def two_calls() -> GraphModule:
    nodes = [
        node("a", "mul.Tensor", X, W, places=(TOP, LEFT)),
        node("b", "relu.default", A, places=(TOP,), where="line 3"),
        node("c", "mul.Tensor", B, W, places=(TOP, TWICE)),
        node("d", "add.Scalar", C, 1),
    ]
    model = GraphModule(Graph("test", nodes, ["x"], [D], ["w"]), {"w": "f.l.weight"})
    model.get_submodule("f.l").weight = pellucid.nn.Parameter(pellucid.tensor([2.0, 3.0], device="cpu"))
    return model


def ask(model, *values):
    return model.run_graph({"x": pellucid.tensor(values, device="cpu")})[0]


def test_values_are_freed_and_calls_have_borders():
    model = two_calls()
    graph = model._graph
    assert graph.last == [("x",), ("a",), ("b",), ("c",)]
    (top,) = graph.calls
    assert (top.inputs, top.outputs, top.start, top.stop) == (("x",), ("c",), 0, 3)
    assert [(c.inputs, c.outputs) for c in top.calls] == [(("x",), ("a",)), (("b",), ("c",))]
    assert ask(model, 1.0, -1.0).tolist() == [5.0, 1.0]
    assert str(model).splitlines()[1:3] == ["  (f): Block(", "    (l): Linear()"]


def test_hooks_see_each_call_and_replace_results():
    model, seen = two_calls(), []
    handle = model.get_submodule("f.l").register_forward_hook(
        lambda m, args, out: seen.append((args[0].tolist(), out.tolist()))
    )
    ask(model, 1.0, 2.0)
    assert seen == [([1.0, 2.0], [2.0, 6.0]), ([2.0, 6.0], [4.0, 18.0])]
    handle.remove()
    with lens.capture(model) as found, lens.patch(model, {"f": lambda h: h * 0}):
        assert ask(model, 1.0, 2.0).tolist() == [1.0, 1.0]
    assert {path: x.tolist() for path, x in found.items()} == {"f.l": [4.0, 18.0], "f": [4.0, 18.0]}
    pre = model.get_submodule("f").register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    assert ask(model, 1.0, 2.0).tolist() == [9.0, 28.0]
    pre.remove()
    assert model.get_submodule("f.l")(pellucid.tensor([1.0, 1.0], device="cpu")).tolist() == [2.0, 3.0]


def test_gradients_reach_weights_through_hooked_calls():
    model, seen = two_calls(), []
    weight = model.get_parameter("f.l.weight")
    model.get_submodule("f").register_full_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    x = pellucid.tensor([1.0, 2.0], device="cpu", requires_grad=True)
    model.run_graph({"x": x})[0].sum().backward()
    assert (weight.grad.tolist(), x.grad.tolist(), seen) == ([4.0, 12.0], [4.0, 9.0], [[1.0, 1.0]])


def test_a_call_in_two_stretches_is_hooked_once():
    far = ModuleCall("g", "g", "Block")
    nodes = [
        node("a", "relu.default", X, places=(TOP,)),
        node("b", "neg.default", A, places=(far,)),
        node("c", "neg.default", B, places=(TOP,)),
    ]
    model = GraphModule(Graph("test", nodes, ["x"], [C]), {})
    with lens.capture(model) as seen:
        ask(model, 3.0)
    assert {path: x.tolist() for path, x in seen.items()} == {"g": [-3.0], "f": [3.0]}


def test_errors_name_the_node():
    model = two_calls()
    with pytest.raises(ShapeError, match=r"node 'a' \(mul\.Tensor\) in module 'f\.l': mul: "):
        ask(model, 1.0, 2.0, 3.0)
    broken = GraphModule(Graph("test", [node("a", "relu.default", None, where="line 3")], [], [A]), {})
    with pytest.raises(ArgumentError, match=r"node 'a' \(relu\.default\), line 3: "):
        broken.run_graph({})
    with pytest.raises(FormatError, match=r"node 'a' \(relu\.default\) uses 'b', which nothing before it"):
        Graph("test", [node("a", "relu.default", B)], [], [])
    with pytest.raises(FormatError, match=r"makes 'x', which is there already"):
        Graph("test", [node("x", "relu.default", X)], ["x"], [])
    with pytest.raises(FormatError, match=r"'x' is given to two inputs"):
        Graph("test", [], ["x"], [], ["x"])
    with pytest.raises(FormatError, match=r"output 'd' is made by no node"):
        Graph("test", [], ["x"], [D])
    with pytest.raises(ArgumentError, match=r"f\.l: takes 1 values \(x\), not 2"):
        model.get_submodule("f.l")(1, 2)


def test_unknown_operators_are_listed_at_once():
    wanted = [("aten.relu.default", "a"), ("x.y", "b"), ("aten.nope.default", "c")]
    wanted += [("x.y", str(k)) for k in range(4)]
    with pytest.raises(
        MissingError,
        match=r"2 operators are not known here: x\.y \(b, 0, 1 and 2 more\); aten\.nope\.default \(c\)",
    ):
        operators("test", wanted, lambda name: from_aten(name) if name.startswith("aten.") else None)
