"""A real model's speed: prefill, decoding, and what a decoding step costs besides the device's work.

Run: scripts/browser benchmarks/generate.py --mount cache/weights   (add --native for CPython and wgpu-py)
Settings after --: --file NAME --prompt IDS --new IDS --repeat N --sample

    prefill      ids per second of a prompt, until its next id is read; the best of several
    decode       new ids per second of `stream`, each read, the first ones left out; the median step
    eager        Python time of one step's forward pass and choice, fusion and submitting included
    replay       the same of a step's forward pass as `generate` runs it: captured
    dispatches   per new id, likewise flushes and reads of `generate`
    memory       bytes in use; and the device's buffers while ids were made, as a share of weights and cache

The last line is JSON.
"""

import argparse
import json
import os
import statistics
import sys
import time

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.models.generate.step import step_of

WARM_UP = 4  # steps of a decoding that are not counted: their plans are made


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="generate")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf", help="of the mounted folder")
    parser.add_argument("--prompt", type=int, default=64, metavar="IDS")
    parser.add_argument("--new", type=int, default=24, metavar="IDS")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--sample", action="store_true", help="draw by chance instead of greedily")
    return parser.parse_args(words)


def prefill(model, ids, repeat: int) -> list[float]:
    """Seconds from the prompt to its next id; the first run makes the plans and is left out."""
    times = []
    for _ in range(repeat + 1):
        cache = model.new_cache(1, 256)
        torch.webgpu.synchronize()
        begun = time.perf_counter()
        with torch.no_grad():
            model(ids, past_key_values=cache, logits_to_keep=1).logits[0, -1].argmax().item()
        times.append(time.perf_counter() - begun)
        del cache  # before there is another one
    return times[1:]


def decode(model, ids, new: int, settings: dict) -> dict[str, float]:
    """Seconds of a step, and what is counted per step."""
    stamps, counters, reserved = [], [], 0.0
    for _ in model.stream(ids, max_new_tokens=new + WARM_UP + 1, eos_token_id=(), **settings):
        stamps.append(time.perf_counter())
        # Read without flushing: a flush of ours would be counted, too.
        stats, kinds = stream().open().stats(), stream().by_kind
        counters.append((stats["dispatches"], stream().flushes))
        reserved = stats["reserved_bytes"] / (kinds["weight"] + kinds["cache"])
    steps = [b - a for a, b in zip(stamps[WARM_UP:], stamps[WARM_UP + 1 :], strict=False)]
    (d0, f0), (d1, f1) = counters[WARM_UP], counters[-2]
    counted = len(counters) - 2 - WARM_UP
    return {
        "seconds": statistics.median(steps),
        "dispatches": (d1 - d0) / counted,
        "flushes": (f1 - f0) / counted,
        "reserved": reserved,
    }


def record(model, length: int, repeat: int) -> float:
    """Seconds of Python and of submitting one step that is not captured; the best of several."""
    cache = model.new_cache(1, 256)
    step = torch.tensor([[42]], device=model.device)
    taken = []
    for _ in range(repeat + WARM_UP):
        cache.length = length
        torch.webgpu.synchronize()
        begun = time.perf_counter()
        with torch.no_grad():
            chosen = model(step, past_key_values=cache, logits_to_keep=1).logits[:, -1].argmax(-1)
        torch.webgpu.flush()
        taken.append(time.perf_counter() - begun)
        del chosen
    torch.webgpu.synchronize()
    return min(taken[WARM_UP:])


def replay(model, length: int, repeat: int) -> float:
    """Seconds of Python and of submitting a captured forward pass; the best of several."""
    cache, half = model.new_cache(1, 256), step_of(model)
    step = torch.tensor([[42]], device=model.device)
    taken = []
    for k in range(repeat + 4 * WARM_UP):
        cache.length = length + k
        torch.webgpu.synchronize()
        begun = time.perf_counter()
        logits = half.logits(step, cache)
        torch.webgpu.flush()
        taken.append(time.perf_counter() - begun)
        del logits
    torch.webgpu.synchronize()
    return min(taken[4 * WARM_UP :])


def main() -> int:
    options = arguments(sys.argv[1:])
    begun = time.perf_counter()
    model = torch.AutoModelForCausalLM.from_pretrained(
        os.environ["PELLUCID_MOUNT"], filename=options.file, device="webgpu"
    )
    torch.webgpu.synchronize()
    loaded = time.perf_counter() - begun
    info = torch.webgpu.get_device_properties()
    host = "browser" if sys.platform == "emscripten" else "native"
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{host}, {adapter}, immediates {info.immediates}; {options.file}, {parameters:,} parameters")
    print(f"  load        {loaded:9.2f} s")
    vocabulary = model.config.vocab_size
    ids = torch.tensor([[(7919 * k + 13) % vocabulary for k in range(options.prompt)]], device="webgpu")
    first = prefill(model, ids, options.repeat)
    rate = options.prompt / min(first)
    print(f"  prefill     {rate:9.1f} ids/s   {options.prompt} ids in {min(first):.3f} s", flush=True)
    settings = {"do_sample": True, "seed": 0, "top_p": 0.95} if options.sample else {}
    found = decode(model, ids, options.new, settings)
    print(f"  decode      {1 / found['seconds']:9.1f} ids/s   {1000 * found['seconds']:.2f} ms an id")
    print(f"  dispatches  {found['dispatches']:9.1f} per id, in {found['flushes']:.1f} flushes", flush=True)
    recorded = record(model, options.prompt, max(options.repeat, 5))
    print(f"  eager       {1000 * recorded:9.2f} ms of Python and of submitting, a step that is not captured")
    replayed = replay(model, options.prompt, max(options.repeat, 5))
    print(f"  replay      {1000 * replayed:9.2f} ms a captured step, submitted")
    stats = torch.webgpu.memory_stats()
    allocated, weights = stats["allocated_bytes"], stats["weight_bytes"]
    print(
        f"  memory      {allocated / 1e6:9.1f} MB, of weights {weights / 1e6:.1f} MB; reserved while "
        f"decoding {found['reserved']:.3f} of weights and cache"
    )
    print(
        json.dumps(
            {
                "benchmark": "generate",
                "host": host,
                "adapter": adapter,
                "model": options.file,
                "prompt_ids": options.prompt,
                "prefill_ids_per_second": round(rate, 2),
                "decode_ids_per_second": round(1 / found["seconds"], 2),
                "dispatches_per_id": round(found["dispatches"], 2),
                "flushes_per_id": round(found["flushes"], 2),
                "eager_ms": round(1000 * recorded, 3),
                "replay_ms": round(1000 * replayed, 3),
                "load_seconds": round(loaded, 3),
                "allocated_bytes": allocated,
                "reserved_of_weights_and_cache": round(found["reserved"], 4),
            }
        )
    )
    return 0


sys.exit(main())
