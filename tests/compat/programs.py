"""Programs of other packages, which both libraries run: `programs.py torch|pellucid|compare FILE [NAME...]`.

A process has one ``torch``, so PyTorch runs them in one process and Pellucid in another. The first writes the
weights that it drew, with every result and gradient, beside FILE; the second takes the weights from there and
writes what it makes of them.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable] = {}
# What a program is told about: the library, and its inputs.
IDS = np.random.default_rng(3).integers(3, 60, (2, 9))
SMALL: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 32,
}  # fmt: skip


def program(package: str) -> Callable[[Callable], Callable]:
    """Declare a program of a package: a function of `torch` that returns a module and a function of it, whose
    result is a dict of tensors; the sum of those that have a gradient is differentiated."""

    def declare(make: Callable) -> Callable:
        make.package = package  # type: ignore[attr-defined]
        PROGRAMS[make.__name__] = make
        return make

    return declare


def causal(config: str, model: str, **more: Any) -> Callable:
    """A language model of transformers with a tiny configuration: loss and logits."""

    def make(torch: Any) -> tuple[Any, Callable]:
        import transformers

        settings = getattr(transformers, config)(**(SMALL | more))
        network = getattr(transformers, model)(settings).eval()
        ids = torch.tensor(IDS)
        mask = torch.tensor(np.where(np.arange(9) < 7, 1, [[1], [0]]))

        def call(network: Any) -> dict[str, Any]:
            out = network(input_ids=ids, attention_mask=mask, labels=ids)
            return {"loss": out.loss, "logits": out.logits}

        return network, call

    return make


def encoder(config: str, model: str, inputs: Callable, **settings: Any) -> Callable:
    """A model of transformers with a tiny configuration: all results that are tensors."""

    def make(torch: Any) -> tuple[Any, Callable]:
        import transformers

        network = getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()
        given = inputs(torch)

        def call(network: Any) -> dict[str, Any]:
            return {n: v for n, v in network(**given).items() if isinstance(v, torch.Tensor)}

        return network, call

    return make


def image(torch: Any) -> dict[str, Any]:
    return {"pixel_values": torch.tensor(np.random.default_rng(7).normal(size=(1, 3, 16, 16)).astype("f4"))}


def spoken(torch: Any) -> dict[str, Any]:
    features = np.random.default_rng(7).normal(size=(2, 8, 32)).astype("f4")
    return {"input_features": torch.tensor(features), "decoder_input_ids": torch.tensor(IDS)}


MODELS = {
    "llama": causal("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2),
    "qwen3": causal("Qwen3Config", "Qwen3ForCausalLM", num_key_value_heads=2, head_dim=8),
    "gpt2": causal("GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=32),
    "bert": causal("BertConfig", "BertForMaskedLM"),
    "gemma2": causal("Gemma2Config", "Gemma2ForCausalLM", num_key_value_heads=2, head_dim=8),
    "mixtral": causal("MixtralConfig", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=3),
    "mamba": causal("MambaConfig", "MambaForCausalLM", state_size=4),
    "vit": encoder(
        "ViTConfig", "ViTForImageClassification", image, hidden_size=32, intermediate_size=48,
        num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8,
    ),
    "resnet": encoder(
        "ResNetConfig", "ResNetForImageClassification", image, embedding_size=8, hidden_sizes=[8, 16],
        depths=[1, 1], layer_type="basic",
    ),
    "t5": encoder(
        "T5Config", "T5ForConditionalGeneration",
        lambda torch: {"input_ids": torch.tensor(IDS), "labels": torch.tensor(IDS)},
        vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
    ),
    "whisper": encoder(
        "WhisperConfig", "WhisperForConditionalGeneration", spoken, vocab_size=64, num_mel_bins=8, d_model=32,
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=16, max_target_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    ),
}  # fmt: skip
for name, form in MODELS.items():
    form.__name__ = name
    program("transformers")(form)


@program("einops")
def einops(torch: Any) -> tuple[Any, Callable]:
    from einops import einsum, pack, rearrange, reduce, repeat, unpack
    from einops.layers.torch import EinMix, Rearrange, Reduce

    layers = torch.nn.Sequential(
        Rearrange("b (h two) c -> b h (two c)", two=2),
        EinMix("b h c -> b h d", weight_shape="c d", bias_shape="d", c=8, d=6),
        Reduce("b h c -> b c", "mean"),
    )
    x = torch.tensor(np.random.default_rng(5).normal(size=(2, 6, 4)).astype("float32"))

    def call(layers: Any) -> dict[str, Any]:
        packed, shapes = pack([x, x[:, :2]], "b * c")
        return {
            "layers": layers(x),
            "rearrange": rearrange(x, "b (h w) c -> c b w h", h=2),
            **{
                kind: reduce(x, "b (h w) c -> b h c", kind, w=3)
                for kind in ("max", "min", "sum", "mean", "prod")
            },
            "repeat": repeat(x, "b h c -> b h k c", k=2),
            "einsum": einsum(x, x, "b i c, b j c -> b i j"),
            "packed": packed,
            "unpacked": unpack(packed, shapes, "b * c")[1],
        }

    return layers, call


@program("torch.distributions")
def distributions(torch: Any) -> tuple[Any, Callable]:
    """A variational autoencoder with noise that is given, a policy's loss, a mixture that is fitted."""
    from torch.distributions import (
        Bernoulli,
        Categorical,
        Independent,
        MixtureSameFamily,
        Normal,
        constraints,
        kl_divergence,
        transform_to,
    )
    from torch.distributions.transformed_distribution import TransformedDistribution
    from torch.distributions.transforms import AffineTransform, TanhTransform

    layers = torch.nn.ModuleDict({
        "encoder": torch.nn.Linear(6, 4), "decoder": torch.nn.Linear(2, 6), "policy": torch.nn.Linear(6, 3),
        "free": torch.nn.Linear(3, 3),
    })  # fmt: skip
    rng = np.random.default_rng(5)
    x = torch.tensor((rng.random((5, 6)) < 0.5).astype("f4"))
    noise = torch.tensor(rng.random((5, 2)).astype("f4"))
    action, reward = torch.tensor([0, 2, 1, 1, 0]), torch.tensor([1.0, -1, 0.5, 2, 0])

    def call(layers: Any) -> dict[str, Any]:
        loc, free = layers["encoder"](x).chunk(2, -1)
        posterior = Independent(Normal(loc, transform_to(constraints.positive)(free)), 1)
        hidden = posterior.base_dist.icdf(noise)
        likelihood = Independent(Bernoulli(logits=layers["decoder"](hidden)), 1)
        prior = Independent(Normal(torch.zeros_like(loc), torch.ones_like(loc)), 1)
        policy = Categorical(logits=layers["policy"](x))
        weight, bias = layers["free"].weight, layers["free"].bias
        mixture = MixtureSameFamily(Categorical(logits=weight[0]), Normal(weight[1], weight[2].exp()))
        squashed = TransformedDistribution(Normal(bias, 1.0), [TanhTransform(), AffineTransform(0.0, 2.0)])
        return {
            "elbo": likelihood.log_prob(x) - kl_divergence(posterior, prior),
            "policy": -policy.log_prob(action) * reward - 0.1 * policy.entropy(),
            "mixture": mixture.log_prob(noise),
            "squashed": squashed.log_prob(noise[:, :1]),
        }

    return layers, call


