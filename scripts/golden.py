"""Make the recorded values that checks compare with, from the models of transformers.

    .venv/bin/python scripts/golden.py [NAME...]        all of them when none is named

smollm2_lens    what each layer of SmolLM2-135M-Instruct would have said, with every weight of the GGUF file
                dequantized to float32
"""

import json
import sys
from pathlib import Path
from typing import Any

import assets
from paths import ROOT

GOLDEN = ROOT / "tests" / "golden"
PROMPT = "The capital of France is"
NEW_TOKENS = 8
TOP = 5


def smollm2_lens() -> dict[str, Any]:
    """The greedy tokens, and after every layer and position the likeliest next ids with their probabilities.

    A position is one that the model reads: the prompt's and all new ones but the last.
    """
    import torch
    from transformers import AutoTokenizer

    file = assets.weights()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = _dequantized(file)
    prompt = tokenizer(PROMPT, return_tensors="pt", add_special_tokens=False).input_ids
    with torch.no_grad():
        ids = model.generate(prompt, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False)
        out = model(ids[:, :-1], output_hidden_states=True)
        # The last hidden state comes normed already, and gives the model's own logits.
        hidden = [model.model.norm(layer[0]) for layer in out.hidden_states[1:-1]]
        logits = torch.stack([*(model.lm_head(layer) for layer in hidden), out.logits[0]])
        best = logits.softmax(-1).topk(TOP, -1)
    new = ids[0, prompt.shape[1] :].tolist()
    leads = out.logits[0, prompt.shape[1] - 1 :].topk(2, -1).values
    return {
        "model": file.name,
        "sha256": assets.SMOLLM2_SHA256,
        "prompt": PROMPT,
        "prompt_ids": prompt[0].tolist(),
        "new_ids": new,
        "text": tokenizer.decode(new),
        "leads": _rounded((leads[:, 0] - leads[:, 1]).tolist()),
        "layers": len(logits),
        "ids": best.indices.tolist(),
        "probabilities": _rounded(best.values.tolist()),
    }


def _dequantized(file: Path) -> Any:
    """The model of transformers, float32. Its own loader does the same, but asks for one more package."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = load_gguf_checkpoint(file, return_tensors=True, model_to_load=model)["tensors"]
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if set(missing) - {"lm_head.weight"} or unexpected:  # the head is tied to the embedding
        raise RuntimeError(f"golden: {file.name} lacks {missing} and has {unexpected}.")
    return model


def _rounded(values: Any) -> Any:
    return [_rounded(v) for v in values] if isinstance(values, list) else round(values, 6)


MAKERS = {"smollm2_lens": smollm2_lens}


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(MAKERS))
    if unknown:
        print(f"golden: there is no {', '.join(unknown)}. There are {', '.join(MAKERS)}.", file=sys.stderr)
        return 2
    GOLDEN.mkdir(exist_ok=True)
    for name in names or MAKERS:
        path = GOLDEN / f"{name}.json"
        path.write_text(
            json.dumps(MAKERS[name](), separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8"
        )
        print(f"golden: {path.relative_to(ROOT)} ({path.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
