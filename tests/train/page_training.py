"""Trains a tiny network in the page: checkpoints in OPFS, resumed; what is logged goes to the page.

scripts/browser tests/train/page_training.py
"""

import sys

import numpy as np

import pellucid as torch
from pellucid import nn
from pellucid.train import LoraConfig, Trainer, TrainingArguments, get_peft_model, load_adapter
from pellucid.train.plots import curves


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def loss(outputs, labels, **_):
    return nn.functional.cross_entropy(outputs, labels)


def trainer(model, folder, **settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 4)).astype(np.float32)
    data = [(torch.tensor(row), int(row[0] > 0)) for row in x]
    args = TrainingArguments(
        folder, learning_rate=0.05, logging_steps=1, save_steps=4, per_device_train_batch_size=8, max_steps=8,
        disable_tqdm=True, report_to=seen.append, **settings,
    )  # fmt: skip
    return Trainer(model, args, train_dataset=data, compute_loss_func=loss)


seen: list[dict] = []


def main() -> None:
    folder = "opfs:runs/first" if sys.platform == "emscripten" else sys.argv[1]
    first = trainer(network(), folder)
    first.train()
    again = trainer(network(), folder)
    again.train(resume_from_checkpoint=f"{folder}/checkpoint-4")
    bits = [[p.detach().cpu().numpy().tobytes() for p in t.model.parameters()] for t in (first, again)]
    losses = [e["loss"] for e in seen if "loss" in e]
    print(
        "equal",
        bits[0] == bits[1],
        "falls",
        losses[7] < losses[0],
        "replays",
        "replays of" in first.explain(),
    )

    tuned = get_peft_model(network(), LoraConfig(r=2, target_modules=["0", "2"]))
    trainer(tuned, None).train()
    tuned.save_pretrained(f"{folder}-adapter")
    x = torch.ones(1, 4)
    loaded = load_adapter(network(), f"{folder}-adapter")
    print("adapter", np.array_equal(tuned(x).detach().cpu().numpy(), loaded(x).detach().cpu().numpy()))
    print("curves", curves(first.state.log_history).count("<polyline"))


if __name__ == "__main__":
    main()