@program("x-transformers")
def x_transformers(torch: Any) -> tuple[Any, Callable]:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True, attn_kv_heads=2, attn_qk_norm=True,
        ff_glu=True,
    )  # fmt: skip
    network = TransformerWrapper(num_tokens=64, max_seq_len=16, attn_layers=layers).eval()
    ids = torch.tensor(IDS)
    return network, lambda network: {"logits": network(ids)}


@program("peft")
def peft_lora(torch: Any) -> tuple[Any, Callable]:
    from peft import LoraConfig, get_peft_model

    network, call = MODELS["llama"](torch)
    settings = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    return get_peft_model(network, settings).eval(), call


@program("captum")
def captum_images(torch: Any) -> tuple[Any, Callable]:
    """What a small convolutional network looks at, by layer and by pixel."""
    from captum import attr

    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 6, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(6, 3),
    ).eval()  # fmt: skip
    x = torch.tensor(np.random.default_rng(7).normal(size=(2, 3, 8, 8)).astype("f4"))

    def call(network: Any) -> dict[str, Any]:
        cam = attr.LayerGradCam(network, network[3]).attribute(x, target=1)
        found = {
            "grad-cam": cam,
            "upsampled": attr.LayerAttribution.interpolate(cam, (8, 8), "bilinear"),
            "guided": attr.GuidedGradCam(network, network[3]).attribute(x.clone().requires_grad_(), target=1),
            "deconvolution": attr.Deconvolution(network).attribute(x.clone().requires_grad_(), target=1),
            "deep lift": attr.DeepLift(network).attribute(x, target=1),
            "integrated": attr.IntegratedGradients(network).attribute(x, target=[0, 2], n_steps=6),
        }
        return {name: value.detach() for name, value in found.items()}

    return network, call


@program("captum")
def captum(torch: Any) -> tuple[Any, Callable]:
    from captum import attr

    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
    x = torch.tensor(np.random.default_rng(7).normal(size=(4, 5)).astype("f4"))

    def call(network: Any) -> dict[str, Any]:
        found = {
            "integrated": attr.IntegratedGradients(network).attribute(x, target=1, n_steps=8),
            "saliency": attr.Saliency(network).attribute(x.clone().requires_grad_(), target=1),
            "input x gradient": attr.InputXGradient(network).attribute(x.clone().requires_grad_(), target=1),
            "ablation": attr.FeatureAblation(network).attribute(x, target=2),
            "occlusion": attr.Occlusion(network).attribute(x, (2,), target=2),
            "layer": attr.LayerActivation(network, network[1]).attribute(x),
            "conductance": attr.LayerConductance(network, network[0]).attribute(x, target=0, n_steps=4),
        }
        return {name: value.detach() for name, value in found.items()}

    return network, call


