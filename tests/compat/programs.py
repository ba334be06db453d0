"""Programs of other packages, which both libraries run: `python programs.py torch|pellucid FILE NAME...`.

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


for name, form in {
    "llama": causal("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2),
    "qwen3": causal("Qwen3Config", "Qwen3ForCausalLM", num_key_value_heads=2, head_dim=8),
    "gpt2": causal("GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=32),
    "bert": causal("BertConfig", "BertForMaskedLM"),
}.items():
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


def main(library: str, file: str, *names: str) -> None:
    warnings.simplefilter("ignore")
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
