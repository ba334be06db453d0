"""Generation beside transformers: every setting, stopping, streaming, twins, and the state it leaves."""

import asyncio
import copy
import gc

import numpy as np
import pytest
import torch
import transformers

import pellucid
from models.tiny import VOCABULARY, loaded, ours, saved, some_ids
from pellucid.errors import DimensionError, ShapeError
from pellucid.models.generate import GenerationConfig

NO_STOP = {"eos_token_id": ()}


@pytest.fixture
def model(twin, device):
    return loaded(twin("llama")[1], device)


@pytest.fixture
def gpu(twin):
    return loaded(twin("llama")[1], "webgpu")


@pytest.fixture(autouse=True)
def settings_stay(twin):
    """Other files ask the same model of transformers with its own settings."""
    other, _ = twin("llama")
    before = copy.deepcopy(other.generation_config)
    yield
    other.generation_config = before


def greedy(model, ids: np.ndarray, **settings) -> list[list[int]]:
    """The new ids only."""
    return model.generate(ours(ids, model.device), **settings)[:, ids.shape[1] :].tolist()


def theirs(twin, ids: np.ndarray, **settings) -> list[list[int]]:
    """What transformers gives, without stops unless asked."""
    other, _ = twin("llama")
    other.generation_config.eos_token_id = settings.pop("eos_token_id", None)
    other.generation_config.pad_token_id = settings.pop("pad_token_id", None)
    mask = torch.ones(ids.shape, dtype=torch.long)
    out = other.generate(torch.tensor(ids), attention_mask=mask, do_sample=False, **settings)
    return out[:, ids.shape[1] :].tolist()


# Settings


@pytest.mark.parametrize("penalty", [0.7, 1.3, 2.0])
def test_repetition_penalty_is_that_of_transformers(model, twin, penalty):
    """P-054, P-100: greedy ids and the penalty are those of transformers."""
    ids = some_ids(2, 7)
    settings = {"max_new_tokens": 24, "repetition_penalty": penalty}
    assert greedy(model, ids, **settings, **NO_STOP) == theirs(twin, ids, **settings)


def test_before_min_new_tokens_no_stop_id_is_chosen(model, twin):
    ids = some_ids(1, 7)
    plain = greedy(model, ids, max_new_tokens=12, **NO_STOP)[0]
    settings = {"max_new_tokens": 12, "min_new_tokens": 6, "eos_token_id": [plain[1], plain[3]]}
    got = greedy(model, ids, **settings)[0]
    assert got == theirs(twin, ids, **settings, pad_token_id=0)[0]
    assert len(got) >= 6
    assert not {plain[1], plain[3]} & set(got[:6])


def drawn(model, ids: np.ndarray, **settings) -> np.ndarray:
    """First new ids of many draws."""
    generator = pellucid.Generator().manual_seed(5)
    many = np.repeat(ids, 512, 0)
    return np.concatenate(
        [
            model.generate(
                ours(many, model.device), max_new_tokens=1, do_sample=True, generator=generator, **settings
            )[:, -1].numpy()
            for _ in range(2)
        ]
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 0},
        {"top_k": 5},
        {"top_k": 0, "top_p": 0.6},
        {"top_k": 8, "top_p": 0.7, "temperature": 1.7},
        {"top_k": 0, "temperature": 0.4, "repetition_penalty": 1.5},
        {"top_k": 1},
        {"top_k": 0, "min_p": 0.3},
        {"top_k": 8, "top_p": 0.7, "min_p": 0.5, "temperature": 1.7},
    ],
    ids=str,
)
def test_draws_follow_the_distribution_of_transformers(model, twin, settings):
    """P-054: temperature, top_k, top_p and min_p."""
    ids = some_ids(1, 7)
    scores = twin("llama")[0](torch.tensor(ids)).logits[:, -1].detach()
    if "repetition_penalty" in settings:
        process = transformers.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"])
        scores = process(torch.tensor(ids), scores)
    scores = transformers.TemperatureLogitsWarper(settings.get("temperature", 1.0))(ids, scores)
    if settings["top_k"]:
        scores = transformers.TopKLogitsWarper(settings["top_k"])(ids, scores)
    if "top_p" in settings:
        scores = transformers.TopPLogitsWarper(settings["top_p"])(ids, scores)
    if "min_p" in settings:
        scores = transformers.MinPLogitsWarper(settings["min_p"])(ids, scores)
    wanted = scores.softmax(-1)[0].numpy()
    found = np.bincount(drawn(model, ids, **settings), minlength=VOCABULARY)
    assert found[wanted == 0].sum() == 0
    # Every share lies within five standard deviations of what it must be, and a few for what is rare.
    spread = np.sqrt(found.sum() * wanted * (1 - wanted))
    assert (np.abs(found - found.sum() * wanted) <= 5 * spread + 3).all()


