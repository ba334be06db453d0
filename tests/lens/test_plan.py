"""Plans: changes beside numpy and hooks of transformers, in generation, as JSON, and hostile JSON."""

import json

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import close, loaded, ours, some_ids
from pellucid import lens
from pellucid.errors import ArgumentError, FormatError, RangeError, ShapeError
from pellucid.models.generate.step import step_of

RANDOM = np.random.default_rng(0)
V, W = RANDOM.standard_normal((2, 32)).astype("float32")
U = V / np.linalg.norm(V)


def value(model, ids, *, point="resid_post.1", **change):
    """What a point holds after a change."""
    change = {"point": point, **change}
    group = lens.changes.METHODS[change["method"]].group
    plan = lens.Plan(capture=[point], **{group: [change]})
    return lens.run(model, ids, plan)[point].numpy()


def swapped(x):
    w = W / np.linalg.norm(W)
    plane = np.linalg.lstsq(np.stack([U, w], 1), x.reshape(-1, 32).T, rcond=None)[0]
    plane = plane.T.reshape(*x.shape[:-1], 2)
    return x + (plane[..., :1] - plane[..., 1:]) * (w - U)


STEER = {
    "add": ({"value": V, "strength": 2.5}, lambda x: x + 2.5 * V),
    "relative": (
        {"method": "add", "value": V, "strength": 0.5, "relative": True},
        lambda x: x + 0.5 * np.linalg.norm(x, axis=-1, keepdims=True) * U,
    ),
    "project_out": ({"value": V}, lambda x: x - (x @ U)[..., None] * U),
    "clamp": (
        {"value": V, "least": -0.1, "most": 0.2},
        lambda x: x + ((x @ U).clip(-0.1, 0.2) - x @ U)[..., None] * U,
    ),
    "scale": ({"strength": 3.0}, lambda x: 3 * x),
    "along": (
        {"method": "scale", "value": V, "strength": 3.0},
        lambda x: x + 2 * (x @ U)[..., None] * U,
    ),
    "swap": ({"value": V, "other": W}, swapped),
    "zero": ({}, lambda x: x * 0),
    "mean": ({}, lambda x: np.broadcast_to(x.mean((0, 1)), x.shape)),
    "resample": ({"order": [1, 0]}, lambda x: x[::-1]),
    "replace": ({"value": V}, lambda x: np.broadcast_to(V, x.shape)),
}


@pytest.mark.parametrize("name", STEER)
def test_changes_compute_what_they_say(model, device, name):
    settings, expected = STEER[name]
    ids = ours(some_ids(2, 6), device)
    plain = lens.run(model, ids, lens.Plan(capture=["resid_post.1"]))["resid_post.1"].numpy()
    got = value(model, ids, **{"method": name, **settings})
    np.testing.assert_allclose(got, expected(plain), atol=1e-4)
    some = value(model, ids, positions=[1, -1], columns=[0, 5], **{"method": name, **settings})
    wanted = plain.copy()
    at = np.ix_([0, 1], [1, 5], [0, 5])
    wanted[at] = got[at]
    np.testing.assert_allclose(some, wanted, atol=1e-6)


def test_patches_reach_the_logits_as_hooks_of_transformers_do(model, theirs, device):
    ids = some_ids(1, 7)

    def head(module, args):
        z = args[0].clone()
        z[:, 3, 8:16] = 0
        return (z,)

    handle = theirs.model.layers[1].self_attn.o_proj.register_forward_pre_hook(head)
    with torch.no_grad():
        wanted = theirs(torch.tensor(ids)).logits
    handle.remove()
    for point in ("z.1", "blocks.1.attn.hook_result"):
        ablated = lens.Plan(ablate=[{"point": point, "method": "zero", "positions": 3, "heads": 1}])
        close(lens.run(model, ours(ids, device), ablated).output.logits, wanted)


def test_attention_that_is_replaced_by_itself_changes_nothing_and_else_mixes_values(model, device):
    ids = ours(some_ids(1, 7), device)
    plain = lens.run(model, ids, lens.Plan(capture=["attn_probs", "attn_scores", "v.1", "z.1"]))
    for name in ("attn_probs", "attn_scores"):
        same = lens.run(model, ids, lens.Plan(patch={f"{name}.{k}": plain[f"{name}.{k}"] for k in range(3)}))
        np.testing.assert_allclose(same.output.logits.numpy(), plain.output.logits.numpy(), atol=1e-4)
    # Everything from the first position: the output is its value.
    first = np.zeros((1, 1, 7, 7), "float32")
    first[..., 0] = 1
    seen = lens.run(model, ids, lens.Plan(capture=["z.1"], patch={"attn_probs.1": first}))
    v = plain["v.1"].numpy()[:, :1].repeat(2, 2)
    np.testing.assert_allclose(seen["z.1"].numpy(), v.repeat(7, 1), atol=1e-5)


# Positions of a plan -> those of a whole run of nine ids and six more, whose last is not fed back.
POSITIONS = {None: None, (2, 11): (2, 11), (-1,): tuple(range(8, 14))}


