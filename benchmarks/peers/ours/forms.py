"""What a row of the comparison is made of. Neither Pellucid nor a browser is needed here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Where the tensors of the rows lie; pytorch.py sets another before it imports the rows.
DEVICE = "webgpu"

Row = dict[str, Any]


class Unavailable(Exception):
    """What a row needs is not here; the text says what."""


@dataclass
class Form:
    """One way to do a row's work.

    Attributes:
        unit: queues unit i and returns its output: a tensor, or numbers that were read already.
        before: prepares k units outside the measured time.
        follows: whether the units go on with what ``before`` began, so that nothing may come between.
        note: what a reader of the table should know.
        fusion: whether launches may be fused, as they are unless a user says otherwise.
        left: what the units left behind besides their outputs.
        held: how many outputs are held, while earlier ones go; without it all are.
        read: the numbers of an output that are compared; without it all of a tensor's.
        replays: how many calls were replayed so far, where the form is compiled.
    """

    unit: Callable[[int], Any]
    before: Callable[[int], None] | None = None
    note: str = ""
    fusion: bool = True
    left: Callable[[], list[np.ndarray]] | None = None
    held: int | None = None
    read: Callable[[Any], np.ndarray] | None = None
    replays: Callable[[], int] | None = None
    follows: bool = False