def test_a_seed_gives_the_same_text_on_every_device(twin):
    """P-054: seeded sampling."""
    settings = {"max_new_tokens": 24, "do_sample": True, "seed": 7, "top_k": 0, "top_p": 0.9, **NO_STOP}
    on = {d: loaded(twin("llama")[1], d) for d in ("cpu", "webgpu")}
    texts = {d: greedy(m, some_ids(2, 5), **settings) for d, m in on.items()}
    assert texts["cpu"] == texts["webgpu"] == greedy(on["webgpu"], some_ids(2, 5), **settings)
    assert greedy(on["webgpu"], some_ids(2, 5), **{**settings, "seed": 8}) != texts["webgpu"]


def test_without_a_seed_the_default_generator_goes_on(model):
    settings = {"max_new_tokens": 16, "do_sample": True, **NO_STOP}
    pellucid.manual_seed(3)
    first, second = greedy(model, some_ids(), **settings), greedy(model, some_ids(), **settings)
    pellucid.manual_seed(3)
    assert greedy(model, some_ids(), **settings) == first != second


def test_running_ahead_draws_nothing_that_is_not_used(gpu):
    """After a stop, a generator stands where it would without the step that was in vain."""
    settings = {"do_sample": True, "max_new_tokens": 12}
    ids = some_ids(1, 7)
    text = greedy(gpu, ids, **settings, generator=pellucid.Generator().manual_seed(1), **NO_STOP)[0]
    stop = next(k for k in range(3, 12) if text[k] not in text[:k])
    one, other = pellucid.Generator().manual_seed(1), pellucid.Generator().manual_seed(1)
    assert greedy(gpu, ids, **settings, generator=one, eos_token_id=text[stop])[0] == text[: stop + 1]
    greedy(gpu, ids, **{**settings, "max_new_tokens": stop + 1}, generator=other, **NO_STOP)
    assert (
        pellucid.rand(4, generator=one, device="cpu").tolist()
        == pellucid.rand(4, generator=other, device="cpu").tolist()
    )


# Stopping


def test_stop_ids_end_a_sequence_and_pad_follows(model, twin):
    """P-055, P-100: a stop id, such as that of a turn's end, ends it."""
    ids = some_ids(3, 7)
    plain = greedy(model, ids, max_new_tokens=14, **NO_STOP)
    assert plain == theirs(twin, ids, max_new_tokens=14)
    stops = [plain[0][2], plain[1][6]]
    for pad in (None, 0):
        settings = {"max_new_tokens": 14, "eos_token_id": stops, "pad_token_id": pad}
        wanted = theirs(twin, ids, **{**settings, "pad_token_id": stops[0] if pad is None else pad})
        assert greedy(model, ids, **settings) == wanted
    assert greedy(model, ids[:1], max_new_tokens=14, eos_token_id=stops[0]) == [plain[0][:3]]
    assert greedy(model, ids[:1], max_new_tokens=14, eos_token_id=tuple(stops)) == [plain[0][:3]]