# Operators go with the library that declares them.
DECLARED: list[Any] = []


def hooked(**settings: Any) -> Callable:
    """A tiny model of transformer_lens: logits, loss, every activation, with one head turned off."""

    def make(torch: Any) -> tuple[Any, Callable]:
        from transformer_lens import HookedTransformer, HookedTransformerConfig

        sizes: Any = {"n_layers": 2, "d_model": 16, "n_ctx": 12, "d_head": 4, "n_heads": 4, "d_mlp": 32}
        sizes |= {"d_vocab": 64, "device": str(torch.get_default_device())}
        network = HookedTransformer(HookedTransformerConfig(**sizes, **settings))
        ids = torch.tensor(IDS)

        def off(value: Any, hook: Any) -> Any:
            return value * (torch.arange(4) != 1)[:, None]

        def call(network: Any) -> dict[str, Any]:
            _, cache = network.run_with_cache(ids)
            with network.hooks(fwd_hooks=[("blocks.0.attn.hook_z", off)]):
                loss = network(ids, return_type="loss")
            return {"loss": loss, **{n: v.detach() for n, v in cache.items()}}

        return network, call

    return make


def timm_model(architecture: str, **settings: Any) -> Callable:
    def make(torch: Any) -> tuple[Any, Callable]:
        if "pellucid" not in sys.modules and "torchvision" not in sys.modules:
            # The operators of torchvision's wheel are compiled for CUDA; nothing here calls them.
            library = torch.library.Library("torchvision", "DEF")
            DECLARED.append(library)
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import timm

        network = timm.create_model(architecture, pretrained=False, num_classes=5, **settings).eval()
        x = torch.tensor(np.random.default_rng(7).normal(size=(1, 3, 32, 32)).astype("f4"))
        return network, lambda network: {"logits": network(x)}

    return make


for name, form in {
    "lens_gpt2": hooked(act_fn="gelu_new", normalization_type="LN"),
    "lens_llama": hooked(
        act_fn="silu", normalization_type="RMS", positional_embedding_type="rotary", rotary_dim=4,
        gated_mlp=True, final_rms=True, n_key_value_heads=2,
    ),
    "timm_resnet10t": timm_model("resnet10t"),
    "timm_vit": timm_model("vit_tiny_patch16_224", img_size=32, depth=2, embed_dim=32, num_heads=4),
    "timm_mobilenet": timm_model("mobilenetv3_small_050"),
    "timm_convnext": timm_model("convnext_atto"),
}.items():  # fmt: skip
    form.__name__ = name
    program("timm" if name.startswith("timm") else "transformer_lens")(form)


def results(torch: Any, network: Any, call: Callable) -> dict[str, np.ndarray]:
    """What a program computes, and the derivative of its sum by every parameter."""
    found = call(network)
    total = sum(value.sum() for value in found.values() if value.requires_grad)
    if not isinstance(total, int):
        total.backward()
    arrays = {f"out {name}": value.detach().cpu().numpy() for name, value in found.items()}
    for name, p in network.named_parameters():
        if p.grad is not None:
            arrays[f"gradient {name}"] = p.grad.detach().cpu().numpy()
    return arrays


def run(torch: Any, name: str, file: Path, is_oracle: bool) -> str:
    """Run a program; returns what went wrong, or ""."""
    torch.manual_seed(1)
    try:
        network, call = PROGRAMS[name](torch)
        here = file.with_name(f"{name}.weights.npz")
        if is_oracle:
            weights = {n: t.detach().numpy() for n, t in network.state_dict().items()}
            np.savez(here, **weights)
        else:
            weights = {n: torch.tensor(a) for n, a in np.load(here).items()}
            network.load_state_dict(weights)
        np.savez(
            file.with_name(f"{name}.{'torch' if is_oracle else 'pellucid'}.npz"),
            **results(torch, network, call),
        )
    except Exception:
        return traceback.format_exc()
    return ""


def difference(name: str, file: Path) -> float:
    """The largest difference of a result or gradient, in shares of its largest element, or of 0.01.

    Raises:
        AssertionError: there are other results, or others have a gradient.
    """
    theirs, ours = (np.load(file.with_name(f"{name}.{library}.npz")) for library in ("torch", "pellucid"))
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    worst = 0.0
    for key, wanted in theirs.items():
        assert ours[key].shape == wanted.shape, key
        largest = max(0.01, np.abs(wanted).max(initial=0))
        worst = max(worst, float(np.abs(ours[key] - wanted).max(initial=0) / largest))
    return worst


def main(library: str, file: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    names = names or tuple(PROGRAMS)
    if library == "compare":
        for name in names:
            print(f"{PROGRAMS[name].package} {name}: {difference(name, Path(file)):.1e}")  # type: ignore[attr-defined]
        return
    if library == "pellucid":
        import pellucid

        pellucid.compat.install()
    import torch

    for name in names:
        with contextlib.redirect_stdout(io.StringIO()):
            wrong = run(torch, name, Path(file), library == "torch")
        print(f"{name}: {wrong or 'done'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
