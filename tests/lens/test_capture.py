"""Seeing and replacing what modules return: patterns, order, exceptions, as hooks of transformers do."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import close, loaded, ours, some_ids
from pellucid import lens, nn
from pellucid.errors import ShapeError, WeightError


def hooks_of(model) -> int:
    return sum(len(m._hooks) for m in model.modules())


def run(model, device: str, ids: np.ndarray | None = None):
    with pellucid.no_grad():
        return model(ours(some_ids(1, 8) if ids is None else ids, device))


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("model.layers.*", ["model.layers.0", "model.layers.1", "model.layers.2"]),
        ("model.layers.1.mlp", ["model.layers.1.mlp"]),
        ("model.layers.?.mlp.up_*", [f"model.layers.{k}.mlp.up_proj" for k in range(3)]),
        ("**.o_proj", [f"model.layers.{k}.self_attn.o_proj" for k in range(3)]),
        (["lm_head", "model.norm"], ["model.norm", "lm_head"]),
        (
            "model.layers.2.mlp.**",
            [f"model.layers.2.mlp{s}" for s in (".gate_proj", ".up_proj", ".down_proj", "")],
        ),
    ],
)
def test_patterns_pick_modules_in_the_order_of_the_run(model, device, pattern, paths):
    with lens.capture(model, pattern) as seen:
        run(model, device)
    assert list(seen) == paths


def test_stars_alone_pick_every_module_that_ran(model, device):
    with lens.capture(model) as seen:
        run(model, device)
    assert set(seen) == {path for path, _ in model.named_modules()} - {"", "model.layers"}


def test_what_is_seen_is_what_hooks_of_transformers_see(model, theirs, device):
    expected = {}
    handles = [
        m.register_forward_hook(lambda _, __, out, path=path: expected.update({path: out}))
        for path, m in theirs.named_modules()
        if path.endswith(("_proj", "mlp", "layernorm", "norm", "embed_tokens"))
    ]
    ids = some_ids(2, 8)
    with torch.no_grad():
        theirs(torch.tensor(ids))
    for handle in handles:
        handle.remove()
    with lens.capture(model, list(expected)) as seen:
        run(model, device, ids)
    assert set(seen) == set(expected)
    for path, value in expected.items():
        close(seen[path], value)


def test_inputs_can_be_kept_instead(model, device):
    with (
        lens.capture(model, "model.layers.*") as out,
        lens.capture(model, "model.layers.*", inputs=True) as into,
    ):
        run(model, device)
    np.testing.assert_array_equal(into["model.layers.2"].numpy(), out["model.layers.1"].numpy())


def test_of_several_runs_the_last_one_is_kept(model, device):
    with lens.capture(model, "lm_head") as seen:
        run(model, device)
        last = run(model, device, some_ids(1, 5, seed=9)).logits
    np.testing.assert_array_equal(seen["lm_head"].numpy(), last.numpy())


def test_no_hook_outlives_an_exception(model, device):
    with (
        pytest.raises(KeyError, match="mine"),
        lens.capture(model, "**"),
        lens.patch(model, {"lm_head": lambda x: x}),
    ):
        raise KeyError("mine")
    assert hooks_of(model) == 0
    with (
        pytest.raises(ZeroDivisionError),
        lens.capture(model, "**"),
        lens.patch(model, {"model.layers.1": lambda x: 1 / 0}),
    ):
        run(model, device)
    assert hooks_of(model) == 0
    with (
        pytest.raises(WeightError, match="fits 'nowhere'"),
        lens.patch(model, {"lm_head": lambda x: x, "nowhere": 1}),
    ):
        pass
    assert hooks_of(model) == 0
    run(model, device)


def test_wrong_patterns_and_paths_say_what_there_is(model, device):
    with pytest.raises(
        WeightError, match=r"no module of LlamaForCausalLM fits 'layers\.\*'.*model\.embed_tokens"
    ):
        lens.pick(model, "layers.*")
    with lens.capture(model, "lm_head") as seen:
        with pytest.raises(WeightError, match="did not run yet"):
            seen["lm_head"]
        run(model, device)
    with pytest.raises(WeightError, match=r"nothing was seen of 'model\.norm'. Seen: lm_head"):
        seen["model.norm"]


def test_a_patch_changes_the_logits_as_a_hook_of_transformers_does(model, theirs, device):
    ids = some_ids(1, 8)
    handles = [
        theirs.model.layers[1].mlp.register_forward_hook(lambda _, __, out: out * 0),
        theirs.model.layers[0].self_attn.o_proj.register_forward_hook(lambda _, __, out: out * 2 + 1),
    ]
    with torch.no_grad():
        expected = theirs(torch.tensor(ids)).logits
    for handle in handles:
        handle.remove()
    plain = run(model, device, ids).logits.numpy()
    changes = {"model.layers.1.mlp": lambda x: x * 0, "model.layers.0.self_attn.o_proj": lambda x: x * 2 + 1}
    with lens.patch(model, changes):
        close(run(model, device, ids).logits, expected)
    np.testing.assert_array_equal(run(model, device, ids).logits.numpy(), plain)
    assert np.abs(plain - expected.numpy()).max() > 0.1


def test_a_patch_with_a_tensor_moves_a_state_between_prompts(model, device):
    """Activation patching: the last layer's state of one prompt gives its logits in the run of another."""
    one, other = some_ids(1, 8, seed=1), some_ids(1, 8, seed=2)
    with lens.capture(model, "model.layers.2") as seen:
        wanted = run(model, device, one).logits.numpy()
    with lens.patch(model, {"model.layers.2": seen["model.layers.2"]}):
        np.testing.assert_array_equal(run(model, device, other).logits.numpy(), wanted)


