"""The instruments of the page: one function for each picture, and what the picture is drawn from.

Each takes the page's model and tokenizer, awaits its values, and returns plain data; a view of `web/views`
draws it. Arrays are float32 of numpy, flat, which come to the page as typed arrays.
"""

import asyncio
import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from features import features, open_coder, push

from pellucid import lens

MOST = 96  # tokens of an attention picture: all heads of so many are some ten million numbers
LAYERS_AT_ONCE = 4  # of patching, between two looks at Stop


class PromptPairError(ValueError):
    """Two prompts that cannot be patched into each other."""


def flat(values: np.ndarray) -> np.ndarray:
    """What the page gets of an array."""
    return np.ascontiguousarray(values, dtype=np.float32).reshape(-1)


def numbered(names: list[str]) -> list[str]:
    """Labels of layers: the number behind the address."""
    return [name.split(".")[-1] for name in names]


async def attention(page: Any, ids: list[int]) -> dict[str, Any]:
    """Who looks at whom: the probabilities of every head."""
    ids = ids[:MOST]
    seen = lens.run(page.model, ids, lens.Plan(capture=["attn_probs"]))
    probs = np.concatenate([await value.numpy_async() for value in seen.values()])
    layers, heads = probs.shape[:2]
    return {"tokens": page.names(ids), "layers": layers, "heads": heads, "probs": flat(probs)}


