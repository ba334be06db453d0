"""Plans of everyday ops, which the package has compiled."""

import inspect
from types import SimpleNamespace

import pytest
import torch

import pellucid
from pellucid.device.stream import stream
from pellucid.op import launches
from pellucid.op.kernel import source
from pellucid.op.plan_cache import forget_plans
from pellucid.op.plan_text import forms, write
from pellucid.op.plan_text import warm_up as warm_up_module
from pellucid.op.plan_text.warm_up import compile_written, warm_up

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


def everyday(x, b):
    """Results of calls whose kernels are written while a device opens."""
    return [x * x, x + x, 0.5 * x, x + b, x.tanh(), abs(x), pellucid.full((2, 3), 0.5, device="webgpu")]


@pytest.fixture
def warmed(monkeypatch):
    """Operands of everyday calls that no plan knows, behind the steps of the warm-up."""
    monkeypatch.setattr(stream(), "on_open", [])
    for step in warm_up():
        step()
    operands = [pellucid.ones(shape, device="webgpu") for shape in ((2, 3), (3,))]
    forget_plans()
    return operands


def test_first_calls_of_everyday_ops_find_their_kernels_written(warmed):
    before = source._finished.cache_info()
    assert all(made.shape == (2, 3) for made in everyday(*warmed))
    after = source._finished.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits


def test_kernels_of_everyday_ops_are_compiled_once_a_gpu_is_open(warmed, monkeypatch):
    assert stream().on_open == [compile_written]
    monkeypatch.setattr(launches, "_pipelines", {})
    compile_written(SimpleNamespace(compiles_beside=True, info=SimpleNamespace(is_software=True)))
    assert not launches._pipelines
    compile_written(SimpleNamespace(compiles_beside=True, info=SimpleNamespace(is_software=False)))
    known = set(launches._pipelines)
    assert known
    x, b = warmed
    made = [*everyday(x, b), pellucid.ones(5, 40, device="webgpu").sum(-1)]
    assert set(launches._pipelines) - known == set()
    assert made[0].tolist() == [[1.0] * 3] * 2
    assert made[-1].tolist() == [40.0] * 5


def test_a_device_opens_where_those_kernels_cannot_be_compiled(warmed, monkeypatch):
    def refuse(*_):
        raise pellucid.errors.DeviceError("lost")

    monkeypatch.setattr(warm_up_module, "compile_ahead", refuse)
    compile_written(SimpleNamespace(compiles_beside=True, info=SimpleNamespace(is_software=False)))
    assert (warmed[0] * 2).tolist() == [[2.0] * 3] * 2
