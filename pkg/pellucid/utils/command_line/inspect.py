"""``pellucid inspect FILE_OR_URL``."""

from __future__ import annotations

import click

from .. import inspection
from . import as_json


@click.command()
@click.argument("source")
@click.option("--filename", help="Which file of a folder or hub id.")
@click.option("--brief", is_flag=True, help="Leave out the table of tensors.")
@as_json
def inspect(source: str, filename: str | None, brief: bool, as_json: bool) -> None:
    """Say what SOURCE holds: tensors, quantization, operators, memory, architecture, tokenizer, licence.

    SOURCE is a Hugging Face folder or hub id, a safetensors, GGUF, .pt2, ONNX or TFLite file, or its address,
    of which headers alone are read.
    """
    found = inspection.inspect(source, **({"filename": filename} if filename else {}))
    if as_json:
        click.echo(found.to_json())
    else:
        click.echo(str(found).partition("\n\n")[2] if brief else str(found))
