"""What traces and profiles tell of kernels that stand for several launches, alone or fused with others."""

import inspect

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from pellucid.models import LlamaConfig, LlamaForCausalLM
from pellucid.nn import functional as F
from pellucid.op.plan_cache import forget_plans
from pellucid.profiler import profile
from pellucid.quant.weight import weight_from_blocks
from quant.samples import tame_blocks

pytestmark = pytest.mark.gpu
WIDTH = 64


@pytest.fixture(autouse=True, params=["shared", "direct"])
def kernels(request, monkeypatch):
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", request.param)
    with torch.webgpu.fusion(True):
        yield request.param
    forget_plans()


def quantized(rows: int, columns: int):
    blocks = tame_blocks("q4_0", rows, columns, np.random.default_rng(0))
    return weight_from_blocks(blocks, "q4_0", (rows, columns), "webgpu")


def tiny():
    config = LlamaConfig(
        vocab_size=64, hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    for module in model.model.layers.modules():
        if isinstance(module, torch.nn.Linear):
            weight = quantized(*module.weight.shape)
            module.weight = torch.nn.Parameter(weight, requires_grad=False)
    return model


def calls(recording) -> list[tuple]:
    """The op and the lines of each call that dispatches came from, each call once."""
    return sorted((call.op, str(call.line)) for call in {call for d in recording for call in d.calls})


@unchecked("windows end where an op writes into memory that no op made")
@pytest.mark.parametrize("count", [20, 1], ids=["prompt", "one"])
def test_a_model_tells_all_its_ops(count):
    """Fused and one by one the same ops ran from the same lines, however often they are asked for."""
    model = tiny()
    ids = torch.randint(0, 64, (1, count))

    def run():
        cache = model.new_cache(1, 64)
        with torch.no_grad():
            model(ids, past_key_values=cache, logits_to_keep=1).logits.numpy()

    for _ in range(4):
        run()
    with torch.webgpu.fusion(False), torch.debug.trace() as plain:
        run()
    with torch.debug.trace() as fused:
        for _ in range(3):
            run()
    assert len(fused) < 3 * len(plain)
    assert sum(d.launches for d in fused) == 3 * len(plain)
    assert calls(fused) == sorted(3 * calls(plain))
    written = [d for d in fused if "cache_write" in d.ops]
    assert len(written) == 3 * 2  # of keys and values together, in each layer of each run
    assert all(len(d.ops) >= 4 for d in written)


@unchecked("windows end where an op writes into memory that no op made")
def test_a_profile_of_a_prompt_has_every_dispatch():
    model, ids = tiny(), torch.randint(0, 64, (1, 20))

    def run():
        with torch.no_grad():
            return model(ids, past_key_values=model.new_cache(1, 64)).logits.numpy()

    for _ in range(3):
        run()
    expected = run()
    before = torch.webgpu.memory_stats()["dispatches"]
    with profile() as p:
        for _ in range(3):
            np.testing.assert_array_equal(run(), expected)
    rows = p.key_averages()
    assert rows.total().count == torch.webgpu.memory_stats()["dispatches"] - before
    joined = [row for row in rows if row.kernel == "attention/place"]
    assert [(row.key, row.count) for row in joined] == [
        ("rotary_embedding + rotary_embedding + cache_write + cache_write", 6)
    ]


def test_joined_products_have_the_lines_of_all(kernels):
    """Also where expressions were fused into the one launch that stands for them."""
    x, norm = torch.randn(1, 1, WIDTH), torch.randn(WIDTH)
    q, k, v, down = (quantized(WIDTH, WIDTH) for _ in range(4))

    def run():
        h = F.rms_norm(x, (WIDTH,), norm)
        a = F.linear(h, q)
        b = F.linear(h, k)
        c = F.linear(h, v)
        d = F.linear(a * b, down)
        d = x + d
        return c, d

    for _ in range(3):
        result = run()
        torch.webgpu.flush()
        del result
    with torch.debug.trace() as t:
        result = run()
        torch.webgpu.flush()
    del result
    first = inspect.getsourcelines(run)[1]
    lines = [tuple(line.number - first for line in d.lines) for d in t]
    products = [(1, 2, 3, 4)] if kernels == "shared" else [(1,), (2, 3, 4)]
    assert lines == [*products, (5,), (5, 6)]
    assert sum(d.launches for d in t) == 7
