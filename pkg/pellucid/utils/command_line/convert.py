"""``pellucid convert SOURCE TARGET``."""

from __future__ import annotations

import click

from .. import conversion
from . import as_json, loading, print_json


@click.command()
@click.argument("source")
@click.argument("target", type=click.Path())
@click.option(
    "--dtype", type=click.Choice(list(conversion.FLOATS)), help="Of all floats; as they are if not given."
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="[PATTERN=]FORMAT",
    help="Of matrices, such as q4_k, or '*embd*=q8_0' for names; the first that matches counts.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@as_json
def convert(
    source: str, target: str, dtype: str | None, formats: tuple[str, ...], force: bool, as_json: bool
) -> None:
    """Write SOURCE (a model's folder, safetensors, GGUF, npz, a file of PyTorch) as TARGET: a model as a GGUF
    with its tokenizer, or tensors as safetensors or npz.

    Quantized tensors become the floats that --dtype names; --format quantizes.
    """
    pairs = [text.rpartition("=") for text in formats]
    patterns = {pattern or "*": name for pattern, _, name in pairs}
    with loading("converting", quiet=as_json) as tell:
        count = conversion.convert(
            source, target, dtype=dtype, format=patterns or None, overwrite=force, on_progress=tell
        )
    if as_json:
        print_json({"target": target, "tensors": count})
    else:
        click.echo(f"{target}: {count} tensors")