def test_generation_follows_a_plan_as_whole_runs_do(model, device):
    ids, settings = some_ids(1, 9)[0].tolist(), {"max_new_tokens": 6, "eos_token_id": ()}
    plain = model.generate(ids, **settings)[0].tolist()
    for given, whole in POSITIONS.items():
        steer = [
            {"point": "attn_probs.1", "method": "scale", "strength": 0.5},
            {"point": "resid_post.0", "method": "add", "value": V, "strength": 3.0, "positions": given},
        ]
        plan = lens.Plan(steer=steer, lens={"points": "resid_post", "position": -1})
        got = model.generate(ids, plan=plan, **settings)[0].tolist()
        assert got != plain
        with lens.attach(model, plan) as seen:
            new = list(model.stream(ids, **settings))
            assert seen.look.table()[-1][0][0][0] == new[-1]
        assert got == [*ids, *new]
        plan = lens.Plan(steer=[steer[0], {**steer[1], "positions": whole}])
        logits = lens.run(model, got[:-1], plan).output.logits[0, 8:]
        assert logits.argmax(-1).tolist() == new
    if device == "webgpu":
        assert step_of(model)._logits.explain().replays >= 15


@pytest.mark.gpu
def test_compiled_calls_follow_a_plan(folder):
    model = loaded(folder, "webgpu")
    call = pellucid.compile(lambda ids: model(ids).logits)
    direction = pellucid.tensor(V)
    plan = lens.Plan(
        capture=["attn_probs.1", "resid_post.0"],
        steer=[{"point": "resid_post.0", "method": "add", "value": direction, "positions": [1]}],
    )
    for strength in (1, 2):  # a slider: the same program, another direction
        direction.copy_(ours(V * strength, "webgpu"))
        for k in range(4):
            ids = ours(some_ids(1, 6, seed=k), "webgpu")
            with pellucid.no_grad(), lens.attach(model, plan) as seen:
                call(ids)
            wanted = lens.run(model, ids, plan)
            for address in ("attn_probs.1", "resid_post.0"):
                np.testing.assert_allclose(seen[address].numpy(), wanted[address].numpy(), atol=1e-5)
    assert call.explain().replays >= 5


def test_plans_are_json(model):
    plan = lens.Plan(
        capture=["z.1", "blocks.0.hook_resid_pre"],
        patch=[lens.Change("embed", "replace", V, positions=(1,))],
        steer=[{"point": "resid_post.1", "method": "swap", "value": V, "other": pellucid.tensor(W)}],
        ablate=[{"point": "z", "method": "mean", "heads": [1]}],
        lens={"points": "resid_mid", "top_k": 3},
    )
    text = plan.to_json()
    again = lens.Plan.from_json(text)
    assert again.to_json() == text
    assert again.capture == plan.capture
    first, second = (lens.run(model, [5, 6, 7], p) for p in (plan, again))
    assert first.output.logits.tolist() == second.output.logits.tolist()
    assert len(first.look.table()) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid JSON.*Give what to_json wrote"),
        ("[]", "an object was expected"),
        ('{"catch": []}', "'catch' is not known"),
        ('{"capture": [1]}', r"capture\[0\] is 1; it must be a text"),
        ('{"steer": [{"point": "z"}]}', r"steer\[0\]\.method is missing"),
        ('{"steer": [{"point": "z", "method": "burn"}]}', r"steer\[0\]\.method is 'burn'; it must be one of"),
        ('{"steer": [{"point": "z", "method": "zero"}]}', "steer does not take 'zero'. It belongs to ablate"),
        ('{"steer": [{"point": "z", "method": "add"}]}', "add needs 'value'"),
        ('{"steer": [{"point": "z", "method": "add", "_known": 1}]}', r"steer\[0\]\.'_known' is not known"),
        ('{"ablate": [{"point": "z", "method": "zero", "heads": [-1]}]}', r"ablate\[0\]\.heads\[0\] is -1"),
        ('{"steer": [{"point": "z", "method": "scale", "strength": NaN}]}', r"steer\[0\]\.strength is nan"),
        ('{"lens": {"top_k": 0}}', r"lens\.top_k is 0"),
        ('{"patch": [{"point": "z", "method": "replace", "value": 3}]}', r"patch\[0\]\.value is 3"),
    ],
)
def test_hostile_json_is_refused_with_the_field(text, message):
    with pytest.raises(FormatError, match=message):
        lens.Plan.from_json(text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"dtype": "float32", "shape": [2], "data": "AAAA"}, r"value\.data has 3 bytes; 8 are needed"),
        ({"dtype": "float32", "shape": [1 << 30] * 8, "data": ""}, r"value\.data has 0 bytes"),
        ({"dtype": "object", "shape": [], "data": ""}, r"value\.dtype is 'object'"),
        ({"dtype": "float32", "shape": [1], "data": "§"}, r"value\.data is no base64"),
    ],
)
def test_hostile_values_are_refused(value, message):
    row = {"point": "z", "method": "replace", "value": value}
    with pytest.raises(FormatError, match=message):
        lens.Plan.from_json(json.dumps({"patch": [row]}))


def test_changes_that_do_not_fit_say_so(model, device):
    def run(**change):
        lens.run(model, [3, 4, 5], lens.Plan(patch=[{"method": "replace", "value": V, **change}]))

    with pytest.raises(RangeError, match="about position 3; there are 3"):
        run(point="resid_post.0", positions=[3])
    with pytest.raises(ShapeError, match=r"resid_post\.0 has no heads to choose from"):
        run(point="resid_post.0", heads=[0])
    with pytest.raises(RangeError, match="has 32 dims, and no 40"):
        run(point="resid_post.0", columns=[40])
    with pytest.raises(ShapeError, match=r"replace at z\.0: the value of shape \(1, 3, 4, 8\)"):
        run(point="z.0")
    with pytest.raises(ArgumentError, match="there is no method 'burn'"):
        run(point="z.0", method="burn")
    with pytest.raises(ArgumentError, match=r"patch: .*unexpected keyword argument 'colour'"):
        run(point="z.0", colour=1)
