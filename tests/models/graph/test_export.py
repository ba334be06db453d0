"""Programs that PyTorch exported: the same values, hooks by path, guards, buffers, nested arguments."""

import collections
import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import pellucid
from models.graph.programs import MODELS, exported, first, made, saved
from pellucid import export, lens
from pellucid.errors import ArgumentError, DTypeError, MissingError, ShapeError, SourceError

from paths import SCRIPTS

ON_WEBGPU = ("llama open", "bert open", "vit open", "mobilenet")
# Modules whose output the graph does not use, of which only a part is used, or that have no nodes.
NOT_SEEN = ("resnet", "shortcut", "activation")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory):
    """name -> (a model, its arguments, its file), made once."""
    known: dict[str, tuple[Any, dict, Path]] = {}

    def make(name: str) -> tuple[Any, dict, Path]:
        if name not in known:
            model, (_, kwargs, shapes, core) = made(name), MODELS[name]
            path = tmp_path_factory.mktemp("export") / "model.pt2"
            known[name] = model, kwargs, saved(exported(model, (), kwargs, shapes, core), path)
        return known[name]

    return make


def ours(value: Any, device: str = "cpu") -> Any:
    if isinstance(value, torch.Tensor):
        return pellucid.tensor(value.detach().numpy(), device=device)
    if isinstance(value, dict):
        return {k: ours(v, device) for k, v in value.items()}
    return type(value)(ours(v, device) for v in value) if isinstance(value, (tuple, list)) else value


def close(got: Any, wanted: torch.Tensor) -> None:
    assert tuple(got.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-4)


def loaded(
    model: nn.Module, tmp_path: Path, *args: Any, shapes: Any = None, device: str = "cpu", **kwargs: Any
):
    path = saved(exported(model, args, kwargs, shapes), tmp_path / "model.pt2")
    return export.load(path, device=device).module()


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("name", "device"), [*[(n, "cpu") for n in MODELS], *[(n, "webgpu") for n in ON_WEBGPU]]
)
def test_models_compute_what_pytorch_does(file, name, device):
    model, kwargs, path = file(name)
    program = export.load(path, device=device)
    with torch.no_grad(), pellucid.no_grad():
        wanted, got = model(**kwargs), program(**ours(kwargs, device))
        close(first(got), first(wanted))
        if hasattr(wanted, "keys"):
            assert list(vars(got)) == list(wanted.keys())
            assert type(got).__name__ == type(wanted).__name__
    if name.endswith("open"):
        fewer = {k: v[:1, : 16 if v.ndim == 4 else 5] for k, v in kwargs.items()}
        with torch.no_grad(), pellucid.no_grad():
            close(first(program.module()(**ours(fewer, device))), first(model(**fewer)))
    names = dict(model.named_parameters())
    assert {n: tuple(p.shape) for n, p in program.named_parameters()} == {
        n: tuple(p.shape) for n, p in names.items()
    }


@pytest.mark.parametrize("name", ["llama open", "qwen3 core", "bert open", "t5", "gpt2 open", "mobilenet"])
def test_modules_are_seen_and_patched_by_path(file, name):
    model, kwargs, path = file(name)
    module, wanted = export.load(path, device="cpu").module(), {}
    handles = [
        m.register_forward_hook(lambda m, a, out, p=p: wanted.__setitem__(p, first(out)))
        for p, m in model.named_modules()
        if p
    ]
    with torch.no_grad(), pellucid.no_grad(), lens.capture(module) as seen:
        model(**kwargs)
        module(**ours(kwargs))
    for handle in handles:
        handle.remove()
    assert set(seen) == set(wanted)
    for p, value in wanted.items():
        close(seen[p], value)
    path = next(p for p in wanted if p.endswith(("layers.0", "h.0", "layer.0", "block.0", "blocks.0")))
    change = model.get_submodule(path).register_forward_hook(
        lambda m, a, out: (out[0] * 2, *out[1:]) if isinstance(out, tuple) else out * 2
    )
    with torch.no_grad(), pellucid.no_grad(), lens.patch(module, {path: lambda h: h * 2}):
        close(first(module(**ours(kwargs))), first(model(**kwargs)))
    change.remove()


