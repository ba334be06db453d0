"""A network that obeys the heat equation

A rod is hot in the middle and kept cold at its ends. How warm is it where and when? Nobody gives this
network an example of the answer. It is told the law, that warmth changes as fast as its curve over the
rod bends (u_t = u_xx / 10), and how the rod begins; wherever it breaks the law it is corrected, by
derivatives of its own output.

This is a physics-informed network (Raissi et al., 2019). Here the true answer is known, so the pictures
can show it beside the network's, and the difference.
"""

import math

from pictures import heat_map, lines, show

import pellucid as torch
from pellucid import nn

SPREAD = 0.1


def truth(x, t):
    """Two waves, of which the shorter fades faster."""
    long = (math.pi * x).sin() * (-SPREAD * math.pi**2 * t).exp()
    short = (3 * math.pi * x).sin() * (-SPREAD * 9 * math.pi**2 * t).exp()
    return long - 0.5 * short


def main(steps=1500, batch=512, width=48):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def warmth(x, t):
        """The network's answer, which is cold at both ends by its form."""
        return x * (1 - x) * model(torch.cat([x, t], 1))

    @torch.compile
    def step():
        x, t = torch.rand(batch, 1).requires_grad_(), torch.rand(batch, 1).requires_grad_()
        u = warmth(x, t)
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        law = (u_t - SPREAD * u_xx) ** 2
        start = torch.rand(batch, 1)
        begun = (warmth(start, torch.zeros_like(start)) - truth(start, torch.zeros_like(start))) ** 2
        loss = law.mean() + 10 * begun.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()
        schedule.step()

    with torch.no_grad():
        side = torch.linspace(0, 1, 48)
        x, t = torch.cartesian_prod(side, side).split(1, 1)
        said, true = warmth(x, t).view(48, 48), truth(x, t).view(48, 48)
    yield heat_map(
        torch.stack([said, true]),
        "Warmth by place (downwards) and time (to the right)",
        names=["the network", "the truth"],
    )
    yield lines(
        torch.stack([said[:, 4], true[:, 4], said[:, 40], true[:, 40]]),
        "Warmth along the rod",
        x=side,
        names=["early, network", "true", "late, network", "true"],
    )


if __name__ == "__main__":
    show(main)
