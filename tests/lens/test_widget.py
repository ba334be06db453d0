"""Widgets of notebooks: the state that anywidget sends, and their modules drawing it in Chromium."""

import numpy as np
import pytest

import pellucid
from pellucid import lens
from pellucid.errors import ArgumentError
from pellucid.lens import widget


class Words:
    """A tokenizer of numbers."""

    def decode(self, ids):
        return " ".join(f"w{i}" for i in ids)


def sent(made) -> dict:
    """What a notebook is told of a widget: JSON with bytes beside it."""
    state = made.get_state()
    assert state["_module" if "_module" in state else "_model_module"] == "anywidget"
    return state["data"]


def floats(data) -> np.ndarray:
    return np.frombuffer(data, "<f4")


def test_attention_travels_as_bytes(model):
    ids = [3, 14, 15, 9]
    seen = lens.run(model, ids, lens.Plan(capture=["attn_probs"]))
    data = sent(widget.attention(seen, [f"w{i}" for i in ids]))
    assert (data["layers"], data["heads"], len(data["tokens"])) == (3, 4, 4)
    wanted = np.concatenate([value.numpy() for value in seen.values()])
    np.testing.assert_array_equal(floats(data["probs"]), wanted.reshape(-1))


def test_the_lens_and_heat_maps(model):
    ids = [3, 14, 15, 9]
    look = lens.logit_lens(model, pellucid.tensor([ids], device=model.device), top_k=2)
    data = sent(widget.lens_grid(look, ids, Words()))
    assert data["tokens"][1] == {"id": 14, "token": "w14"}
    table = look.table()
    assert [c["layers"][2][0][0] for c in data["columns"]] == [cell[0][0] for cell in table[2]]
    values = pellucid.arange(6, device=model.device).reshape(2, 3)
    made = widget.heat_map(values, ["a", "b"], ["x", "y", "z"])
    assert floats(sent(made)["values"]).tolist() == [0, 1, 2, 3, 4, 5]
    heard = []
    made.observe(lambda change: heard.append(change["new"]), "selected")
    made.set_state({"selected": {"row": 1, "column": 2, "value": 5}})  # as the notebook's page does
    assert heard == [{"row": 1, "column": 2, "value": 5}]


@pytest.mark.parametrize("view", widget.VIEWS)
def test_modules_are_whole(view):
    text = widget.module(view)
    assert text.count("export default") == 1
    assert 'from "./' not in text


def test_what_cannot_be_drawn_is_refused(model):
    with pytest.raises(ArgumentError, match="no view 'nothing'"):
        widget.show("nothing", {})
    with pytest.raises(ArgumentError, match="attn_probs"):
        widget.attention(lens.run(model, [1, 2], lens.Plan(capture=["embed"])), ["a", "b"])
    with pytest.raises(ArgumentError, match="1 rows"):
        widget.heat_map(pellucid.zeros(2, 2, device=model.device), ["a"], ["b", "c"])
