"""What programs tell PyTorch's compiler and ask of it: backends, functions that it leaves alone."""

import pytest
import torch as pytorch

import pellucid as torch
from op.jit.probe import bits, replays, some
from pellucid.errors import ArgumentError, DeviceError, MissingError
from pellucid.utils.compat.rooms import room


@pytest.mark.parametrize(
    "asked",
    [
        {"backend": "inductor", "mode": "reduce-overhead"},
        {"backend": "eager", "fullgraph": True},
        {"backend": "aot_eager", "dynamic": True},
        {"options": {"triton.cudagraphs": True}, "dynamic": False},
        {"backend": "cudagraphs", "disable": True},
    ],
)
def test_what_pytorch_takes_is_taken(asked):
    assert torch.compile(lambda x: x + 1, **asked)(torch.ones(2, device="cpu")).tolist() == [2, 2]
    assert torch.compile(**asked)(lambda x: x + 1)(torch.ones(2, device="cpu")).tolist() == [2, 2]


def test_backends_are_some_of_pytorchs_and_others_are_refused():
    for place in ("compiler", "_dynamo"):
        names = room(place).list_backends(exclude_tags=None)
        assert set(names) - {"pellucid"} < set(pytorch.compiler.list_backends(exclude_tags=()))
        assert set(room(place).list_backends()) < set(names)
    for make in (torch.compile, room("compiler").compile):
        with pytest.raises(RuntimeError, match=r"no backend 'nope'\. There are aot_eager, .*inductor"):
            make(lambda x: x, backend="nope")
    with pytest.raises(RuntimeError, match="no backend 'nope'"):
        room("_dynamo").optimize("nope")(lambda x: x)
    with pytest.raises(ArgumentError, match="there is no backend 3"):
        torch.compile(backend=3)
    with pytest.raises(MissingError, match=r"a graph of torch\.fx"):
        torch.compile(lambda x: x, backend=lambda graph, inputs: graph)


def test_modules_are_what_pytorch_calls_them():
    model = torch.compile(torch.nn.ReLU())
    assert isinstance(model, room("_dynamo.eval_frame").OptimizedModule)
    assert isinstance(model, room("_dynamo").OptimizedModule)


@pytest.mark.gpu
def test_a_function_that_is_left_alone_runs_at_every_call(rng):
    calls = []
    disable = room("compiler").disable

    @disable
    def tell(x):
        calls.append(1)
        return x

    def f(x):
        return tell(x * 2) + 1

    compiled = torch.compile(f)
    for _ in range(6):
        x = some(rng, 3)
        assert bits(compiled(x)) == bits(f(x))
    assert len(calls) == 12
    assert replays(compiled) == 0
    assert "tell, which torch.compiler.disable marks" in "\n".join(compiled.explain().reasons)
    whole = torch.compile(f, fullgraph=True)
    with pytest.raises(DeviceError, match=r"which torch\.compiler\.disable marks"):
        [whole(x) for _ in range(3)]


def test_what_is_left_alone_is_called_as_before():
    disable = room("_dynamo").disable
    assert disable(recursive=False, reason="slow")(lambda a, b=1: a + b)(2, b=3) == 5
    assert disable(fn=abs)(-2) == 2
    layer = disable(torch.nn.Linear(2, 3, device="cpu"))
    assert layer(torch.ones(2, device="cpu")).shape == (3,)

    @disable
    class Kept:
        pass

    assert isinstance(Kept(), Kept)


def test_advice_that_changes_nothing():
    compiler = room("compiler")

    @compiler.set_stance("force_eager")
    @compiler.allow_in_graph
    def f(x):
        return x + 1

    with compiler.set_stance("default"):
        assert f(1) == 2
    compiler.reset()
    compiler.cudagraph_mark_step_begin()
    assert not compiler.is_compiling()
    with pytest.raises(MissingError, match=r"Use explain\(\) of what torch\.compile returns"):
        room("_dynamo").explain(f)
