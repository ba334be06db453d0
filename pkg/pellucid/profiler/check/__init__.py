"""Every op against its numpy reference while a program runs: PELLUCID_CHECK=1.

A journal keeps, beside each buffer of the device, the bytes that it should hold: the reference of each op
that is recorded runs on them, too. When a window has gone to the host, what it left in buffers is read and
compared, so windows are as long, as fused and as placed in memory as without the check. Where they differ,
the ops that led there run once more, one by one, and the first that is wrong by itself is named. If none is,
and all of them together, each as its own kernel, make something else than the window did, that is wrong.
Otherwise errors of rounding have added up, and the journal goes on from what the device has.

Nothing of this is paid for while it is off: plans are wrapped where they are made, methods of the stream by
attributes of the instance.
"""

from __future__ import annotations

import os

from ...device.stream import stream
from ...op import plan
from .journal import Journal
from .replays import check_replays


def install() -> Journal:
    """Check every op from now on. Plans that were made before are not checked."""
    journal = Journal(stream())
    plan.observe = journal.observe
    check_replays(journal)
    return journal


_chosen = os.environ.get("PELLUCID_CHECK") or "0"
if _chosen not in ("0", "1"):
    raise ValueError(f"PELLUCID_CHECK is {_chosen!r}; it must be 0 or 1, or not set.")
if _chosen == "1":
    install()
