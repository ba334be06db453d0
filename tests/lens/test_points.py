"""Points: values by address beside hooks of transformers with eager attention, and captured steps."""

import numpy as np
import pytest
import torch

from checked import unchecked
from models.tiny import close, loaded, made, ours, saved, some_ids
from pellucid import lens
from pellucid.device.stream import stream
from pellucid.errors import ArgumentError, DimensionError, WeightError
from pellucid.lens.points import KINDS, canonical
from pellucid.models.generate.step import step_of

EVERY = list(KINDS)


def recorded(theirs, ids):
    """What modules of transformers get and return, and the probabilities of eager attention."""
    theirs.set_attn_implementation("eager")
    seen = {}

    def keep(path):
        def hook(module, args, out):
            seen[path] = out[0] if isinstance(out, tuple) else out
            if args:
                seen[path + "<"] = args[0]

        return hook

    handles = [m.register_forward_hook(keep(path)) for path, m in theirs.named_modules() if path]
    with torch.no_grad():
        out = theirs(torch.tensor(ids), output_attentions=True, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    return seen, out


def test_values_at_points_are_those_of_eager_attention(model, theirs, device):
    ids = some_ids(2, 8)
    wanted, out = recorded(theirs, ids)
    seen = lens.run(model, ours(ids, device), lens.Plan(capture=EVERY))
    assert set(seen) == set(lens.points(model))
    layer, heads = "model.layers.1.", {"q": "q_proj", "k": "k_proj", "v": "v_proj", "z": "o_proj<"}
    for name, path in heads.items():
        close(seen[f"{name}.1"], wanted[f"{layer}self_attn.{path}"].unflatten(-1, (-1, 8)))
    hidden = {
        "embed": "model.embed_tokens", "resid_pre.1": layer[:-1] + "<",
        "attn_in.1": layer + "input_layernorm",
        "attn_out.1": layer + "self_attn", "resid_mid.1": layer + "post_attention_layernorm<",
        "mlp_in.1": layer + "mlp<", "mlp_pre.1": layer + "mlp.gate_proj", "logits": "lm_head",
        "mlp_mid.1": layer + "mlp.down_proj<", "mlp_out.1": layer + "mlp", "resid_post.1": layer[:-1],
        "final_norm": "model.norm",
    }  # fmt: skip
    for address, path in hidden.items():
        close(seen[address], wanted[path])
    for k in range(3):
        close(seen[f"attn_probs.{k}"], out.attentions[k])
    scores = seen["attn_scores.1"]
    assert scores[:, :, 0, 1:].max().item() == -np.inf
    close(scores.softmax(-1), out.attentions[1])
    by_head = theirs.model.layers[1].self_attn.o_proj.weight.detach().unflatten(1, (4, 8))
    z = wanted[layer + "self_attn.o_proj<"].unflatten(-1, (4, 8))
    close(seen["head_out.1"], torch.einsum("bthc,dhc->bthd", z, by_head))


def test_names_of_transformer_lens_patterns_and_errors(model, device):
    found = lens.points(model)
    assert [a for a in found if a.endswith(".1")] == [f"{n}.1" for n in EVERY if f"{n}.1" in found]
    for address, point in found.items():
        assert canonical(point.alias or address) == address
    with lens.capture(model, ["blocks.*.hook_resid_mid", "z", "lm_head"]) as seen:
        model(ours(some_ids(1, 4), device))
    assert list(seen) == ["z.0", "resid_mid.0", "z.1", "resid_mid.1", "z.2", "resid_mid.2", "lm_head"]
    assert seen["blocks.2.attn.hook_z"].shape == (1, 4, 4, 8)
    with pytest.raises(WeightError, match=r"no module of LlamaForCausalLM fits 'z\.7'"):
        lens.run(model, [1], lens.Plan(capture=["z.7"]))
    with pytest.raises(ArgumentError, match="model must be a Module"):
        lens.points("model")
    with pytest.raises(WeightError, match=r"nothing was seen of 'z\.0'"):
        lens.run(model, [1])["z.0"]


ARCHITECTURES = [
    "phi3",
    "qwen3",
    "gemma2",
    "gpt2",
    "gpt_neox",
    "granite",
    "mistral_window",
    "bloom",
    "opt",
    "gpt_oss",
    "nemotron",
]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_other_architectures_have_the_same_points(name, tmp_path):
    theirs = made(name)
    model, ids = loaded(saved(theirs, tmp_path), "cpu"), some_ids(1, 6)
    _, out = recorded(theirs, ids)
    plan = lens.Plan(capture=["attn_probs", "head_out", "resid_pre", "mlp_out"])
    seen = lens.run(model, ids.tolist(), plan)
    for k in range(3):
        close(seen[f"attn_probs.{k}"], out.attentions[k])
        close(seen[f"resid_pre.{k}"], out.hidden_states[k])
    # Values that are put where they come from change nothing: they are on the way, and whole.
    same = lens.Plan(patch={a: x for a, x in seen.items() if not a.startswith("resid")})
    close(lens.run(model, ids.tolist(), same).output.logits, out.logits)
    # What layers write adds up to the logits, but for biases of the end.
    found = lens.direct_logit_attribution(model, ids.tolist(), [7, 9])
    close(found.total, out.logits[:, -1, [7, 9]])
    norms = [m for m in theirs.modules() if isinstance(m, torch.nn.LayerNorm)]
    rest = theirs.get_output_embeddings().weight[[7, 9]] @ norms[-1].bias if norms else torch.zeros(2)
    # The last norm of OPT is not the last of its modules, and Gemma 2 bends its logits.
    if name not in ("opt", "gemma2"):
        close(found.rest[0], rest)


def test_mixers_of_state_spaces_are_seen_and_patched(tmp_path):
    theirs, ids = made("mamba2"), some_ids(2, 6)
    mine = loaded(saved(theirs, tmp_path), "webgpu")
    seen = lens.run(mine, ours(ids, "webgpu"), lens.Plan(capture=list(lens.points(mine))))
    kept = []
    theirs.backbone.layers[1].mixer.register_forward_hook(lambda module, args, out: kept.append(out))
    theirs(torch.tensor(ids))
    close(seen["attn_out.1"], kept[0])
    assert not {"q.1", "z.1", "mlp_out.1"} & set(seen)
    zeroed = {"point": "attn_out.1", "method": "zero"}
    patched = lens.run(mine, ours(ids, "webgpu"), lens.Plan(capture=["resid_post.1"], ablate=[zeroed]))
    close(patched["resid_post.1"], torch.tensor(seen["resid_pre.1"].numpy()))


@pytest.mark.parametrize("name", ["bloom", "mistral_window"])
def test_steps_over_windows_and_biased_scores(name, tmp_path):
    model, ids = loaded(saved(made(name), tmp_path), "webgpu"), some_ids(1, 3)[0].tolist()
    with lens.capture(model, "attn_probs.1") as seen:
        for token in model.stream(ids, max_new_tokens=4, eos_token_id=()):
            last = seen["attn_probs.1"].numpy()[0, :, -1]
            ids.append(token)
    whole = lens.run(model, ids[:-1], lens.Plan(capture=["attn_probs.1"]))["attn_probs.1"].numpy()
    np.testing.assert_allclose(last, whole[0, :, -1], atol=1e-5)
    if name == "mistral_window":
        refused = pytest.raises(DimensionError, match="the window of 6 positions has forgotten some of the 9")
        with lens.capture(model, "attn_probs.1"), refused:
            model(ours(some_ids(1, 9), "webgpu"), use_cache=True)


@unchecked("windows end elsewhere, and fused sums round otherwise")
def test_looking_changes_no_bit_and_steps_stay_captured(model, device):
    ids, settings = some_ids(1, 12)[0].tolist(), {"max_new_tokens": 8, "eos_token_id": ()}
    logits = []
    with lens.capture(model, "lm_head") as plain:
        for _ in model.stream(ids, **settings):
            logits.append(plain["lm_head"].numpy())
    with lens.capture(model, ["attn_probs", "attn_scores.1", "z.2", "logits", "resid_mid"]) as seen:
        for k, token in enumerate(model.stream(ids, **settings)):
            # A GPU's compiler contracts a product and a sum, but not where the product is looked at.
            rounding = 0 if device == "cpu" or stream().open().info.is_software else 2e-6
            np.testing.assert_allclose(seen["logits"].numpy(), logits[k], rtol=rounding, atol=rounding)
            assert seen["attn_probs.1"].shape == (1, 4, 12 if k == 0 else 1, 12 + k)
            probs = seen["attn_probs.1"].numpy()
            np.testing.assert_allclose(probs.sum(-1), 1, atol=1e-5)
            ids.append(token)
    whole = lens.run(model, ids[:-1], lens.Plan(capture=["attn_probs.1", "attn_scores.1"]))
    for address in whole:
        np.testing.assert_allclose(
            seen[address].numpy()[0, :, -1], whole[address].numpy()[0, :, -1], atol=1e-5
        )
    if device == "webgpu":
        assert step_of(model)._logits.explain().replays >= 5
