"""A graph network: who belongs to whom

A club of sixty people who fall into three circles. Friends are mostly of the same circle, but not all. Of
only one person in each circle is it known which one it is. A graph network makes each person's vector of
those of the friends, three times (Kipf and Welling, 2016); so what is known of three people spreads along
friendships to all.

In the picture each corner is a circle, and people lie nearer to one the surer the network is that they
belong there. Colours are what it says; lines are friendships.
"""

import numpy as np
from pictures import lines, points, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

CIRCLES, PEOPLE = 3, 60


def club(seed):
    """Circles of people, and who is whose friend."""
    rng = np.random.default_rng(seed)
    circle = np.arange(PEOPLE) % CIRCLES
    chance = np.where(circle[:, None] == circle, 0.3, 0.03)
    friends = np.triu(rng.random((PEOPLE, PEOPLE)) < chance, 1)
    return circle, (friends | friends.T).astype(np.float32)


class Spread(nn.Module):
    """Each one's vector, of those of the friends and the own one."""

    def __init__(self, inputs, outputs, friends):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        loops = friends + torch.eye(len(friends))
        few = loops.sum(1).rsqrt()
        self.register_buffer("mixed", few[:, None] * loops * few)

    def forward(self, x):
        return self.mixed @ self.linear(x)


def main(steps=200, width=16):
    torch.manual_seed(0)
    circle, friends = club(0)
    true, between = torch.tensor(circle), torch.tensor(friends)
    layers = nn.Sequential(
        Spread(PEOPLE, width, between),
        nn.Tanh(),
        Spread(width, width, between),
        nn.Tanh(),
        Spread(width, CIRCLES, between),
    )
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-2, weight_decay=0.1)
    people, known = torch.eye(PEOPLE), torch.arange(CIRCLES)  # nobody has other marks than being oneself
    rights = []

    @torch.compile
    def step():
        logits = layers(people)
        loss = F.cross_entropy(logits[known], true[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), (logits.argmax(1) == true).float().mean()

    for _ in range(steps):
        loss, right = step()
        rights.append(right)
        yield loss

    with torch.no_grad():
        sure = layers(people).softmax(1)
        corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.87]])
        places, said = sure @ corners, sure.argmax(1)
    ends = torch.tensor(np.argwhere(np.triu(friends)))
    yield points(
        places,
        "People: the nearer to a corner, the surer the network is",
        kinds=said,
        paths=places[ends],
        size=5,
    )
    yield lines(torch.stack(rights)[None], "Share of all people whose circle it says, by step")


if __name__ == "__main__":
    show(main)
