"""T5 and BART beside transformers' with the same checkpoint: states, losses, gradients, what they write."""

from functools import cache

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import SEQ2SEQ, VOCABULARY, close, made_seq2seq, ours, saved


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """name -> (a model of transformers, its folder), made once."""

    @cache
    def make(name: str):
        model = made_seq2seq(name)
        return model, saved(model, tmp_path_factory.mktemp(name))

    return make


def loaded(path, device):
    return pellucid.AutoModelForSeq2SeqLM.from_pretrained(str(path), device=device)


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Ids and mask of two texts, the first of which is padded."""
    ids, mask = np.random.default_rng(1).integers(4, VOCABULARY, (2, 11)), np.ones((2, 11), np.int64)
    ids[0, 7:], mask[0, 7:] = 1, 0
    return ids, mask


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_every_layer_agrees(name, folder, device):
    theirs, path = folder(name)
    mine = loaded(path, device)
    assert set(mine.state_dict()) == set(theirs.state_dict())
    ids, mask = texts()
    labels = np.random.default_rng(2).integers(4, VOCABULARY, (2, 6))
    labels[1, 4:] = -100
    given = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    with torch.no_grad():
        expected = theirs(**{k: torch.tensor(v) for k, v in given.items()}, output_hidden_states=True)
    with pellucid.no_grad():
        got = mine(**{k: ours(v, device) for k, v in given.items()}, output_hidden_states=True)
    for field in ("loss", "logits", "encoder_last_hidden_state"):
        close(got[field], expected[field])
    for field in ("encoder_hidden_states", "decoder_hidden_states"):
        assert len(got[field]) == len(expected[field])
        for one, other in zip(got[field], expected[field], strict=True):
            close(one, other)


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_gradients_reach_every_parameter(name, folder):
    theirs, path = folder(name)
    mine = loaded(path, "cpu")
    ids, mask = texts()
    theirs(torch.tensor(ids), torch.tensor(mask), labels=torch.tensor(ids)).loss.backward()
    mine(ours(ids, "cpu"), ours(mask, "cpu"), labels=ours(ids, "cpu")).loss.backward()
    wanted = {path: p.grad for path, p in theirs.named_parameters()}
    theirs.zero_grad()
    found = dict(mine.named_parameters())
    assert set(found) == set(wanted)
    for path, p in found.items():
        scale = max(float(wanted[path].abs().max()), 1e-3)
        np.testing.assert_allclose(p.grad.numpy() / scale, wanted[path] / scale, atol=1e-3, err_msg=path)


@pytest.mark.parametrize(
    ("name", "device"), [*((name, "cpu") for name in SEQ2SEQ), ("t5", "webgpu"), ("bart", "webgpu")]
)
def test_greedy_text_is_that_of_transformers(name, folder, device):
    theirs, path = folder(name)
    mine = loaded(path, device)
    ids, mask = texts()
    for settings in ({"max_new_tokens": 5, "forced_bos_token_id": 9}, {"max_new_tokens": 9}):
        wanted = theirs.generate(
            torch.tensor(ids), attention_mask=torch.tensor(mask), do_sample=False, **settings
        )
        for given in ({"attention_mask": ours(mask, device)}, {}):
            got = mine.generate(ours(ids, device), **given, **settings)
            np.testing.assert_array_equal(got.numpy()[:, : wanted.shape[1]], wanted)
    streamed = list(mine.stream(ours(ids[1:], device), max_new_tokens=9))
    assert streamed == got[1, 1 : 1 + len(streamed)].tolist()


def test_a_drawn_text_is_likely(folder):
    mine = loaded(folder("bart")[1], "cpu")
    drawn = {
        tuple(mine.generate([[5, 6, 7]], do_sample=True, seed=k, max_new_tokens=4)[0].tolist())
        for k in range(3)
    }
    assert len(drawn) > 1


def test_wrong_calls_say_what_to_do(folder):
    mine = loaded(folder("t5")[1], "cpu")
    with pytest.raises(pellucid.errors.ArgumentError, match="give decoder_input_ids or labels"):
        mine(ours(texts()[0], "cpu"))
    with pytest.raises(pellucid.errors.ArgumentError, match="give input_ids, encoder_outputs"):
        mine()
    with pytest.raises(pellucid.errors.ShapeError, match="at least one position"):
        mine.generate(None)
