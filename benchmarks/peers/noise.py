"""How much of the machine's CPU the browser used during a run, and how much other processes did."""

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def session_seconds(session: int) -> float:
    """CPU seconds of the live processes of a session; 0 where there is no /proc."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            total += int(fields[11]) + int(fields[12])
    return total / TICKS


def busy_seconds() -> float:
    """CPU seconds that all processes used since the machine started; 0 where there is no /proc."""
    try:
        fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0.0
    idle, waiting = fields[3], fields[4]
    return (sum(fields[:8]) - idle - waiting) / TICKS


class Watch:
    """Counts from its making on.

    Args:
        session: the process id that leads the browser's session.
    """

    def __init__(self, session: int) -> None:
        self._session = session
        self._began = time.monotonic()
        self._busy, self._own = busy_seconds(), session_seconds(session)

    def shares(self) -> dict[str, float]:
        """Cores that the browser and that other processes used on average, of how many there are."""
        seconds = time.monotonic() - self._began
        own = session_seconds(self._session) - self._own
        others = max(0.0, busy_seconds() - self._busy - own)
        return {
            "seconds": round(seconds, 1),
            "cores": os.cpu_count() or 1,
            "browser_cores": round(own / seconds, 2),
            "other_cores": round(others / seconds, 2),
        }
