"""What each weight format costs a language model that was trained: error of its logits, perplexity.

Run: scripts/browser benchmarks/quality.py --native -- --device webgpu --steps 3000 --batch 32 --rows 256
Settings after --: --steps N --batch N --folder F --rows N --device D FORMAT...

A Llama of 3 layers, 256 wide, is trained by `train.Trainer` on the bytes of Python's own modules; every
eighth file is kept out of that, and rows of those are what formats are measured on (`quant.quality`): every
matrix in the format, embedding and head, too. Its matrices have 256 or 768 columns, whole blocks of every
format. With --folder the model is written there, or taken from there. The default, of 20 steps, only shows
that it runs. A page has no files of Python's modules, and measures nothing. The last line is JSON.
"""

import argparse
import json
import math
import platform
import sys
import sysconfig
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import pellucid as torch
from pellucid.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from pellucid.quant.encoding import ENCODERS
from pellucid.quant.quality import quality
from pellucid.train import Trainer, TrainingArguments

LENGTH = 128  # bytes of a row
CONFIG = {
    "vocab_size": 256, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": LENGTH,
    "tie_word_embeddings": False, "eos_token_id": None, "bos_token_id": None,
}  # fmt: skip


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quality")
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="default: all that have an encoder")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="of training, default 20")
    parser.add_argument("--batch", type=int, default=4, metavar="N", help="rows of a step, default 4")
    parser.add_argument("--folder", type=Path, metavar="F", help="where the trained model lies, or is put")
    parser.add_argument("--rows", type=int, default=64, metavar="N", help="that are measured, default 64")
    parser.add_argument("--device", default="cpu", metavar="D", help="default cpu")
    return parser.parse_args(words)


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Rows of bytes to learn from, and others."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    parts = [[f for k, f in enumerate(files) if (k % 8 == 7) is out] for out in (False, True)]
    data = [np.frombuffer(b"".join(f.read_bytes() for f in part), np.uint8) for part in parts]
    learnt, other = (d[: len(d) // LENGTH * LENGTH].reshape(-1, LENGTH).astype(np.int64) for d in data)
    return learnt, other


def trained(rows: np.ndarray, steps: int, batch: int) -> Any:
    """A model after so many steps; tells its loss."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig.from_dict(CONFIG))
    settings = TrainingArguments(
        max_steps=steps, per_device_train_batch_size=batch, learning_rate=2e-3, adam_beta2=0.99,
        lr_scheduler_type="cosine", warmup_steps=min(100, steps // 10), weight_decay=0.1, seed=0,
        logging_steps=max(1, steps // 20), save_strategy="no", disable_tqdm=True,
        report_to=(lambda entry: print(entry, flush=True),),
    )  # fmt: skip
    data = [{"input_ids": row, "labels": row} for row in rows]
    Trainer(model, settings, train_dataset=data).train()
    return model.eval()


def main() -> None:
    options = arguments(sys.argv[1:])
    if sys.platform == "emscripten":
        print(json.dumps({"skipped": "run it natively"}))
        return
    torch.set_default_device("cpu" if options.device == "cpu" else "webgpu")
    learnt, other = texts()
    began = time.perf_counter()
    if options.folder and (options.folder / "config.json").exists():
        model = AutoModelForCausalLM.from_pretrained(options.folder, dtype=torch.float32)
    else:
        model = trained(learnt, options.steps, options.batch)
        if options.folder:
            model.save_pretrained(options.folder)
    print(f"{len(learnt):,} rows to learn from, {time.perf_counter() - began:.0f} s", flush=True)
    ids = torch.tensor(other[:: len(other) // options.rows][: options.rows])
    rows = quality(model, ids, options.formats or tuple(ENCODERS))
    for row in sorted(rows, key=lambda row: -row.bits):
        per_byte = math.log2(row.perplexity)
        print(
            f"| {row.format} | {row.bits:.3f} | {100 * row.logit_error:.2f} % | {row.perplexity:.4f} | "
            f"{per_byte:.4f} |"
        )
    told = {
        "python": platform.python_version(),
        "device": options.device,
        "steps": options.steps,
        "batch": options.batch,
    }
    print(json.dumps({**told, "bytes": int(ids.numel()), "rows": [asdict(row) for row in rows]}))


main()
