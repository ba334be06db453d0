"""What components and programs of a page ask of Python: a model for each address, tokens, what is inside.

Events that are sent: ``pellucid-progress`` and ``pellucid-token``, each with the key of its call.
"""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pellucid_page import send
from pyodide.code import eval_code_async

import pellucid as torch
from pellucid import lens, weights
from pellucid.utils import copies

CANDIDATES = 5


@dataclass(frozen=True)
class Loaded:
    """A model that is there."""

    model: Any
    tokenizer: Any

    def ids(self, prompt: str | list[int], chat: bool = False) -> list[int]:
        """Ids of a text, of a user's message, or as they are given."""
        if not isinstance(prompt, str):
            return list(prompt)
        if not chat:
            return self.tokenizer.encode(prompt)
        message = {"role": "user", "content": prompt}
        return self.tokenizer.apply_chat_template([message], add_generation_prompt=True)

    def names(self, ids: list[int]) -> list[str]:
        return [self.tokenizer.decode([i]) for i in ids]


_loads: dict[Any, "Load"] = {}  # by the addresses of the models
_numbered: dict[int, tuple[Any, Loaded]] = {}  # address and model, by the number that a program has
_running: dict[int, weights.Cancel] = {}  # calls that can be stopped
# Whether copies are kept is a setting of the whole page, so models are loaded one after the other.
_one_load = asyncio.Lock()


class Load:
    """A model on its way to all who asked for it: each is told how far it is, and may give up.

    Args:
        source: address of the model.
        keep: whether a copy is kept in the browser; None as the page's setting says.
    """

    def __init__(self, source: Any, keep: bool | None):
        self._source, self._keep = source, keep
        self._waiting = 0
        self._told: list[Callable[[weights.Progress], None]] = []
        self._last: weights.Progress | None = None
        self._task = asyncio.ensure_future(self._run())

    @property
    def is_over(self) -> bool:
        """Whether it gave no model, so that who asks next begins anew."""
        return self._task.done() and (self._task.cancelled() or self._task.exception() is not None)

    async def _run(self) -> Loaded:
        await torch.webgpu.open_async()
        async with _one_load:
            before = torch.settings.keep_copies
            torch.settings.keep_copies = before if self._keep is None else self._keep
            try:
                load = torch.AutoModelForCausalLM.from_pretrained_async
                with await weights.open_folder_async(self._source) as folder:
                    tokenizer = await torch.AutoTokenizer.from_pretrained_async(folder)
                    model = await load(folder, on_progress=self._tell)
                if torch.settings.keep_copies:
                    with contextlib.suppress(torch.errors.SourceError):  # the model is there without a copy
                        await copies.finish_async()
                return Loaded(model, tokenizer)
            finally:
                torch.settings.keep_copies = before

    def _tell(self, progress: weights.Progress) -> None:
        self._last = progress
        for told in list(self._told):
            told(progress)

    async def result(self, told: Callable[[weights.Progress], None] | None, cancel: weights.Cancel) -> Loaded:
        """The model, once it is there. Who cancels leaves at once; the load ends when nobody waits for it.

        Raises:
            LoadCancelled: this caller's token was used.
        """
        cancel.check()
        left = asyncio.get_running_loop().create_future()
        forget = cancel.watch(lambda: left.done() or left.set_result(None))
        self._waiting += 1
        if told is not None:
            self._told.append(told)
            if self._last is not None:
                told(self._last)
        try:
            await asyncio.wait({self._task, left}, return_when=asyncio.FIRST_COMPLETED)
            cancel.check()
            return self._task.result()
        finally:
            forget()
            self._waiting -= 1
            if told is not None:
                self._told.remove(told)
            if not self._waiting and not self._task.done():
                self._task.cancel()
                if _loads.get(self._source) is self:
                    del _loads[self._source]


async def loaded(
    source: Any,
    told: Callable[[weights.Progress], None] | None = None,
    cancel: weights.Cancel | None = None,
    keep: bool | None = None,
) -> Loaded:
    """A model and its tokenizer: loaded once, however many show it."""
    load = _loads.get(source)
    if load is None or load.is_over:
        load = _loads[source] = Load(source, keep)
    return await load.result(told, cancel or weights.Cancel())


@contextlib.contextmanager
def stoppable(key: int) -> Iterator[weights.Cancel]:
    """A call that `stop` ends."""
    _running[key] = weights.Cancel()
    try:
        yield _running[key]
    finally:
        del _running[key]


def stop(key: int) -> None:
    """End a call that is under way."""
    if key in _running:
        _running[key].cancel()


