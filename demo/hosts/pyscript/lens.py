"""What each layer of a model would have said, in a page of PyScript; ?model= and ?prompt= choose."""

import os

from js import URLSearchParams, location
from pyscript import document

os.environ["PELLUCID_SITE"] = f"{location.origin}/"  # where the tokenizers' library is

import pellucid as torch
from pellucid import lens

asked = URLSearchParams.new(location.search)
source = asked.get("model") or "/weights/SmolLM2-135M-Instruct.Q4_1.gguf"
prompt = asked.get("prompt") or "The capital of France is"

tokenizer = await torch.AutoTokenizer.from_pretrained_async(source)
model = await torch.AutoModelForCausalLM.from_pretrained_async(source)
ids = tokenizer(prompt, return_tensors="pt").input_ids
look = lens.logit_lens(model, ids, top_k=1)
rows = [f"{path}: {cells[-1][0][0]!r}" for path, cells in zip(look.paths, look.table(tokenizer), strict=True)]
document.querySelector("#lens").textContent = "\n".join(rows)
