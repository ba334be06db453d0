"""`match` finds a fault that was put into a model on purpose, says where it begins and names it."""

import numpy as np
import pytest
import torch

import pellucid
from models.tiny import some_ids
from pellucid.errors import ArgumentError, WeightError
from pellucid.models.rotary import inverse_frequencies

TAPS = ("_proj", "mlp", "layernorm", "norm", "self_attn", "embed_tokens", "lm_head")


@pytest.fixture(scope="module")
def reference(theirs) -> dict[str, np.ndarray]:
    """What transformers computes, by module path."""
    found: dict[str, np.ndarray] = {}

    def keep(path):
        return lambda _, __, out: found.update({path: (out[0] if isinstance(out, tuple) else out).numpy()})

    handles = [m.register_forward_hook(keep(p)) for p, m in theirs.named_modules() if p.endswith(TAPS)]
    ids = some_ids(1, 10)
    with torch.no_grad():
        theirs(torch.tensor(ids))
    for handle in handles:
        handle.remove()
    return {**found, "input_ids": ids}


def test_a_right_model_matches(model, reference):
    result = pellucid.match(model, reference, tolerance=1e-4)
    assert result
    assert result.first is None
    assert len(result.rows) == len(reference) - 1
    assert {row.by for row in result.rows} == {"name"}
    assert "all within tolerance" in str(result)


def test_a_file_serves_as_reference(model, reference, tmp_path):
    np.savez(tmp_path / "recorded.npz", **reference)
    assert pellucid.match(model, tmp_path / "recorded.npz")
    assert pellucid.match(model, str(tmp_path / "recorded.npz"))


@pytest.mark.asyncio
async def test_there_is_an_awaitable_twin(model, reference):
    model.model.norm.weight.data.mul_(2)
    result = await pellucid.lens.match_async(model, reference)
    assert result.rows == pellucid.match(model, reference).rows
    assert result.first.path == "model.norm"


def scaled_norm(model):
    model.model.layers[1].input_layernorm.weight.data.mul_(1.5)


def interleaved(model):
    q = model.model.layers[0].self_attn.q_proj.weight
    heads = q.detach().reshape(4, 2, 4, 32)  # heads, halves, pairs, columns
    q.data = heads.transpose(1, 2).reshape(32, 32).contiguous()


def other_base(model):
    rotary = model.model.rotary_emb
    rotary._frequencies = inverse_frequencies(8, 500000.0, None)
    rotary._tables.clear()


def not_a_number(model):
    model.model.layers[2].mlp.up_proj.weight.data[3, 4] = float("nan")


def added_bias(model):
    up = model.model.layers[1].mlp.gate_proj
    up.bias = pellucid.nn.Parameter(pellucid.ones(48, device=up.weight.device) * 0.3)


def other_weight(model):
    model.model.layers[1].mlp.down_proj.weight.data[:, ::2] += 0.5


@pytest.mark.parametrize(
    ("fault", "path", "cause"),
    [
        (scaled_norm, "model.layers.1.input_layernorm", "off by the factor 0.666667: a scale or norm weight"),
        (interleaved, "model.layers.0.self_attn.q_proj", "the rotary layout"),
        (other_base, "model.layers.0.self_attn.o_proj", "all but the first: the rotary base"),
        (not_a_number, "model.layers.2.mlp.up_proj", "10 values are NaN or infinite"),
        (added_bias, "model.layers.1.mlp.gate_proj", "the same vector at every position: a bias"),
        (other_weight, "model.layers.1.mlp.down_proj", "its own weights or arithmetic"),
    ],
)
def test_a_fault_is_found_and_named(model, reference, fault, path, cause):
    fault(model)
    result = pellucid.match(model, reference)
    assert not result
    assert result.first.path == path
    assert cause in result.first.cause
    after = [r for r in result.rows if r.error > result.tolerance][1:]
    assert after
    assert {r.cause for r in after} == {"follows from the first"}
    assert f"first departs: {path}" in str(result)


def test_a_page_shows_a_table(model, reference):
    model.model.norm.weight.data.mul_(2)
    result = pellucid.match(model, {**reference, "a<b>": np.ones(3)})
    shown = result._repr_html_()
    # The head, and what has no partner.
    assert shown.count("<tr") == len(result.rows) + 1 + sum(map(bool, result.unpaired))
    assert shown.count("font-weight:bold") == 1
    assert "First departs: model.norm." in shown
    assert "a&lt;b&gt;" in shown
    assert "<b>" not in shown
    all_ok = pellucid.match(model, model, {"input_ids": reference["input_ids"]})._repr_html_()
    assert "All within tolerance." in all_ok
    assert "DEPARTS" not in all_ok


def test_shapes_that_differ_are_said(model, reference):
    wrong = {**reference, "model.norm": reference["model.norm"].swapaxes(1, 2)}
    first = pellucid.match(model, wrong).first
    assert (first.path, first.error) == ("model.norm", float("inf"))
    assert "layout: the same values with axes in the order (0, 2, 1)" in first.cause
    wrong["model.norm"] = reference["model.norm"][:, :-1]
    assert "(1, 10, 32), recorded (1, 9, 32)" in pellucid.match(model, wrong).first.cause


def test_references_that_do_not_fit_are_refused(model, reference):
    result = pellucid.match(model, {**reference, "nowhere": np.zeros(1), "model.layers": np.zeros(1)})
    assert result
    assert result.unpaired[1] == ["nowhere", "model.layers"]
    assert "only in the reference: nowhere, model.layers" in str(result)
    with pytest.raises(WeightError, match=r"no point of LlamaForCausalLM is one of the reference"):
        pellucid.match(model, {"input_ids": some_ids(1, 3), "nowhere": np.zeros((2, 2))})
    with pytest.raises(WeightError, match="no reference with an entry 'input_ids'"):
        pellucid.match(model, {"lm_head": np.zeros(1)})
    with pytest.raises(WeightError, match="no values to compare"):
        pellucid.match(model, {"input_ids": some_ids(1, 3)})
    with pytest.raises(ArgumentError, match="not int 3"):
        pellucid.match(model, 3)
