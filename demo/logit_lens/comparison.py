"""Two runs beside each other, of two prompts or two models: both lenses, and how far apart they are."""

from typing import Any

import numpy as np
from helpers import PairError, flat

import pellucid as torch
from pellucid import lens


async def comparison(
    model: Any, names: Any, other: Any, other_names: Any, ids: list[int], other_ids: list[int]
) -> dict[str, Any]:
    """What each layer of both runs says, and at each position ``sum p log(p / q)``, p of the first, in nats.

    Position by position, up to the end of the shorter text. Where the models have not as many layers, only
    what they say at the end is compared.
    """
    known = [one.config.vocab_size for one in (model, other)]
    if known[0] != known[1]:
        raise PairError(
            f"One model knows {known[0]} tokens, the other one {known[1]}: there is no distance between what "
            "they say. Compare models of one tokenizer."
        )
    sides, states = [], []
    for one, words, tokens in ((model, names, ids), (other, other_names, other_ids)):
        look = {"points": "resid_post", "top_k": 5}
        seen = lens.run(one, tokens, lens.Plan(capture=["resid_post"], lens=look))
        table = await seen.look.table_async()
        columns = [
            {"position": k, "layers": [words.candidates(cell) for cell in cells]}
            for k, cells in enumerate(zip(*table, strict=True))
        ]
        read = [{"id": i, "token": name} for i, name in zip(tokens, words(tokens), strict=True)]
        sides.append({"layers": len(table), "answer": 0, "tokens": read, "columns": columns})
        states.append(list(seen.values()))
    pairs = list(zip(*states, strict=False))
    if len(states[0]) != len(states[1]):
        pairs = [(states[0][-1], states[1][-1])]
    count = min(len(ids), len(other_ids))
    apart = []
    with torch.no_grad():
        for pair in pairs:
            p, q = (
                one.unembed(state[0, :count]).float().log_softmax(-1)
                for one, state in zip((model, other), pair, strict=True)
            )
            apart.append(await (p.exp() * (p - q)).sum(-1).numpy_async())
    return {"sides": sides, "apart": flat(np.stack(apart)), "count": count}  # layers, positions
