"""``pellucid lens MODEL PROMPT``: the logit lens of a prompt, as a page."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import click

from . import as_json, device_option, loading, print_json

LOOK = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 1.5rem } .scroll { overflow-x: auto }
table { border-collapse: collapse; font: 13px/1.4 ui-monospace, monospace }
th { padding: 2px 8px; text-align: left; font-weight: normal; white-space: pre }
th { position: sticky; left: 0; background: Canvas }
thead th { position: static } td { padding: 2px 6px; white-space: pre; max-width: 9em; overflow: hidden }
td.last { font-weight: bold } h1 { font-size: 1.3rem }
"""


@click.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--new", default=0, show_default=True, help="Tokens to generate first, and to look at, too.")
@click.option("--top-k", default=5, show_default=True, help="Candidates of a cell.")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), help="The page's file; a temporary one if not given."
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page.")
@device_option
@as_json
def lens(
    model: str,
    prompt: str,
    new: int,
    top_k: int,
    output: str | None,
    browser: bool,
    device: str | None,
    as_json: bool,
) -> None:
    """Ask every layer of MODEL what it would have said after each token of PROMPT; open the answer as a page.

    MODEL is a Hugging Face folder or hub id, or a GGUF; a path or an address.
    """
    found = look(model, prompt, new=new, top_k=top_k, device=device, quiet=as_json)
    if output or not as_json:
        path = Path(output) if output else Path(tempfile.mkdtemp(prefix="pellucid-"), "lens.html")
        path.write_text(page(found), encoding="utf-8")
        if not as_json:
            click.echo(f"{found['text']}\n\n{path}")
            if browser and not webbrowser.open(path.resolve().as_uri()):
                click.echo("No browser was found: open the file yourself.", err=True)
    if as_json:
        print_json(found)


def look(
    source: str, prompt: str, *, new: int, top_k: int, device: str | None, quiet: bool = True
) -> dict[str, Any]:
    """The lens of a prompt and of what the model goes on with.

    Args:
        source: of the model.
        prompt: text.
        new: how many tokens are generated greedily first.
        top_k: candidates of a cell.
        device: where the model runs; the default device if None.
        quiet: whether no progress is shown.

    Returns:
        model, text, tokens, layers (module paths), cells [layer][position] -> [[token, probability], ...].
    """
    from ... import AutoModelForCausalLM, AutoTokenizer
    from ...lens import logit_lens
    from ...tensors.construct import tensor

    if not prompt:
        raise click.BadParameter("is empty: there is no token to look at.", param_hint="PROMPT")
    tokenizer = AutoTokenizer.from_pretrained(source)
    with loading("loading", quiet=quiet) as tell:
        model = AutoModelForCausalLM.from_pretrained(source, device=device, on_progress=tell)
    ids = tokenizer.encode(prompt)
    if new:
        ids = model.generate(tensor([ids], device=device), max_new_tokens=new)[0].tolist()
    seen = logit_lens(model, tensor([ids], device=device), top_k=top_k)
    return {
        "model": source,
        "text": tokenizer.decode(ids),
        "tokens": [tokenizer.decode([one]) for one in ids],
        "layers": seen.paths,
        "cells": [[[list(c) for c in cell] for cell in row] for row in seen.table(tokenizer)],
    }


def page(found: dict[str, Any]) -> str:
    """The lens as one HTML file that needs nothing else: a row for a layer, the last one on top."""
    last = [cell[0][0] for cell in found["cells"][-1]]
    rows = []
    for path, row in zip(reversed(found["layers"]), reversed(found["cells"]), strict=True):
        cells = "".join(_cell(cell, cell[0][0] == said) for cell, said in zip(row, last, strict=True))
        rows.append(f"<tr><th scope='row'>{html.escape(path)}</th>{cells}</tr>")
    heads = "".join(f"<th scope='col'>{html.escape(_shown(token))}</th>" for token in found["tokens"])
    title = html.escape(f"{Path(found['model']).name} · logit lens")
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{LOOK}</style>"
        f"<h1>{title}</h1><p dir='auto'>{html.escape(found['text'])}</p>"
        "<p>What each layer would have said next, after the token at the head of the column. "
        "Bold: what the model says in the end. Darker: more probable. Point at a cell for its candidates.</p>"
        f"<div class='scroll'><table><thead><tr><td></td>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></html>\n"
    )


def _cell(candidates: list[list[Any]], is_last: bool) -> str:
    token, probability = candidates[0]
    told = html.escape("\n".join(f"{100 * p:5.1f} %  {_shown(t)}" for t, p in candidates), quote=True)
    shade = f"background:rgb(64 128 255 / {0.08 + 0.6 * probability:.2f})"
    kind = " class=last" if is_last else ""
    return f"<td{kind} style='{shade}' title=\"{told}\">{html.escape(_shown(token))}</td>"


def _shown(token: str) -> str:
    """A token with its spaces and line ends visible."""
    return token.replace(" ", "␣", 1).replace("\n", "⏎").replace("\t", "⇥") if token else "∅"
