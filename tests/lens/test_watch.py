"""A look that is asked for up front is a part of the step: the same values, and nothing more to do."""

import contextlib
import copy
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import pellucid
from checked import unchecked
from models.tiny import loaded, made, saved, some_ids
from pellucid import lens
from pellucid.device.stream import stream

LAYERS = 14  # two dispatches of seven join what they return


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    return saved(made("llama_tied", num_hidden_layers=LAYERS), tmp_path_factory.mktemp("deep"))


def steps(model, count=8):
    """From position 17 to 31 all steps are replays."""
    return model.stream(some_ids(1, 17)[0].tolist(), max_new_tokens=count, eos_token_id=())


def anew(model, seen, **settings):
    """A look at the same values, made now."""
    return lens.logit_lens(model, lens.Seen(seen), **settings).table()


def same(got, wanted) -> bool:
    """Ids alike and probabilities too, but for their last bits: the first looks run kernels of their own."""
    ids, probabilities = ([[[c[k] for c in cell] for cell in row] for row in got] for k in (0, 1))
    others, wanted = ([[[c[k] for c in cell] for cell in row] for row in wanted] for k in (0, 1))
    return ids == others and np.allclose(probabilities, wanted, rtol=1e-5)


def test_a_look_of_the_step_is_what_a_new_look_gives(model, device):
    settings = [
        {"positions": -1},
        {"positions": slice(0, 8), "top_k": 3},
        {"pattern": "model.layers.*.mlp"},
    ]
    with contextlib.ExitStack() as stack:
        seen = [stack.enter_context(lens.watch(model, **one)) for one in settings]
        for _ in steps(model):
            for each, one in zip(seen, settings, strict=True):
                wanted = anew(model, each, **one)
                assert same(each.look.table(), wanted)
                assert same(lens.logit_lens(model, each, **one).table(), wanted)


def test_a_look_is_a_part_of_every_call(model, device):
    ids = pellucid.tensor(some_ids(1, 17), device=device)
    with lens.watch(model) as seen:
        with pytest.raises(pellucid.errors.WeightError, match="no look was a part of a call"):
            seen.look.table()
        model(ids)
        table = seen.look.table()
    assert same(lens.logit_lens(model, ids).table(), table)
    model(ids * 0)
    assert seen.look.table() == table
    with lens.watch(model) as seen, pytest.raises(pellucid.errors.ShapeError, match="Run one sequence"):
        model(ids.expand(2, -1))
    # Nothing stays behind in the model.
    model(ids.expand(2, -1))


def test_ids_and_probabilities_are_those_of_the_table(model, device):
    with lens.watch(model, positions=-1) as seen:
        for _ in steps(model):
            found = seen.look
            table = found.table()
            ids, probabilities = found.ids.tolist(), found.probabilities.tolist()
            assert [[i for i, _ in row[0]] for row in table] == [row[0] for row in ids]
            assert [[p for _, p in row[0]] for row in table] == [row[0] for row in probabilities]
            assert found.ids.dtype is pellucid.int64


def halve_the_norm(model, seen):
    with pellucid.no_grad():
        model.model.norm.weight.mul_(0.5)


def turn_the_head(model, seen):
    model.lm_head.weight = pellucid.nn.Parameter(model.lm_head.weight.detach().flip(0))


def other_memory(model, seen):
    model.model.norm.weight.data = model.model.norm.weight.detach() * -1


def change_a_state(model, seen):
    seen["model.layers.1"].mul_(-1)


def put_another_state(model, seen):
    seen["model.layers.1"] = seen["model.layers.0"] * -1


@pytest.mark.parametrize(
    "change", [halve_the_norm, turn_the_head, other_memory, change_a_state, put_another_state]
)
def test_a_change_after_the_step_is_seen(model, device, change):
    with lens.watch(model) as seen:
        for k, _ in enumerate(steps(model)):
            before = anew(model, seen)
            if k != 6:  # which ran ahead of the change
                assert same(seen.look.table(), before)
            if k == 5:
                change(model, seen)
                assert not same(anew(model, seen), before)
            assert same(lens.logit_lens(model, seen).table(), anew(model, seen))


