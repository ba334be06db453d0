"""The measuring of Pellucid inside its worker, as page/measure.js does it for the others."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pyodide.code import run_js

import pellucid as torch
from pellucid.device.stream import stream

from .data import checksum, sample
from .forms import Form, Row, Unavailable


def counters() -> dict[str, float]:
    """What the device did so far; `encode_ms` is the time JavaScript spent on windows."""
    host: Any = stream().open()
    counted = host.stats()
    names = ("dispatches", "submits", "bind_groups", "pipelines")
    return {
        **{name: counted[name] for name in names},
        "flushes": stream().flushes,
        "encode_ms": host.stream.encodeMs,
    }


class Measure:
    """What the page calls, by name."""

    def __init__(self):
        self._trap: Any = None
        self._forms: dict[str, Form] = {}
        self._waits = False

    async def call(self, method: str, options: list) -> Any:
        """Call a method with the options that page/library.js passes."""
        answer = getattr(self, method)(*options)
        return await answer if hasattr(answer, "__await__") else answer

    async def open(self, options: dict) -> dict:
        """Open the device, with the trap for its errors set first."""
        self._trap = await run_js("(url) => import(url)")(os.environ["PELLUCID_TRAP"])
        self._trap.trap()
        began = time.perf_counter()
        await torch.webgpu.open_async()
        took = 1000 * (time.perf_counter() - began)
        host: Any = stream().open()
        host.stream.timing = True
        return {"version": torch.__version__, "device": torch.webgpu.get_device_name(), "open_ms": took}

    def prepare(self, row: Row) -> dict:
        """Make a row's inputs."""
        from .ops import op
        from .rows import ROWS

        kinds = {**ROWS, "op": op}
        self.finish()
        self._trap.caught()  # errors that come late are not this row's
        self._waits = row.get("waits", False)
        if row["kind"] not in kinds:
            return {"unavailable": "not offered"}
        try:
            self._forms = kinds[row["kind"]](row)
        except Unavailable as error:
            return {"unavailable": str(error)}
        torch.webgpu.synchronize()
        return {"forms": [{"form": name, "note": form.note} for name, form in self._forms.items()]}

    def ready(self, name: str, k: int) -> bool:
        """What a repetition of k units needs before it; the page brings the clock up between both."""
        form = self._forms[name]
        if form.before is not None and not form.follows:
            with self._fusion(form):
                form.before(k)
        # What the last repetition left to be freed is no part of the next, and would cut its windows.
        torch.webgpu.synchronize()
        return True

    def repeat(self, name: str, k: int, checked: int, shared: int, seed: int) -> dict:
        """One repetition: k units queued, their outputs held, one wait; then outputs are read and summed.

        Of many they are ``checked`` ones by chance, half among the first ``shared``, drawn from ``seed`` when
        the clock has stopped.
        """
        form = self._forms[name]
        with self._fusion(form):
            return self._repeat(form, k, lambda: sample(k, checked, seed, shared))

    def _fusion(self, form: Form) -> Any:
        return nullcontext() if form.fusion else torch.webgpu.fusion(False)

    def _repeat(self, form: Form, k: int, draw: Callable[[], list[int]]) -> dict:
        if form.before is not None and form.follows:
            form.before(k)
        counted = self._counters(form)
        began = time.perf_counter()
        if form.held is None:
            outputs = [form.unit(i) for i in range(k)]
        else:
            outputs = []
            for i in range(k):
                outputs.append(form.unit(i))
                del outputs[: -form.held]
        queued = time.perf_counter()
        if not self._waits:
            torch.webgpu.synchronize()
        done = time.perf_counter()
        counted = {name: value - counted[name] for name, value in self._counters(form).items()}
        units = draw()
        taken = [outputs[i] for i in units]
        read = form.read or (lambda out: out.numpy() if isinstance(out, torch.Tensor) else out)
        checks = [checksum(read(out)) for out in taken]
        left = [checksum(values) for values in form.left()] if form.left else []
        errors, error = self._trap.caught().to_py()
        return {
            "k": k,
            "ms": 1000 * (done - began) / k,
            "host_ms": 1000 * (queued - began) / k,
            "units": units,
            "checks": checks,
            "left": left,
            "errors": errors,
            "error": error,
            "lost": self._trap.lost(),
            "counters": counted,
        }

    def _counters(self, form: Form) -> dict[str, float]:
        return {**counters(), **({"replays": form.replays()} if form.replays else {})}

    def own(self) -> dict:
        """What our own side costs; see own.py."""
        from .own import own

        self.finish()
        return own()

    def finish(self) -> None:
        """Give back what the row holds."""
        self._forms = {}
        torch.webgpu.synchronize()
        torch.webgpu.empty_cache()
