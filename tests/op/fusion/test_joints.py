"""A decoder layer of quantized weights runs in few launches, and gives what its launches give one by one."""

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from pellucid.nn import functional as F
from pellucid.op.plan_cache import forget_plans
from pellucid.quant.weight import weight_from_blocks
from quant.samples import tame_blocks

pytestmark = pytest.mark.gpu
WIDTH, INNER, KEYS = 64, 96, 32


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    with torch.webgpu.fusion(True):
        yield
    forget_plans()


class Parts:
    """Weights of a layer's products, of a format each."""

    def __init__(self, formats=("q4_0",) * 6):
        rng = np.random.default_rng(0)
        shapes = (WIDTH, WIDTH), (KEYS, WIDTH), (KEYS, WIDTH), (INNER, WIDTH), (INNER, WIDTH), (WIDTH, INNER)
        self.q, self.k, self.v, self.gate, self.up, self.down = (
            weight_from_blocks(tame_blocks(name, *shape, rng), name, shape, "webgpu")
            for name, shape in zip(formats, shapes, strict=True)
        )
        self.norm = torch.randn(WIDTH)


def settled(run):
    """What a run gives alone, and its dispatches once fused, after the values were compared."""
    with torch.webgpu.fusion(False):
        plain = [t.numpy() for t in run()]
    counts = []
    for _ in range(6):
        torch.webgpu.flush()
        before = torch.webgpu.memory_stats()["dispatches"]
        result = run()
        torch.webgpu.flush()
        counts.append(torch.webgpu.memory_stats()["dispatches"] - before)
        for a, b in zip(result, plain, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
    assert counts[-2] == counts[-1]
    return counts[0], counts[-1]


def test_products_of_a_normalized_row():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k), F.linear(h, p.v)

    assert settled(run) == (4, 1)


def test_gated_pair_with_its_expressions():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return [x + F.linear(F.silu(F.linear(h, p.gate)) * F.linear(h, p.up), p.down)]

    assert settled(run) == (7, 2)


def test_a_layer_of_many_rows():
    p, x = Parts(), torch.randn(2, 10, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        heads = [F.linear(h, p.q), F.linear(h, p.k), F.linear(h, p.v)]
        return [*heads, x + F.linear(F.silu(F.linear(h, p.gate)) * F.linear(h, p.up), p.down)]

    # The norm, the first three products, the gated pair, the last product with the sum.
    assert settled(run) == (10, 4)


def test_a_held_norm_is_written():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return h, F.linear(h, p.q), F.linear(h, p.k)

    assert settled(run) == (3, 2)


def test_held_products_of_a_pair_are_written():
    p, x = Parts(), torch.randn(1, 1, WIDTH)

    def run():
        gate, up = F.linear(x, p.gate), F.linear(x, p.up)
        return gate, up, F.silu(gate) * up

    assert settled(run) == (4, 1)


def test_formats_that_differ_are_launches_of_their_own():
    p = Parts(("q4_0", "q4_0", "q8_0", "q4_0", "q4_0", "q4_0"))
    x = torch.randn(1, 1, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k), F.linear(h, p.v)

    assert settled(run) == (4, 3)


def test_an_input_that_changes_between_stays_what_it_was():
    p, x = Parts(), torch.randn(1, 1, WIDTH)
    start = x.clone()

    def run():
        x.copy_(start)
        first = F.linear(x, p.q)
        x.mul_(2)
        return first, F.linear(x, p.k), x * 1

    settled(run)


def test_several_rows_are_not_normalized_on_the_way():
    p, x = Parts(), torch.randn(1, 3, WIDTH)

    def run():
        h = F.rms_norm(x, (WIDTH,), p.norm)
        return F.linear(h, p.q), F.linear(h, p.k)

    assert settled(run) == (3, 2)


def tiny(heads=4, kv_heads=2, layers=2):
    """A small Llama with quantized weights."""
    from pellucid.models import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=512,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    rng = np.random.default_rng(0)
    for module in model.model.layers.modules():
        if isinstance(module, torch.nn.Linear):
            rows, columns = module.weight.shape
            blocks = tame_blocks("q4_0", rows, columns, rng)
            module.weight = torch.nn.Parameter(
                weight_from_blocks(blocks, "q4_0", (rows, columns), "webgpu"), requires_grad=False
            )
    return model


@unchecked("an eager call stands before each replay, and counts")
def test_a_layer_is_at_most_six_dispatches():
    """P-064, P-098: a token of a model with two more layers takes at most twelve dispatches more."""

    def dispatches_a_token(layers):
        model = tiny(layers=layers)
        ids = torch.tensor([[1, 2, 3]])
        model.generate(ids, max_new_tokens=8)
        counts = []
        for tokens in (8, 16):
            before = torch.webgpu.memory_stats()["dispatches"]
            model.generate(ids, max_new_tokens=tokens)
            counts.append(torch.webgpu.memory_stats()["dispatches"] - before)
        return (counts[1] - counts[0]) / 8

    assert dispatches_a_token(4) - dispatches_a_token(2) <= 12


def test_attention_without_a_cache():
    """Keys that no cache was written with are attended to as they are."""
    query, key, value = (torch.randn(1, 2, n, 16) for n in (1, 9, 9))

    def run():
        return [F.scaled_dot_product_attention(query * 2, (key + 1).clone(), value.clone())]

    settled(run)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 2), (4, 4), (2, 1)])
def test_logits_with_a_cache(heads, kv_heads):
    """Of every position, fed one at a time, with fusion and without; and a hooked layer sees the same."""
    model = tiny(heads, kv_heads)
    ids = torch.randint(0, 64, (1, 12))

    def logits(hooked):
        seen = []
        handle = (
            model.model.layers[1].mlp.register_forward_hook(lambda m, a, out: seen.append(out))
            if hooked
            else None
        )
        cache, rows = model.new_cache(1, 64), []
        with torch.no_grad():
            for k in range(12):
                rows.append(model(ids[:, k : k + 1], past_key_values=cache).logits.numpy())
        if handle is not None:
            handle.remove()
        return np.concatenate(rows), [s.numpy() for s in seen]

    with torch.webgpu.fusion(False):
        plain, seen = logits(True)
    for hooked in (False, True):
        fused, also = logits(hooked)
        np.testing.assert_allclose(fused, plain, rtol=1e-3, atol=1e-4)
        for a, b in zip(also, seen, strict=hooked):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
