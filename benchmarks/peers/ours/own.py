"""What Pellucid's own Python and JavaScript cost, whatever rows were asked for."""

import time
from typing import Any

import pellucid as torch

from .forms import Unavailable
from .language_model import load
from .measure import counters

CALLS = 500
REPETITIONS = 7
PROMPT, IDS, WARM_UP = 64, 12, 4


def peak() -> dict[str, float]:
    """What the device can do, as shares of which the rows are told."""
    found = torch.profiler.peak()
    return {"copied_gb_per_second": found.bandwidth / 1e9, "gflop_per_second": found.flop_rate / 1e9}


def eager() -> dict[str, float]:
    """Microseconds of Python per recorded op, of flushing per op, and of JavaScript per dispatch.

    The chain of dependent additions is measured without fusion, so that each op is a dispatch.
    """
    a = torch.ones(64, 64)
    recorded, flushed, script = [], [], []
    with torch.webgpu.fusion(False):
        for _ in range(REPETITIONS):
            torch.webgpu.synchronize()
            counted = counters()
            began = time.perf_counter()
            x = a
            for _ in range(CALLS):
                x = x + a
            done = time.perf_counter()
            torch.webgpu.flush()
            flushed.append(time.perf_counter() - done)
            recorded.append(done - began)
            torch.webgpu.synchronize()
            counted = {name: value - counted[name] for name, value in counters().items()}
            script.append(1000 * counted["encode_ms"] / counted["dispatches"])
    return {
        "python_us_per_op": 1e6 * min(recorded) / CALLS,
        "flush_us_per_op": 1e6 * min(flushed) / CALLS,
        "js_us_per_dispatch": min(script),
    }


def decoding() -> dict[str, float]:
    """Per new id of SmolLM2-135M: dispatches, flushes, and the time of JavaScript."""
    model = load()
    vocabulary = model.config.vocab_size
    ids = torch.tensor([[(7919 * k + 13) % vocabulary for k in range(PROMPT)]], device="webgpu")
    new = model.stream(ids, max_new_tokens=WARM_UP + IDS + 2, eos_token_id=())
    for _ in range(WARM_UP):
        next(new)
    counted = counters()
    for _ in range(IDS):
        next(new)
    counted = {name: (value - counted[name]) / IDS for name, value in counters().items()}
    new.close()
    return {
        "dispatches_per_id": counted["dispatches"],
        "flushes_per_id": counted["flushes"],
        "bind_groups_per_id": counted["bind_groups"],
        "js_us_per_id": 1000 * counted["encode_ms"],
    }


def own() -> dict[str, Any]:
    """All of it; the model's part only where its weights are."""
    found: dict[str, Any] = peak() | eager()
    try:
        found |= decoding()
    except Unavailable as error:
        found["decoding"] = str(error)
    torch.webgpu.synchronize()
    return found
