"""Whether the device's subgroups do what kernels take as given (wgsl/parts/fold/subgroup_sum.wgsl): a test,
once for each device."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any

from ...device.commands import CODE_BITS, RUN
from ...device.host import TEST_OF_SUBGROUPS, Host
from ...device.stream import stream
from ...errors import DeviceError, PellucidError
from .source import load

# Sizes of workgroups that are tested: the smallest and the largest that kernels have.
_WORKGROUPS = (64, 256)

_sound: list[bool] = []
# The reads of a test that is under way.
_begun: list[list[Any]] = []


def are_sound() -> bool:
    """Whether the device has subgroups, and they pass a test. Waits for the device at the first call; where
    Python cannot wait, the answer is no."""
    if not _sound:
        host = stream().open()
        if not _begun and "subgroups" in host.info.features:
            _begin(host)
        _sound.append(bool(_begun) and _passes(host, _begun.pop()))
    return _sound[0]


def _begin(host: Host) -> None:
    s = stream()
    launches = []
    for lanes in _WORKGROUPS:
        text = load("reduce/subgroups").fill({"WORKGROUP": f"{lanes}u"}).finish(immediate=False)
        pipeline = host.pipeline_later(text, "w", 0, False, TEST_OF_SUBGROUPS)
        launches.append(host.launch(pipeline, b"", (), 1, 1, 1))
    storages = [s.upload(bytes(4)) for _ in _WORKGROUPS]
    slots = [storage.slot for storage in storages]
    s.flush()
    words = [(launch << CODE_BITS | RUN, slot) for launch, slot in zip(launches, slots, strict=True)]
    with s.lock:
        s.submit_window(array("I", [word for run in words for word in run]))
    s.submit()
    _begun.append([host.begin_read(slot, 0, 4) for slot in slots])


def _begin_early(host: Host) -> None:
    """Behind the first kernels of a program the test would wait for all of them to be compiled."""
    if not host.info.is_software and "subgroups" in host.info.features:
        with suppress(PellucidError):  # whoever asks hears of it
            _begin(host)


def _passes(host: Host, reads: list[Any]) -> bool:
    try:
        found = [array("I", bytes(host.read(read)[0]))[0] for read in reads]
    except DeviceError:
        return False
    return found == list(_WORKGROUPS)


def _forget() -> None:
    _sound.clear()
    _begun.clear()


stream().on_open.append(_begin_early)
stream().on_close.append(_forget)