@pytest.mark.parametrize("pattern", ["model", "model.embed_tokens"])
def test_a_change_of_the_head_is_seen_by_who_looks_at_what_holds_it(model, device, pattern):
    """The head shares its weight with the table of embeddings."""
    with lens.capture(model, pattern) as seen:
        for k, _ in enumerate(steps(model)):
            before = anew(model, seen, pattern=pattern)
            if k == 5:
                with pellucid.no_grad():
                    model.lm_head.weight.copy_(model.lm_head.weight.flip(0))
                assert not same(anew(model, seen, pattern=pattern), before)
            assert same(lens.logit_lens(model, seen, pattern).table(), anew(model, seen, pattern=pattern))


def test_many_looks_at_one_run_are_not_kept(model, device):
    def looked(count):
        for k in range(count):
            lens.logit_lens(model, seen, positions=k % 17, top_k=1 + k // 17).table()
        return pellucid.webgpu.memory_allocated()

    with lens.capture(model, "model.layers.*") as seen:
        model(pellucid.tensor(some_ids(1, 17), device=device))
        kept = looked(20)
        assert looked(60) - kept < 8192


def test_a_head_that_is_watched_sees_one_look_for_each_that_is_asked_for(model, device):
    calls = []
    handle = model.lm_head.register_forward_hook(lambda *_: calls.append(1))
    with lens.capture(model, "model.layers.*") as seen:
        for _ in steps(model):
            del calls[:]
            lens.logit_lens(model, seen, positions=-1).table()
            assert len(calls) == 1
    del calls[:]
    with lens.watch(model, positions=-1) as seen:
        for _ in steps(model):
            seen.look.table()
            assert len(calls) == 2  # the step's, and its look's
            del calls[:]
    handle.remove()


def test_what_taps_of_the_head_saw_is_the_steps(model, device):
    with lens.watch(model, positions=-1) as seen, lens.capture(model, "lm_head") as said:
        for token in steps(model):
            for found in (seen.look, lens.logit_lens(model, seen, positions=-1)):
                assert said["lm_head"].shape[1] == 1
                assert said["lm_head"][0, -1].argmax().item() == token
                assert found.table()[-1][0][0][0] == token


def test_what_is_seen_is_copied_while_a_look_is_under_way(model, device):
    with lens.watch(model, positions=-1) as seen:
        for _ in steps(model, 5):
            other = copy.deepcopy(seen)
            table = seen.look.table()
            assert same(lens.logit_lens(model, other, positions=-1).table(), table)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2, 13])
def test_what_was_seen_goes_with_who_looked(deep, count):
    model = loaded(deep, "webgpu")
    for _ in range(2):
        gc.collect()
        before = pellucid.webgpu.memory_allocated()
        with lens.watch(model, positions=-1) as seen:
            for _ in steps(model, count):
                pass
        assert pellucid.webgpu.memory_allocated() > before
        del seen
    assert pellucid.webgpu.memory_allocated() == before


@pytest.mark.asyncio
async def test_asynchronous_loops_look_too(model, device):
    tables = []
    with lens.watch(model, positions=-1) as seen:
        for _ in steps(model):
            tables.append(seen.look.table())
    awaited = []
    with lens.watch(model, positions=-1) as seen:
        stream = model.stream_async(some_ids(1, 17)[0].tolist(), max_new_tokens=8, eos_token_id=())
        async with contextlib.aclosing(stream) as tokens:
            async for _ in tokens:
                awaited.append(await seen.look.table_async())
                assert await seen.look.table_async() == seen.look.table()
    assert all(same(got, wanted) for got, wanted in zip(awaited, tables, strict=True))


