"""``pellucid match A B --inputs x.npz``."""

from __future__ import annotations

import click

from .. import matching
from . import arrays, as_json, device_option, loading


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="npz of the models' arguments.")
@click.option("--ids", help="Token ids instead, such as 1,15,27.")
@click.option("--tolerance", default=1e-3, show_default=True, help="Largest relative error of equal values.")
@device_option
@as_json
@click.pass_context
def match(
    ctx: click.Context,
    a: str,
    b: str,
    inputs: str | None,
    ids: str | None,
    tolerance: float,
    device: str | None,
    as_json: bool,
) -> None:
    """Compare A and B point by point, and say where they first depart, and why.

    Each is a Hugging Face folder or hub id, a GGUF, a .pt2, an ONNX file, or a recording (npz, safetensors).
    The status is 0 where all is equal, 1 where something departs, 2 where it could not be compared.
    """
    given = arrays(inputs) | ids_of(ids)
    with loading("loading", quiet=as_json) as tell:
        found = matching.match(
            a, b, *([given] if given else []), tolerance=tolerance, device=device, on_progress=tell
        )
    click.echo(found.to_json() if as_json else str(found))
    ctx.exit(0 if found else 1)


def ids_of(text: str | None) -> dict:
    """Token ids of an option, as a model's argument."""
    if text is None:
        return {}
    import numpy as np

    try:
        return {"input_ids": np.array([[int(word) for word in text.split(",")]])}
    except ValueError:
        raise click.BadParameter(
            "must be whole numbers with commas between them.", param_hint="--ids"
        ) from None
