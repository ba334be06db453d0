"""The runner that compares with PyTorch's databases: it finds differences, and a few names pass."""

from importlib import import_module
from types import ModuleType

import pytest
import torch

import pellucid
from conformance import report, translate
from conformance.outcome import Counts, compare, difference

NAMES = ("add", "cumsum", "gather", "nn.functional.gelu", "repeat", "special.zeta", "var_mean")


@pytest.fixture(scope="module")
def operators() -> ModuleType:
    """PyTorch's databases take ten seconds to import, which no process waits for that only collects tests."""
    return import_module("conformance.operators")


@pytest.fixture(scope="module")
def modules() -> ModuleType:
    return import_module("conformance.modules")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_passes(operators, name):
    counts = operators.run(operators.in_scope()[name], 2, 5)
    assert report.state({k: vars(c) for k, c in counts.items()}) == "pass", counts
    assert counts["forward"].passed >= 2


def test_modules_and_optimizers_pass(modules):
    with pellucid.device("cpu"):
        linear = modules.run_module(modules.modules()["Linear"], 2, 5)
        sgd = modules.run_optimizer(modules.optimizers()["SGD"], 2, 5)
    for counts in (*linear.values(), *sgd.values()):
        assert counts.passed == counts.total > 0, counts


@pytest.mark.parametrize(
    ("ours", "kind"),
    [
        (lambda: pellucid.tensor([1.0, 2.0]), "passed"),
        (lambda: pellucid.tensor([1.0, 2.1]), "wrong"),
        (lambda: pellucid.tensor([1, 2]), "wrong"),
        (lambda: pellucid.tensor([[1.0, 2.0]]), "wrong"),
        (lambda: 1.0, "wrong"),
        (lambda: translate.named("no.such"), "missing"),
        (lambda: pellucid.tensor([1.0]).no_such(), "missing"),
        (lambda: 1 // 0, "error"),
    ],
)
def test_outcomes(ours, kind):
    counts = Counts()
    compare(counts, ours, torch.tensor([1.0, 2.0]))
    assert getattr(counts, kind) == counts.total == 1


def test_tensors_keep_their_layout():
    t = torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2)[1:, ::2]
    made = translate.tensor(t.requires_grad_())
    assert (made.stride(), made.storage_offset(), made.requires_grad) == (
        t.stride(),
        t.storage_offset(),
        True,
    )
    assert difference(made, t) == ("", True)
