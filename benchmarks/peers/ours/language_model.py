"""The rows of a language model: SmolLM2-135M-Instruct from its GGUF."""

import os
from collections.abc import Iterator
from typing import Any

import pellucid as torch

from .data import integers
from .forms import DEVICE, Form, Row, Unavailable

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load() -> Any:
    mount = os.environ.get("PELLUCID_MOUNT")
    if mount is None:
        raise Unavailable("the weights are not on this machine; scripts/setup fetches them")
    return torch.AutoModelForCausalLM.from_pretrained(mount, filename=FILE, device=DEVICE)


def prompts(row: Row) -> list[torch.Tensor]:
    shape = (1, row["prompt"])
    return [
        torch.tensor(integers(shape, 40 + 100 * i, row["vocabulary"]), device=DEVICE)
        for i in range(row["inputs"])
    ]


def prefill(row: Row) -> dict[str, Form]:
    """From a prompt to its next id; its cache is made within the measured time, as by the other libraries."""
    model, ids = load(), prompts(row)

    def unit(i: int) -> list[int]:
        cache = model.new_cache(1, 256)
        with torch.no_grad():
            logits = model(ids[i], past_key_values=cache, logits_to_keep=1).logits
        return [logits[0, -1].argmax().item()]

    return {"eager": Form(unit, note="Q4_1 weights, with a new cache in each measured prompt")}


def decode(row: Row) -> dict[str, Form]:
    """New ids behind a prompt, each read as it comes.

    The step behind an id is under way when that id is read, so the clock begins at the first id's arrival: a
    wait between would give that step away.
    """
    model, ids = load(), prompts(row)
    streams: list[Iterator] = []

    def before(_: int) -> None:
        streams[:] = [model.stream(ids[0], max_new_tokens=row["new"] + 2, eos_token_id=())]
        next(streams[0])

    def unit(_: int) -> list[int]:
        return [int(next(streams[0])) for _ in range(row["new"])]

    return {"eager": Form(unit, before, note="Q4_1 weights", follows=True)}
