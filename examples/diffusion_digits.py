"""Diffusion of digits: handwriting out of noise

Mix a digit with noise, more and more, until only noise is left. A network sees such a mixture, how much
noise is in it, and which digit it was; it learns to say which noise that is. Whoever can say that can go
the way back: begin with pure noise and a wish, take out a little of what the network calls noise, and look
again.

One picture has digits that nobody wrote, a row for each of the ten wishes. The other shows ten of them on
their way from noise. Image generators do the same with a sentence as the wish.
"""

import math
from pathlib import Path

import numpy as np
from pictures import images, show

import pellucid as torch
from pellucid import nn

DATA = Path(__file__).with_name("digits.npz")
LEVELS = 40  # of noise


class Denoiser(nn.Module):
    """Says which noise is in images, told how much there is and which digits they show."""

    def __init__(self, width, depth):
        super().__init__()
        self.level, self.label = nn.Embedding(LEVELS, width), nn.Embedding(10, width)
        self.first, self.last = nn.Linear(64, width), nn.Linear(width, 64)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(depth)
        )

    def forward(self, x, level, label):
        hint = self.level(level) + self.label(label)
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x + hint)
        return self.last(nn.functional.silu(x))


def main(steps=3000, batch=128, width=192, depth=3):
    torch.manual_seed(0)
    data = np.load(DATA)
    pixels = torch.tensor(data["images"].astype(np.float32) / 8 - 1).flatten(1)  # from -1 to 1
    labels = torch.tensor(data["labels"].astype(np.int64))
    model = Denoiser(width, depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    # How much of an image is left, by level.
    keep = torch.cos(torch.linspace(0.02, 0.98, LEVELS) * math.pi / 2) ** 2

    @torch.compile
    def step():
        chosen = torch.randint(0, len(pixels), (batch,))
        clean, noise = pixels[chosen], torch.randn(batch, 64)
        level = torch.randint(0, LEVELS, (batch,))
        left = keep[level].unsqueeze(1)
        said = model(left.sqrt() * clean + (1 - left).sqrt() * noise, level, labels[chosen])
        loss = ((said - noise) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def back(label):
        """Images on their way from noise to these digits, level by level (DDIM: Song et al., 2020)."""
        x = torch.randn(len(label), 64)
        way = [x]
        with torch.no_grad():
            for level in reversed(range(LEVELS)):
                rest = (1 - keep[level]).sqrt()
                noise = model(x, torch.full((len(label),), level), label)
                clean = ((x - rest * noise) / keep[level].sqrt()).clamp(-1, 1)
                # What is not in the digit, once its pixels are in their range, is noise.
                noise = (x - keep[level].sqrt() * clean) / rest
                left = keep[level - 1] if level else torch.ones(())
                x = left.sqrt() * clean + (1 - left).sqrt() * noise
                way.append(x)
        return way

    for _ in range(steps):
        yield step()
        schedule.step()
    wishes = torch.arange(10)
    drawn = back(wishes.repeat_interleave(8))[-1]
    yield images(drawn.view(-1, 8, 8) / 2 + 0.5, "Digits that nobody wrote, a row for each wish", columns=8)
    way = torch.stack(back(wishes)[::8], 1).view(-1, 8, 8)
    yield images(way / 2 + 0.5, "From noise to a digit, from left to right", columns=LEVELS // 8 + 1)


if __name__ == "__main__":
    show(main)
