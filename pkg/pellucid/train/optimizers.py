"""Optimizers by name, and which parameters decay."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..nn import LayerNorm
from ..nn.modules.module import Module
from ..optim import SGD, Adafactor, Adagrad, Adam, AdamW, AdamW8bit, Muon, RMSprop
from ..optim.optimizer import Optimizer

# Of each optimizer the class, and what of TrainingArguments it takes besides rate and decay.
_ADAM = {"betas": lambda a: (a.adam_beta1, a.adam_beta2), "eps": lambda a: a.adam_epsilon}
OPTIMIZERS: dict[str, tuple[Callable[..., Optimizer], dict[str, Callable[[Any], Any]]]] = {
    "adamw": (AdamW, _ADAM),
    "adamw_torch": (AdamW, _ADAM),
    "adamw_torch_fused": (AdamW, _ADAM),
    "adamw_8bit": (AdamW8bit, _ADAM),
    "adamw_bnb_8bit": (AdamW8bit, _ADAM),
    "adam": (Adam, _ADAM),
    "sgd": (SGD, {}),
    "adagrad": (Adagrad, {}),
    "rmsprop": (RMSprop, {}),
    "adafactor": (Adafactor, {}),
    "muon": (Muon, {}),
}
# Names of parameters that keep their size, besides those of layer norms.
_KEPT = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


def decay_parameter_names(model: Module) -> list[str]:
    """Names of the parameters that weight decay is for: not biases, and not those of norms.

    Args:
        model: whose.

    Source: https://huggingface.co/docs/transformers/main_classes/trainer (get_decay_parameter_names)
    """
    norms = {
        f"{path}.{name}" if path else name
        for path, module in model.named_modules()
        if isinstance(module, LayerNorm)
        for name, _ in module.named_parameters(recurse=False)
    }
    return [
        name for name, p in model.named_parameters() if name not in norms and not _KEPT.search(name.lower())
    ]


def create_optimizer(model: Module, args: Any) -> Optimizer:
    """The optimizer of a run, with a group of parameters that decay and one of those that do not.

    Args:
        model: whose parameters that require grad.
        args: a `TrainingArguments`.
    """
    make, settings = OPTIMIZERS[args.optim]
    decaying = set(decay_parameter_names(model))
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for name, p in trained if name in decaying], "weight_decay": args.weight_decay},
        {"params": [p for name, p in trained if name not in decaying], "weight_decay": 0.0},
    ]
    chosen = {name: of(args) for name, of in settings.items()}
    return make([g for g in groups if g["params"]], lr=args.learning_rate, **chosen, **args.optim_args)


__all__ = ["OPTIMIZERS", "create_optimizer", "decay_parameter_names"]