class Stateful(nn.Module):
    """A buffer that counts, a cache that is written, tied weights, nested arguments and results."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.tied = self.inner.weight
        self.turned = nn.Parameter(torch.randn(3, 4).T)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(8, 3), persistent=False)

    def forward(self, x, scale=2.0, *, more):
        self.count.add_(1)
        y = self.inner(x) * scale + torch.tensor([1.0, 2.0, 3.0]) @ (self.tied @ self.turned)
        self.cache.index_copy_(0, more["at"], y)
        rows = {"sum": self.cache.sum(0), "parts": (y, [self.count * 2, x.shape[0]])}
        return rows, more["pair"].left - more["pair"].right


Pair = collections.namedtuple("Pair", "left right")
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")


def given(rows: int) -> tuple[torch.Tensor, dict]:
    x = torch.linspace(-1, 1, 4 * rows).reshape(rows, 4)
    return x, {"at": torch.arange(rows), "pair": Pair(x, x * 2)}


@pytest.mark.parametrize("core", [False, True])
def test_buffers_change_and_results_nest(tmp_path, device, core):
    model, (x, more) = Stateful(), given(3)
    rows = Dim("rows", min=2, max=8)
    shapes = {"x": {0: rows}, "scale": None, "more": {"at": {0: rows}, "pair": Pair({0: rows}, {0: rows})}}
    program = exported(model, (x,), {"more": more}, {k: v for k, v in shapes.items() if k != "scale"}, core)
    module = export.load(saved(program, tmp_path / "a.pt2"), device=device).module()
    for count in (3, 8):
        x, more = given(count)
        (rows_got, pair), (rows_wanted, other) = (
            module(ours(x, device), more=ours_of(more, device)),
            model(x, more=more),
        )
        close(rows_got["sum"], rows_wanted["sum"])
        close(rows_got["parts"][0], rows_wanted["parts"][0])
        assert rows_got["parts"][1][0].item() == rows_wanted["parts"][1][0].item()
        assert rows_got["parts"][1][1] == count
        close(pair, other)
    assert module.count.item() == 2
    close(module.cache, model.cache)
    assert list(module.state_dict()) == list(model.state_dict())
    assert module.tied is module.inner.weight
    close(module.turned, model.turned)


def ours_of(more: dict, device: str) -> dict:
    return {"at": ours(more["at"], device), "pair": Pair(*(ours(v, device) for v in more["pair"]))}


class Small(nn.Module):
    """Two layers, the second one twice."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.second(self.first(x).relu()).relu())


def test_gradients_and_captured_calls(tmp_path, device):
    model = Small()
    module = loaded(model, tmp_path, torch.ones(3, 4), device=device)
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    wanted, got = x.clone().requires_grad_(), ours(x, device).requires_grad_()
    model(wanted).square().sum().backward()
    with lens.capture(module, "second") as seen:
        module(got).square().sum().backward()
    close(got.grad, wanted.grad)
    close(seen["second"], model(x))
    for name, p in model.named_parameters():
        close(module.get_parameter(name).grad, p.grad)
    captured = pellucid.compile(module)
    with pellucid.no_grad():
        for shift in range(4):
            close(captured(ours(x + shift, device)), model(x + shift))
    assert (captured.explain().replays >= 1) is (device == "webgpu")


def test_sizes_are_guarded(file, tmp_path):
    _, kwargs, path = file("bert open")
    module = export.load(path, device="cpu").module()
    ids = ours(kwargs)
    with pytest.raises(ShapeError, match=r"dimension 1 of input 'attention_mask' is 6; .* for s\d+ = 7"):
        module(ids["input_ids"], ids["attention_mask"][:, :6])
    with pytest.raises(ShapeError, match=r"dimension 1 of input 'input_ids' is 40; .* from 2 to 32"):
        module(*[pellucid.zeros(2, 40, dtype=pellucid.int64, device="cpu")] * 2)
    with pytest.raises(ShapeError, match=r"input 'input_ids' has shape \(14,\), and 2 axes were expected"):
        module(ids["input_ids"].flatten(), ids["attention_mask"])
    fixed = export.load(file("t5")[2], device="cpu").module()
    with pytest.raises(
        ShapeError, match=r"dimension 0 of input 'input_ids' is 1; the program was exported for 2"
    ):
        fixed(ids["input_ids"][:1])

    class Half(nn.Module):
        def forward(self, x, n):
            return x.reshape(2, -1) * n

    size = Dim("size", min=2, max=6)
    shapes = {"x": {0: 2 * size}, "n": None}
    half = loaded(Half(), tmp_path, torch.ones(8), 3, shapes=shapes)
    assert half(pellucid.ones(10, device="cpu"), 3).tolist() == [[3.0] * 5] * 2
    with pytest.raises(ShapeError, match=r"'x' is 14, so that s\d+ is 7; .* from 2 to 6"):
        half(pellucid.ones(14, device="cpu"), 3)
    with pytest.raises(ShapeError, match=r"'x' is 9; .* exported for Mul\(2, s\d+\) = 8"):
        half(pellucid.ones(9, device="cpu"), 3)
    with pytest.raises(ArgumentError, match=r"was exported with the value 3, not"):
        half(pellucid.ones(8, device="cpu"), 4)
    with pytest.raises(ArgumentError, match=r"takes x, n; 1 by place and none by name were given"):
        half(pellucid.ones(8, device="cpu"))
    with pytest.raises(ArgumentError, match=r"input 'x' must be a tensor, .* by pellucid\.tensor"):
        half([1.0], 3)


class Branches(nn.Module):
    """A condition on values, one on sizes, and a part without gradients."""

    def forward(self, x):
        with torch.no_grad():
            scale = x.abs().max()
        return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,)) / scale


