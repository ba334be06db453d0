"""Whether the device's subgroups do what kernels take as given (wgsl/parts/fold/subgroup_sum.wgsl): a test,
once for each device."""

from __future__ import annotations

from array import array

from ...device.commands import CODE_BITS, RUN
from ...device.host import Host
from ...device.stream import stream
from ...errors import DeviceError
from .source import load

# Sizes of workgroups that are tested: the smallest and the largest that kernels have.
_WORKGROUPS = (64, 256)

_sound: list[bool] = []
stream().on_close.append(_sound.clear)


def are_sound() -> bool:
    """Whether the device has subgroups, and they pass a test. Waits for the device at the first call; where
    Python cannot wait, the answer is no."""
    if not _sound:
        host = stream().open()
        _sound.append("subgroups" in host.info.features and _passes(host))
    return _sound[0]


def _passes(host: Host) -> bool:
    s = stream()
    launches = []
    for lanes in _WORKGROUPS:
        text = load("reduce/subgroups").fill({"WORKGROUP": f"{lanes}u"}).finish(immediate=False)
        pipeline = host.pipeline(text, "w", 0, False, "subgroups (reduce/subgroups)")
        launches.append(host.launch(pipeline, b"", (), 1, 1, 1))
    storages = [s.upload(bytes(4)) for _ in _WORKGROUPS]
    slots = [storage.slot for storage in storages]
    s.flush()  # what failed before is not this test's to hear of
    words = [(launch << CODE_BITS | RUN, slot) for launch, slot in zip(launches, slots, strict=True)]
    with s.lock:
        s.submit_window(array("I", [word for run in words for word in run]))
    try:
        s.submit()
        found = [array("I", bytes(host.read(host.begin_read(slot, 0, 4))[0]))[0] for slot in slots]
    except DeviceError:
        return False
    return host.failure() is None and found == list(_WORKGROUPS)
