"""``pellucid bench [MODEL]``: how fast this device is with Pellucid."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import click

from . import as_json, device_option, loading, print_json

SIDE = 2048  # of the products
WORDS = 1 << 24  # float32 of the copy: 64 MB
SMALL = 256  # both, on devices that compute in Python
CALLS = 1000
REPEATS = 5


@click.command()
@click.argument("model", required=False)
@click.option("--prompt", default=64, show_default=True, help="Ids of the prompt.")
@click.option("--new", default=32, show_default=True, help="Ids to generate.")
@device_option
@as_json
def bench(model: str | None, prompt: int, new: int, device: str | None, as_json: bool) -> None:
    """Measure products, memory and calls on this device, and loading, prompt and decoding of MODEL.

    Each number is the best of five after one round that is not counted; of decoding the median.
    """
    found = measure_device(device)
    if model:
        found |= measure_model(model, prompt, new, device, quiet=as_json)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        click.echo(f"{name:<28}{value:,.4g}" if isinstance(value, float) else f"{name:<28}{value}")


def measure_device(device: str | None = None) -> dict[str, Any]:
    """Rates of a product, of a sum of two arrays, and the time of a call.

    Args:
        device: the default device if None.
    """
    from ... import get_default_device, ones, webgpu

    kind = str(device or get_default_device())
    side, words = (SIDE, WORDS) if kind.startswith("webgpu") else (SMALL, SMALL**2)
    finish = webgpu.synchronize if kind.startswith("webgpu") else lambda: None
    x, a = ones(side, side, device=kind) / side, ones(words, device=kind)
    one = ones(4, device=kind)

    def calls() -> None:
        y = one
        for _ in range(CALLS):
            y = y + one

    told = {"device": kind}
    if kind.startswith("webgpu"):
        told["adapter"] = webgpu.get_device_name()
    return told | {
        "product, TFLOP/s": 2e-12 * side**3 / best(lambda: x @ x, finish),
        "a + a, GB/s": 8e-9 * words / best(lambda: a + a, finish),
        "a call, us": 1e6 * best(calls, finish) / CALLS,
    }


def measure_model(
    source: str, prompt: int, new: int, device: str | None, quiet: bool = True
) -> dict[str, Any]:
    """Seconds of a load, ids per second of a prompt and of decoding.

    Args:
        source: of the model.
        prompt: ids of the prompt.
        new: ids to generate.
        device: where the model runs; the default device if None.
        quiet: whether no progress is shown.
    """
    from ... import AutoModelForCausalLM, get_default_device, no_grad, tensor, webgpu

    kind = str(device or get_default_device())
    finish = webgpu.synchronize if kind.startswith("webgpu") else lambda: None
    begun = time.perf_counter()
    with loading("loading", quiet=quiet) as tell:
        model = AutoModelForCausalLM.from_pretrained(source, device=device, on_progress=tell)
    finish()
    loaded = time.perf_counter() - begun
    ids = tensor([[1 + i % 90 for i in range(prompt)]], device=kind)

    def read() -> None:
        with no_grad():
            model(ids, logits_to_keep=1).logits[0, -1].argmax().item()

    stamps = [time.perf_counter()]
    for _ in model.stream(ids, max_new_tokens=new + 2, eos_token_id=()):
        stamps.append(time.perf_counter())
    steps = sorted(later - sooner for sooner, later in pairwise(stamps[2:]))
    return {
        "model": source,
        "parameters": sum(p.numel() for p in model.parameters()),
        "load, s": loaded,
        "prompt, ids/s": prompt / best(read, finish),
        "decoding, ids/s": 1 / steps[len(steps) // 2],
    }


def best(work: Callable[[], Any], finish: Callable[[], Any]) -> float:
    """Seconds of the fastest of some rounds, each until the device was done."""
    times = []
    for _ in range(REPEATS + 1):
        begun = time.perf_counter()
        work()
        finish()
        times.append(time.perf_counter() - begun)
    return min(times[1:])
