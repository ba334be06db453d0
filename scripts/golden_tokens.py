"""Record what SmolLM2-135M-Instruct of transformers says to a few prompts: tests/golden/smollm2_tokens.json.

    .venv/bin/python scripts/golden_tokens.py

Every weight of the GGUF file is dequantized to float32. For each prompt: its ids, the greedy continuation, by
how much the likeliest id led at each step, and at the prompt's last position the standard deviation of all
logits and every 24th of them.
"""

import json
import sys
from typing import Any

import golden

import assets
from paths import ROOT

PATH = ROOT / "tests" / "golden" / "smollm2_tokens.json"
NEW_TOKENS = 16
STRIDE = 24
CODE = '''def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number."""
    if n < 2:
        return n
    return'''
LONG = (
    "The Renaissance was a period of European history that began in Italy in the fourteenth century and"
    " spread to the rest of the continent over the following two hundred years. It is associated with "
    "great social change in most fields and disciplines, including art, architecture, politics, "
    "literature, exploration and science. Scholars searched the libraries of monasteries for the "
    "forgotten works of antiquity, and the invention of printing with movable type let their "
    "discoveries travel faster than any book had travelled before. Painters learned to show depth by "
    "means of linear perspective; sculptors studied anatomy; merchants and bankers in Florence, Venice "
    "and Genoa paid for churches, palaces and statues. Meanwhile navigators from Portugal and Spain "
    "sailed around Africa and across the Atlantic, and astronomers began to doubt that the Earth stood "
    "still at the centre of the world. Historians still argue about when the period ended and whether "
    "it was really as different from the Middle Ages as its admirers claimed. What most of them agree "
    "on is that"
)
CHAT = [
    {"role": "user", "content": "What is the boiling point of water, and why does it change with altitude?"}
]
PROMPTS = {
    "plain": "The capital of France is",
    "code": CODE,
    "unicode": "Grüße, 世界! ☕ naïve café: 日本語で",
    "long": LONG,
}


def record() -> dict[str, Any]:
    """All prompts and what the model says to them."""
    import torch
    from transformers import AutoTokenizer

    file = assets.weights()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    prompts = {name: tokenizer(text, add_special_tokens=False).input_ids for name, text in PROMPTS.items()}
    chat = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    prompts["chat"] = tokenizer(chat, add_special_tokens=False).input_ids
    prompts["single"] = tokenizer("Once", add_special_tokens=False).input_ids
    model = golden._dequantized(file)
    rows = {}
    for name, ids in prompts.items():
        prompt = torch.tensor([ids])
        with torch.no_grad():
            text = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
                eos_token_id=None,
            )
            logits = model(text[:, :-1]).logits[0, len(ids) - 1 :]
        best = logits.topk(2, -1).values
        rows[name] = {
            "ids": ids,
            "new_ids": text[0, len(ids) :].tolist(),
            "leads": [round(lead, 4) for lead in (best[:, 0] - best[:, 1]).tolist()],
            "deviation": round(logits[0].std().item(), 5),
            "logits": [round(x, 4) for x in logits[0, ::STRIDE].tolist()],
        }
        print(f"{name}: {len(ids)} ids, {tokenizer.decode(rows[name]['new_ids'])!r}")
    return {"model": file.name, "sha256": assets.SMOLLM2_SHA256, "stride": STRIDE, "prompts": rows}


def main() -> int:
    PATH.write_text(json.dumps(record(), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"golden_tokens: {PATH.relative_to(ROOT)} ({PATH.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
