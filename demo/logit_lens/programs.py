"""The Python behind each picture, as text: it draws the picture, is shown, changed and run again."""

import ast
import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import helpers
import numpy as np
from branching import branches, feature, steering
from comparison import comparison
from features import features, open_coder, push
from files import as_csv, as_npz
from instruments import attention, attribution, direction, patching, pushing, ranks

import pellucid as torch
from pellucid import lens


@dataclass(frozen=True)
class Picture:
    """How a picture is computed.

    Args:
        function: whose source is the text.
        before: names that it takes before its settings.
        after: those behind them.
        view: the view of `lens.widget` that draws it, if one does.
    """

    function: Callable[..., Any]
    before: tuple[str, ...] = ("model", "names")
    after: tuple[str, ...] = ()
    view: str = ""


PICTURES = {
    "attention": Picture(attention, view="attention"),
    "patching": Picture(patching, after=("tell",), view="heat_map"),
    "attribution": Picture(attribution),
    "ranks": Picture(ranks, after=("tell",)),
    "features": Picture(features, ("model", "names", "coder"), view="features"),
    "branches": Picture(branches, view="branch_tree"),
    "steering": Picture(steering),
    "feature": Picture(feature, ("model", "names", "coder")),
    "comparison": Picture(comparison, ("model", "names", "other", "other_names"), view="lens"),
}

# Cells of a notebook that make what a page has opened.
CODER = "coder = await lens.SparseCoder.load_async({source!r}, top_k={top_k!r}, device=model.device)\n"
OTHER = """\
other_names = Words(await torch.AutoTokenizer.from_pretrained_async({source!r}))
other = await torch.AutoModelForCausalLM.from_pretrained_async({source!r})
"""
SAME = "other, other_names = model, names\n"


def program(name: str, settings: tuple[Any, ...]) -> str:
    """The text that computes a picture: its function's source, and a call with the settings."""
    picture = PICTURES[name]
    given = ", ".join([*picture.before, *map(repr, settings), *picture.after])
    return f"{inspect.getsource(picture.function)}\n\npicture = await {name}({given})\n"


async def execute(text: str, names: dict[str, Any], where: str) -> None:
    """Run a text that may await, as a cell of a notebook does."""
    code = compile(text, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(code, CodeType)
    waiting = eval(code, names)
    if inspect.iscoroutine(waiting):
        await waiting


class Pictures:
    """The pictures of one page: their programs, and what each was drawn from last, to be saved.

    Args:
        page: who has the model, its ``words``, and ``stopped``.
        send: tells the page of parts of a picture.
    """

    def __init__(self, page: Any, send: Callable[[str, Any], None]):
        self.page, self.send = page, send
        self.drawn: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}
        self.needs: dict[str, str] = {}  # what a notebook makes before a text, as it was when the text ran
        self.opened = {"features": "", "feature": "", "comparison": SAME}
        self.coder: Any = None
        self.other: Any = None  # the model beside
        self.other_words: Any = None

    def names(self, name: str) -> dict[str, Any]:
        """What a program finds: `helpers`, modules, the models and their words."""

        def tell(part: dict[str, Any]) -> bool:
            self.send("part", {"name": name, "data": part})
            return not self.page.stopped

        given = {"np": np, "torch": torch, "lens": lens, "asyncio": asyncio, "time": time}
        given |= {"Any": Any, "Callable": Callable}
        page = {"model": self.page.model, "names": self.page.words, "coder": self.coder, "tell": tell}
        other = {"other": self.other or self.page.model, "other_names": self.other_words or self.page.words}
        return vars(helpers) | given | page | other | {"__name__": "__main__"}

    async def draw(self, name: str, *settings: Any) -> dict[str, Any]:
        """Compute a picture by its program; see `run`."""
        return await self.run(name, program(name, settings))

    def write(self, name: str, *settings: Any) -> str:
        """The program of what the page has shown by other means; notebooks have it, too."""
        self.texts[name] = program(name, settings)
        self.needs[name] = self.opened.get(name, "")
        return self.texts[name]

    async def compare(self, ids: list[int], text: str) -> dict[str, Any]:
        """Draw the comparison with another text, or with the other model's look at the same one."""
        words = self.other_words or self.page.words
        return await self.draw("comparison", ids, words.tokenizer.encode(text) if text else ids)

    async def run(self, name: str, text: str) -> dict[str, Any]:
        """Run a picture's program: ``data`` that is drawn, and its ``text``. Both are kept."""
        self.page.stopped = False
        names = self.names(name)
        await execute(text, names, f"<{name}>")
        picture = names.get("picture")
        if not isinstance(picture, dict):
            raise ValueError(
                f"The program leaves {type(picture).__name__} in `picture`. Assign what the view draws, "
                "a dict such as the function returns."
            )
        for key, value in picture.items():
            if isinstance(value, torch.Tensor):
                picture[key] = helpers.flat(await value.detach().float().numpy_async())
        self.texts[name], self.drawn[name] = text, picture
        self.needs[name] = self.opened.get(name, "")
        return {"data": picture, "text": text}

    async def open(self, source: Any, top_k: int, address: str) -> int:
        """Open a sparse coder, which others find at the address; how many features it has."""
        self.coder = None  # two would take room
        self.coder = await open_coder(self.page.model, source, top_k)
        self.opened["features"] = CODER.format(source=address, top_k=top_k or None)
        self.opened["feature"] = self.opened["features"]
        return self.coder.features

    def beside(self, model: Any, words: Any, address: str) -> None:
        """Have another model to compare with."""
        self.other, self.other_words = model, words
        self.opened["comparison"] = OTHER.format(source=address)

    def leave(self) -> None:
        """Let go of the other model."""
        self.other = self.other_words = None
        self.opened["comparison"] = SAME

    def towards(self, positive: str, negative: str, layer: int, strength: float) -> lens.Plan:
        """The plan that pushes along the difference of two texts."""
        vector = direction(self.page.model, self.page.words, positive, negative, layer)
        return pushing(vector, layer, strength)

    def feature(self, point: str, number: int, strength: float) -> lens.Plan:
        """The plan that pushes along a feature."""
        return push(self.coder, point, number, strength)

    def file(self, name: str, kind: str) -> bytes | str:
        """What was drawn, as a file."""
        return as_npz(self.drawn[name]) if kind == "npz" else as_csv(self.drawn[name])
