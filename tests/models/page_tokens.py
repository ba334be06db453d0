"""What SmolLM2 says on this device beside what transformers said: in a page or natively.

    scripts/browser tests/models/page_tokens.py --mount DIR [--native] -- [--new N] [--prompts A,B] [--async]

DIR holds the GGUF and ``smollm2_tokens.json`` from tests/golden, the latter natively found without. Greedy
ids must be the recorded ones wherever the likeliest id led by more than 0.05, and the logits of the prompt's
last position must lie within 0.02 of their standard deviation.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import pellucid
from pellucid import weights
from pellucid.models import AutoModelForCausalLM

RECORDED = "smollm2_tokens.json"
CLEAR = 0.05
CLOSE = 0.02


def agreement(got: list[int], wanted: list[int], leads: list[float]) -> tuple[int, str]:
    """How many ids agree, and what is wrong; where the lead was small, texts may part."""
    for k, (mine, theirs, lead) in enumerate(zip(got, wanted, leads, strict=False)):
        if mine != theirs:
            wrong = f"id {k} is {mine} instead of {theirs}, which led by {lead}" if lead > CLEAR else ""
            return k, wrong
    return min(len(got), len(wanted)), ""


def recorded(mount: str, model: str) -> dict:
    """The recorded values: beside the model, or natively in the tests."""
    found = weights.open_folder(mount, filename=model).json(RECORDED)
    if found is None:
        found = json.loads((Path(__file__).parents[1] / "golden" / RECORDED).read_text(encoding="utf-8"))
    return found


async def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="page_tokens")
    parser.add_argument("--new", type=int, default=16, help="new ids per prompt")
    parser.add_argument("--prompts", default="", help="names, with commas; all if left out")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--async", dest="twins", action="store_true", help="use the awaitable twins")
    options = parser.parse_args(words)
    mount = os.environ["PELLUCID_MOUNT"]
    golden = recorded(mount, options.file)
    load = {"filename": options.file, "device": "webgpu"}
    if options.twins:
        model = await AutoModelForCausalLM.from_pretrained_async(mount, **load)
    else:
        model = AutoModelForCausalLM.from_pretrained(mount, **load)
    failures = 0
    names = options.prompts.split(",") if options.prompts else list(golden["prompts"])
    for name in names:
        row = golden["prompts"][name]
        begun = time.perf_counter()
        ids = pellucid.tensor([row["ids"]], device="webgpu")
        with pellucid.no_grad():
            logits = model(ids, logits_to_keep=1).logits[0, -1]
            logits = (await logits.numpy_async()) if options.twins else logits.numpy()
        apart = np.abs(logits[:: golden["stride"]] - np.array(row["logits"])).max() / row["deviation"]
        settings = {"max_new_tokens": options.new, "eos_token_id": ()}
        if options.twins:
            text = await (await model.generate_async(ids, **settings)).tolist_async()
        else:
            text = model.generate(ids, **settings).tolist()
        new = text[0][len(row["ids"]) :]
        agreed, wrong = agreement(new, row["new_ids"], row["leads"])
        if not apart <= CLOSE:
            wrong = f"{wrong}; logits differ by {apart:.4f} standard deviations".removeprefix("; ")
        failures += bool(wrong)
        seconds = time.perf_counter() - begun
        said = f"{agreed} of {len(new)} new ones agree, logits within {apart:.4f}, {seconds:.1f} s"
        print(f"{name:8} {len(row['ids']):4} ids, {said} {'WRONG: ' + wrong if wrong else 'ok'}", flush=True)
    print(json.dumps({"prompts": len(names), "failures": failures}))
    return 1 if failures or not names else 0


sys.exit(await main(sys.argv[1:]))  # noqa: F704
