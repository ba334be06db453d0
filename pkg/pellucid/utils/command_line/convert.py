"""``pellucid convert SOURCE TARGET``."""

from __future__ import annotations

import click

from .. import conversion
from . import loading


@click.command()
@click.argument("source")
@click.argument("target", type=click.Path(dir_okay=False))
@click.option(
    "--dtype", type=click.Choice(list(conversion.FLOATS)), help="Of all floats; as they are if not given."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.pass_context
def convert(ctx: click.Context, source: str, target: str, dtype: str | None, force: bool) -> None:
    """Write the tensors of SOURCE (safetensors, GGUF, npz) to TARGET (safetensors, npz).

    Quantized tensors become the floats that --dtype names.
    """
    with loading("converting") as tell:
        count = conversion.convert(source, target, dtype=dtype, overwrite=force, on_progress=tell)
    click.echo(f"{target}: {count} tensors")
