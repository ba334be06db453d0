"""A generative adversarial network: a forger and a judge

The forger makes points from noise. The judge sees points and says whether they are real ones, which lie
in eight heaps on a ring, or forged. Each learns from the other: the judge to tell them apart, the forger
to be believed (Goodfellow et al., 2014). Neither ever wins for long, so the loss, which is the judge's,
does not fall to nothing: 1.39 means that he can only guess.

The pictures are forged points after every fifth of the time. A forger that found one heap good enough to
fool the judge would stay there; noise on what the judge sees keeps him from being sure too soon.
"""

import math

from pictures import points, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

HEAPS = 8


def main(steps=3000, batch=256, width=128):
    torch.manual_seed(0)

    def network(inputs, outputs):
        return nn.Sequential(
            nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, outputs),
        )  # fmt: skip

    forger, judge = network(4, 2), network(2, 1)
    forging = torch.optim.Adam(forger.parameters(), lr=5e-4, betas=(0.5, 0.9))
    judging = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def real(count):
        angle = torch.randint(0, HEAPS, (count,)) * (2 * math.pi / HEAPS)
        return torch.stack([angle.cos(), angle.sin()], 1) * 2 + 0.05 * torch.randn(count, 2)

    def seen(x):
        """What the judge sees."""
        return x + 0.1 * torch.randn_like(x)

    @torch.compile
    def step():
        forged = forger(torch.randn(batch, 4))
        true, false = judge(seen(real(batch))), judge(seen(forged.detach()))
        loss = F.softplus(-true).mean() + F.softplus(false).mean()
        judging.zero_grad()
        loss.backward()
        judging.step()

        believed = F.softplus(-judge(seen(forged))).mean()
        forging.zero_grad()
        believed.backward()
        forging.step()
        return loss.detach()

    def picture(done):
        with torch.no_grad():
            places = torch.cat([real(300), forger(torch.randn(500, 4))])
        return points(
            places, f"After {done} steps: real points blue, forged ones red", kinds=torch.arange(800) >= 300
        )

    for done in range(1, steps + 1):
        yield step()
        if done % max(steps // 5, 1) == 0:
            yield picture(done)


if __name__ == "__main__":
    show(main)