async def load(key: int, source: Any, keep: bool) -> dict[str, Any]:
    """Load a model for a program; what the program knows of it."""

    def tell(progress: weights.Progress) -> None:
        done, total, rate, remaining, _ = progress
        told = {"key": key, "done": done, "total": total, "rate": rate, "remaining": remaining}
        send("pellucid-progress", told)

    with stoppable(key) as cancel:
        found = await loaded(source, tell, cancel, keep)
    _numbered[key] = source, found
    return {
        "number": key,
        "source": source if isinstance(source, str) else source.name,
        "layers": found.model.config.num_hidden_layers,
        "positions": found.model.config.max_position_embeddings,
        "bytes": torch.webgpu.memory_stats()["weight_bytes"],
        "chat": found.tokenizer.chat_template is not None,
        "device": torch.webgpu.get_device_name(),
        "points": list(lens.points(found.model)),
    }


async def prepare() -> None:
    """Open the device where Python cannot wait, so that the first op of a program need not."""
    with contextlib.suppress(torch.errors.DeviceError):  # the op says so
        await torch.webgpu.open_async()


def release(number: int) -> None:
    """Let go of a model; where nobody else has it, its memory goes back."""
    source, _ = _numbered.pop(number, (None, None))
    if source is not None and all(other != source for other, _ in _numbered.values()):
        _loads.pop(source, None)
    gc.collect()
    torch.webgpu.empty_cache()


def of(number: int) -> Loaded:
    """The model that a program has.

    Raises:
        ValueError: it was released.
    """
    if number not in _numbered:
        raise ValueError("this model was released. Load it again.")
    return _numbered[number][1]


def tokenize(number: int, text: str) -> dict[str, Any]:
    """Ids of a text, and the text of each."""
    ids = of(number).ids(text)
    return {"ids": np.array(ids, np.int32), "tokens": of(number).names(ids)}


async def stream(
    key: int, number: int, prompt: Any, chat: bool, plan: str | None, settings: dict[str, Any]
) -> None:
    """Send new tokens as they come, until the model or the program ends."""
    found = of(number)
    text = found.tokenizer.stream(skip_special_tokens=True)
    changes = lens.Plan.from_json(plan) if plan else None
    with stoppable(key) as cancel:
        tokens = found.model.stream_async(found.ids(prompt, chat), plan=changes, **settings)
        async with contextlib.aclosing(tokens):
            async for token in tokens:
                if cancel.cancelled:
                    return
                name = found.tokenizer.decode([token])
                send("pellucid-token", {"key": key, "id": token, "token": name, "text": text.push(token)})
        if rest := text.end():
            send("pellucid-token", {"key": key, "id": None, "token": "", "text": rest})


async def look(number: int, prompt: Any, chat: bool, plan: str) -> dict[str, Any]:
    """What a run of a text shows under a plan: values by address, and the logit lens."""
    found = of(number)
    ids = found.ids(prompt, chat)
    wanted = lens.Plan.from_json(plan)
    seen = lens.run(found.model, ids, wanted)
    values = {}
    for address, value in seen.items():
        array = await value.detach().float().numpy_async()
        values[address] = {"shape": list(array.shape), "data": np.ascontiguousarray(array).reshape(-1)}
    said = None
    if wanted.lens is not None:
        _, positions, top_k = seen.look.ids.shape
        said = {
            "points": list(seen.look.paths),
            "positions": positions,
            "top_k": top_k,
            "ids": (await seen.look.ids.numpy_async()).astype(np.int32).reshape(-1),
            "probabilities": (await seen.look.probabilities.numpy_async()).astype(np.float32).reshape(-1),
        }
    return {"ids": np.array(ids, np.int32), "tokens": found.names(ids), "values": values, "lens": said}


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
    found = await loaded(source)
    model, tokenizer = found.model, found.tokenizer
    changes = lens.Plan.from_json(plan) if plan else lens.Plan()
    session = lens.Session(model, tokenizer.encode(prompt), plan=changes)
    begun = len(session.ids)
    for _ in range(count):
        await session.token_async()
    ids = session.ids
    names = found.names(ids)
    made = {"text": tokenizer.decode(ids[begun:]), "tokens": names}
    if view == "attention":
        capture = lens.Plan(["attn_probs"], changes.patch, changes.steer, changes.ablate)
        seen = lens.run(model, ids, capture)
        probs = np.concatenate([await value.numpy_async() for value in seen.values()])
        layers, heads = probs.shape[:2]
        return {**made, "layers": layers, "heads": heads, "probs": probs.astype(np.float32).reshape(-1)}
    if view == "ranks":
        best = (await session.candidates_async(3))[:3]
        seen = lens.run(model, ids, lens.Plan(capture=["resid_post"]))
        curves = [lens.layer_curves(model, seen, [token], positions=-1) for token, _ in best]
        values = [await curve.rank[:, 0].float().numpy_async() for curve in curves]
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
