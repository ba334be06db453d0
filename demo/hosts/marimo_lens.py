"""The logit lens and attention in marimo: `marimo run marimo_lens.py -- --model ADDRESS`."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import pellucid as torch
    from pellucid import lens
    from pellucid.lens import widget

    return lens, mo, torch, widget


@app.cell
def _(mo, torch):
    source = mo.cli_args().get("model") or "HuggingFaceTB/SmolLM2-135M-Instruct"
    tokenizer = torch.AutoTokenizer.from_pretrained(source)
    model = torch.AutoModelForCausalLM.from_pretrained(source)
    return model, tokenizer


@app.cell
def _(mo):
    prompt = mo.ui.text(mo.cli_args().get("prompt") or "The capital of France is", label="Prompt")
    prompt
    return (prompt,)


@app.cell
def _(lens, mo, model, prompt, tokenizer, torch, widget):
    ids = tokenizer.encode(prompt.value)
    look = lens.logit_lens(model, torch.tensor([ids], device=model.device))
    seen = lens.run(model, ids, lens.Plan(capture=["attn_probs"]))
    heads = mo.ui.anywidget(widget.attention(seen, [tokenizer.decode([i]) for i in ids]))
    mo.vstack([mo.ui.anywidget(widget.lens_grid(look, ids, tokenizer)), heads])
    return (heads,)


@app.cell
def _(heads, mo, torch):
    mo.md(f"On {torch.webgpu.get_device_name()}; chosen: {heads.value['selected']}")
    return


if __name__ == "__main__":
    app.run()
