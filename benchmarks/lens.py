"""What looking into a model costs while it generates: steps with the logit lens beside plain ones.

Run: scripts/browser benchmarks/lens.py --mount cache/weights   (add --native for CPython and wgpu-py)
Settings after --: --file NAME --prompt IDS --new IDS --rounds N

    plain   nobody looks
    taps    `lens.capture` keeps what all layers return
    lens    `lens.watch` makes a look of the logit lens a part of each step
    table   and its table is read

The four take turns, and every ratio is one of the same round: the machine's clock and load are those of that
moment. Of a round the median step counts, the first ones left out. The last line is JSON.
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

MODES = ("plain", "taps", "lens", "table")
WARM_UP = 12  # steps of a round that are not counted: they are captured and their kernels compiled
COUNTERS = ("dispatches", "submits", "bind_groups")
WIDTHS = (10, 10, 12, 9, 17, 24)  # of the printed columns


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lens")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf", help="of the mounted folder")
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
    looks = {"plain": contextlib.nullcontext(lens.Seen()), "taps": lens.capture(model, "model.layers.*")}
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


def main() -> int:
    options = arguments(sys.argv[1:])
    model = torch.AutoModelForCausalLM.from_pretrained(
        os.environ["PELLUCID_MOUNT"], filename=options.file, device="webgpu"
    )
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
    print(json.dumps(result))
    return 0


sys.exit(main())
