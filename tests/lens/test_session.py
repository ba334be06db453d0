"""Sessions: branches, pauses, changes, lockstep and files beside plain generation and whole runs."""

import json

import numpy as np
import pytest

import pellucid
from models.tiny import loaded, made, ours, saved, some_ids
from pellucid import lens
from pellucid.errors import ArgumentError, DimensionError, FormatError, RangeError

IDS = some_ids(1, 5)[0].tolist()


def whole(model, ids, plan=None):
    """Logits of what follows ids, in one run without a cache."""
    return lens.run(model, ids, plan).output.logits[0, -1].numpy()


def greedy(model, ids, count):
    return model.generate(ours([ids], model.device), max_new_tokens=count, eos_token_id=())[0].tolist()


def test_branches_say_what_plain_generation_says(model):
    session = lens.Session(model, IDS)
    nodes = [session.token() for _ in range(6)]
    assert session.ids == greedy(model, IDS, 6)
    # Back into the middle, another candidate, and on.
    session.go(nodes[2])
    other = session.candidates(2)[1][0]
    session.token(other)
    branch = [session.token() for _ in range(4)][-1]
    begun = IDS + [n.id for n in nodes[:3]] + [other]
    assert session.ids == greedy(model, begun, 4)
    assert session.branches.copies == 1  # the first time that a row of the other branch would be overwritten
    # To and fro: what a branch says does not depend on where the session was.
    for node in (nodes[5], branch, nodes[3], nodes[0], branch):
        session.go(node)
        session._logits.clear()
        np.testing.assert_allclose(session.logits.numpy(), whole(model, session.ids), atol=2e-5)
    assert [leaf.number for leaf in session.tree.leaves()] == [nodes[5].number, branch.number]


def test_a_token_that_was_tried_is_returned_to(model):
    session = lens.Session(model, IDS)
    first = session.token(3)
    session.go(first.parent)
    assert session.token(3) is first
    session.go(first.parent)
    session.plan = lens.Plan(ablate=[{"point": "mlp_out.0", "method": "zero"}])
    assert session.token(3) is not first  # it is read under another plan


def test_dropped_caches_and_longer_ones_are_read_again(model):
    session = lens.Session(model, IDS, capacity=256, branches=1)
    a, b = session.token(1), session.go(4) and session.token(2)
    for node in (a, b, a):
        session.go(node)
        session.token(7)
        np.testing.assert_allclose(session.logits.numpy(), whole(model, session.ids), atol=2e-5)
    assert len(session.branches.kept) == 1


def test_steps_pass_every_point_of_a_run(model):
    session = lens.Session(model, IDS)
    seen = lens.run(model, IDS, lens.Plan(capture=list(lens.points(model))))
    passed = [session.step("operation").address]
    while passed[-1] != "logits":
        passed.append(session.step("operation").address)
    assert passed == [a for a in lens.points(model) if a in seen]
    for address, value in session.paused.passed.items():
        axis = lens.points(model)[address].axes.index("position")
        wanted = np.take(seen[address].numpy(), [-1], axis)
        np.testing.assert_allclose(value.numpy(), wanted, atol=2e-5, err_msg=address)
    node = session.step("operation")  # behind the last value comes the next token
    assert session.paused is None
    assert node.id == greedy(model, IDS, 1)[-1]
    assert [session.step("layer").address for _ in range(3)] == [
        "resid_post.0",
        "resid_post.1",
        "resid_post.2",
    ]


@pytest.mark.parametrize("address", ["resid_mid.0", "z.1", "attn_probs.0", "logits"])
def test_a_change_in_a_pause_is_a_patch(model, address):
    session = lens.Session(model, IDS)
    before = session.token()
    ids = session.ids
    assert session.logits.shape[-1] == model.config.vocab_size  # it was read, and is read anew
    session.pause(address)
    session.change(lambda x: x * 0.5)
    assert session.at is not before
    got = session.resume().numpy()
    half = [{"point": address, "method": "scale", "strength": 0.5, "positions": [len(ids) - 1]}]
    np.testing.assert_allclose(got, whole(model, ids, lens.Plan(steer=half)), atol=2e-5)
    # The tokens behind it read the changed keys and values, those of the other branch do not.
    session.token(2)
    np.testing.assert_allclose(
        session.logits.numpy(), whole(model, [*ids, 2], lens.Plan(steer=half)), atol=2e-5
    )
    session.go(before)
    session.token(2)
    np.testing.assert_allclose(session.logits.numpy(), whole(model, [*ids, 2]), atol=2e-5)


def test_a_change_takes_the_place_of_what_the_plan_does_there(model):
    plan = lens.Plan(steer=[{"point": "resid_post", "method": "scale", "strength": 3.0}])
    session = lens.Session(model, IDS, plan=plan)
    value = pellucid.ones(1, 1, 32, device=model.device)
    session.pause("resid_post.0")
    assert session.change(value).value.tolist() == value.tolist()
    one = {"point": "resid_post.0", "method": "replace", "value": value.tolist(), "positions": [4]}
    scale = {"method": "scale", "strength": 3.0}
    rest = [
        {"point": "resid_post.0", "positions": [0, 1, 2, 3], **scale},
        {"point": "resid_post.1", **scale},
        {"point": "resid_post.2", **scale},
    ]
    wanted = whole(model, IDS, lens.Plan(patch=[one], steer=rest))
    np.testing.assert_allclose(session.resume().numpy(), wanted, atol=2e-5)


def test_a_value_of_another_shape_changes_nothing(model):
    session = lens.Session(model, IDS)
    session.pause("resid_post.0")
    with pytest.raises(pellucid.errors.ShapeError, match=r"resid_post\.0"):
        session.change(pellucid.ones(3, device=model.device))
    assert len(session.tree) == len(IDS)
    np.testing.assert_allclose(session.logits.numpy(), whole(model, IDS), atol=2e-5)


