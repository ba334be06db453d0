"""Every encoder and head beside transformers' with the same checkpoint, with padding and token types."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import pellucid
from models.tiny import ENCODERS, VOCABULARY, close, made_encoder, ours, saved
from pellucid.models import REGISTRIES

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


# Keys of checkpoints that people have, beside those that today's transformers writes.
FORMERLY = {
    "albert": {"down_scale_factor": 1, "gap_size": 0, "layers_to_keep": [], "net_structure_type": 0},
    "bart": {"num_hidden_layers": 2, "num_beams": 4, "normalize_before": False, "normalize_embedding": True,
             "prefix": " ", "max_length": 142, "force_bos_token_to_be_generated": True},
    "bert": {"directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform",
             "output_past": True, "_num_labels": 9},
    "distilbert": {"finetuning_task": "sst-2", "tie_weights_": True},
    "modernbert": {"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "reference_compile": True,
                   "local_rope_theta": 10000.0, "position_embedding_type": "absolute"},
    "roberta": {"language": "english", "name": "Roberta"},
    "t5": {"n_positions": 512, "task_specific_params": {"summarization": {"prefix": "summarize: "}}},
}  # fmt: skip


@pytest.mark.parametrize("name", FORMERLY)
def test_keys_of_older_files_are_read(name):
    found = [r.model_types[name] for r in REGISTRIES.values() if name in r.model_types]
    assert all(model.config_class.from_dict(FORMERLY[name]).num_hidden_layers for model in found)
    with pytest.raises(pellucid.errors.FormatError, match="The architecture computes"):
        found[0].config_class.from_dict({"position_embedding": "relative"})


def test_a_checkpoint_fills_what_it_has(folder, tmp_path):
    theirs, path = folder("bert", "ForMaskedLM")
    mine = pellucid.AutoModel.from_pretrained(str(path), device="cpu")
    assert mine.pooler is None
    given = inputs("bert")
    with torch.no_grad(), pellucid.no_grad():
        expected, got = both(theirs.bert, mine, "cpu", given)
    close(got.last_hidden_state, expected.last_hidden_state)
    with pytest.raises(pellucid.errors.WeightError, match=r"missing in the file: bert.pooler.*classifier"):
        pellucid.AutoModelForSequenceClassification.from_pretrained(str(path))
    named = {k.replace("LayerNorm.weight", "LayerNorm.gamma"): v for k, v in theirs.state_dict().items()}
    named["cls.seq_relationship.weight"] = torch.zeros(2, 32)
    named = {k: v.contiguous().clone() for k, v in named.items() if ".decoder." not in k}
    save_file(
        {k.replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in named.items()},
        tmp_path / "model.safetensors",
    )
    (tmp_path / "config.json").write_text((path / "config.json").read_text())
    again = pellucid.AutoModelForMaskedLM.from_pretrained(str(tmp_path), device="cpu")
    with torch.no_grad(), pellucid.no_grad():
        agree(*both(theirs, again, "cpu", given))


def test_wrong_calls_say_what_to_do(folder):
    errors = pellucid.errors
    bert = pellucid.AutoModel.from_pretrained(str(folder("bert", "Model")[1]), device="cpu")
    ids = ours(np.full((1, 41), 5), "cpu")
    for error, match, given in [
        (errors.DimensionError, "41 positions, and the model has 40", {"input_ids": ids}),
        (errors.ShapeError, "ids.unsqueeze", {"input_ids": ids[0]}),
        (errors.ShapeError, "attention_mask of shape", {"input_ids": ids[:, :4], "attention_mask": ids}),
        (errors.ArgumentError, "give one of", {}),
    ]:
        with pytest.raises(error, match=match):
            bert(**given)
    plain = pellucid.AutoModel.from_pretrained(str(folder("distilbert", "Model")[1]), device="cpu")
    with pytest.raises(errors.ArgumentError, match="no token types"):
        plain(ids[:, :4], token_type_ids=ids[:, :4])
    with pytest.raises(errors.FormatError, match="is not known to AutoModelForCausalLM, but to AutoModel, "):
        pellucid.AutoModelForCausalLM.from_pretrained(str(folder("bert", "Model")[1]))
    config = pellucid.AutoConfig.from_pretrained(str(folder("bert", "Model")[1]))
    assert config == bert.config
