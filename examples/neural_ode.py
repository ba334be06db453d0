"""A neural differential equation: learning how things move

Points go round and round towards the middle. A network sees a few of their ways and learns the law behind
them: not where a point is next, but in which direction it goes from wherever it is. A solver follows that
direction in small steps (Runge and Kutta's, of fourth order), and the gradient goes back through all of
them (Chen et al., 2018).

Since it learned the law it also knows ways that it never saw: in the picture, lines are the network's,
points true.
"""

from pictures import points, show

import pellucid as torch
from pellucid import nn

STEP = 0.1


def law(x):
    """How the points move: round, and slower and slower."""
    turn = torch.tensor([[-0.1, -1.0], [1.0, -0.1]])
    return (x**3) @ turn


def moved(direction, x):
    """Where points are a moment later, by Runge and Kutta's method."""
    a = direction(x)
    b = direction(x + STEP / 2 * a)
    c = direction(x + STEP / 2 * b)
    d = direction(x + STEP * c)
    return x + STEP / 6 * (a + 2 * b + 2 * c + d)


def followed(direction, start, steps, moved=moved):
    """The way from a start: (steps + 1, count, 2)."""
    way = [start]
    for _ in range(steps):
        way.append(moved(direction, way[-1]))
    return torch.stack(way)


def main(steps=600, batch=64, length=8, width=48):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def direction(x):
        return network(x**3)

    @torch.compile
    def step():
        start = 3 * torch.rand(batch, 2) - 1.5
        loss = (followed(direction, start, length) - followed(law, start, length)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    each = torch.compile(moved)  # sixty times the same, so it is captured once

    def picture(title):
        angle = torch.arange(3) * 2.1
        start = 1.4 * torch.stack([angle.cos(), angle.sin()], 1)
        with torch.no_grad():
            true = followed(law, start, 60, each)
            said = followed(direction, start, 60, each)
        kinds = torch.arange(3).repeat(len(true[::3]))
        return points(true[::3].reshape(-1, 2), title, kinds=kinds, paths=said.transpose(0, 1))

    yield picture("Before it has learned: true points, and the network's lines")
    for _ in range(steps):
        yield step()
        schedule.step()
    yield picture("After it has learned")


if __name__ == "__main__":
    show(main)