async def patching(
    page: Any, clean: str, corrupted: str, point: str, by: str, tell: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Which state of the clean prompt, put into the corrupted one, brings its answer back.

    1 is the clean prompt's difference between the logits of both answers, 0 that of the corrupted prompt.
    """
    first, second = (page.tokenizer.encode(text) for text in (clean, corrupted))
    if len(first) != len(second):
        raise PromptPairError(
            f"The clean prompt has {len(first)} tokens, the corrupted one {len(second)}: {page.names(first)} "
            f"and {page.names(second)}. States are put at the same positions: choose prompts of equal length."
        )
    ends = [lens.run(page.model, ids).output.logits[0, -1].float() for ids in (first, second)]
    answers = [await end.argmax().item_async() for end in ends]
    if answers[0] == answers[1]:
        raise PromptPairError(
            f"Both prompts go on with {page.name(answers[0])!r}, so there is no difference to bring back. "
            "Change the corrupted prompt until the model says something else."
        )
    high, low = [await (end[answers[0]] - end[answers[1]]).item_async() for end in ends]
    metric = lens.logit_difference(*answers)
    points = [a for a in lens.points(page.model) if a.split(".")[0] == point]
    heads = range(page.model.config.num_attention_heads)
    columns = page.names(second) if by == "position" else [str(k) for k in heads]
    rows: list[np.ndarray] = []
    found = {}
    for start in range(0, len(points), LAYERS_AT_ONCE):
        some = points[start : start + LAYERS_AT_ONCE]
        part = lens.activation_patching(page.model, first, second, metric, point=some, by=by)
        rows.append((await part.numpy_async() - low) / (high - low))
        done = np.concatenate(rows)
        found = {
            "name": f"{point}: share of the answer {page.name(answers[0])!r} that comes back",
            "rows": numbered(points[: len(done)]),
            "columns": columns,
            "values": flat(done),
            "from": 1.0,
            "to": 1.0,
            "answers": page.names(answers),
        }
        tell(found)
        await asyncio.sleep(0)
        if page.stopped:
            break
    return found


async def attribution(page: Any, ids: list[int], token: int, by: str) -> dict[str, Any]:
    """Who writes a token's logit: layers, heads; or which token of the text it depends on."""
    if by == "token":
        _, product = lens.saliency(page.model, ids, lambda logits: logits[:, -1, token])
        values = (await product.numpy_async())[0]
        return {
            "names": page.names(ids),
            "values": flat(values),
            "measure": f"embedding times gradient of the logit of {page.name(token)!r}",
            "ordered": True,
            "count": 60,
        }
    found = lens.direct_logit_attribution(page.model, ids, token, by=by)
    values = (await found.values.numpy_async())[:, 0, 0]
    return {
        "names": found.names,
        "values": flat(values),
        "measure": f"added to the logit of {page.name(token)!r}",
    }


async def ranks(page: Any, ids: list[int], tokens: list[int], measure: str) -> dict[str, Any]:
    """How tokens' ranks or probabilities, the entropy or the distance to the end go through the layers."""
    series, points = [], []
    for token in tokens if measure in ("rank", "probability") else tokens[:1]:
        curves = lens.layer_curves(page.model, ids, [token])
        values = await getattr(curves, measure)[:, -1].float().numpy_async()
        name = page.name(token) if measure in ("rank", "probability") else measure
        series.append({"name": name, "values": flat(values)})
        points = curves.points
    titles = {"rank": "rank, from 1", "kl": "distance to the end (nats)", "entropy": "entropy (nats)"}
    return {
        "points": numbered(points),
        "series": series,
        "measure": titles.get(measure, measure),
        "log": measure == "rank",
        "down": measure == "rank",
    }


def direction(page: Any, positive: str, negative: str, layer: int) -> Any:
    """From what one text is about to what the other is: the difference of their states at a layer's end."""
    texts = [page.tokenizer.encode(text) for text in (positive, negative)]
    return lens.difference_of_means(page.model, *([ids] for ids in texts), f"resid_post.{layer}", normed=True)


def steering(vector: Any, layer: int, strength: float) -> lens.Plan:
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


def arrays(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """What was drawn, as named arrays in their own shapes."""
    found: dict[str, np.ndarray] = {}
    if "probs" in data:
        count = len(data["tokens"])
        found["attn_probs"] = np.asarray(data["probs"]).reshape(data["layers"], data["heads"], count, count)
        found["tokens"] = np.array(data["tokens"])
    elif "series" in data:
        found["points"] = np.array(data["points"])
        for row in data["series"]:
            found[row["name"]] = np.asarray(row["values"])
    elif "columns" in data:
        found["values"] = np.asarray(data["values"]).reshape(len(data["rows"]), len(data["columns"]))
        found["rows"], found["columns"] = np.array(data["rows"]), np.array(data["columns"])
    elif "strengths" in data:
        found["tokens"], found["features"] = np.array(data["tokens"]), np.array(data["features"])
        found["strengths"] = np.asarray(data["strengths"]).reshape(len(data["features"]), -1)
    else:
        found["names"], found["values"] = np.array(data["names"]), np.asarray(data["values"])
    return found


def as_npz(data: dict[str, Any]) -> bytes:
    """The arrays as a file of numpy."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays(data))
    return file.getvalue()


def as_csv(data: dict[str, Any]) -> str:
    """The numbers as a table with a head; attention as one row for each pair of tokens."""
    file = io.StringIO()
    write = csv.writer(file).writerow
    if "probs" in data:
        write(["layer", "head", "from", "to", "probability"])
        probs = arrays(data)["attn_probs"]
        for where in zip(*np.nonzero(probs), strict=True):
            write([*map(int, where), float(probs[where])])
    elif "series" in data:
        write(["layer", *(row["name"] for row in data["series"])])
        for k, point in enumerate(data["points"]):
            write([point, *(float(row["values"][k]) for row in data["series"])])
    elif "columns" in data:
        write(["", *data["columns"]])
        for row, values in zip(data["rows"], arrays(data)["values"], strict=True):
            write([row, *map(float, values)])
    elif "strengths" in data:
        write(["position", "token", *data["features"]])
        for k, (token, values) in enumerate(zip(data["tokens"], arrays(data)["strengths"].T, strict=True)):
            write([k, token, *map(float, values)])
    else:
        write(["name", data["measure"]])
        for name, value in zip(data["names"], data["values"], strict=True):
            write([name, float(value)])
    return file.getvalue()


class Instruments:
    """The pictures of one page: what each was drawn from last, to be saved.

    Args:
        page: who has the model, its tokenizer, and ``stopped``.
        send: tells the page of parts of a picture.
    """

    def __init__(self, page: Any, send: Callable[[str, Any], None]):
        self.page, self.send = page, send
        self.drawn: dict[str, dict[str, Any]] = {}
        self.coder: Any = None

    async def draw(self, name: str, *settings: Any) -> dict[str, Any]:
        """Compute a picture's data, keep it, and return it."""
        self.page.stopped = False
        if name == "features":
            page = self.page
            self.drawn[name] = await features(page.model, page.names, settings[0], self.coder, *settings[1:])
            return self.drawn[name]
        if name == "patching":
            settings = (*settings, lambda part: self.send("part", {"name": name, "data": part}))
        compute = {"attention": attention, "patching": patching, "attribution": attribution, "ranks": ranks}[
            name
        ]
        self.drawn[name] = await compute(self.page, *settings)
        return self.drawn[name]

    async def open(self, source: Any, top_k: int) -> int:
        """Open a sparse coder; how many features it has."""
        self.coder = None  # two would take room
        self.coder = await open_coder(self.page.model, source, top_k)
        return self.coder.features

    def towards(self, positive: str, negative: str, layer: int, strength: float) -> lens.Plan:
        """The plan that pushes along the difference of two texts."""
        return steering(direction(self.page, positive, negative, layer), layer, strength)

    def feature(self, point: str, number: int, strength: float) -> lens.Plan:
        """The plan that pushes along a feature."""
        return push(self.coder, point, number, strength)

    def file(self, name: str, kind: str) -> bytes | str:
        """What was drawn, as a file."""
        return as_npz(self.drawn[name]) if kind == "npz" else as_csv(self.drawn[name])
