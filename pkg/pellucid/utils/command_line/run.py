"""``pellucid run FILE``: a program for PyTorch, unedited."""

from __future__ import annotations

import sys
from pathlib import Path
from runpy import run_path

import click

from .. import compat
from . import device_option


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@device_option
def run(file: str, arguments: tuple[str, ...], device: str | None) -> None:
    """Run FILE with ARGUMENTS, as python does, where `import torch` finds Pellucid."""
    from ...device import set_default_device

    compat.install()
    if device is not None:
        set_default_device(device)
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    run_path(file, run_name="__main__")