def test_none_means_the_models_own_stops_and_an_empty_tuple_none(twin, device, tmp_path):
    other, folder = twin("llama")
    plain = greedy(loaded(folder, device), some_ids(1, 7), max_new_tokens=8, **NO_STOP)[0]
    other.generation_config.eos_token_id = plain[4]
    saved(other, tmp_path)
    other.generation_config.eos_token_id = None
    model = loaded(tmp_path, device)
    short = [plain[: plain.index(plain[4]) + 1]]
    assert greedy(model, some_ids(1, 7), max_new_tokens=8) == short
    assert greedy(model, some_ids(1, 7), max_new_tokens=8, eos_token_id=None) == short
    own = GenerationConfig(max_new_tokens=8)
    assert greedy(model, some_ids(1, 7), generation_config=own) == short
    assert greedy(model, some_ids(1, 7), max_new_tokens=8, eos_token_id=()) == [plain]


def test_settings_come_from_generation_config_json(twin, tmp_path):
    other, _ = twin("llama")
    saved(other, tmp_path)
    (tmp_path / "generation_config.json").write_text(
        '{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": null, "eos_token_id": [5, 6]}'
    )
    config = loaded(tmp_path, "cpu").generation_config
    assert config == GenerationConfig(do_sample=True, temperature=0.6, top_k=20, eos_token_id=(5, 6))


# Wrong settings


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"max_new_tokens": 0}, ValueError, "max_new_tokens must be at least 1"),
        ({"max_length": 9}, TypeError, "Give max_new_tokens"),
        ({"beams": 2}, TypeError, r"no settings \['beams'\]"),
        ({"do_sample": True, "temperature": 0.0}, ValueError, "temperature must be above 0"),
        ({"do_sample": True, "top_p": 0.0}, ValueError, "top_p 0.0"),
        ({"do_sample": True, "top_k": -1}, ValueError, "top_k -1"),
        ({"repetition_penalty": 0.0}, ValueError, "repetition_penalty must be above 0"),
        ({"max_new_tokens": 510}, DimensionError, "over the model's 512"),
    ],
)
def test_wrong_settings_are_refused(model, settings, error, words):
    with pytest.raises(error, match=words):
        model.generate(ours(some_ids(1, 5), model.device), **settings)


def test_the_last_position_is_used(model):
    assert len(greedy(model, some_ids(1, 510), max_new_tokens=3, **NO_STOP)[0]) == 3


def test_wrong_prompts_are_refused(model):
    with pytest.raises(ShapeError, match="at least one position"):
        model.generate([[]])
    with pytest.raises(ShapeError, match="takes one sequence, not 2"):
        next(model.stream(some_ids(2, 3).tolist()))
    short = model.new_cache(1, 8)
    with pytest.raises(DimensionError, match="over the cache's 8"):
        model.generate([[3, 4, 5]], past_key_values=short, max_new_tokens=7)
    with pytest.raises(ShapeError, match="2 sequences do not fit a cache of 1"):
        model.generate(some_ids(2, 3).tolist(), past_key_values=short, max_new_tokens=2)


def test_a_bad_id_is_an_index_error_and_the_model_goes_on(model):
    ids = some_ids(1, 6)
    before = greedy(model, ids, max_new_tokens=4, **NO_STOP)
    bad = ids.copy()
    bad[0, 2] = VOCABULARY + 4
    with pytest.raises(IndexError, match=r"100.*96"):
        greedy(model, bad, max_new_tokens=4, **NO_STOP)
    with pytest.raises(IndexError, match=r"100.*96"):
        list(model.stream(ours(bad, model.device), max_new_tokens=4))
    assert greedy(model, ids, max_new_tokens=4, **NO_STOP) == before


# Ways in and out


def test_prompts_may_be_lists_and_what_tokenizers_return(model):
    ids = some_ids(1, 6)
    wanted = model.generate(ours(ids, model.device), max_new_tokens=4).tolist()
    for prompt in (ids.tolist(), ids[0].tolist(), {"input_ids": ids.tolist()}, ours(ids[0], model.device)):
        assert model.generate(prompt, max_new_tokens=4).tolist() == wanted


