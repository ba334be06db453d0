"""Features of a sparse autoencoder or transcoder: the strongest of each token, and steering by one."""

from typing import Any

import numpy as np
from helpers import flat

import pellucid as torch
from pellucid import lens
from pellucid.errors import FormatError, SourceError, WeightError


class CoderError(ValueError):
    """A file that is no coder of this model's states."""


async def open_coder(model: Any, source: Any, top_k: int) -> lens.SparseCoder:
    """The coder of a file, beside the model.

    Args:
        model: whose states it reads.
        source: address or File of safetensors or ``.npz``.
        top_k: features that stay, for coders that keep so many; 0 where all do.
    """
    try:
        coder = await lens.SparseCoder.load_async(source, top_k=top_k or None, device=model.device)
    except (FormatError, SourceError, WeightError) as error:
        raise CoderError(str(error)) from None
    reads, wide = coder.encoder.shape[0], model.config.hidden_size
    if reads != wide:
        raise CoderError(
            f"The coder reads states of {reads} numbers, the model has {wide}: it belongs to another model."
        )
    return coder


async def features(
    model: Any, names: Any, coder: Any, ids: list[int], point: str, count: int
) -> dict[str, Any]:
    """The strongest features of each token, and how strong these are at all tokens."""
    ids = ids[:256]
    state = lens.run(model, ids, lens.Plan(capture=[point]))[point][0]
    with torch.no_grad():
        strong = coder.encode(state.float())
        best = strong.topk(min(count, coder.features), -1)
    found = np.array(await best.indices.tolist_async())
    some = np.unique(found)
    values = await strong[:, some.tolist()].numpy_async()
    return {
        "tokens": names(ids),
        "features": some.tolist(),  # in order
        "strengths": flat(values.T),  # features, tokens
        "count": found.shape[1],
        "of": coder.features,
        "point": point,
    }


def push(coder: Any, point: str, feature: int, strength: float) -> lens.Plan:
    """The plan that adds a feature to the states at a point."""
    return lens.Plan(steer=[coder.steer(point, feature, strength)])
