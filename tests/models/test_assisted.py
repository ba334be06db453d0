"""P-097: speculative decoding. Drafts of another model change the number of steps, never the ids."""

import asyncio

import pytest

import pellucid
from models.tiny import loaded, made, ours, saved, some_ids
from pellucid.errors import ArgumentError, ShapeError
from pellucid.models.generate.text import stream

NO_STOP = {"eos_token_id": ()}


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A model of the same vocabulary with weights that are near, so that some drafts stay and some do not."""
    model = made("llama")
    pellucid.manual_seed(0)
    for name, p in model.named_parameters():
        if "layers" in name:
            p.data += 0.02 * p.data.std() * p.data.new_tensor(pellucid.randn(*p.shape, device="cpu").numpy())
    return saved(model, tmp_path_factory.mktemp("draft"))


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_ids_are_those_of_the_large_model(twin, other, device, count):
    model, draft = loaded(twin("llama")[1], device), loaded(other, device)
    ids = ours(some_ids(1, 7), device)
    wanted = model.generate(ids, max_new_tokens=30, **NO_STOP).tolist()
    settings = {"assistant_model": draft, "num_assistant_tokens": count, "max_new_tokens": 30, **NO_STOP}
    steps = []
    handle = model.register_forward_hook(lambda *_: steps.append(1))
    assert model.generate(ids, **settings).tolist() == wanted
    assert list(stream(model, ids, **settings)) == wanted[0][7:]
    handle.remove()
    assert 2 * 30 / (count + 1) <= len(steps) < 2 * 30
    assert asyncio.run(model.generate_async(ids, **settings)).tolist() == wanted


def test_a_model_that_drafts_for_itself_is_always_right(twin):
    model = loaded(twin("llama")[1], "webgpu")
    ids = ours(some_ids(1, 5), "webgpu")
    steps = []
    wanted = model.generate(ids, max_new_tokens=16, **NO_STOP).tolist()
    decoder = model.get_submodule("lm_head")
    handle = decoder.register_forward_hook(lambda m, i, out: steps.append(out.shape[1]))
    settings = {"assistant_model": model, "num_assistant_tokens": 3, "max_new_tokens": 16}
    assert model.generate(ids, **settings, **NO_STOP).tolist() == wanted
    handle.remove()
    assert [n for n in steps if n > 1] == [4] * 4


def test_a_stop_id_within_a_draft_stops(twin, other):
    model, draft = loaded(twin("llama")[1], "cpu"), loaded(other, "cpu")
    ids = ours(some_ids(1, 7), "cpu")
    plain = model.generate(ids, max_new_tokens=12, **NO_STOP)[0, 7:].tolist()
    settings = {"max_new_tokens": 12, "eos_token_id": plain[4]}
    wanted = model.generate(ids, **settings).tolist()
    assert model.generate(ids, assistant_model=draft, **settings).tolist() == wanted
    assert (
        model.generate(ids, assistant_model=draft, max_new_tokens=1, **NO_STOP)[0, 7:].tolist() == plain[:1]
    )


def test_what_is_not_greedy_is_refused(twin, other):
    model, draft = loaded(twin("llama")[1], "cpu"), loaded(other, "cpu")
    ids = ours(some_ids(1, 7), "cpu")
    for settings, error, text in (
        ({"do_sample": True}, ArgumentError, "greedily"),
        ({"repetition_penalty": 1.2}, ArgumentError, "greedily"),
        ({"num_assistant_tokens": 0}, ArgumentError, "positive integer"),
        ({"past_key_values": model.new_cache()}, ArgumentError, "past_key_values"),
        ({"plan": pellucid.lens.Plan()}, ArgumentError, "Leave out plan"),
    ):
        with pytest.raises(error, match=text):
            model.generate(ids, assistant_model=draft, **settings)
    with pytest.raises(ShapeError, match="one sequence"):
        model.generate(ours(some_ids(2, 7), "cpu"), assistant_model=draft)
    small = loaded(twin("llama")[1], "cpu")
    small.config = type("Config", (), {"vocab_size": 7})()
    with pytest.raises(ShapeError, match="vocabulary of 7"):
        model.generate(ids, assistant_model=small)
    states = loaded(twin("mamba")[1], "cpu")
    with pytest.raises(ArgumentError, match="taken back"):
        states.generate(ids, assistant_model=states)