def test_a_session_is_saved_and_loaded(model, tmp_path):
    session = lens.Session(
        model, IDS, plan=lens.Plan(ablate=[{"point": "z.0", "method": "zero", "heads": [1]}])
    )
    session.token()
    session.pause("resid_mid.1")
    session.change(lambda x: -x)
    session.resume()
    changed = session.token()
    session.go(4)
    session.token(9)
    session.save(tmp_path / "session.json")
    assert (tmp_path / "session.json").stat().st_size < 10_000
    again = lens.Session.load(tmp_path / "session.json", model)
    assert again.tree.rows() == session.tree.rows()
    assert again.at.number == session.at.number
    for number in (changed.number, 4, session.at.number):
        np.testing.assert_allclose(
            again.go(number) and again.logits.numpy(),
            session.go(number) and session.logits.numpy(),
            atol=2e-5,
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: "{", "not valid JSON.*Give what save wrote"),
        (lambda s: "[]", "an object was expected"),
        (lambda s: s.replace('"dim": 32', '"dim": 33'), "Load that model"),
        (lambda s: s.replace('"parent": 3', '"parent": 7'), "nodes"),
        (lambda s: s.replace('"at": 4', '"at": 5'), "place to stand"),
        (lambda s: json.dumps({**json.loads(s), "nodes": None}), "nodes"),
        (lambda s: json.dumps({k: v for k, v in json.loads(s).items() if k != "at"}), "at is missing"),
    ],
)
def test_a_file_that_is_no_session_is_refused(folder, tmp_path, change, words):
    model = loaded(folder, "cpu")
    lens.Session(model, IDS).save(tmp_path / "s.json")
    file = tmp_path / "s.json"
    changed = change(file.read_text())
    assert changed != file.read_text()
    file.write_text(changed)
    with pytest.raises(FormatError, match=words):
        lens.Session.load(file, model)


def test_lockstep_tells_where_two_plans_part(model):
    plan = lens.Plan(ablate=[{"point": "mlp_out.1", "method": "zero"}])
    pair = lens.Lockstep(lens.Session(model, IDS), lens.Session(model, IDS, plan=plan))
    ids = list(IDS)
    for _ in range(3):
        found = pair.step()
        first, second = (whole(model, ids, p) for p in (None, plan))
        a, b = (x - np.log(np.exp(x).sum()) for x in (first, second))
        assert np.isclose(found.kl, (np.exp(a) * (a - b)).sum(), atol=1e-4)
        assert found.choices == (first.argmax(), second.argmax())
        assert found.distances["resid_post.0"] < 1e-6 < found.distances["resid_post.1"]
        ids.append(int(first.argmax()))
    assert pair.second.ids == ids[:-1]


@pytest.mark.parametrize("name", ["mistral_window", "mamba", "lfm2"])
def test_windows_and_states_are_read_again_where_they_forgot(name, tmp_path):
    model = loaded(saved(made(name), tmp_path), "cpu")
    session = lens.Session(model, IDS)
    nodes = [session.token() for _ in range(8)]
    assert session.ids == greedy(model, IDS, 8)
    session.go(nodes[1])
    session.token(session.candidates(2)[1][0])
    np.testing.assert_allclose(session.logits.numpy(), whole(model, session.ids), atol=1e-4)
    session.go(nodes[7])
    session._logits.clear()
    np.testing.assert_allclose(session.logits.numpy(), whole(model, session.ids), atol=1e-4)
    session.go(nodes[4])
    session.pause("resid_post.0")
    session.change(lambda x: x * 2)
    ids, got = session.ids, session.resume().numpy()
    double = [{"point": "resid_post.0", "method": "scale", "strength": 2.0, "positions": [len(ids) - 1]}]
    np.testing.assert_allclose(got, whole(model, ids, lens.Plan(steer=double)), atol=1e-4)


def test_a_text_that_was_long_is_read_again_where_it_becomes_short(tmp_path):
    """LongRoPE turns the keys of a text past 16 positions by other factors, also those of its beginning."""
    factors = {"short_factor": [1.0, 1.1, 1.3, 2.0], "long_factor": [1.5, 2.5, 4.0, 9.0]}
    scaling = {"rope_type": "longrope", "original_max_position_embeddings": 16, **factors}
    theirs = made("phi3", rope_scaling=scaling, original_max_position_embeddings=16)
    model, ids = loaded(saved(theirs, tmp_path), "cpu"), some_ids(1, 20)[0].tolist()
    session = lens.Session(model, ids)
    np.testing.assert_allclose(session.logits.numpy(), whole(model, ids), atol=1e-4)
    for _ in range(10):
        session.go(session.at.parent)
    session.token(ids[0])
    np.testing.assert_allclose(session.logits.numpy(), whole(model, session.ids), atol=1e-4)


def test_what_cannot_be_is_refused(folder):
    model = loaded(folder, "cpu")
    session = lens.Session(model, IDS)
    with pytest.raises(ArgumentError, match="no token"):
        lens.Session(model, [])
    with pytest.raises(ArgumentError, match="not paused"):
        session.change(lambda x: x)
    with pytest.raises(ArgumentError, match="token, layer, operation"):
        session.step("head")
    with pytest.raises(RangeError, match="integers from 0"):
        session.token(10**6)
    with pytest.raises(RangeError, match="which has 0 to 4"):
        session.go(5)
    with pytest.raises(ArgumentError, match="does not come after embed"):
        session.pause("nowhere")
    long = lens.Session(model, [1] * (model.config.max_position_embeddings + 1))
    with pytest.raises(DimensionError, match="over the model's"):
        _ = long.logits
