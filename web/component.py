"""What the components of a page ask of Python: a model for each address, and the data of each view."""

import asyncio
from typing import Any

import numpy as np
from pyodide.code import eval_code_async

import pellucid as torch
from pellucid import lens

CANDIDATES = 5
_models: dict[str, asyncio.Future] = {}


async def _load(source: str) -> tuple[Any, Any]:
    await torch.webgpu.open_async()
    tokenizer = await torch.AutoTokenizer.from_pretrained_async(source)
    return await torch.AutoModelForCausalLM.from_pretrained_async(source), tokenizer


async def loaded(source: str) -> tuple[Any, Any]:
    """A model and its tokenizer: loaded once, however many components show it."""
    if source not in _models:
        _models[source] = asyncio.ensure_future(_load(source))
    try:
        return await asyncio.shield(_models[source])
    except BaseException:
        _models.pop(source, None)
        raise


async def run(program: str, names: dict[str, Any]) -> str | None:
    """Run a program; how Python writes its last value, if there is one."""
    value = await eval_code_async(program, names)
    return None if value is None else repr(value)


async def show(source: str, prompt: str, count: int, view: str, plan: str) -> dict[str, Any]:
    """The data of a view, of a prompt and the tokens that the model goes on with.

    Args:
        source: address of the model.
        prompt: the text.
        count: new tokens.
        view: ``lens``, ``attention``, or ``ranks``.
        plan: JSON of a `lens.Plan`, or empty.

    Returns:
        The data, and ``text``, what was written.
    """
    model, tokenizer = await loaded(source)
    changes = lens.Plan.from_json(plan) if plan else lens.Plan()
    session = lens.Session(model, tokenizer.encode(prompt), plan=changes)
    begun = len(session.ids)
    for _ in range(count):
        await session.token_async()
    ids = session.ids
    names = [tokenizer.decode([i]) for i in ids]
    made = {"text": tokenizer.decode(ids[begun:]), "tokens": names}
    if view == "attention":
        capture = lens.Plan(["attn_probs"], changes.patch, changes.steer, changes.ablate)
        seen = lens.run(model, ids, capture)
        probs = np.concatenate([await value.numpy_async() for value in seen.values()])
        layers, heads = probs.shape[:2]
        return {**made, "layers": layers, "heads": heads, "probs": probs.astype(np.float32).reshape(-1)}
    if view == "ranks":
        best = (await session.candidates_async(3))[:3]
        curves = [lens.layer_curves(model, ids, [token]) for token, _ in best]
        values = [await curve.rank[:, -1].float().numpy_async() for curve in curves]
        series = [
            {"name": tokenizer.decode([token]), "values": v}
            for (token, _), v in zip(best, values, strict=True)
        ]
        points = [point.split(".")[-1] for point in curves[0].points]
        return {
            **made,
            "points": points,
            "series": series,
            "measure": "rank, from 1",
            "log": True,
            "down": True,
        }
    look = {"points": "resid_post", "top_k": CANDIDATES}
    seen = lens.run(model, ids, lens.Plan((), changes.patch, changes.steer, changes.ablate, look))
    table = await seen.look.table_async()
    columns = [
        {"position": k, "layers": [[[i, tokenizer.decode([i]), p] for i, p in cell] for cell in cells]}
        for k, cells in enumerate(zip(*table, strict=True))
    ]
    tokens = [{"id": i, "token": name} for i, name in zip(ids, names, strict=True)]
    return {
        "text": made["text"],
        "layers": len(table),
        "answer": begun - 1,
        "tokens": tokens,
        "columns": columns,
    }
