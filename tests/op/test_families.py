"""Families of ops: docstrings whose examples are true, signatures, and rows that tools find."""

import doctest
import inspect
from pathlib import Path

import pytest

import pellucid
from pellucid.op.families import unary
from pellucid.op.public import EXPORTS, METHODS
from pellucid.op.schema import OPS

DOCUMENTED = {
    name: f for names in EXPORTS.values() for name, f in names.items() if "Example:" in (f.__doc__ or "")
}


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_examples_are_true(name):
    test = doctest.DocTestParser().get_doctest(DOCUMENTED[name].__doc__ or "", {}, name, None, None)
    runner = doctest.DocTestRunner(verbose=False)
    assert test.examples
    assert runner.run(test).failed == 0


def test_a_row_is_an_op():
    doubled = unary(
        "doubled", "input + input", lambda input: input + input, lambda g: g + g, "Twice.", exports=()
    )
    try:
        assert doubled(pellucid.tensor([1.0, 2.0], device="cpu")).tolist() == [2.0, 4.0]
        assert (doubled.__module__, doubled.__name__) == (__name__, "doubled")
        assert list(inspect.signature(doubled).parameters) == ["input"]
        assert "doubled" not in METHODS
    finally:
        OPS.pop("doubled")


def test_an_op_lies_where_its_row_is():
    for name in ("sin", "tanh", "mul", "lt", "isnan"):
        code = inspect.unwrap(getattr(pellucid, name)).__code__
        row = Path(code.co_filename).read_text(encoding="utf-8").splitlines()[code.co_firstlineno - 1]
        assert row.startswith((f"{name} = ", "    return compare(")), name
    assert list(inspect.signature(pellucid.sum).parameters) == ["input", "dim", "keepdim", "dtype"]
