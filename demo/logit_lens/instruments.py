"""The instruments of the page: one function for each picture, and what the picture is drawn from.

Each takes a model and `helpers.Words` of its tokenizer, awaits its values, and returns plain data; a view of
`web/views` draws it. Arrays are float32 of numpy, flat, which come to the page as typed arrays. Their sources
are what the page shows as the Python behind a picture, so they name nothing but their arguments, `asyncio`,
`time`, numpy, pellucid and `helpers`.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from helpers import PairError, flat, numbered

from pellucid import lens


async def attention(model: Any, names: Any, ids: list[int]) -> dict[str, Any]:
    """Who looks at whom: the probabilities of every head."""
    ids = ids[:96]  # all heads of so many are some ten million numbers
    seen = lens.run(model, ids, lens.Plan(capture=["attn_probs"]))
    probs = np.concatenate([await value.numpy_async() for value in seen.values()])
    layers, heads = probs.shape[:2]
    return {"tokens": names(ids), "layers": layers, "heads": heads, "probs": flat(probs)}


async def patching(
    model: Any,
    names: Any,
    clean: str,
    corrupted: str,
    point: str,
    by: str,
    tell: Callable[[dict[str, Any]], bool],
) -> dict[str, Any]:
    """Which state of the clean prompt, put into the corrupted one, brings its answer back.

    1 is the clean prompt's difference between the logits of both answers, 0 that of the corrupted prompt.
    ``tell`` gets what is there after each few layers, and says whether to go on.
    """
    first, second = (names.tokenizer.encode(text) for text in (clean, corrupted))
    if len(first) != len(second):
        raise PairError(
            f"The clean prompt has {len(first)} tokens, the corrupted one {len(second)}: {names(first)} "
            f"and {names(second)}. States are put at the same positions: choose prompts of equal length."
        )
    ends = [lens.run(model, ids).output.logits[0, -1].float() for ids in (first, second)]
    answers = [await end.argmax().item_async() for end in ends]
    if answers[0] == answers[1]:
        raise PairError(
            f"Both prompts go on with {names.name(answers[0])!r}, so there is no difference to bring back. "
            "Change the corrupted prompt until the model says something else."
        )
    high, low = [await (end[answers[0]] - end[answers[1]]).item_async() for end in ends]
    metric = lens.logit_difference(*answers)
    points = [a for a in lens.points(model) if a.split(".")[0] == point]
    heads = range(model.config.num_attention_heads)
    columns = names(second) if by == "position" else [str(k) for k in heads]
    rows: list[np.ndarray] = []
    found = {}
    together = 1  # layers: as many as take some seconds, so that a slow device shows something
    while len(rows) < len(points):
        began, start = time.monotonic(), len(rows)
        some = points[start : start + together]
        part = lens.activation_patching(model, first, second, metric, point=some, by=by)
        rows.extend((await part.numpy_async() - low) / (high - low))
        done = np.array(rows)
        found = {
            "name": f"{point}: share of the answer {names.name(answers[0])!r} that comes back",
            "rows": numbered(points[: len(done)]),
            "columns": columns,
            "values": flat(done),
            "from": 1.0,
            "to": 1.0,
            "answers": names(answers),
            "of": len(points),
        }
        await asyncio.sleep(0)
        if not tell(found):
            break
        if time.monotonic() - began < 3:
            together *= 2
    return found


async def attribution(model: Any, names: Any, ids: list[int], token: int, by: str) -> dict[str, Any]:
    """Who writes a token's logit: layers, heads; or which token of the text it depends on."""
    if by == "token":
        _, product = lens.saliency(model, ids, lambda logits: logits[:, -1, token])
        values = (await product.numpy_async())[0]
        return {
            "names": names(ids),
            "values": flat(values),
            "measure": f"embedding times gradient of the logit of {names.name(token)!r}",
            "ordered": True,
            "count": 60,
        }
    found = lens.direct_logit_attribution(model, ids, token, by=by)
    values = (await found.values.numpy_async())[:, 0, 0]
    return {
        "names": found.names,
        "values": flat(values),
        "measure": f"added to the logit of {names.name(token)!r}",
    }


async def ranks(
    model: Any,
    names: Any,
    ids: list[int],
    tokens: list[int],
    measure: str,
    tell: Callable[[dict[str, Any]], bool],
) -> dict[str, Any]:
    """How tokens' ranks or probabilities, the entropy or the distance to the end go through the layers.

    ``tell`` gets what is there after each layer, and says whether to go on.
    """
    points = [a for a in lens.points(model) if a.split(".")[0] == "resid_post"]
    seen = lens.run(model, ids, lens.Plan(capture=points))
    is_of_tokens = measure in ("rank", "probability")
    followed = tokens if is_of_tokens else tokens[:1]
    titles = {"rank": "rank, from 1", "kl": "distance to the end (nats)", "entropy": "entropy (nats)"}
    rows: list[list[float]] = []
    found = {}
    for point in points:
        curves = [lens.layer_curves(model, seen, [k], points=point, positions=-1) for k in followed]
        rows.append([float(await getattr(curve, measure).item_async()) for curve in curves])
        found = {
            "points": numbered(points[: len(rows)]),
            "series": [
                {"name": names.name(token) if is_of_tokens else measure, "values": flat(np.array(values))}
                for token, values in zip(followed, zip(*rows, strict=True), strict=True)
            ],
            "measure": titles.get(measure, measure),
            "log": measure == "rank",
            "down": measure == "rank",
            "of": len(points),
        }
        if not tell(found):
            break
    return found


def direction(model: Any, names: Any, positive: str, negative: str, layer: int) -> Any:
    """From what one text is about to what the other is: the difference of their states at a layer's end."""
    texts = [names.tokenizer.encode(text) for text in (positive, negative)]
    return lens.difference_of_means(model, *([ids] for ids in texts), f"resid_post.{layer}", normed=True)


def pushing(vector: Any, layer: int, strength: float) -> lens.Plan:
    """The plan that pushes a layer's states along a direction, by a share of their own length."""
    change = {"point": f"resid_post.{layer}", "method": "add", "value": vector, "strength": strength}
    return lens.Plan(steer=[{**change, "relative": True}] if strength else [])


def modules(model: Any) -> dict[str, Any]:
    """The model's modules with the numbers of their weights, and the bytes that these take."""
    sizes: dict[str, list[int]] = {}
    counted: set[int] = set()
    for path, weight in model.named_parameters():
        if id(weight) in counted:
            continue
        counted.add(id(weight))
        size = getattr(weight, "nbytes", weight.numel() * weight.element_size())
        parts = path.split(".")
        for k in range(len(parts)):
            entry = sizes.setdefault(".".join(parts[:k]), [0, 0])
            entry[0] += weight.numel()
            entry[1] += int(size)
    rows = [
        {"path": path, "type": type(module).__name__, "parameters": sizes[path][0], "bytes": sizes[path][1]}
        for path, module in model.named_modules()
        if path in sizes
    ]
    return {"name": type(model).__name__, "modules": rows}
