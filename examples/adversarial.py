"""Adversarial examples: how to fool a network

A network reads digits well. Now change every pixel a little, each in the direction that makes the
network's answer worse: the gradient says which way that is, by the same computation by which the network
learned (the fast gradient sign method: Goodfellow et al., 2014). A person hardly sees the difference, and
the network reads another digit.

The same trick makes networks harder to fool. The second network here learns from changed digits from the
start; the curves say how many digits each still reads, the farther the pixels may go.
"""

from pathlib import Path

import numpy as np
from pictures import images, lines, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

DATA = Path(__file__).with_name("digits.npz")


def fooled(model, pixels, labels, far):
    """The same digits, each pixel changed by at most `far` so that the loss grows."""
    changed = pixels.detach().requires_grad_()
    (slope,) = torch.autograd.grad(F.cross_entropy(model(changed), labels), changed)
    return (changed + far * slope.sign()).clamp(0, 1).detach()


def main(steps=500, batch=64, width=128):
    torch.manual_seed(0)
    data = np.load(DATA)
    pixels = torch.tensor(data["images"].reshape(-1, 64).astype(np.float32) / 16)
    labels = torch.tensor(data["labels"].astype(np.int64))
    held = len(labels) // 10  # kept apart

    def network():
        return nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )

    plain, hardened = network(), network()
    optimizer = torch.optim.AdamW([*plain.parameters(), *hardened.parameters()], lr=2e-3)

    @torch.compile
    def step():
        chosen = torch.randint(held, len(labels), (batch,))
        x, y = pixels[chosen], labels[chosen]
        loss = F.cross_entropy(plain(x), y) + F.cross_entropy(hardened(fooled(hardened, x, y, 0.2)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    x, y = pixels[:held], labels[:held]
    changed = fooled(plain, x, y, 0.2)
    with torch.no_grad():
        said = plain(changed).argmax(1)
        order = (said != y).int().argsort(descending=True)[:8]  # those that it is fooled by first
        both = torch.cat([x[order], changed[order]]).view(-1, 8, 8)
        answers = torch.cat([plain(x[order]).argmax(1), said[order]])
    yield images(both, "Digits, the same ones changed, and what the network reads", labels=answers)
    distances = torch.linspace(0, 0.4, 17)
    rights = []
    for model in (plain, hardened):
        shares = [(model(fooled(model, x, y, far)).argmax(1) == y).float().mean() for far in distances]
        rights.append(torch.stack(shares))
    yield lines(
        torch.stack(rights),
        "Share read right, by how far pixels were changed",
        x=distances,
        names=["plain", "hardened"],
    )


if __name__ == "__main__":
    show(main)
