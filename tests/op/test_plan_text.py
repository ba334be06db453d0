"""Plans of everyday ops, which the package has compiled."""

import inspect

import pytest
import torch

import pellucid
from pellucid.op.kernel import source
from pellucid.op.plan_cache import forget_plans
from pellucid.op.plan_text import forms, write
from pellucid.op.plan_text.warm_up import warm_up

FORMS = {name: made for name, made in vars(forms).items() if name.startswith("make_")}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_called_by_its_text(name):
    text = inspect.getsource(FORMS[name]).replace(f"def {name}(", "def make(", 1).rstrip("\n")
    assert write.name_of(text) == name


@pytest.fixture
def compiled(monkeypatch):
    """The texts that are compiled while a test runs."""
    texts: list[str] = []

    def note(text: str, scope: dict) -> None:
        texts.append(text)
        exec(text, scope)

    monkeypatch.setattr(write, "exec", note, raising=False)
    write.factory.cache_clear()
    forget_plans()
    return texts


def test_everyday_ops_compile_nothing(compiled):
    x = pellucid.arange(6, dtype=pellucid.float32, device="webgpu").reshape(2, 3)
    compiled.clear()  # that of arange
    out = pellucid.where(x > 1, (x * x + x).tanh(), 0.5 * x).sum(-1, keepdim=True)
    x = torch.arange(6.0).reshape(2, 3)
    expected = torch.where(x > 1, (x * x + x).tanh(), 0.5 * x).sum(-1, keepdim=True)
    torch.testing.assert_close(torch.from_numpy(out.numpy()), expected)
    assert compiled == []


def test_other_ops_are_compiled_once(compiled):
    x = pellucid.ones(2, 3, device="webgpu")
    compiled.clear()
    pellucid.cat([x, x, x, x, x])
    made = len(compiled)
    assert made > 0
    forget_plans()
    pellucid.cat([x, x, x, x, x])
    assert len(compiled) == made


def test_first_calls_of_everyday_ops_find_their_kernels_written():
    for step in warm_up():
        step()
    x, b = (pellucid.ones(shape, device="webgpu") for shape in ((2, 3), (3,)))
    forget_plans()
    before = source._finished.cache_info()
    for made in (x * x, x + x, 0.5 * x, x + b, x.tanh(), abs(x), pellucid.full((2, 3), 0.5, device="webgpu")):
        assert made.shape == (2, 3)
    after = source._finished.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits
