"""Cases of PyTorch's databases of modules and optimizers: outputs, gradients, ten steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import pellucid

from .outcome import Counts, compare, flat
from .translate import MissingName, value


def modules() -> dict[str, Any]:
    return {info.name.removeprefix("nn."): info for info in module_db if "quantized" not in info.name}


def optimizers() -> dict[str, Any]:
    return {info.optim_cls.__name__: info for info in optim_db if info.optim_cls.__name__ != "SparseAdam"}


def run_module(info: Any, most: int, seed: int) -> dict[str, Counts]:
    """Run a module's inputs in training and evaluation: counts of ``forward`` and ``gradient``."""
    counts = {"forward": Counts(), "gradient": Counts()}
    for training in (True, False):
        torch.manual_seed(seed)
        cases = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
        )
        for case in cases[:most]:
            _module(info, case, training, counts)
    return counts


def _is_random(module: torch.nn.Module, training: bool) -> bool:
    """Whether an output depends on the generator."""
    kinds = ("Dropout", "Fractional", "RReLU")
    return training and any(
        getattr(m, "dropout", 0) or any(kind in type(m).__name__ for kind in kinds) for m in module.modules()
    )


def _wanting(found: Iterable) -> list:
    """The tensors of either library that require grad."""
    return [t for t in flat(list(found)) if hasattr(t, "requires_grad") and t.requires_grad]


def _module(info: Any, case: Any, training: bool, counts: dict[str, Counts]) -> None:
    given, forward = case.constructor_input, case.forward_input
    if forward is None:
        return
    args, kwargs = forward.args, forward.kwargs
    try:
        theirs = info.module_cls(*given.args, **given.kwargs).train(training)
        # Running statistics move on with the call.
        state = {k: v.clone() for k, v in theirs.state_dict().items()}
        wanted = theirs(*args, **kwargs)
    except (RuntimeError, ValueError):
        return
    values = not _is_random(theirs, training)
    kept: list = []

    def ours():
        cls = getattr(pellucid.nn, info.module_cls.__name__, None)
        if cls is None:
            raise MissingName(f"nn.{info.module_cls.__name__}")
        settings = {k: v for k, v in given.kwargs.items() if k != "device"}  # the default one
        module = cls(*value(given.args), **value(settings)).train(training)
        if state:
            module.load_state_dict(value(state))
        kept[:] = module, value(args), value(kwargs)
        return module(*kept[1], **kept[2])

    found = compare(counts["forward"], ours, wanted, values, f"{case.desc or given}: "[:80])
    leaves, roots = _wanting([*args, kwargs, *theirs.parameters()]), _wanting([wanted])
    if not (values and leaves and roots):
        return
    if found is None:
        counts["gradient"].add("missing", "the forward call failed")
        return
    seeds = [torch.randn_like(r) for r in roots]
    grads = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)

    def gradients():
        own = _wanting([*kept[1], kept[2], *kept[0].parameters()])
        made = pellucid.autograd.grad(_wanting([found]), own, value(seeds), allow_unused=True)
        return [pellucid.zeros_like(x) if g is None else g for g, x in zip(made, own)]

    zeroed = [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]
    compare(counts["gradient"], gradients, zeroed)


def run_optimizer(info: Any, most: int, seed: int) -> dict[str, Counts]:
    """Ten steps on a least squares problem with each configuration: counts of ``forward``."""
    counts = {"forward": Counts()}
    name = info.optim_cls.__name__
    for case in info.optim_inputs_func(device="cpu")[:most]:
        torch.manual_seed(seed)
        start, x, y = torch.randn(4, 3), torch.randn(8, 4), torch.randn(8, 3)

        def steps(t: Any, convert: Any, case=case, start=start, x=x, y=y):
            cls = getattr(t.optim, name, None)
            if cls is None:
                raise MissingName(f"optim.{name}")
            w = convert(start.clone()).requires_grad_()
            optimizer = cls([w], **convert(dict(case.kwargs)))
            a, b = convert(x), convert(y)

            def closure():
                optimizer.zero_grad()
                loss = ((a @ w - b) ** 2).mean()
                loss.backward()
                return loss

            for _ in range(10):
                optimizer.step(closure)
            return w

        try:
            theirs = steps(torch, lambda v: v)
        except (RuntimeError, ValueError):
            continue
        compare(counts["forward"], lambda steps=steps: steps(pellucid, value), theirs, True, f"{case.desc}: ")
    return counts