def test_a_replacement_of_another_shape_is_refused(model, device):
    with (
        pytest.raises(
            ShapeError, match=r"model.norm returns shape \(1, 8, 32\), the replacement is \(1, 7, 32\)"
        ),
        lens.patch(model, {"model.norm": lambda x: x[:, 1:]}),
    ):
        run(model, device)
    with (
        pytest.raises(ShapeError, match="the replacement is float"),
        lens.patch(model, {"model.norm": lambda x: 1.0}),
    ):
        run(model, device)


def test_gradients_flow_through_what_is_captured_and_patched(device):
    with pellucid.device(device):
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        x = pellucid.ones(2, 3)
        with lens.capture(model, "1") as seen, lens.patch(model, {"0": lambda y: y * 2}):
            model(x).sum().backward()
    assert seen["1"].requires_grad
    assert all(p.grad is not None for p in model.parameters())


def test_nested_captures_see_patched_values(model, device):
    with (
        lens.patch(model, {"model.layers.0": lambda x: x + 1}),
        lens.capture(model, "model.layers.0") as seen,
    ):
        run(model, device)
    with lens.capture(model, "model.layers.0") as plain:
        run(model, device)
    np.testing.assert_allclose(seen["model.layers.0"].numpy(), plain["model.layers.0"].numpy() + 1, atol=1e-6)


def test_modules_are_listed_by_their_last_call(device):
    with pellucid.device(device):
        model = nn.Sequential(nn.Tanh(), nn.ReLU())
        with lens.capture(model, "*") as seen:
            model(pellucid.ones(2))
            model[0](pellucid.zeros(2))
    assert list(seen) == ["1", "0"]
    assert seen["0"].tolist() == [0.0, 0.0]


def test_a_model_is_copied_while_it_is_looked_at(model, device):
    with lens.capture(model, "model.layers.*") as seen:
        first = model(ours(some_ids(1, 4), device)).logits
        other = copy.deepcopy(model)
        assert first.requires_grad
        assert len(seen) == 3
    del other
    run(model, device)
    assert hooks_of(model) == 0


ASKED = {
    "seen[path]": lambda seen, path: seen[path],
    "get": lambda seen, path: seen.get(path),
    "dict(seen)": lambda seen, path: dict(seen)[path],
    "{**seen}": lambda seen, path: {**seen}[path],
    "|": lambda seen, path: (seen | {})[path],
    "items": lambda seen, path: dict(seen.items())[path],
    "values": lambda seen, path: [*seen.values()][[*seen].index(path)],
    "copy": lambda seen, path: seen.copy()[path],
    "copy.copy": lambda seen, path: copy.copy(seen)[path],
    "Seen(seen)": lambda seen, path: lens.Seen(seen)[path],
    "update": lambda seen, path: {} if (got := {}).update(seen) else got[path],
    "setdefault": lambda seen, path: seen.setdefault(path, None),
    "popitem": lambda seen, path: dict([seen.popitem() for _ in [*seen]])[path],
    "pop": lambda seen, path: seen.pop(path),
}


@pytest.mark.gpu
@pytest.mark.parametrize("pattern", ["resid_post.*", ["resid_post.*", "attn_probs.1", "logits"]])
def test_values_of_replays_are_those_of_eager_calls_however_one_asks(folder, pattern):
    model, ids = loaded(folder, "webgpu"), some_ids(1, 17)[0].tolist()
    with lens.capture(model, pattern) as seen:
        loop = model.stream(ids, max_new_tokens=len(ASKED), eos_token_id=())
        for k, (ask, token) in enumerate(zip(ASKED.values(), loop, strict=True)):
            if k:  # else the prompt, which is no replay
                path = [*seen][k % len(seen)]
                found = ask(seen, path)
                assert "_Late" not in repr(seen)
                with pellucid.no_grad(), lens.capture(model, pattern) as anew:
                    model(pellucid.tensor([ids], device="webgpu"))
                axis = 2 if path.startswith("attn") else 1
                wanted = anew[path].narrow(axis, anew[path].shape[axis] - 1, 1)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-4)
            ids.append(token)


@pytest.mark.gpu
def test_values_of_replays_that_nobody_asks_for_go_with_the_next_step(folder):
    model, ids = loaded(folder, "webgpu"), some_ids(1, 17)[0].tolist()
    held = set()
    with lens.capture(model, "resid_post.*") as seen:
        for k, _ in enumerate(model.stream(ids, max_new_tokens=14, eos_token_id=())):
            if 8 < k < 13:  # the last step has none that runs ahead of it
                held.add(pellucid.webgpu.memory_allocated())
    assert len(held) == 1
    kept = seen["resid_post.1"]
    assert kept is seen["resid_post.1"]
    pellucid.webgpu.synchronize()
    before = pellucid.webgpu.memory_allocated()
    count = len(seen)
    del seen
    assert before - pellucid.webgpu.memory_allocated() == (count - 1) * kept.numel() * kept.element_size()