def test_masks_of_tokenizers_are_taken_and_padding_is_refused(model):
    ids = some_ids(2, 6)
    wanted = model.generate(ours(ids, model.device), max_new_tokens=3, **NO_STOP).tolist()
    seen, padded = np.ones_like(ids), np.ones_like(ids)
    padded[1, :2] = 0
    for given in (ours(seen, model.device), seen, seen.tolist()):
        inputs = {"input_ids": ours(ids, model.device), "attention_mask": given}
        assert model.generate(**inputs, max_new_tokens=3, **NO_STOP).tolist() == wanted
        assert model.generate(inputs, max_new_tokens=3, **NO_STOP).tolist() == wanted
    for given in (ours(padded, model.device), padded, padded.tolist()):
        with pytest.raises(ShapeError, match="hides 2 positions"):
            model.generate(ours(ids, model.device), attention_mask=given)
        with pytest.raises(ShapeError, match="hides 2 positions"):
            asyncio.run(model.generate_async({"input_ids": ids.tolist(), "attention_mask": given}))
    with pytest.raises(ShapeError, match="hides 1 positions"):
        next(model.stream([[3, 4]], attention_mask=[[0, 1]]))


class Listener:
    def __init__(self):
        self.got, self.ended = [], 0

    def put(self, value):
        self.got.append(value)

    def end(self):
        self.ended += 1


def test_a_streamer_gets_the_prompt_and_each_token(model):
    listener = Listener()
    ids = some_ids(1, 6)
    new = greedy(model, ids, max_new_tokens=5, streamer=listener, **NO_STOP)
    assert listener.got == [ids.tolist(), *[[k] for k in new[0]]]
    assert listener.ended == 1


def test_a_stream_gives_the_same_ids(model):
    ids = some_ids(1, 6)
    new = greedy(model, ids, max_new_tokens=6, **NO_STOP)[0]
    assert list(model.stream(ours(ids, model.device), max_new_tokens=6, **NO_STOP)) == new
    short = list(model.stream(ours(ids, model.device), max_new_tokens=6, eos_token_id=new[3]))
    assert short == new[: new.index(new[3]) + 1]


def test_awaitable_twins_give_the_same(model):
    ids = ours(some_ids(1, 6), model.device)

    async def all_of_them():
        listener = Listener()
        whole = await model.generate_async(ids, max_new_tokens=6, streamer=listener, **NO_STOP)
        parts = [k async for k in model.stream_async(ids, max_new_tokens=6, **NO_STOP)]
        async for _ in model.stream_async(ids, max_new_tokens=6, **NO_STOP):
            break
        return whole.tolist()[0], parts, listener

    whole, parts, listener = asyncio.run(all_of_them())
    wanted = model.generate(ids, max_new_tokens=6, **NO_STOP).tolist()[0]
    assert whole == wanted
    assert parts == wanted[6:]
    assert listener.got == [ids.tolist(), *[[k] for k in parts]]
    assert listener.ended == 1


@pytest.mark.parametrize("ending", ["length", "stop", "left"])
def test_a_cache_goes_on_where_text_ended(model, ending):
    """However generation ended, the cache holds all but the last id: turns equal one long prompt."""
    ids, more = some_ids(1, 6), some_ids(1, 3, seed=4)
    plain = greedy(model, ids, max_new_tokens=9, **NO_STOP)[0]
    stop = next(k for k in range(2, 9) if plain[k] not in plain[:k])
    cache = model.new_cache(1, 64)
    prompt = ours(ids, model.device)
    if ending == "left":
        text = []
        for k in model.stream(prompt, past_key_values=cache, max_new_tokens=9, **NO_STOP):
            text.append(k)
            if len(text) == stop + 1:
                break
    elif ending == "stop":
        text = greedy(model, ids, past_key_values=cache, max_new_tokens=9, eos_token_id=plain[stop])[0]
    else:
        text = greedy(model, ids, past_key_values=cache, max_new_tokens=stop + 1, **NO_STOP)[0]
    gc.collect()
    assert text == plain[: stop + 1]
    assert cache.length == 6 + stop
    turn = np.concatenate([[text[-1:]], more], 1)
    wanted = greedy(model, np.concatenate([ids, [text], more], 1), max_new_tokens=5, **NO_STOP)
    assert greedy(model, turn, past_key_values=cache, max_new_tokens=5, **NO_STOP) == wanted
