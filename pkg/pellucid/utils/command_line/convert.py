"""``pellucid convert SOURCE TARGET``."""

from __future__ import annotations

import click

from .. import conversion
from . import as_json, loading, print_json


@click.command()
@click.argument("source")
@click.argument("target", type=click.Path(dir_okay=False))
@click.option(
    "--dtype", type=click.Choice(list(conversion.FLOATS)), help="Of all floats; as they are if not given."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@as_json
def convert(source: str, target: str, dtype: str | None, force: bool, as_json: bool) -> None:
    """Write the tensors of SOURCE (safetensors, GGUF, npz) to TARGET (safetensors, npz).

    Quantized tensors become the floats that --dtype names.
    """
    with loading("converting", quiet=as_json) as tell:
        count = conversion.convert(source, target, dtype=dtype, overwrite=force, on_progress=tell)
    if as_json:
        print_json({"target": target, "tensors": count})
    else:
        click.echo(f"{target}: {count} tensors")
