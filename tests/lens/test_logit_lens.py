"""The logit lens beside transformers: every row, its last one the model's own prediction."""

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import loaded, made, ours, saved, some_ids
from pellucid import lens
from pellucid.errors import ShapeError, WeightError


def test_rows_are_those_of_transformers(model, theirs, device):
    ids = some_ids(1, 9)
    with torch.no_grad():
        out = theirs(torch.tensor(ids), output_hidden_states=True)
        hidden = [theirs.model.norm(h[0]) for h in out.hidden_states[1:-1]]
        logits = torch.stack([*(theirs.lm_head(h) for h in hidden), out.logits[0]])
        wanted = logits.softmax(-1).topk(5, -1)
    got = lens.logit_lens(model, ours(ids, device))
    assert got.paths == [f"model.layers.{k}" for k in range(3)]
    np.testing.assert_allclose(got.probabilities.numpy(), wanted.values.numpy(), atol=1e-5)
    clear = (wanted.values[..., :-1] - wanted.values[..., 1:]).numpy() > 1e-4
    same = got.ids.numpy() == wanted.indices.numpy()
    assert clear.any()
    assert same[..., :-1][clear].all()


def test_the_last_row_is_the_models_own_prediction(model, device):
    ids = ours(some_ids(1, 9), device)
    with pellucid.no_grad():
        best = pellucid.topk(pellucid.softmax(model(ids).logits[0], -1), 3, -1)
    row = lens.logit_lens(model, ids, top_k=3)
    np.testing.assert_array_equal(row.ids[-1].numpy(), best.indices.numpy())
    np.testing.assert_allclose(row.probabilities[-1].numpy(), best.values.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("positions", "kept"), [(-1, [8]), (3, [3]), (slice(2, 5), [2, 3, 4]), (slice(-2, None), [7, 8])]
)
def test_positions_choose_columns(model, device, positions, kept):
    ids = ours(some_ids(1, 9), device)
    whole = lens.logit_lens(model, ids)
    part = lens.logit_lens(model, ids, positions=positions)
    np.testing.assert_array_equal(part.ids.numpy(), whole.ids.numpy()[:, kept])


def test_what_was_captured_serves_too_and_is_filtered(model, device):
    ids = ours(some_ids(1, 9), device)
    with lens.capture(model, "**") as seen, pellucid.no_grad():
        model(ids)
    got = lens.logit_lens(model, seen)
    assert got.paths == [f"model.layers.{k}" for k in range(3)]
    np.testing.assert_array_equal(got.ids.numpy(), lens.logit_lens(model, ids).ids.numpy())
    mlps = lens.logit_lens(model, seen, "model.layers.*.mlp", top_k=2)
    assert mlps.ids.shape == (3, 9, 2)


def test_with_a_cache_only_new_positions_are_shown(model, device):
    ids = ours(some_ids(1, 9), device)
    cache = model.new_cache(1, 16)
    with pellucid.no_grad():
        model(ids[:, :6], past_key_values=cache)
    rest = lens.logit_lens(model, ids[:, 6:], past_key_values=cache)
    np.testing.assert_array_equal(rest.ids.numpy(), lens.logit_lens(model, ids).ids.numpy()[:, 6:])


class Letters:
    def decode(self, ids):
        return f"<{ids[0]}>"


def test_the_table_holds_tokens_and_probabilities(model, device):
    got = lens.logit_lens(model, ours(some_ids(1, 4), device), top_k=2)
    table = got.table()
    assert [len(table), len(table[0]), len(table[0][0])] == [3, 4, 2]
    assert table[1][2][0] == (got.ids[1, 2, 0].item(), got.probabilities[1, 2, 0].item())
    assert got.table(Letters())[1][2][0][0] == f"<{table[1][2][0][0]}>"


@pytest.mark.asyncio
async def test_the_table_has_an_awaitable_twin(model, device):
    got = lens.logit_lens(model, ours(some_ids(1, 4), device))
    assert await got.table_async() == got.table()


def test_what_is_no_layer_is_refused(model, device):
    ids = ours(some_ids(2, 4), device)
    with pytest.raises(ShapeError, match=r"model.layers.0 returned shape \(2, 4, 32\)"):
        lens.logit_lens(model, ids)
    with pytest.raises(WeightError, match=r"fits 'layers\.\*'"):
        lens.logit_lens(model, ids, "layers.*")
    with lens.capture(model, "lm_head") as seen, pellucid.no_grad():
        model(ids)
    with pytest.raises(WeightError, match="nothing of what was seen fits"):
        lens.logit_lens(model, seen)


def test_what_was_seen_stays_while_the_lens_looks(model, device):
    """Though the head, which the lens calls, belongs to the model that is looked at."""
    with pellucid.no_grad(), lens.capture(model, ["model.layers.*", "lm_head"]) as seen:
        for _ in range(4):
            model(ours(some_ids(1, 5), device))
            paths = list(seen)
            assert len(paths) == len(model.model.layers) + 1
            tables = [lens.logit_lens(model, seen).table() for _ in range(3)]
            assert tables[0] == tables[1] == tables[2]
            assert sorted(seen) == sorted(paths)


def test_positions_that_were_not_seen_are_refused(model, device):
    with pytest.raises(ShapeError, match="none of the 4 that were seen"):
        lens.logit_lens(model, ours(some_ids(1, 4), device), positions=slice(5, None))


def test_a_head_of_ones_own_is_asked_every_time(model, device):
    """It may read what nobody watches."""
    scale = [1.0]

    class Scaled(type(model)):
        def unembed(self, hidden):
            return super().unembed(hidden) * scale[0]

    own, model.__class__ = model.__class__, Scaled
    try:
        with lens.capture(model, "model.layers.*") as seen, pellucid.no_grad():
            model(ours(some_ids(1, 4), device))
            for _ in range(4):
                sharp = lens.logit_lens(model, seen).probabilities.numpy()
            scale[0] = 0.0
            flat = lens.logit_lens(model, seen).probabilities.numpy()
    finally:
        model.__class__ = own
    assert sharp.std() > 0
    np.testing.assert_allclose(flat, 1 / model.config.vocab_size, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ids_of_models_in_halves_are_whole(tmp_path, device, dtype):
    """A half holds no id past 2048."""
    model = loaded(saved(made("llama_tied", vocab_size=70000), tmp_path), device)
    got = lens.logit_lens(model.to(getattr(pellucid, dtype)), ours(some_ids(1, 5), device))
    assert got.probabilities.dtype is pellucid.float32
    ids, table = got.ids.tolist(), got.table()
    assert max(i for row in ids for cell in row for i in cell) > 65504
    assert [[[i for i, _ in cell] for cell in row] for row in table] == ids
