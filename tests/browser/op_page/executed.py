"""Counts which kernels the host really ran."""

from __future__ import annotations

import re
from typing import NamedTuple

from pellucid.device.commands import CODE_BITS, RUN, walk
from pellucid.device.stream import stream


class Launch(NamedTuple):
    """The file of a launch, and what a walk has to know of it."""

    file: str
    slot_count: int
    length: int


class Executed:
    """Ops that recorded launches, and files of the launches in the windows that reached the host: what was
    executed, not just compiled.
    """

    def __init__(self):
        self.ops: set[str] = set()
        self.files: set[str] = set()
        stream().after_op.append(self.ops.add)
        self._pipelines: dict[int, tuple[str, int]] = {}
        self._launches: dict[int, Launch] = {}
        host = stream().open()
        self._host_launch, self._host_submit = host.launch, host.submit
        host.pipeline = self._seen(host.pipeline)
        host.pipeline_later = self._seen(host.pipeline_later)
        host.launch, host.submit = self._launch, self._submit

    def _seen(self, pipeline):
        """A maker of pipelines that remembers whose each is."""

        def make(source, bindings, params_bytes, immediate, label, *compact):
            number = pipeline(source, bindings, params_bytes, immediate, label, *compact)
            self._pipelines[number] = re.findall(r"\((?:fused )?([\w/]+)", label)[0], len(bindings)
            return number

        return make

    def _launch(self, pipeline, params, patches, *grid_and_turn):
        number = self._host_launch(pipeline, params, patches, *grid_and_turn)
        file, bindings = self._pipelines[pipeline]
        self._launches[number << CODE_BITS | RUN] = Launch(file, bindings, 1 + bindings + len(patches))
        return number

    def _submit(self, words, held=False):
        launches = [command.launch for command in walk(words, self._launches)]
        self.files |= {launch.file for launch in launches if launch is not None}
        self._host_submit(words, held)
