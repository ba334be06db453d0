"""What looking into a model costs: steps of generation that are looked into beside plain ones; patching.

Run: scripts/browser benchmarks/lens.py --mount cache/weights   (add --native for CPython and wgpu-py)
Settings after --: --file NAME | --qwen3, --prompt IDS --new IDS --rounds N

    plain   nobody looks
    taps    `lens.capture` keeps `resid_post` of all layers
    lens    `lens.watch` makes a look of the logit lens a part of each step
    table   and its table is read
    probs   `lens.capture` keeps the attention probabilities of all heads

They take turns, and every ratio is one of the same round: the machine's clock and load are those of that
moment. Of a round the median step counts, the first ones left out. Then a heat map of `activation_patching`,
12 positions by all layers, read: the first one, and the median of as many more as there are rounds.
A software adapter draws none: one takes more than ten minutes. With --qwen3 the model has the shape of
Qwen3-0.6B, and random weights. The last line is JSON.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from itertools import pairwise

import pellucid as torch
from pellucid import lens
from pellucid.device.stream import stream

MODES = ("plain", "taps", "lens", "table", "probs")
PATCHED = 12  # positions of the heat map
WARM_UP = 12  # steps of a round that are not counted: they are captured and their kernels compiled
COUNTERS = ("dispatches", "submits", "bind_groups")
WIDTHS = (10, 10, 12, 9, 17, 24)  # of the printed columns


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lens")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf", help="of the mounted folder")
    parser.add_argument("--qwen3", action="store_true", help="the shape of Qwen3-0.6B instead")
    # Positions from one power of two to the next: at each of them a step is recorded once more.
    parser.add_argument("--prompt", type=int, default=65, metavar="IDS")
    parser.add_argument("--new", type=int, default=36, metavar="IDS")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    return parser.parse_args(words)


class Waits:
    """The seconds that Python spends in reads.

    Args:
        host: whose.
    """

    def __init__(self, host):
        self.seconds, self._read = 0.0, host.read
        host.read = self._timed

    def _timed(self, ticket):
        begun = time.perf_counter()
        try:
            return self._read(ticket)
        finally:
            self.seconds += time.perf_counter() - begun


def step(model, ids, new: int, mode: str, waits: Waits) -> dict[str, float]:
    """Of one id: milliseconds, those of them that are spent waiting, and what is counted."""
    host, rows = stream().open(), []
    looks = {
        "plain": contextlib.nullcontext(lens.Seen()),
        "taps": lens.capture(model, "resid_post.*"),
        "probs": lens.capture(model, "attn_probs.*"),
    }
    with looks.get(mode) or lens.watch(model, positions=-1) as seen:
        for _ in model.stream(ids, max_new_tokens=new + WARM_UP + 2, eos_token_id=()):
            if mode == "table":
                seen.look.table()
            stats = host.stats()
            rows.append((time.perf_counter(), waits.seconds, *[stats[name] for name in COUNTERS]))
    # The last step runs nothing ahead.
    rows = rows[WARM_UP:-1]
    steps = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(rows)]
    names = ("milliseconds", "waiting", *COUNTERS)
    found = {
        name: statistics.median(values) for name, values in zip(names, zip(*steps, strict=True), strict=True)
    }
    return found | {name: 1000 * found[name] for name in names[:2]}


def qwen3():
    """A model of the shape of Qwen3-0.6B."""
    from pellucid.models.qwen3 import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=151936, hidden_size=1024, intermediate_size=3072, max_position_embeddings=40960,
        num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device("webgpu"):
        return Qwen3ForCausalLM(config).eval().requires_grad_(False)


def heat_maps(model, ids, rounds: int) -> list[float]:
    """Seconds of the first heat map, and of others."""
    clean, corrupted = ids[:, :PATCHED], ids[:, 1 : PATCHED + 1]
    taken = []
    for _ in range(1 + rounds):
        begun = time.perf_counter()
        lens.activation_patching(model, clean, corrupted, lens.logit_difference(3, 5)).tolist()
        taken.append(time.perf_counter() - begun)
    return taken


def main() -> int:
    options = arguments(sys.argv[1:])
    if options.qwen3:
        options.file, model = "the shape of Qwen3-0.6B", qwen3()
    else:
        load = torch.AutoModelForCausalLM.from_pretrained
        model = load(os.environ["PELLUCID_MOUNT"], filename=options.file, device="webgpu")
    info = torch.webgpu.get_device_properties()
    host = "browser" if sys.platform == "emscripten" else "native"
    adapter = f"{info.vendor} {info.architecture} {info.description}".strip()
    print(f"{host}, {adapter}; {options.file}, {len(model.model.layers)} layers")
    vocabulary, waits = model.config.vocab_size, Waits(stream().open())
    ids = torch.tensor([[(7919 * k + 13) % vocabulary for k in range(options.prompt)]], device="webgpu")
    for mode in MODES:  # captures and kernels
        step(model, ids, 2, mode, waits)
    rounds = [
        {mode: step(model, ids, options.new, mode, waits) for mode in MODES} for _ in range(options.rounds)
    ]
    result = {"benchmark": "lens", "host": host, "adapter": adapter, "model": options.file}
    titles = ("ms an id", "waiting", "dispatches", "submits", "new bind groups", "times plain")
    print(" " * 8 + "".join(f"{title:>{w}}" for title, w in zip(titles, WIDTHS, strict=True)))
    for mode in MODES:
        found = {name: statistics.median(r[mode][name] for r in rounds) for name in rounds[0][mode]}
        ratios = sorted(r[mode]["milliseconds"] / r["plain"]["milliseconds"] for r in rounds)
        ratio = statistics.median(ratios)
        numbers = [f"{found[name]:.3f}" for name in ("milliseconds", "waiting")]
        numbers += [f"{found[name]:g}" for name in COUNTERS]
        numbers += [f"{ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"]
        print(f"  {mode:6}" + "".join(f"{n:>{w}}" for n, w in zip(numbers, WIDTHS, strict=True)), flush=True)
        result[mode] = {name: round(value, 3) for name, value in found.items()} | {"ratio": round(ratio, 3)}
    if not info.is_software:
        first, *others = heat_maps(model, ids, options.rounds)
        result["patching"] = {"first": round(first, 3), "seconds": round(statistics.median(others), 3)}
        print(f"  a heat map of {PATCHED} positions x {len(model.model.layers)} layers: {result['patching']}")
    print(json.dumps(result))
    return 0


sys.exit(main())
