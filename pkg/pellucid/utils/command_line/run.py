"""``pellucid run FILE``: a program for PyTorch, unedited."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from runpy import run_path
from types import TracebackType

import click

from .. import compat
from . import device_option


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@device_option
def run(file: str, arguments: tuple[str, ...], device: str | None) -> None:
    """Run FILE with ARGUMENTS, as python does, where `import torch` finds Pellucid.

    An error that FILE does not catch is told with its lines, and the status is 1.
    """
    from ...device import set_default_device

    compat.install()
    if device is not None:
        set_default_device(device)
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        run_path(file, run_name="__main__")
    except Exception as error:
        # The command tells its own errors in one line; a program's need the lines that led there.
        traceback.print_exception(error.with_traceback(_own(error.__traceback__, file)))
        sys.exit(1)


def _own(frames: TracebackType | None, file: str) -> TracebackType | None:
    """A traceback from the program's first line on; nothing where that was not reached."""
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return frames
