"""The op table: declarations, plan keys, metas."""

from __future__ import annotations

import gc
import os
import re
import sys
from inspect import signature
from operator import attrgetter

import numpy as np
import pytest

import pellucid
from pellucid import Tensor
from pellucid.device import device
from pellucid.errors import ShapeError
from pellucid.op.arguments import described
from pellucid.op.declaration import BY_INDEX, op
from pellucid.op.elementwise import elementwise
from pellucid.op.public import EXPORTS, IN_PLACE, METHODS, function
from pellucid.op.rules import as_input, broadcast
from pellucid.op.schema import OPS
from pellucid.tensors import dtypes as dt
from pellucid.tensors.meta import meta


def test_metas_are_interned():
    cpu = device("cpu")
    assert meta((2, 3), dt.float32, cpu) is meta([2, 3], dt.float32, cpu, (3, 1))
    assert meta((2, 3), dt.float32, cpu) is not meta((2, 3), dt.float32, device("webgpu"))
    assert meta((2, 3), dt.float16, cpu).nbytes == 12
    assert meta((2, 3), dt.bfloat16, cpu).nbytes == 24  # held as float32
    assert meta((2, 3), dt.bfloat16, device("webgpu")).nbytes == 12
    assert not meta((2, 3), dt.float32, cpu, (1, 2)).is_contiguous


@pytest.mark.gpu
@pytest.mark.skipif(bool(os.environ.get("PELLUCID_CHECK")), reason="checks are calls, too")
def test_an_op_whose_numbers_were_used_before_is_one_call_of_python():
    """Its plan. What was looked up of an integer each time cost as much again."""
    x = pellucid.ones(6, 5, device="webgpu")
    calls = []
    for f in (lambda: x * x, lambda: x + x, lambda: x + 3, lambda: x + 2.5, lambda: x - x):
        f()
        pellucid.webgpu.synchronize()
        count = 0

        def note(frame, event, _):
            nonlocal count
            count += event == "call"

        gc.disable()  # finalizers of what others left are calls, too
        sys.setprofile(note)
        try:
            f()
        finally:
            sys.setprofile(None)
            gc.enable()
        calls.append(count)
    assert len(set(calls)) == 1, calls


def test_plans():
    """Types of numbers make plans, values do not; offsets do not either."""
    x = pellucid.ones(6, 5, device="cpu")
    plans = OPS["add"].plans
    x + 0.25
    count = len(plans)
    for k in range(20):
        x + k * 0.1
    assert len(plans) == count
    x[0] + 1
    count = len(plans)
    for k in range(6):
        x[k] + k
    assert len(plans) == count
    a, b, c = x + 1, x + 1.0, x + True
    assert a.tolist() == b.tolist() == c.tolist()
    keyword, positional = pellucid.add(x, x, alpha=2), pellucid.add(input=x, other=x, alpha=2)
    assert keyword.tolist() == positional.tolist()


def test_static_arguments_are_told_apart_by_type():
    i = pellucid.tensor([[1, 2], [3, 4]], device="cpu")
    assert i.sum(1, keepdim=True).shape == (2, 1)
    assert i.sum(1, keepdim=False).shape == (2,)
    assert i.tril(0).tolist() == [[1, 0], [3, 4]]
    with pytest.raises(TypeError, match="diagonal must be an integer, not bool"):
        i.tril(False)


def test_numbers_of_numpy_are_numbers():
    x = pellucid.ones(2, device="cpu")
    assert (x * np.float32(2)).dtype is dt.float32
    assert (x * np.float64(2)).dtype is dt.float32
    assert (x.long() * np.int32(2)).dtype is dt.int64
    assert pellucid.add(x, x, alpha=np.float32(0.5)).tolist() == [1.5, 1.5]