def test_graphs_within_graphs(tmp_path, device):
    module = loaded(Branches(), tmp_path, torch.ones(3), device=device)
    for values in ([1.0, 2.0, -1.0], [-1.0, -2.0, 1.0]):
        x = torch.tensor(values)
        mine = ours(x, device).requires_grad_()
        close(module(mine), Branches()(x))
        module(mine).sum().backward()
        scale = 0.5 if sum(values) < 0 else 1.0
        assert mine.grad.tolist() == [scale] * 3


def test_errors_say_where(file, tmp_path):
    _, kwargs, path = file("llama")
    module = export.load(path, device="cpu").module()
    module.get_submodule("model.layers.1.mlp.up_proj").weight = pellucid.nn.Parameter(
        pellucid.zeros(24, 15, device="cpu")
    )
    where = (
        r"node 'linear_\d+' \(aten\.linear\.default\) in module 'model\.layers\.1\.mlp\.up_proj', File "
        r"\"llama/modeling_llama\.py\", line \d+, in forward: .*up_proj.*: linear: "
    )
    with pytest.raises(ShapeError, match=where):
        module(**ours(kwargs))
    with pytest.raises(DTypeError, match=r"_assert_tensor_metadata"):
        loaded(Cast(), tmp_path, torch.ones(2))(pellucid.ones(2, dtype=pellucid.float16, device="cpu"))
    with pytest.raises(
        MissingError, match=r"1 operators are not known here: torch\.ops\.aten\.\w+\.\w+ \(File"
    ):
        loaded(Unknown(), tmp_path, torch.eye(2))
    with pytest.raises(SourceError, match=r"is a folder\. Say by filename= which \.pt2"):
        export.load(path.parent, device="cpu")
    assert export.load(path.parent, filename="model.pt2", device="cpu").name.endswith("model.pt2")


class Cast(nn.Module):
    def forward(self, x):
        return x.to(torch.float64)


class Unknown(nn.Module):
    def forward(self, x):
        return torch.ops.aten._int_mm(x.to(torch.int8), x.to(torch.int8))


def test_the_program_shows_itself(file):
    program = export.load(file("llama open")[2], device="cpu")
    assert "nodes, " in repr(program)
    assert "aten.linear.default) in module 'lm_head'" in program.graph
    assert "(lm_head): Linear()" in repr(program.module())
    assert set(program.range_constraints.values()) <= {(low, high) for low in range(3) for high in (32, None)}
    assert list(program.constants) == ["model.rotary_emb.inv_freq", "model.rotary_emb.original_inv_freq"]
    assert len(list(program.parameters())) == len(program.state_dict)
    assert [n for n, _ in program.named_buffers()] == list(program.constants)
    assert len(list(program.buffers())) == len(program.constants)


def test_guards_that_are_not_understood_are_told(file, tmp_path):
    from models.graph.damage import changed

    path = changed(file("t5")[2], tmp_path, lambda d: d["guards_code"].append("torch.rand(1) > 2"))
    with pytest.warns(UserWarning, match=r"the guard 'torch\.rand\(1\) > 2' is not understood"):
        export.load(path, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export.load(file("t5")[2], device="cpu")


def test_a_module_of_pytorch_becomes_one_here(monkeypatch):
    model, x = Small(), torch.linspace(-1, 1, 12).reshape(3, 4)
    module = pellucid.from_torch(model, (x,), dynamic_shapes={"x": {0: Dim.DYNAMIC}}, device="cpu")
    close(module(ours(x[:2])), model(x[:2]))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingError, match="PyTorch is not installed"):
        pellucid.from_torch(model, (x,))


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_page(file, tmp_path):
    """A small program, and eleven of transformers with a module of each."""
    model, x = Small(), torch.linspace(-1, 1, 12).reshape(3, 4)
    saved(exported(model, (x,)), tmp_path / "model.pt2")
    wanted, listed = {}, {}
    for name in (n for n in MODELS if not n.startswith("mobilenet")):
        theirs, kwargs, path = file(name)
        shutil.copy(path, tmp_path / f"{name}.pt2")
        at = next(p for p, _ in theirs.named_modules() if re.fullmatch(r".*(layers?|h|block|stages)\.0", p))
        listed[name] = {k: v.tolist() for k, v in kwargs.items()}, at
        seen = []
        hook = theirs.get_submodule(at).register_forward_hook(
            lambda m, a, out, to=seen: to.append(first(out))
        )
        with torch.no_grad():
            wanted[name] = first(theirs(**kwargs)), *seen
        hook.remove()
    (tmp_path / "models.json").write_text(json.dumps(listed))
    program = Path(__file__).parent / "export_page.py"
    command = [sys.executable, SCRIPTS / "browser", program, "--mount", tmp_path, "--packages=numpy,pellucid"]
    done = subprocess.run([*command, "--timeout=240"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told, said = map(json.loads, done.stdout.splitlines()[-2:])
    assert len(told) == len(wanted) >= 11
    for name, values in wanted.items():
        for got, value in zip(told[name], values, strict=True):
            np.testing.assert_allclose(got, value.numpy(), rtol=1e-4, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(said["y"], model(x).tolist(), rtol=1e-4, atol=1e-5)
    assert said["blocking"] == said["second"] == said["y"]
