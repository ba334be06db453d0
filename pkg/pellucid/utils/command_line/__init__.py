"""The command ``pellucid``, a group of commands. Needs ``pip install 'pellucid[cli]'``.

A command is a module beside this one with a function of its name; it is imported when it is asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ...errors import PellucidError

__all__ = ["as_json", "device_option", "loading", "main"]

# Every command, and what the list of them says.
COMMANDS = {
    "inspect": "Say what a model's file holds, from its headers alone.",
    "lens": "Ask every layer of a model what it would have said, as a page.",
    "bench": "Measure this device, and a model on it.",
    "convert": "Write a file of weights in another format.",
    "run": "Run a program that was written for PyTorch.",
    "serve": "Serve a folder of pages and weights.",
    "match": "Compare two models, or a model with a recording, point by point.",
    "record": "Write what each module of a PyTorch model gets and returns.",
}


class _Commands(click.Group):
    """The commands by name, each imported when it is asked for; errors of the library end with status 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (PellucidError, OSError) as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pellucid")
def main() -> None:
    """Pellucid: models that you can see through."""


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
device_option = click.option(
    "--device",
    type=click.Choice(["webgpu", "cpu"]),
    help="Where models run; the default device if not given.",
)


def arrays(path: str | Path | None) -> dict[str, Any]:
    """The arrays of an npz or safetensors file by name; none where no file is given."""
    if path is None:
        return {}
    from ...device.steps import now
    from ...lens.sides import recorded

    return now(recorded(path))


@contextmanager
def loading(label: str, quiet: bool = False) -> Iterator[Callable[[Any], None]]:
    """A progress bar on stderr while weights come; what is given to ``on_progress``."""
    bar: Any = None

    def tell(progress: Any) -> None:
        nonlocal bar
        if quiet or not sys.stderr.isatty():
            return
        if bar is None or bar.length != progress.bytes_total:
            bar = click.progressbar(length=progress.bytes_total, label=label, file=sys.stderr)
            bar.__enter__()
        bar.update(progress.bytes_done - bar.pos)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)


def print_json(value: Any) -> None:
    """A value as JSON on stdout."""
    click.echo(json.dumps(value, indent=1))
