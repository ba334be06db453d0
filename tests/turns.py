"""Which part of many combinations a run takes: another one at each commit, so that in time all are tested.

``PELLUCID_TURN=N`` takes the part of another commit again, ``PELLUCID_TURN=all`` takes all.
"""

import os
import subprocess
from pathlib import Path
from typing import Any


def of_commit() -> int:
    """A number that each commit has another of; 0 where there is no repository."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


# In the environment, so that processes of the run take the same part.
TURN = os.environ.setdefault("PELLUCID_TURN", str(of_commit()))


def in_turn(k: int, of: int) -> bool:
    """Whether this run takes the k-th of combinations, of which it takes one in ``of``."""
    return TURN == "all" or (k + int(TURN)) % of == 0


def are_named(config: Any) -> bool:
    """Whether pytest was given names of tests (``-k``) or of their parameters: then no type waits."""
    return bool(config.option.keyword) or any("[" in argument for argument in config.args)
