"""Diffusion: from noise to a spiral

Take points of a spiral and add a little noise, again and again, until nothing of the spiral is left. A
network sees such points and learns to say which noise is in them. Whoever can say that can go the way
back: begin with pure noise, take out a little of what the network calls noise, and look again.

The pictures show points on their way back, and the lines on which they go. Image generators do the same
with millions of numbers instead of two.
"""

import math

from pictures import points, show

import pellucid as torch
from pellucid import nn

LEVELS = 40  # of noise
WAVES = 4  # for each number that the network sees


class Denoiser(nn.Module):
    """Says which noise is in a point, told how much there is."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 + 2 * 3 * WAVES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )  # fmt: skip

    def forward(self, x, level):
        told = torch.cat([x, level[:, None] * (4 / LEVELS)], 1)
        angles = (told[..., None] * 2.0 ** torch.arange(WAVES)).flatten(1)  # so that small differences count
        return self.layers(torch.cat([x, angles.sin(), angles.cos()], 1))


def main(steps=2000, batch=512, width=128):
    torch.manual_seed(0)
    model = Denoiser(width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    keep = (
        torch.cos(torch.linspace(0.02, 0.98, LEVELS) * math.pi / 2) ** 2
    )  # how much of a point is left, by level

    def spiral(count):
        turn = torch.rand(count).sqrt() * 3 * math.pi
        place = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) / (1.5 * math.pi)
        return place + 0.02 * torch.randn(count, 2)

    @torch.compile
    def step():
        clean, noise = spiral(batch), torch.randn(batch, 2)
        level = torch.randint(0, LEVELS, (batch,))
        left = keep[level][:, None]
        loss = ((model(left.sqrt() * clean + (1 - left).sqrt() * noise, level) - noise) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def back(count):
        """Points on their way from noise, level by level (DDIM: Song et al., 2020)."""
        x = torch.randn(count, 2)
        way = [x]
        with torch.no_grad():
            for level in reversed(range(LEVELS)):
                noise = model(x, torch.full((count,), level))
                clean = (x - (1 - keep[level]).sqrt() * noise) / keep[level].sqrt()
                left = keep[level - 1] if level else torch.ones(())
                x = left.sqrt() * clean + (1 - left).sqrt() * noise
                way.append(x)
        return way

    yield points(spiral(500), "Points of the spiral that it learns from")
    for _ in range(steps):
        yield step()
        schedule.step()
    way = back(500)
    for level in (0, LEVELS // 2, LEVELS):
        yield points(way[level], f"Points from noise, after {level} of {LEVELS} steps back")
    paths = torch.stack([x[:40] for x in way], 1)
    yield points(way[-1][:40], "The ways of forty of them", paths=paths)


if __name__ == "__main__":
    show(main)
