"""Generation replays its steps by itself: the same ids, nothing allocated, every change seen at the next."""

import gc

import numpy as np
import pytest

import pellucid as torch
from checked import unchecked
from pellucid.device.stream import stream
from pellucid.models import LlamaConfig, LlamaForCausalLM, decoder
from pellucid.models.generate.step import _steps, step_of
from pellucid.op.plan_cache import forget_plans
from pellucid.profiler import profile

pytestmark = pytest.mark.gpu

NO_STOP = {"eos_token_id": ()}
VOCABULARY = 61
SAMPLED = {"do_sample": True, "top_k": 12, "top_p": 0.9, "temperature": 0.8}
SETTINGS = [
    {},
    {"repetition_penalty": 1.4},
    {"min_new_tokens": 9, "eos_token_id": tuple(range(0, VOCABULARY, 2))},
    {"do_sample": True, "top_k": 0, "seed": 3},
    {**SAMPLED, "seed": 5, "repetition_penalty": 1.2},
]


def made(**changes) -> LlamaForCausalLM:
    torch.manual_seed(21)
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 24, "intermediate_size": 32, "num_attention_heads": 4}
    config = LlamaConfig(num_hidden_layers=2, num_key_value_heads=2, **{**sizes, **changes})
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(*p.shape) * 0.4)
    return model.eval()


@pytest.fixture
def model():
    return made()


def prompt(time: int, batch: int = 1) -> list[list[int]]:
    return np.random.default_rng(time).integers(0, VOCABULARY, (batch, time)).tolist()


def eagerly(model, ids, **settings) -> list[list[int]]:
    """What is generated while every op waits for its result."""
    with torch.debug.blocking():
        return model.generate(ids, **settings).tolist()


def replays(model) -> int:
    return step_of(model)._logits.explain().replays


@pytest.mark.turns(2)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_ids_are_those_of_eager_steps(model, settings):
    settings = {"max_new_tokens": 24, **NO_STOP, **settings}
    for time in (5, 9):
        wanted = eagerly(model, prompt(time), **settings)
        assert model.generate(prompt(time), **settings).tolist() == wanted
    assert model.generate(prompt(3, 2), **settings).tolist() == eagerly(model, prompt(3, 2), **settings)
    if "eos_token_id" not in settings or not settings["eos_token_id"]:
        # The first steps are recorded, and one at every power of two.
        assert replays(model) >= 2 * 24 - 10
        assert step_of(model)._ids.explain().replays >= 2 * 24 - 10


def test_fused_steps_agree(model):
    wanted = model.generate(prompt(6), max_new_tokens=30, **NO_STOP).tolist()
    with torch.webgpu.fusion(True):
        assert model.generate(prompt(6), max_new_tokens=30, **NO_STOP).tolist() == wanted


@unchecked("an eager call stands before each replay, and counts")
def test_attention_of_a_captured_step_is_one_launch(monkeypatch):
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")  # as on a GPU
    with torch.webgpu.fusion(True):
        model = made(hidden_size=64, num_attention_heads=2)
        ids = model.stream(prompt(6), max_new_tokens=20, **NO_STOP)
        for _ in range(12):
            next(ids)
        with profile() as seen:
            next(ids)
    forget_plans()
    counts = {row.kernel: row.count for row in seen.key_averages()}
    assert counts["attention/decode_step"] == 2, counts
    assert not counts.keys() & {"attention/decode", "attention/cache_write", "attention/rotary"}


def test_the_next_generation_goes_on_with_what_was_captured(model):
    model.generate(prompt(6), max_new_tokens=20, **NO_STOP)
    first = replays(model)
    model.generate(prompt(6), max_new_tokens=20, **NO_STOP)
    # Its cache is another one: its first step is compared, and the other 18 are replayed.
    assert replays(model) == first + 18


@pytest.mark.parametrize("settings", [{}, {**SAMPLED, "repetition_penalty": 1.3}], ids=str)
def test_an_id_takes_no_buffer_and_no_bind_group(model, settings):
    stats = []
    for k, _ in enumerate(model.stream(prompt(4), max_new_tokens=60, **settings, **NO_STOP)):
        if k in (40, 58):
            stats.append(stream().open().stats())
    first, last = stats
    for name in ("bind_groups", "live_buffers", "reserved_bytes", "pipelines"):
        assert last[name] == first[name], name