def test_declarations_are_total():
    def doubled(input: Tensor) -> Tensor:
        """Twice."""

    kernel, reference = elementwise("input + input"), lambda input: input + input
    for wrong, options in {
        "declare either view=": {"grad": None},
        "a kernel needs a shape rule": {"kernel": lambda call: [], "reference": reference, "grad": None},
        "grad=composite needs composite=": {
            "kernel": kernel,
            "reference": reference,
            "shape": as_input,
            "grad": "composite",
        },
        "does not have: other. Its arguments are input;": {
            "kernel": kernel,
            "reference": reference,
            "shape": as_input,
            "grad": {"other": lambda g: g},
        },
        "does not have: result. Its .* needs, out and": {
            "kernel": kernel,
            "reference": reference,
            "shape": as_input,
            "grad": {"input": lambda g, result: g * result},
        },
        "one function. It takes a dictionary": {
            "kernel": kernel,
            "reference": reference,
            "shape": as_input,
            "grad": lambda g: g + g,
        },
        "no function. It takes a dictionary": {
            "kernel": kernel,
            "reference": reference,
            "shape": as_input,
            "grad": {"input": {"input": lambda g: g + g}},
        },
    }.items():
        with pytest.raises(TypeError, match=f"op doubled: .*{wrong}"):
            op(**options)(doubled)
    with pytest.raises(TypeError, match="grad"):
        op(kernel=kernel, reference=reference, shape=as_input)(doubled)
    doubled.__doc__ = None
    with pytest.raises(TypeError, match="needs a docstring"):
        op(kernel=kernel, reference=reference, shape=as_input, grad=None)(doubled)
    with pytest.raises(TypeError, match="op add is declared twice"):
        op(kernel=kernel, reference=reference, shape=as_input, grad=None)(OPS["add"].function)
    assert "doubled" not in OPS

    def hidden(input: Tensor, words: int) -> Tensor:
        """An argument that would hide what a call works with."""

    with pytest.raises(TypeError, match="the text of calls uses the name 'words'"):
        op(kernel=kernel, reference=reference, shape=as_input, grad=None)(hidden)


def test_an_op_of_ones_own():
    @op(
        shape=broadcast,
        kernel=elementwise("input * input + weight * other"),
        reference=lambda input, other, weight: input * input + weight * other,
        grad={"input": lambda g, input: 2 * g * input, "other": lambda g, weight: g * weight},
        exports=None,
    )
    def square_plus(input: Tensor, other: Tensor | float, weight: float = 2.0) -> Tensor:
        """``input^2 + weight * other``."""

    try:
        for where in ("cpu", "webgpu"):
            x = pellucid.tensor([1.0, 2.0], device=where, requires_grad=True)
            y = pellucid.tensor([[3.0], [4.0]], device=where, requires_grad=True)
            out = square_plus(x, y, weight=0.5)
            assert out.tolist() == [[2.5, 5.5], [3.0, 6.0]]
            out.sum().backward()
            assert x.grad.tolist() == [4.0, 8.0]
            assert y.grad.tolist() == [[1.0], [1.0]]
            assert square_plus(x.detach(), 1).tolist() == [3.0, 6.0]
    finally:
        OPS.pop("square_plus")


def test_calls_are_prepared():
    """What the declaration does not take goes elsewhere, at once from the second time on, and has no plan."""
    seen = []

    def prepare(input, other):
        seen.append(input.dtype)
        return None if input.dtype is dt.float32 else doubled_sum(input.float(), other) + 1

    @op(
        shape=broadcast,
        kernel=elementwise("2.0 * (input + other)"),
        reference=lambda input, other: 2 * (input + other),
        grad={"input": lambda g: 2 * g},
        exports=None,
        prepare=prepare,
    )
    def doubled_sum(input: Tensor, other: Tensor | float) -> Tensor:
        """``2 * (input + other)``."""

    try:
        x = pellucid.tensor([1.0, 2.0], device="cpu", requires_grad=True)
        for _ in range(3):
            assert doubled_sum(x, 1.0).tolist() == [4.0, 6.0]
        assert seen == [dt.float32]
        for k in range(3):
            out = doubled_sum(x.half(), 1.0)
            assert out.tolist() == [5.0, 7.0]
            out.sum().backward()
            assert x.grad.tolist() == [2.0 * (k + 1)] * 2
        # Of the first call of its key the inner one is another; the plan of floats was known.
        assert seen[1:] == [dt.float16] * 3
        assert doubled_sum.op.plans[doubled_sum.op.key((x.half(), 1.0))].run is prepare
    finally:
        OPS.pop("doubled_sum")


