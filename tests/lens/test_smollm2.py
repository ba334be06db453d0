"""The lens on the real SmolLM2, quantized: what is looked at changes no id, and shares of logits add up."""

import json

import numpy as np
import pytest

from pellucid import lens
from pellucid.models import AutoModelForCausalLM

import assets
from paths import ROOT

GOLDEN = json.loads((ROOT / "tests" / "golden" / "smollm2_lens.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.gpu
def test_the_real_model_is_dissected():
    model = AutoModelForCausalLM.from_pretrained(str(assets.weights()), device="webgpu")
    ids = GOLDEN["prompt_ids"]
    plan = lens.Plan(capture=["attn_probs", "resid_post.29"], lens={"points": "resid_post", "position": -1})
    with lens.attach(model, plan) as seen:
        new = []
        for k, token in enumerate(model.stream(ids, max_new_tokens=4)):
            new.append(token)
            probs = seen["attn_probs.7"]
            assert probs.shape == (1, 9, 5 if k == 0 else 1, 5 + k)
            assert np.allclose(probs.numpy().sum(-1), 1, atol=1e-4)
            assert seen.look.table()[-1][0][0][0] == token
    assert new == GOLDEN["new_ids"][:4]
    # Each layer alone, and its quantized matrices, head by head.
    paris = lens.direct_logit_attribution(model, ids, [new[0], 260], by="head")
    logits = lens.run(model, ids).output.logits[0, -1]
    assert np.allclose(paris.total.numpy()[0], [logits[new[0]].item(), logits[260].item()], atol=2e-3)
    # Gradients go through quantized matrices: what attribution says of the last layer is what patching finds.
    metric = lens.logit_difference(new[0], 260)
    value = lens.run(model, ids, lens.Plan(capture=["resid_post.29"]))["resid_post.29"]
    _, found = lens.gradients(model, ids, metric, "resid_post.29")
    slope = found["resid_post.29"]
    step = 1e-2 * slope / slope.norm()
    moved = lens.Plan(steer=[{"point": "resid_post.29", "method": "add", "value": step}])
    change = metric(lens.run(model, ids, moved).output.logits) - metric(lens.run(model, ids).output.logits)
    assert np.isclose(change.item(), (step * slope).sum().item(), rtol=0.05)
    assert value.shape == (1, 5, 576)
