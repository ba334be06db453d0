"""Grad-CAM: where does a network look?

Somewhere in a picture full of scraps stands a digit. A convolutional network learns to say which one;
nobody tells it where. Yet it must have looked there. Its last filters still know places: weigh each
filter by how much the answer would change with it, which the gradient says, add the filters up, and what
lights up is the part that counted (Selvaraju et al., 2016).

Beside each picture is where the network looked for its answer. It also tells when a network is right for
the wrong reason.
"""

from pathlib import Path

import numpy as np
from pictures import heat_map, images, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

DATA = Path(__file__).with_name("digits.npz")
SIDE = 24  # of a picture; a digit has 8


def scenes(rng, images, labels, count, scraps):
    """Pictures with a digit somewhere, among scraps of others."""
    made = np.zeros((count, 1, SIDE, SIDE), np.float32)
    chosen = rng.integers(0, len(labels), count)
    for picture, digit in zip(made[:, 0], images[chosen]):
        for _ in range(scraps):
            scrap = images[rng.integers(len(images))]
            (a, b), (x, y) = rng.integers(0, 6, 2), rng.integers(0, SIDE - 3, 2)
            picture[x : x + 3, y : y + 3] = scrap[a : a + 3, b : b + 3]
        x, y = rng.integers(0, SIDE - 8, 2)
        picture[x : x + 8, y : y + 8] = digit
    return torch.tensor(made), torch.tensor(labels[chosen])


def main(steps=800, batch=64, width=32, scraps=14):
    torch.manual_seed(0)
    data = np.load(DATA)
    rng = np.random.default_rng(0)
    shapes, classes = data["images"].astype(np.float32) / 16, data["labels"].astype(np.int64)
    pixels, labels = scenes(rng, shapes[180:], classes[180:], 4000, scraps)
    shown, true = scenes(rng, shapes[:180], classes[:180], 8, scraps)  # of digits that it never saw

    def layer(inputs, outputs):
        # A bias before a norm changes nothing: its gradient is rounding, which AdamW would scale to steps.
        return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()

    filters = nn.Sequential(
        *layer(1, width),
        *layer(width, width),
        nn.MaxPool2d(2),
        *layer(width, 2 * width),
        *layer(2 * width, 2 * width),
    )
    answer = nn.Linear(2 * width, 10)
    optimizer = torch.optim.AdamW([*filters.parameters(), *answer.parameters()], lr=3e-3)

    def said(maps):
        """Logits, of the most that each filter finds anywhere."""
        return answer(maps.amax((2, 3)))

    @torch.compile
    def step():
        chosen = torch.randint(0, len(labels), (batch,))
        loss = F.cross_entropy(said(filters(pixels[chosen])), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    filters.eval()
    maps = filters(shown).detach().requires_grad_()
    logits = said(maps)
    (slopes,) = torch.autograd.grad(logits.amax(1).sum(), maps)
    looked = torch.relu((slopes.mean((2, 3), keepdim=True) * maps).sum(1)).detach()
    looked = looked / looked.amax((1, 2), keepdim=True).clamp(min=1e-6)
    pairs = torch.stack([true, logits.argmax(1)], 1)
    yield images(shown[:, 0], "Pictures: which digit it is → what the network says", columns=4, labels=pairs)
    yield heat_map(looked, "Where it looked for its answer")


if __name__ == "__main__":
    show(main)
