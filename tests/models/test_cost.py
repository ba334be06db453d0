"""What a generated id costs, and what generation leaves behind: reads, plans, memory, hooks."""

import gc
from itertools import pairwise
from typing import Any

import pytest

import pellucid
from checked import unchecked
from models.tiny import loaded, some_ids
from pellucid.device.stream import stream
from pellucid.op.planning import Op

NO_STOP = {"eos_token_id": ()}


@pytest.fixture
def gpu(twin) -> Any:
    return loaded(twin("llama")[1], "webgpu")


def greedy(model, ids, **settings) -> list[int]:
    """The new ids of one sequence."""
    return model.generate(ids.tolist(), **settings)[0, ids.shape[1] :].tolist()


def counted(monkeypatch, owner, name: str) -> list:
    calls, original = [], getattr(owner, name)

    def wrapper(self, *args, **kwargs):
        calls.append(args)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, wrapper)
    return calls


@unchecked("reads are counted")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"repetition_penalty": 1.3, "min_new_tokens": 30},
        {"do_sample": True, "top_p": 0.9, "seed": 1},
        {"do_sample": True, "top_k": 0, "temperature": 0.7, "repetition_penalty": 1.1},
    ],
    ids=str,
)
def test_a_token_costs_one_small_read_and_no_plan(gpu, monkeypatch, settings):
    """P-053, P-100: a step of decoding is one submit and one small read, which takes its own words along."""
    reads = counted(monkeypatch, type(stream().open()), "begin_read")
    plans = counted(monkeypatch, Op, "plan")
    submits = counted(monkeypatch, type(stream().open()), "submit")
    found = []
    for _ in gpu.stream(some_ids(1, 5).tolist(), max_new_tokens=40, **settings, **NO_STOP):
        found.append((len(reads), len(plans), len([held for _, held in submits if not held])))
    later = found[3:]
    for k in (0, 2):
        assert [b[k] - a[k] for a, b in pairwise(later)][:-1] == [1] * (len(later) - 2)
    assert later[-1][1] == later[0][1]
    assert max(args[2] for args in reads) <= 16


def test_memory_is_flat_over_two_hundred_tokens(gpu):
    used = []
    for k, _ in enumerate(gpu.stream(some_ids(1, 5).tolist(), max_new_tokens=201, **NO_STOP)):
        if k in (20, 200):
            gc.collect()
            pellucid.webgpu.synchronize()
            used.append((pellucid.webgpu.memory_allocated(), pellucid.webgpu.memory_stats()["live_buffers"]))
    assert len(used) == 2
    # The last step runs no further one ahead, so less is held then.
    assert used[1][0] <= used[0][0]
    assert used[1][1] <= used[0][1]


def test_a_prompt_has_logits_of_its_end_alone(gpu):
    """P-053: of the 40 positions of a prompt only the last one meets the head."""
    shapes = []
    handle = gpu.lm_head.register_forward_hook(lambda module, args, out: shapes.append(tuple(out.shape[:2])))
    gpu.generate(some_ids(2, 40).tolist(), max_new_tokens=3, **NO_STOP)
    handle.remove()
    assert shapes == [(2, 1)] * 3


def test_a_stream_that_is_left_frees_its_memory(gpu):
    gc.collect()
    before = pellucid.webgpu.memory_allocated()
    for k, _ in enumerate(gpu.stream(some_ids(1, 5).tolist(), max_new_tokens=50, **NO_STOP)):
        if k == 3:
            assert pellucid.webgpu.memory_stats()["cache_bytes"] > 0
            break
    gc.collect()
    stats = pellucid.webgpu.memory_stats()
    # What stays are the rotary tables, which belong to the model.
    assert stats["cache_bytes"] == 0
    tables = sum(t._storage.nbytes for *pair, _ in gpu.model.rotary_emb._tables.values() for t in pair)
    assert stats["allocated_bytes"] <= before + tables


def test_whoever_looks_sees_no_step_that_is_not_shown(gpu):
    ids = some_ids(1, 6)
    plain = greedy(gpu, ids, max_new_tokens=9, **NO_STOP)
    calls = []
    handle = gpu.lm_head.register_forward_hook(lambda *_: calls.append(1))
    first = plain.index(plain[4])
    assert greedy(gpu, ids, max_new_tokens=9, eos_token_id=plain[4]) == plain[: first + 1]
    handle.remove()
    assert len(calls) == first + 1


def test_a_patch_between_tokens_takes_effect_at_the_next(twin):
    """The step that ran ahead of the patch is done again."""

    def text(device: str) -> list[int]:
        model = loaded(twin("llama")[1], device)
        found = []
        loop = model.stream(some_ids(1, 6).tolist(), max_new_tokens=6, **NO_STOP)
        found += [next(loop), next(loop)]
        with pellucid.lens.patch(model, {"model.layers.1": lambda x: x * -1}):
            found += [next(loop), next(loop)]
        return found + list(loop)

    assert text("webgpu") == text("cpu")
