"""Digits, read by a convolutional network

1797 digits of eight by eight pixels, as people wrote them on forms. Two layers of small filters slide
over an image, each looking for a pattern wherever it stands; what they find is pooled, and a last layer
says which digit it is.

A tenth of the digits is kept apart: only those tell whether the network has learned to read, or learned
by heart. The picture has the digits among them that it reads wrong, and which digits it takes for which.
"""

from pathlib import Path

import numpy as np
from pictures import heat_map, images, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

DATA = Path(__file__).with_name("digits.npz")


def main(steps=300, batch=64, width=16):
    torch.manual_seed(0)
    data = np.load(DATA)
    pixels = torch.tensor(data["images"].astype(np.float32) / 16).unsqueeze(1)
    labels = torch.tensor(data["labels"].astype(np.int64))
    held = len(labels) // 10  # kept apart
    train_pixels, train_labels = pixels[held:], labels[held:]

    model = nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * width * 16, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    @torch.compile
    def step():
        chosen = torch.randint(0, len(train_labels), (batch,))
        loss = F.cross_entropy(model(train_pixels[chosen]), train_labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    with torch.no_grad():
        said = model(pixels[:held]).softmax(-1)
        true = labels[:held]
        sure = said.gather(1, true[:, None])[:, 0]
        hardest = sure.argsort()[:16]
        taken = F.one_hot(true, 10).float().T @ said  # rows: what it is, columns: what the network says
    digits = "0123456789"
    pairs = torch.stack([true, said.argmax(1)], 1)[hardest]
    yield images(
        pixels[hardest, 0], "Where it was least sure: what it is → what it was read as", labels=pairs
    )
    yield heat_map(taken.sqrt(), "Which digit (row) is taken for which (column)", rows=digits, columns=digits)


if __name__ == "__main__":
    show(main)