def counted(
    model,
    look: bool,
    tap: bool = True,
    read: bool = False,
    settle: bool = False,
    pattern: str = "model.layers.*",
) -> dict[str, int]:
    """What the device does for an id, at most; with ``settle`` what is done for what it asks."""
    host, names = stream().open(), ("dispatches", "submits", "bind_groups")
    found = []
    looks = lens.watch(model, positions=-1) if look else lens.capture(model, pattern)
    with looks if tap else contextlib.nullcontext() as seen:
        for _ in steps(model, 13):
            stats = host.stats()
            if read:
                seen.look.table()
            if settle:
                pellucid.webgpu.flush()
                found.append([host.stats()[name] - stats[name] for name in names])
            else:
                found.append([stats[name] for name in names])
    found = np.array(found)
    return dict(zip(names, (found if settle else np.diff(found, axis=0))[8:-1].max(0).tolist(), strict=True))


@unchecked("an eager call stands before each replay, and counts")
@pytest.mark.gpu
def test_what_a_look_at_every_step_costs_at_most(deep):
    """Dispatches and submissions of an id; what is seen comes in memory that is known already."""
    model = loaded(deep, "webgpu")
    plain, taps = counted(model, False, tap=False), counted(model, False)
    look, table = counted(model, True), counted(model, True, read=True)
    assert taps["dispatches"] == plain["dispatches"]
    # Of the layers seven are joined at a time; norm, head, softmax, top k, and both of its results together.
    assert look["dispatches"] <= plain["dispatches"] + LAYERS // 7 + 8
    assert table["dispatches"] == look["dispatches"]
    assert plain["submits"] == taps["submits"] == look["submits"] == 2
    assert table["submits"] == 3
    assert [each["bind_groups"] for each in (plain, taps, look, table)] == [0, 0, 0, 0]


@unchecked("an eager call stands before each replay, and counts")
@pytest.mark.gpu
def test_what_probabilities_of_all_heads_cost_at_most(deep):
    """Scores and softmax of a layer, and which keys are seen once for all of them."""
    model = loaded(deep, "webgpu")
    plain, probs = counted(model, False, tap=False), counted(model, False, pattern="attn_probs")
    a_layer = 2 if stream().open().info.is_software else 4  # GPUs choose other kernels
    unfused = 0 if pellucid.webgpu.is_fusion_enabled() else 2
    assert probs["dispatches"] <= plain["dispatches"] + (a_layer + unfused) * LAYERS + 2 + unfused
    assert (probs["submits"], probs["bind_groups"]) == (2, 0)


@unchecked("an eager call stands before each replay, and counts")
@pytest.mark.gpu
@pytest.mark.parametrize("pattern", ["resid_post", "attn_probs"])
def test_a_value_that_nobody_reads_takes_one_call_of_python(deep, pattern):
    model = loaded(deep, "webgpu")
    package = Path(pellucid.__file__).parent
    counting = tuple(str(package / name) for name in ("lens", "models", "nn", "ops", "tensors"))

    def calls(look) -> int:
        """Of functions of Python for an id, at most; what hosts and replays do is left out."""
        found, now = [], [0]

        def count(frame, event, argument):
            now[0] += event == "call" and frame.f_code.co_filename.startswith(counting)

        with look:
            ids = steps(model, 24)
            for _ in range(14):
                next(ids)
            for _ in range(8):
                now[0] = 0
                sys.setprofile(count)
                try:
                    next(ids)
                finally:
                    sys.setprofile(None)
                found.append(now[0])
            ids.close()
        return max(found)

    plain = calls(contextlib.nullcontext())
    assert calls(lens.capture(model, pattern)) <= plain + LAYERS + 6


@pytest.mark.gpu
def test_asking_for_a_look_of_the_step_takes_no_dispatch(deep):
    assert counted(loaded(deep, "webgpu"), True, read=True, settle=True)["dispatches"] == 0


@pytest.mark.gpu
def test_who_does_not_watch_any_more_pays_nothing(deep):
    model = loaded(deep, "webgpu")
    host, counts = stream().open(), []
    with contextlib.ExitStack() as stack:
        stack.enter_context(lens.watch(model, positions=-1))
        for k, _ in enumerate(steps(model, 20)):
            counts.append(host.stats()["dispatches"])
            if k == 9:
                stack.close()
    taken = np.diff(counts)[7:-1].tolist()
    assert taken[0] > taken[-1] == counted(model, False, tap=False)["dispatches"]
