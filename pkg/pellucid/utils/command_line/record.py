"""``pellucid record MODEL --inputs x.npz --output reference.npz``, where PyTorch is installed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any
from zipfile import is_zipfile

import click

from ...errors import ArgumentError, MissingError
from ...lens.paths import matches
from .. import matching
from . import arrays, as_json, print_json
from .match import ids_of


@click.command()
@click.argument("model")
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="npz of the model's arguments.")
@click.option("--ids", help="Token ids instead, such as 1,15,27.")
@click.option("--output", "-o", required=True, type=click.Path(), help="The npz or safetensors to write.")
@click.option("--points", multiple=True, help="Module paths, * and ** allowed; all if not given.")
@as_json
def record(
    model: str, inputs: str | None, ids: str | None, output: str, points: tuple[str, ...], as_json: bool
) -> None:
    """Run MODEL in PyTorch and write what each of its modules gets and returns.

    MODEL is a Hugging Face folder or hub id, a .pt2, or FILE.py:NAME or MODULE:NAME of a function that
    returns a torch.nn.Module.
    """
    given = arrays(inputs) | ids_of(ids)
    if not given:
        raise click.UsageError("Give the model's arguments by --inputs or --ids.")
    found = matching.record(
        _module(model), given, output, pattern=lambda p: not points or any(matches(p, q) for q in points)
    )
    if as_json:
        print_json({"output": output, "arrays": list(found)})
    else:
        click.echo(f"{output}: {len(found)} arrays")


def _module(name: str) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingError("record: PyTorch is not installed. Install it where you record.") from None
    if name.endswith(".pt2"):
        if not is_zipfile(name):
            raise ArgumentError(f"record: {name} is no program of torch.export: it is no zip archive.")
        return torch.export.load(name).module()
    if ":" in name:
        return _made(*name.rsplit(":", 1))
    try:
        import transformers
    except ImportError:
        raise MissingError(
            "record: transformers is not installed. Install it, or give MODULE:NAME."
        ) from None
    try:
        config: Any = transformers.AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"record: {name} is no model of PyTorch: {str(error).strip()} Give a Hugging Face folder, a "
            ".pt2, or FILE.py:NAME of a function that makes one."
        ) from None
    kind = getattr(transformers, (config.architectures or ["AutoModel"])[0])
    return kind.from_pretrained(name, dtype=torch.float32)


def _made(module: str, name: str) -> Any:
    if module.endswith(".py"):
        from runpy import run_path

        found = run_path(module).get(name)
    else:
        sys.path.insert(0, "")
        found = getattr(import_module(module), name, None)
    if found is None:
        raise ArgumentError(f"record: {module} has no {name}.")
    return found() if not hasattr(found, "named_modules") else found
