"""Every encoder and head beside transformers' with the same checkpoint, with padding and token types."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import ENCODERS, VOCABULARY, close, made_encoder, ours, saved

HEADS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
TYPED = ("bert", "electra", "albert")  # whose token types tell two texts apart


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """(name, head) -> (a model of transformers, its folder), made once."""

    @cache
    def make(name: str, head: str) -> tuple[Any, Any]:
        model = made_encoder(name, head)
        return model, saved(model, tmp_path_factory.mktemp(name))

    return make


def auto(head: str) -> Any:
    return getattr(pellucid.models, "AutoModel" + head.removeprefix("Model"))


def inputs(name: str) -> dict[str, np.ndarray]:
    """Two texts, the first of which is padded behind, with the padding id."""
    rng = np.random.default_rng(3)
    ids, mask = rng.integers(4, VOCABULARY, (2, 13)), np.ones((2, 13), np.int64)
    ids[0, 5:], mask[0, 5:] = 1, 0
    given = {"input_ids": ids, "attention_mask": mask}
    return given | ({"token_type_ids": rng.integers(0, 2, (2, 13))} if name in TYPED else {})


def both(theirs: Any, mine: Any, device: str, given: dict[str, np.ndarray], **settings: Any) -> tuple:
    expected = theirs(**{k: torch.tensor(v) for k, v in given.items()}, **settings)
    return expected, mine(**{k: ours(v, device) for k, v in given.items()}, **settings)


def agree(expected: Any, got: Any) -> None:
    for field, wanted in expected.items():
        found = got[field]
        if isinstance(wanted, tuple):
            assert len(found) == len(wanted)
            for one, other in zip(found, wanted, strict=True):
                close(one, other)
        else:
            close(found, wanted)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_layer_agrees(name, folder, device):
    theirs, path = folder(name, "Model")
    mine = pellucid.AutoModel.from_pretrained(str(path), device=device)
    assert set(mine.state_dict()) == set(theirs.state_dict())
    with torch.no_grad(), pellucid.no_grad():
        agree(*both(theirs, mine, device, inputs(name), output_hidden_states=True))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ENCODERS)
def test_every_head_agrees(name, head, folder):
    theirs, path = folder(name, head)
    mine = auto(head).from_pretrained(str(path), device="cpu")
    assert set(mine.state_dict()) == set(theirs.state_dict())
    if head != "ForQuestionAnswering":
        assert mine.config.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    given = inputs(name)
    shape = {"ForSequenceClassification": (2,), "ForQuestionAnswering": (2,)}.get(head, (2, 13))
    labels = np.random.default_rng(0).integers(0, 3, shape)
    if head == "ForQuestionAnswering":
        given |= {"start_positions": labels, "end_positions": labels + 20}
        given["end_positions"][1] = 7
    else:
        given["labels"] = labels
    with torch.no_grad(), pellucid.no_grad():
        agree(*both(theirs, mine, "cpu", given))


@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_reach_every_parameter(name, folder):
    head = "ForMaskedLM" if name != "xlm-roberta" else "ForSequenceClassification"
    theirs, path = folder(name, head)
    mine = auto(head).from_pretrained(str(path), device="webgpu" if name == "bert" else "cpu")
    given = inputs(name)
    given["labels"] = given["input_ids"] if head == "ForMaskedLM" else np.array([2, 0])
    expected, got = both(theirs, mine, mine.device, given)
    expected.loss.backward()
    got.loss.backward()
    wanted = {path: p.grad for path, p in theirs.named_parameters()}
    theirs.zero_grad()
    found = dict(mine.named_parameters())
    assert set(found) == set(wanted)
    for path, p in found.items():
        if wanted[path] is None:
            assert p.grad is None or not p.grad.abs().sum().item(), path
            continue
        # Biases of keys have none but rounding: they add the same to all scores of a query.
        scale = max(float(wanted[path].abs().max()), 1e-3)
        np.testing.assert_allclose(p.grad.numpy() / scale, wanted[path] / scale, atol=1e-3, err_msg=path)
