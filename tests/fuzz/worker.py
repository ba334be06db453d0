"""Runs seeds of one kind in a process of its own: a line with a seed comes in, a line of JSON goes out.

The runner starts it. Whatever a kind prints goes to standard error, which the runner shows with a finding.
"""

import faulthandler
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path

# What a finding is called whose text a kind wrote; any other exception is called by its name.
DIFFERS = "difference"


def load(path: Path):
    """The module of a kind, under the name that modules beside it import it by."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def attempt(run, seed: int) -> tuple[str, str] | None:
    """(what kind of trouble, its text), or None when all is well. Errors that the device reports late belong
    to the seed that caused them, so it is waited for."""
    try:
        run(seed)
        if (pellucid := sys.modules.get("pellucid")) is not None:
            pellucid.webgpu.synchronize()
    except AssertionError as error:
        if error.args:
            return DIFFERS, str(error)
        return DIFFERS, traceback.format_exc()
    except BaseException as error:  # a panic of a library or a SystemExit ends a user's session just as well
        return type(error).__name__, traceback.format_exc()
    return None


def main(path: str, bound: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run = load(Path(path)).run
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        seed = int(line)
        faulthandler.dump_traceback_later(float(bound), exit=True)
        began = time.monotonic()
        trouble = attempt(run, seed)
        faulthandler.cancel_dump_traceback_later()
        answer = {"seed": seed, "seconds": time.monotonic() - began, "trouble": trouble}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
