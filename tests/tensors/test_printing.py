"""Print options: what PyTorch prints under the same ones."""

import pytest
import torch

import pellucid

VALUES = ([1.0, 0.5, 1e6, -3.0], [1.0, 2.0, 300.0], [1.0, float("inf"), float("nan")], [0.25, 0.125])
OPTIONS = (
    {"precision": 2}, {"sci_mode": True}, {"sci_mode": False}, {"precision": 1, "sci_mode": True},
    {"profile": "short"}, {"profile": "full", "precision": 3}, {"profile": "default"},
)  # fmt: skip


@pytest.fixture(autouse=True)
def defaults():
    yield
    for t in (torch, pellucid):
        t.set_printoptions(profile="default")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_prints_as_pytorch(options):
    for t in (torch, pellucid):
        t.set_printoptions(**options)
    for values in (*VALUES, list(range(1200))):
        ours = str(pellucid.tensor(values, dtype=pellucid.float32, device="cpu"))
        theirs = str(torch.tensor(values, dtype=torch.float32))
        assert ours.replace("device='cpu')", "").rstrip(" \n,") == theirs.removesuffix(")")


def test_an_option_stays_until_the_next_call_but_for_exponents():
    pellucid.set_printoptions(precision=2, sci_mode=True)
    pellucid.set_printoptions(linewidth=60)
    assert str(pellucid.tensor([0.5], device="cpu")) == "tensor([0.50], device='cpu')"


def test_a_profile_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="one of default, short, full, not 'long'"):
        pellucid.set_printoptions(profile="long")
