"""Processes that a test's command started."""

import os
import signal
import subprocess


def children(parent: int) -> list[int]:
    """Process ids whose parent is `parent`."""
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    return [int(word) for word in listing.stdout.split()]


def crash_pages(parent: int) -> int:
    """Kill the processes of the pages of a browser that runs below `parent`; how many."""
    killed = 0
    for child in children(parent):
        listing = subprocess.run(["ps", "-o", "args=", "-p", str(child)], capture_output=True, text=True)
        if "--type=renderer" in listing.stdout:
            os.kill(child, signal.SIGKILL)
            killed += 1
        killed += crash_pages(child)
    return killed


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
