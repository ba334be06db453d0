"""What is no setting at all in the place of each argument of optimizers, schedules, generation, lens, loading
and `compile`: taken, or refused by a typed error that names the function."""

import inspect
import re
import warnings
from functools import partial

import pytest

import pellucid
from pellucid import lens
from pellucid.errors import PellucidError
from pellucid.optim import lr_scheduler

JUNK = (None, "a", object(), 1.5, float("nan"), ["a"], [], -1, {}, True)
# By PyTorch's own class: a schedule that goes on needs rates that were there before.
GOES_ON = re.compile("to go on at step")


def parameters():
    return [pellucid.nn.Parameter(pellucid.ones(2))]


def one_step(made, **given):
    # K-FAC listens to the layers of its model.
    kfac = made is pellucid.optim.KFAC
    needed = {"model": pellucid.nn.Linear(2, 2)} if kfac else {"params": parameters()}
    optimizer = made(**{**needed, **given})
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = pellucid.ones_like(p)
    optimizer.step(lambda: pellucid.ones(()))


NEEDED = {
    "LambdaLR": {"lr_lambda": lambda step: 1}, "MultiplicativeLR": {"lr_lambda": lambda step: 1},
    "StepLR": {"step_size": 2}, "MultiStepLR": {"milestones": [1]}, "ExponentialLR": {"gamma": 0.5},
    "CosineAnnealingLR": {"T_max": 3}, "OneCycleLR": {"max_lr": 0.1, "total_steps": 5},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2}, "CosineAnnealingWarmRestarts": {"T_0": 2},
}  # fmt: skip


def steps_of(made, **given):
    optimizer = pellucid.optim.SGD(parameters(), lr=0.1, momentum=0.9)
    schedule = made(**{"optimizer": optimizer, **NEEDED.get(made.__name__, {}), **given})
    for _ in range(3):
        schedule.step(*([1.0] if made is lr_scheduler.ReduceLROnPlateau else []))


def used(context, layers, **given):
    with context(**{"model": layers, **given}):
        layers(pellucid.ones(1, 2))


def generated(call, ids, **given):
    list(call(**{"input_ids": ids, "max_new_tokens": 2, **given}))


def calls():
    """By name: whose arguments, and what calls it with some of them replaced."""
    found = {}
    for name, made in vars(pellucid.optim).items():
        is_one = inspect.isclass(made) and issubclass(made, pellucid.optim.Optimizer)
        if is_one and name not in ("Optimizer", "Muon", "SparseAdam"):
            found[name] = made.__init__, partial(one_step, made)
    for name in ("ConstantLR", "LinearLR", "PolynomialLR", "ReduceLROnPlateau", *NEEDED):
        made = getattr(lr_scheduler, name)
        found[name] = made.__init__, partial(steps_of, made)
    layers = pellucid.nn.Sequential(pellucid.nn.Linear(2, 3), pellucid.nn.Tanh())
    config = pellucid.models.LlamaConfig(
        vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    model, ids = pellucid.models.LlamaForCausalLM(config), pellucid.tensor([[1, 2, 3]])
    auto = pellucid.AutoModelForCausalLM
    return found | {
        "capture": (lens.capture, partial(used, lens.capture, layers)),
        "patch": (lens.patch, lambda **k: used(lens.patch, layers, **{"changes": {"0": lambda x: x}, **k})),
        "logit_lens": (lens.logit_lens, lambda **k: lens.logit_lens(**{"model": model, "source": ids, **k})),
        "generate": (model.generate, partial(generated, model.generate, ids)),
        "stream": (model.stream, partial(generated, model.stream, ids)),
        "compile": (
            pellucid.compile, lambda **k: pellucid.compile(**{"model": layers, **k})(pellucid.ones(1, 2))
        ),
        "from_pretrained": (
            auto.from_pretrained, lambda **k: auto.from_pretrained(**{"source": "/nonexistent", **k})
        ),
    }  # fmt: skip


@pytest.mark.parametrize("part", range(2))
def test_junk_is_refused_by_name(part):
    wrong = []
    with pellucid.device("cpu"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (form, call) in list(calls().items())[part::2]:
            for p in inspect.signature(form).parameters.values():
                if p.name == "self" or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                    continue
                for junk in JUNK:
                    try:
                        call(**{p.name: junk})
                    except (PellucidError, NotImplementedError) as error:
                        if not re.match(r"[\w./]+(\(\))?: |device ", str(error)):
                            wrong.append(f"{name} {p.name}={junk!r}: no name before {error}")
                    except Exception as error:
                        if not GOES_ON.search(str(error)):
                            wrong.append(f"{name} {p.name}={junk!r}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
