"""Real models, each used for what it is made for, in one page or natively: a chat turn, searches, labels.

    scripts/browser tests/models/uses_in_page.py --mount DIR --packages numpy,pellucid,protobuf [--native]

DIR holds what `test_uses.py` puts there. What the models say is printed as a line of JSON for each use, after
the seconds that it took.
"""

import json
import os
import time
from functools import cache

import numpy as np

import pellucid as torch
from pellucid import weights
from pellucid.models import SentenceTransformer

MOUNT = os.environ["PELLUCID_MOUNT"]
QUESTION = "What is the capital of France?"
TEXTS = [
    "A cat sleeps on the warm sofa.",
    "Shares fell after the bank raised its rates.",
    "The striker scored twice in the second half.",
]
QUERIES = ["Where is the pet resting?", "What happened on the stock market?", "Who won the football match?"]
FILES = {
    "python": "import os\nfrom pathlib import Path\n\n\ndef main(paths):\n    for path in paths:\n"
    "        print(Path(path).name, os.path.getsize(path))\n\n\nif __name__ == '__main__':\n    main([])\n",
    "html": "<!DOCTYPE html>\n<html>\n<head><title>A page</title></head>\n<body>\n<h1>Hi</h1>\n"
    "<p>Some <b>text</b> with <a href='index.html'>a link</a>.</p>\n</body>\n</html>\n",
    "json": json.dumps({"name": "pellucid", "sizes": list(range(40)), "nested": {"a": None, "b": True}}),
}


async def chat():
    """A turn of SmolLM2-135M-Instruct, by the twins that wait."""
    source = f"{MOUNT}SmolLM2-135M-Instruct.Q4_1.gguf"
    pipe = await torch.pipeline_async("text-generation", source)
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": QUESTION}]
    found = await pipe.run_async(messages, max_new_tokens=8)
    return found[0]["generated_text"][-1]


@cache
def embedder():
    """all-MiniLM-L6-v2."""
    return SentenceTransformer.from_pretrained(f"{MOUNT}minilm")


def search():
    """The text that answers each question."""
    vectors = embedder().encode([*TEXTS, *QUERIES])
    return embedder().similarity(vectors[3:], vectors[:3]).argmax(1).tolist()


def labels():
    """The label whose meaning is nearest to a text's."""
    names = ["animals", "finance", "sports"]
    vectors = embedder().encode([f"This text is about {name}." for name in names] + TEXTS)
    return [names[k] for k in embedder().similarity(vectors[3:], vectors[:3]).argmax(1).tolist()]


def words():
    """The text nearest to each question by WordLlama: a table of vectors, whose mean a text has."""
    checkpoint = weights.open(f"{MOUNT}wordllama/l2_supercat_256.safetensors")
    (raw,) = weights.read(checkpoint, [checkpoint["embedding.weight"]])
    table = torch.tensor(raw.view(np.float16).reshape(32000, 256))
    tokenizer = torch.AutoTokenizer.from_pretrained(f"{MOUNT}wordllama")
    rows = [tokenizer.encode(text, add_special_tokens=False) for text in (*TEXTS, *QUERIES)]
    vectors = torch.stack([table[torch.tensor(row)].float().mean(0) for row in rows])
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    return (vectors[3:] @ vectors[:3].T).argmax(1).tolist()


def kinds():
    """Numbers of the kinds of files that some bytes are, by Magika: an ONNX graph that sees the first and
    last 1024."""
    model = torch.onnx.load(f"{MOUNT}magika/model.onnx")
    rows = []
    for text in FILES.values():
        data = list(text.encode().strip())[:1024]
        gap = [256] * (1024 - len(data))
        rows.append(data + gap + gap + data)
    scores = model(torch.tensor(rows, dtype=torch.int32))
    return scores.argmax(1).tolist()


for use in (kinds, words, search, labels, chat):
    begun = time.perf_counter()
    said = use()
    if use is chat:
        said = await said
    print(f"{time.perf_counter() - begun:.1f} s", json.dumps({use.__name__: said}), flush=True)