def test_prepared_calls_end():
    x, index = pellucid.ones(3, 4, device="cpu"), pellucid.zeros(2, 2, dtype=dt.int64, device="cpu")
    with pytest.raises(ShapeError, match="scatter_add: src"):
        x.scatter_add(0, index, pellucid.ones(2, 2, 2, device="cpu"))
    with pytest.raises(ShapeError, match="gather: index"):
        x.gather(0, index.reshape(2, 2, 1))
    assert x.scatter_add(0, index, pellucid.ones(4, 3, device="cpu")).tolist()[0] == [3, 3, 1, 1]
    assert x.gather(1, index[:1]).tolist() == [[1, 1]]


def test_every_op_is_documented_and_numbered():
    assert [o.name for o in BY_INDEX[: len(OPS)]] == list(OPS)
    for o in OPS.values():
        assert (
            o.call.__doc__.strip().endswith((".", "`", "]", ")", "html"))
            or "Example" in o.call.__doc__
            or "Source" in o.call.__doc__
        ), o.name
        assert o.kernel is None or o.reference is not None


def test_what_docstrings_leave_out():
    known = {"a": "known.", "b": "another.", "c": "not told.", "e": "not taken."}
    text = """One sentence.

        Args:
            b: its own,
                in two lines.
            d: unknown to others.

        Returns:
            A tensor.

        Example:
            >>> 1
        """
    assert described(text, ("a", "b", "c", "d"), {**known, "c": "told."}, "x.html") == (
        "One sentence.\n\nArgs:\n    a: known.\n    b: its own,\n        in two lines.\n    c: told.\n"
        "    d: unknown to others.\n\nReturns:\n    A tensor.\n\n"
        "Source: https://pytorch.org/docs/stable/x.html\n\nExample:\n    >>> 1"
    )
    assert described("One.\n\nSource: a book.", ("b",), known, "x.html") == (
        "One.\n\nArgs:\n    b: another.\n\nSource: a book."
    )
    for made in (pellucid.optim.RAdam, pellucid.optim.lr_scheduler.StepLR, pellucid.distributions.Cauchy):
        told = re.findall(r"^    (\w+):", made.__doc__, re.MULTILINE)
        taken = [name for name in signature(made.__init__).parameters if name in told]
        assert taken == told[: len(taken)]
        assert len(taken) > 1
    assert "distributions.html#cauchy" in pellucid.distributions.Cauchy.__doc__


def test_public_functions_are_documented():
    for names in (*EXPORTS.values(), METHODS):
        for name, f in names.items():
            assert f.__doc__, name
            # What has arguments to explain says where it comes from.
            assert "Args:" not in f.__doc__ or "Source:" in f.__doc__ or "Example:" in f.__doc__, name


def test_public_names_resolve():
    for place, names in EXPORTS.items():
        room = pellucid if place == "torch" else attrgetter(place)(pellucid)
        for name, f in names.items():
            if f.__module__.startswith("pellucid."):
                assert getattr(room, name) is f, name
    for name, f in METHODS.items():
        assert getattr(Tensor, name) is f, name
    for name, o in IN_PLACE.items():
        assert getattr(Tensor, name).__qualname__ == f"Tensor.{o.name}_"
    assert pellucid.clip is pellucid.clamp is Tensor.clip


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("add", {}),
        ("hardtanh", {"exports": ("torch", "nn.functional")}),
        ("reshape", {"exports": None, "method": True}),
        ("add_", {"exports": None, "method": True}),
        ("clip", {}),
    ],
)
def test_a_public_name_is_declared_once(name, options):
    def body(input: Tensor) -> Tensor:
        return input

    body.__name__ = name
    before = [dict(names) for names in (*EXPORTS.values(), METHODS, IN_PLACE)]
    with pytest.raises(TypeError, match=r"function (add|hardtanh|reshape|add_|clip) is declared twice"):
        function(**options)(body)
    assert before == [*EXPORTS.values(), METHODS, IN_PLACE]


def test_an_unknown_place_is_told_with_those_there_are():
    with pytest.raises(TypeError, match=r"function body: there is no 'nn\.function'.* torch, nn"):

        @function(exports="nn.function")
        def body(input: Tensor) -> Tensor:
            return input
