"""Tiny models, exported by PyTorch into files, and what they compute."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
import transformers as tf
from torch import nn
from torch.export import Dim

IDS = torch.arange(14).reshape(2, 7) * 3 % 50
IMAGE = torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16)
_SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
_TEXT = _SIZES | {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
_BERT = _SIZES | {"num_attention_heads": 4, "max_position_embeddings": 32}
_VIT = {k: v for k, v in _BERT.items() if k not in ("vocab_size", "max_position_embeddings")}
_OPEN = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
_GPT2 = {
    "vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
_T5 = {"vocab_size": 50, "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4}
_DISTILBERT = {
    "vocab_size": 50, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 32,
}  # fmt: skip
_RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}


class MobileBlock(nn.Module):
    """An inverted residual, as MobileNet has it."""

    def __init__(self, width: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width), nn.Hardswish(inplace=True),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width), nn.ReLU6(inplace=True),
            nn.Conv2d(2 * width, width, 1),
        )  # fmt: skip

    def forward(self, x):
        return x + self.body(x)


class MobileNet(nn.Module):
    """A few blocks, some ways to change sizes, and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.blocks = nn.ModuleList(MobileBlock(8) for _ in range(2))
        self.act = nn.SiLU()
        self.head = nn.Linear(8, 5)

    def forward(self, pixel_values):
        x = self.act(self.stem(nn.functional.pad(pixel_values, (1, 1, 1, 1), "reflect")))
        for block in self.blocks:
            x = block(x)
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        x = self.act(x)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


# name -> (makes the model, its arguments, sizes that stay open, whether ATen's core is wanted)
MODELS: dict[str, tuple[Any, dict, dict | None, bool]] = {
    "llama": (lambda: _causal(tf.LlamaConfig(**_TEXT)), {"input_ids": IDS}, None, False),
    "llama open": (lambda: _causal(tf.LlamaConfig(**_TEXT)), {"input_ids": IDS}, {"input_ids": _OPEN}, False),
    "qwen3 core": (lambda: _causal(tf.Qwen3Config(**_TEXT, head_dim=4)), {"input_ids": IDS}, None, True),
    "gpt2 open": (lambda: _causal(tf.GPT2Config(**_GPT2)), {"input_ids": IDS}, {"input_ids": _OPEN}, False),
    "bert open": (
        lambda: tf.BertModel(tf.BertConfig(**_BERT)),
        {"input_ids": IDS, "attention_mask": (IDS > 3).long()},
        {"input_ids": _OPEN, "attention_mask": _OPEN},
        False,
    ),
    "t5": (lambda: tf.T5EncoderModel(tf.T5Config(**_T5)), {"input_ids": IDS}, None, False),
    "vit open": (
        lambda: tf.ViTForImageClassification(tf.ViTConfig(**_VIT, image_size=16, patch_size=4)),
        {"pixel_values": IMAGE},
        {"pixel_values": {0: Dim.DYNAMIC}},
        False,
    ),
    "resnet": (
        lambda: tf.ResNetForImageClassification(tf.ResNetConfig(**_RESNET)),
        {"pixel_values": IMAGE},
        None,
        False,
    ),
    "gemma2": (
        lambda: _causal(tf.Gemma2Config(**_TEXT, head_dim=4, sliding_window=4)),
        {"input_ids": IDS}, None, False,
    ),
    "phi": (lambda: _causal(tf.PhiConfig(**_TEXT)), {"input_ids": IDS}, None, False),
    "distilbert open": (
        lambda: tf.DistilBertModel(tf.DistilBertConfig(**_DISTILBERT)),
        {"input_ids": IDS, "attention_mask": (IDS > 3).long()},
        {"input_ids": _OPEN, "attention_mask": _OPEN},
        False,
    ),
    "mobilenet": (MobileNet, {"pixel_values": IMAGE}, None, False),
    "mobilenet core": (MobileNet, {"pixel_values": IMAGE}, None, True),
}  # fmt: skip


def _causal(config: Any) -> nn.Module:
    return tf.AutoModelForCausalLM.from_config(config)


def made(name: str) -> nn.Module:
    """A model in eval mode with random weights, norms and biases too."""
    torch.manual_seed(sum(name.encode()))
    model = MODELS[name][0]().eval()
    if hasattr(model, "config"):
        model.config.use_cache = False
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.05 * torch.randn_like(p))
    return model


def exported(
    model: nn.Module, args: tuple, kwargs: dict | None = None, shapes: Any = None, core: bool = False
):
    """The program of a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, args, kwargs or {}, dynamic_shapes=shapes, strict=False)
        return program.run_decompositions() if core else program


def saved(program: Any, path: Path) -> Path:
    """The program's file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so of a transposed weight
        torch.export.save(program, path)
    return path


def first(output: Any) -> torch.Tensor:
    """The tensor of a module's output."""
    output = output.to_tuple() if hasattr(output, "to_tuple") else output
    while isinstance(output, (tuple, list)):
        output = output[0]
    return output