def test_settings_of_the_draw_are_seen(model):
    for settings in ({"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.3}, {"seed": 8}):
        settings = {**SAMPLED, "seed": 1, "max_new_tokens": 12, **NO_STOP, **settings}
        assert model.generate(prompt(5), **settings).tolist() == eagerly(model, prompt(5), **settings)
    generator = torch.Generator()
    for seed in (4, 5, 4):
        found = [
            call(generator=generator.manual_seed(seed), max_new_tokens=12, **SAMPLED, **NO_STOP)
            for call in (
                lambda **s: model.generate(prompt(5), **s).tolist(),
                lambda **s: eagerly(model, prompt(5), **s),
            )
        ]
        assert found[0] == found[1]


def test_a_hook_between_ids_takes_effect_at_the_next(model):
    def text(steps):
        found = [next(steps) for _ in range(12)]
        with torch.lens.patch(model, {"model.layers.1": lambda x: x * -1}):
            found += [next(steps) for _ in range(3)]
        return found + list(steps)

    settings = {"max_new_tokens": 24, **NO_STOP}
    got = text(model.stream(prompt(5), **settings))
    with torch.debug.blocking():
        wanted = text(model.stream(prompt(5), **settings))
    assert got == wanted
    assert got != model.generate(prompt(5), **settings)[0, 5:].tolist()
    seen = []
    steps = model.stream(prompt(5), **settings)
    for k, _ in enumerate(steps):
        if k == 10:
            handle = model.lm_head.register_forward_hook(lambda *_: seen.append(1))
        if k == 14:
            handle.remove()
            break
    steps.close()
    assert len(seen) == 4


def test_new_weights_between_generations(model):
    settings = {"max_new_tokens": 16, **NO_STOP}
    model.generate(prompt(5), **settings)
    for change in (
        lambda: model.lm_head.weight.data.mul_(-1),
        lambda: setattr(model.lm_head.weight, "data", torch.randn(VOCABULARY, 24)),
        lambda: setattr(model.model, "norm", torch.nn.RMSNorm(24)),
    ):
        with torch.no_grad():
            change()
        assert model.generate(prompt(5), **settings).tolist() == eagerly(model, prompt(5), **settings)


def test_a_cache_that_goes_on(model):
    def turns(call):
        cache, ids, found = model.new_cache(1, 128), prompt(6), []
        for turn in range(4):
            settings = {"past_key_values": cache, "max_new_tokens": 10, "repetition_penalty": 1.2}
            found.append(call(ids, **settings, **NO_STOP)[0])
            ids = [[found[-1][-1], turn]]
        return found

    assert turns(lambda *a, **k: model.generate(*a, **k).tolist()) == turns(
        lambda *a, **k: eagerly(model, *a, **k)
    )


def test_tables_that_grow():
    """Rotary tables are made anew at position 2048: the step before and the one after have others."""
    model = made(max_position_embeddings=4096)
    cache = model.new_cache(1, 2304)
    model.generate(prompt(1), past_key_values=cache, max_new_tokens=12, **NO_STOP)

    def logits():
        cache.length = 2040
        steps = [step_of(model).logits(torch.tensor([[k]]), cache) for k in range(20)]
        return np.concatenate([x.numpy() for x in steps])

    for _ in range(2):
        got = logits()
        with torch.debug.blocking():
            np.testing.assert_array_equal(got, logits())


def test_what_parts_of_a_users_own_find_is_looked_at(model):
    """A method that the library calls, and a forward that was put into a layer."""
    sign = scale = 1.0

    class Attention(decoder.Attention):
        def project(self, x):
            query, key, value = super().project(x)
            return query * scale, key, value

    model.model.layers[1].self_attn.__class__ = Attention
    head = model.lm_head.forward
    model.lm_head.forward = lambda x: head(x) * sign
    settings, found = {"max_new_tokens": 12, **NO_STOP}, []
    for sign, scale in ((1.0, 1.0), (-1.0, 1.0), (-1.0, 9.0)):  # noqa: B007
        found.append(eagerly(model, prompt(5), **settings))
        for _ in range(3):
            assert model.generate(prompt(5), **settings).tolist() == found[-1]
    assert found[0] != found[1] != found[2]
    assert replays(model) > 60


def test_a_model_that_goes_takes_everything_along():
    model = made()
    model.generate(prompt(5), max_new_tokens=16, **NO_STOP)
    assert model in _steps
    del model
    gc.collect()
    assert len(_steps) == 0
    assert torch.webgpu.memory_stats()["parameter_bytes"] == 0


def test_on_cpu_nothing_is_captured():
    with torch.device("cpu"):
        model = made()
    model.generate(prompt(5), max_new_tokens=8, **NO_STOP)
    assert replays(model) == 0


def test_steps_stay_captured_while_a_lens_looks(model):
    """And each step shows what an eager one does."""

    def looked_at() -> tuple[list[int], list[bytes]]:
        ids, shown = [], []
        with torch.lens.capture(model, "model.layers.*") as seen:
            for token in model.stream(prompt(6), max_new_tokens=12, **NO_STOP):
                ids.append(token)
                assert list(seen) == ["model.layers.0", "model.layers.1"]
                shown.append(b"".join(h[:, -1].contiguous().numpy().tobytes() for h in seen.values()))
        return ids, shown

    with torch.debug.blocking():
        expected = looked_at()
    before = replays(model)
    for _ in range(2):
        assert looked_at() == expected
    assert replays(model) >= before + 12


def test_a_lens_sees_the_step_that_gave_the_id(model):
    """Though the next step runs ahead: each id comes with the hidden states that it was chosen by."""
    first, ids, shown = prompt(6)[0], [], []
    with torch.lens.capture(model, "model.layers.*") as seen:
        for token in model.stream(first, max_new_tokens=9, **NO_STOP):
            ids.append(token)
            shown.append(seen["model.layers.1"][0, -1].numpy())
            assert seen["model.layers.0"].shape[1] == (6 if len(ids) == 1 else 1)
    with torch.no_grad(), torch.lens.capture(model, "model.layers.1") as seen:
        model(torch.tensor([first + ids]))
    whole = seen["model.layers.1"][0].numpy()
    np.testing.assert_allclose(np.stack(shown), whole[5:-1], rtol=1e-4, atol=1e-4)
