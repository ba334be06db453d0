"""Methods of interpretability beside transformers with hooks and eager attention."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import pellucid
from models.tiny import close, ours, some_ids
from pellucid import lens
from pellucid.errors import ArgumentError, FormatError, RangeError, ShapeError, WeightError

CLEAN, CORRUPTED = some_ids(1, 6, seed=1), some_ids(1, 6, seed=2)
METRIC = lens.logit_difference(7, 9)


def theirs_metric(logits: torch.Tensor) -> torch.Tensor:
    return logits[:, -1, 7] - logits[:, -1, 9]


@contextlib.contextmanager
def changed(module, change, before=False):
    """A module of transformers whose first input or output is changed."""

    def into(_, args):
        return (change(args[0]), *args[1:])

    def out(_, args, output):
        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

    handle = module.register_forward_pre_hook(into) if before else module.register_forward_hook(out)
    yield
    handle.remove()


def values_of(theirs, ids, path, before=False):
    """What a module of transformers gets or returns."""
    found = []
    with changed(theirs.get_submodule(path), lambda x: found.append(x) or x, before), torch.no_grad():
        theirs(torch.tensor(ids))
    return found[0]


def assigned(value, at, new):
    value = value.clone()
    value[at] = new
    return value


def logits_when(theirs, ids, path, change, before=False):
    with changed(theirs.get_submodule(path), change, before), torch.no_grad():
        return theirs(torch.tensor(ids)).logits


def test_activation_patching_of_residuals_and_heads(model, theirs, device):
    clean, corrupted = ours(CLEAN, device), ours(CORRUPTED, device)
    got = lens.activation_patching(model, clean, corrupted, METRIC)
    wanted, by_head = torch.zeros(3, 6), torch.zeros(3, 6, 4)
    for k in range(3):
        layer, last = f"model.layers.{k}", f"model.layers.{k}.self_attn.o_proj"
        good, z = values_of(theirs, CLEAN, layer, True), values_of(theirs, CLEAN, last, True)
        for t in range(6):
            at = (slice(None), t)
            logits = logits_when(
                theirs, CORRUPTED, layer, lambda x, at=at, v=good: assigned(x, at, v[at]), True
            )
            wanted[k, t] = theirs_metric(logits)
            for h in range(4):
                at = (slice(None), t, slice(8 * h, 8 * h + 8))
                logits = logits_when(
                    theirs, CORRUPTED, last, lambda x, at=at, v=z: assigned(x, at, v[at]), True
                )
                by_head[k, t, h] = theirs_metric(logits)
    close(got, wanted)
    close(lens.activation_patching(model, clean, corrupted, METRIC, point="z", by="both"), by_head)
    heads = lens.activation_patching(model, clean, corrupted, METRIC, point="z", by="head")
    z = values_of(theirs, CLEAN, "model.layers.1.self_attn.o_proj", True)
    at = (slice(None), slice(None), slice(16, 24))
    logits = logits_when(
        theirs, CORRUPTED, "model.layers.1.self_attn.o_proj", lambda x: assigned(x, at, z[at]), True
    )
    close(heads[1, 2:3], theirs_metric(logits))
    with pytest.raises(ShapeError, match=r"clean ids of shape \(1, 5\)"):
        lens.activation_patching(model, clean[:, :5], corrupted, METRIC)
    with pytest.raises(ArgumentError, match="there are no heads at 'resid_pre'"):
        lens.activation_patching(model, clean, corrupted, METRIC, by="head")
    with pytest.raises(ArgumentError, match=r"metric must give \(batch,\)"):
        lens.activation_patching(model, clean, corrupted, lambda logits: logits)


def test_path_patching_freezes_what_is_not_on_the_way(model, theirs, device):
    """Head 1 of layer 0 to the logits, and to the values of layer 2."""
    z = [
        [values_of(theirs, ids, f"model.layers.{k}.self_attn.o_proj", True) for k in range(3)]
        for ids in (CLEAN, CORRUPTED)
    ]
    sent = z[0][0].clone()
    sent[..., 8:16] = z[1][0][..., 8:16]
    found = {}
    with contextlib.ExitStack() as stack, torch.no_grad():
        for k, value in enumerate((sent, z[0][1], z[0][2])):
            stack.enter_context(changed(theirs.model.layers[k].self_attn.o_proj, lambda x, v=value: v, True))
        stack.enter_context(
            changed(theirs.model.layers[2].self_attn.v_proj, lambda x: found.update(v=x) or x)
        )
        direct = theirs_metric(theirs(torch.tensor(CLEAN)).logits)
    with changed(theirs.model.layers[2].self_attn.v_proj, lambda x: found["v"]), torch.no_grad():
        through = theirs_metric(theirs(torch.tensor(CLEAN)).logits)
    clean, corrupted = ours(CLEAN, device), ours(CORRUPTED, device)
    pairs = [("z.0", 1)]
    close(lens.path_patching(model, clean, corrupted, METRIC, senders=pairs), direct)
    close(lens.path_patching(model, clean, corrupted, METRIC, senders=pairs, receivers=["v.2"]), through)


def test_attribution_patching_is_the_gradient_times_the_change(model, theirs, device):
    wanted = {}
    for k in range(3):
        layer = f"model.layers.{k}"
        good, bad = (values_of(theirs, ids, layer, True) for ids in (CLEAN, CORRUPTED))
        leaf = bad.clone().requires_grad_(True)
        with changed(theirs.get_submodule(layer), lambda x, leaf=leaf: leaf, True):
            theirs_metric(theirs(torch.tensor(CORRUPTED)).logits).sum().backward()
        wanted[f"resid_pre.{k}"] = (good - bad) * leaf.grad
    got = lens.attribution_patching(model, ours(CLEAN, device), ours(CORRUPTED, device), METRIC)
    assert list(got) == list(wanted)
    for address, value in wanted.items():
        close(got[address], value, 1e-3)
    # Also of probabilities, which are computed beside the kernel.
    theirs.set_attn_implementation("eager")
    out = theirs(torch.tensor(CLEAN), output_attentions=True)
    for probs in out.attentions:
        probs.retain_grad()
    theirs_metric(out.logits).sum().backward()
    found = lens.gradients(model, CLEAN.tolist(), METRIC, ["attn_scores.1", "attn_probs"])[1]
    for k, probs in enumerate(out.attentions):
        close(found[f"attn_probs.{k}"], probs.grad, 1e-3)


def test_saliency_and_integrated_gradients(model, theirs, device):
    embedded = theirs.model.embed_tokens(torch.tensor(CLEAN)).detach()

    def slope(x):
        x = x.detach().requires_grad_(True)
        theirs_metric(theirs(inputs_embeds=x).logits).sum().backward()
        return x.grad

    g = slope(embedded)
    length, product = lens.saliency(model, ours(CLEAN, device), METRIC)
    close(length, g.norm(dim=-1), 1e-3)
    close(product, (g * embedded).sum(-1), 1e-3)
    shares = (torch.arange(6) + 0.5) / 6
    wanted = torch.stack([slope(embedded * a)[0] for a in shares]).mean(0)
    got = lens.integrated_gradients(model, ours(CLEAN, device), METRIC, steps=6, rows=4)
    close(got, (wanted * embedded[0]).sum(-1), 1e-3)


def test_direct_logit_attribution_adds_up_to_the_logits(model, theirs, device):
    with torch.no_grad():
        logits = theirs(torch.tensor(CLEAN)).logits[:, -1]
    for by, count in (("layer", 7), ("head", 19), ("neuron", 1 + 3 + 3 * 49)):
        found = lens.direct_logit_attribution(model, ours(CLEAN, device), [7, 9], by=by)
        assert len(found.names) == len(found.values) == count
        close(found.total, logits[:, [7, 9]])
    last = theirs.model.layers[2]
    residual = values_of(theirs, CLEAN, "model.layers.2")[0, -1]
    scale = (residual.square().mean() + theirs.config.rms_norm_eps).sqrt()
    direction = theirs.lm_head.weight[7] * theirs.model.norm.weight / scale
    mid = values_of(theirs, CLEAN, "model.layers.2.mlp.down_proj", True)[0, -1]
    got = found.values[[found.names.index(f"mlp_mid.2:{n}") for n in range(48)], 0, 0]
    close(got, mid * (direction @ last.mlp.down_proj.weight))
    found = lens.direct_logit_attribution(model, ours(CLEAN, device), 7, by="head")
    z = values_of(theirs, CLEAN, "model.layers.1.self_attn.o_proj", True)[0, -1, 16:24]
    head = theirs.model.layers[1].self_attn.o_proj.weight[:, 16:24] @ z
    close(found.values[found.names.index("z.1:2"), 0], (head @ direction).reshape(1))
    assert found.top(1)[0][0] in found.names


def test_head_scores_rollout_and_curves(model, theirs, device):
    theirs.set_attn_implementation("eager")
    half = some_ids(2, 5, seed=3)
    ids = np.concatenate([half, half], 1)
    with torch.no_grad():
        out = theirs(torch.tensor(ids), output_attentions=True)
    probs = torch.stack(out.attentions)
    for kind, back, first in (("induction", 4, 5), ("duplicate", 5, 5), ("previous", 1, 1)):
        wanted = torch.stack([probs[..., i, i - back] for i in range(first, 10)]).mean(0).mean(1)
        got = lens.methods.heads.pattern_scores(model, ours(ids, device), kind, 5)
        close(got, wanted)
    assert lens.head_scores(model, length=4, batch=2, prefix=1).shape == (3, 4)
    with pytest.raises(ArgumentError, match="kind must be one of induction"):
        lens.head_scores(model, "unknown")
    step = torch.eye(10)
    for layer in range(3):
        step = (0.5 * torch.eye(10) + 0.5 * probs[layer].mean(1)) @ step
        close(lens.attention_rollout(model, ours(ids, device))[layer], step)
    curves = lens.layer_curves(model, ours(CLEAN, device))
    with torch.no_grad():
        end = theirs(torch.tensor(CLEAN)).logits[0].log_softmax(-1)
        for k in range(3):
            hidden = values_of(theirs, CLEAN, f"model.layers.{k}")[0]
            said = theirs.lm_head(theirs.model.norm(hidden)).log_softmax(-1)
            own = said.gather(1, end.argmax(-1, keepdim=True))
            assert curves.rank[k].tolist() == (said > own).sum(-1).tolist()
            close(curves.probability[k], own.exp()[:, 0])
            close(curves.entropy[k], -(said.exp() * said).sum(-1))
            close(curves.kl[k], (end.exp() * (end - said)).sum(-1))
    assert lens.layer_curves(model, CLEAN.tolist(), 7, points="mlp_out").rank.shape == (3, 6)
    seen = lens.run(model, CLEAN.tolist(), lens.Plan(capture=["resid_post"]))
    for k, last in ((1, -1), (0, slice(2, None))):
        some = lens.layer_curves(model, seen, points=f"resid_post.{k}", positions=last)
        start = last.start if isinstance(last, slice) else last
        for name in ("rank", "probability", "entropy", "kl"):
            wanted = getattr(curves, name)[k, start:].float().tolist()
            close(getattr(some, name)[0].float(), torch.tensor(wanted))
    with pytest.raises(WeightError, match=r"mlp_out\.0"):
        lens.layer_curves(model, seen, points="mlp_out")


def test_causal_tracing_puts_states_back(model, theirs, device):
    generator = pellucid.Generator(device=device).manual_seed(0)
    found = lens.causal_tracing(model, ours(CLEAN, device), [1, 2], 7, samples=2, generator=generator)
    clean, low, back = (x.tolist() for x in found)
    embedded = theirs.model.embed_tokens(torch.tensor(CLEAN)).detach()
    draws = pellucid.randn(
        2, 2, 32, device=device, generator=pellucid.Generator(device=device).manual_seed(0)
    )
    noisy = embedded.repeat(2, 1, 1)
    noisy[:, 1:3] += torch.tensor(draws.numpy()) * 3 * embedded[:, 1:3].std()

    def answer(logits):
        return logits[:, -1].softmax(-1)[:, 7].mean().item()

    plain = theirs(torch.tensor(CLEAN)).logits
    assert np.isclose(clean, answer(plain), atol=1e-5)
    assert np.isclose(low, answer(theirs(inputs_embeds=noisy).logits), atol=1e-5)
    state = values_of(theirs, CLEAN, "model.layers.1")
    with changed(theirs.model.layers[1], lambda x: assigned(x, (slice(None), 2), state[:, 2])):
        assert np.isclose(back[1][2], answer(theirs(inputs_embeds=noisy).logits), atol=1e-5)
    # The end of the last position alone says all that is said.
    assert np.isclose(back[2][5], clean, atol=1e-5)


def test_directions_and_probes(model, theirs, device):
    first, second = some_ids(4, 5, seed=5), some_ids(4, 5, seed=6)
    got = lens.difference_of_means(model, ours(first, device), second.tolist(), "resid_post.1")
    wanted = [values_of(theirs, ids, "model.layers.1")[:, -1].mean(0) for ids in (first, second)]
    close(got, wanted[0] - wanted[1])
    mean = lens.mean_activation(model, [first.tolist(), second.tolist()], "z.1")
    z = [values_of(theirs, ids, "model.layers.1.self_attn.o_proj", True) for ids in (first, second)]
    close(mean.flatten(), torch.cat(z).mean((0, 1)))
    x = np.random.default_rng(0).standard_normal((40, 6)).astype("float32")
    labels = (x[:, 2] > 0).astype("int64")
    probe = lens.LinearProbe(6, device=device).fit(ours(x, device), labels.tolist(), decay=0.1)
    weight = torch.zeros(2, 6, requires_grad=True)
    bias = torch.zeros(2, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        logits = torch.tensor(x) @ weight.T + bias
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels)) + 0.05 * weight.square().sum()
        loss.backward()
        return loss

    solver.step(closure)
    close(probe.linear.weight, weight, 1e-3)
    assert probe.accuracy(ours(x, device), labels.tolist()) > 0.9
    assert abs(probe.direction[2].item()) > 0.9
    with pytest.raises(ShapeError, match=r"labels of \(3,\)"):
        probe.fit(ours(x, device), [0, 1, 1])


def test_tuned_lens_is_trained_and_loaded(model, device):
    batches = [some_ids(2, 8, seed=k).tolist() for k in range(2)]
    tuned = lens.TunedLens(model, "resid_post")
    curves = [lens.layer_curves(model, CLEAN.tolist(), lens=x) for x in (None, tuned)]
    np.testing.assert_allclose(curves[0].kl.numpy(), curves[1].kl.numpy(), atol=1e-5)
    losses = tuned.fit(batches, lr=3e-3, epochs=6)
    assert losses[-1] < 0.8 * losses[0]
    # The last state is the prediction itself; the translator of the first one is the derivative's.
    arrays = {
        f"{k}.{n}": p.detach().cpu().numpy()
        for k, m in enumerate(tuned.translators.values())
        for n, p in m.named_parameters()
    }
    again = lens.TunedLens(model, "resid_post").load(arrays)
    seen = lens.run(model, CLEAN.tolist(), lens.Plan(capture=["resid_post.0"]))["resid_post.0"]
    wanted = model.unembed(seen + seen @ ours(arrays["0.weight"], device).T + ours(arrays["0.bias"], device))
    np.testing.assert_allclose(again.logits(seen, "resid_post.0").numpy(), wanted.detach().numpy(), atol=1e-5)
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(FormatError, match=r"1\.bias is missing"):
        again.load({k: v for k, v in arrays.items() if k != "1.bias"})


def test_jacobian_lens_is_the_mean_jacobian(model, theirs, device):
    ids, found = some_ids(1, 6, seed=8), []
    with changed(theirs.model.layers[0], lambda x: found.append(x) or x):
        theirs(torch.tensor(ids))

    def end(state):
        out = []
        last = changed(theirs.model.layers[2], lambda x: out.append(x) or x)
        with changed(theirs.model.layers[0], lambda _: state), last:
            theirs(torch.tensor(ids))
        return out[0][0, 1:5].sum(0)

    whole = torch.autograd.functional.jacobian(end, found[0].detach())
    fitted = lens.JacobianLens.fit(model, [ours(ids, device)], skip=1, rows=12)
    close(fitted.matrices["resid_post.0"], whole[:, 0, 1:5].mean(1), 1e-4)
    close(fitted.matrices["resid_post.2"], torch.eye(32))
    state = ours(found[0].detach().numpy(), device)
    again = lens.JacobianLens.load(model, {"J": {0: fitted.matrices["resid_post.0"].numpy()}})
    with torch.no_grad():
        moved = found[0] @ whole[:, 0, 1:5].mean(1).T
        close(again.logits(state, "resid_post.0"), theirs.lm_head(theirs.model.norm(moved)), 1e-3)
    with pytest.raises(ShapeError, match="more than 17 positions"):
        lens.JacobianLens.fit(model, [ids.tolist()])
    with pytest.raises(FormatError, match="no 'J'"):
        lens.JacobianLens.load(model, {})


RANDOM = np.random.default_rng(4)
ENC, DEC = RANDOM.standard_normal((2, 32, 20)).astype("float32")
BE, BD = RANDOM.standard_normal(20).astype("float32"), RANDOM.standard_normal(32).astype("float32")
LEVEL = np.abs(RANDOM.standard_normal(20)).astype("float32")


@pytest.mark.parametrize(
    "layout", ["sae_lens", "gemma_scope", "dictionary_learning", "sparsify", "transcoder"]
)
def test_sparse_coders_of_the_usual_layouts(layout, device, tmp_path):
    x = RANDOM.standard_normal((3, 32)).astype("float32")
    skip = RANDOM.standard_normal((32, 32)).astype("float32")
    plain = np.maximum(x @ ENC + BE, 0)
    centred = np.maximum((x - BD) @ ENC + BE, 0)
    top = np.where(centred >= np.sort(centred, -1)[:, -4:-3], centred, 0)
    arrays, wanted, settings = {
        "sae_lens": ({"W_enc": ENC, "W_dec": DEC.T, "b_enc": BE, "b_dec": BD}, plain, {}),
        "gemma_scope": (
            {"W_enc": ENC, "W_dec": DEC.T, "b_enc": BE, "b_dec": BD, "threshold": LEVEL},
            np.where(x @ ENC + BE > LEVEL, x @ ENC + BE, 0),
            {},
        ),
        "dictionary_learning": (
            {"encoder.weight": ENC.T, "encoder.bias": BE, "decoder.weight": DEC, "bias": BD},
            centred,
            {},
        ),
        "sparsify": (
            {"encoder.weight": ENC.T, "encoder.bias": BE, "W_dec": DEC.T, "b_dec": BD},
            top,
            {"top_k": 4},
        ),
        "transcoder": (
            {"W_enc": ENC, "W_dec": DEC.T, "b_enc": BE, "b_dec": BD, "W_skip": skip},
            plain,
            {},
        ),
    }[layout]
    if layout == "gemma_scope":
        path = tmp_path / "params.npz"
        np.savez(path, **arrays)
    else:
        path = tmp_path / "sae.safetensors"
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path)
    coder = asyncio.run(lens.SparseCoder.load_async(path, device=device, **settings))
    np.testing.assert_allclose(coder.encode(ours(x, device)).numpy(), wanted, atol=1e-4)
    out = wanted @ DEC.T + BD + (x @ skip.T if layout == "transcoder" else 0)
    np.testing.assert_allclose(coder(ours(x, device)).numpy(), out, atol=1e-3)


def test_features_of_tokens_and_steering_by_one(model, device):
    coder = lens.SparseCoder.load({"W_enc": ENC, "W_dec": DEC.T, "b_enc": BE, "b_dec": BD}, device=device)
    found = lens.top_features(model, CLEAN.tolist(), coder, "resid_post.1", k=3)
    x = lens.run(model, CLEAN.tolist(), lens.Plan(capture=["resid_post.1"]))["resid_post.1"].numpy()[0]
    strong = np.maximum(x @ ENC + BE, 0)
    for t, row in enumerate(found):
        assert [f for f, _ in row] == np.argsort(-strong[t])[: len(row)].tolist()
    plan = lens.Plan(capture=["resid_post.1"], steer=[coder.steer("resid_post.1", 5, 2.0, positions=[1])])
    steered = lens.run(model, CLEAN.tolist(), plan)["resid_post.1"].numpy()[0]
    np.testing.assert_allclose(steered[1], x[1] + 2 * DEC[:, 5], atol=1e-5)
    np.testing.assert_allclose(steered[2], x[2], atol=1e-6)
    with pytest.raises(RangeError, match="there are 20 features, and no 20"):
        coder.direction(20)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"W_dec": DEC.T}, "no encoder among"),
        ({"W_enc": ENC, "W_dec": DEC}, "do not go together"),
        (
            {"W_enc": ENC, "W_dec": DEC.T, "b_enc": BD},
            r"encoder_bias is of shape \(32,\); it must be \(20,\)",
        ),
    ],
)
def test_damaged_coders_are_refused(arrays, message, tmp_path):
    with pytest.raises(FormatError, match=message):
        lens.SparseCoder.load(arrays)
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(FormatError, match=r"x\.npz"):
        lens.SparseCoder.load(path)
    np.savez(path, W_enc=np.arange(4))
    with pytest.raises(FormatError, match="W_enc is of int64, and no floating-point numbers"):
        lens.SparseCoder.load(path)
