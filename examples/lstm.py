"""A recurrent network learns to count brackets

A text of brackets in which every bracket that opens is closed. To say what may come next one has to know
how many are open; an LSTM reads one bracket at a time and has nothing but its state to remember that. So
it learns to count.

The picture has its cells over a text, those first whose values go with the depth of the brackets: some of
them rise with every bracket that opens and fall with every one that closes. Such cells were first seen in
networks that read source code (Karpathy et al., 2015).
"""

import random

from pictures import heat_map, lines, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

LETTERS = "()."  # a dot ends a text


def brackets(count):
    """Balanced texts, one after the other."""
    draw = random.Random(0)
    written, depth = "", 0
    while len(written) < count:
        if depth == 0 and written and written[-1] != ".":
            written += "."
        elif depth == 0 or (depth < 8 and draw.random() < 0.5):
            written, depth = written + "(", depth + 1
        else:
            written, depth = written + ")", depth - 1
    return written


class Reader(nn.Module):
    """Reads letter by letter, and says what comes next."""

    def __init__(self, width):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 8)
        self.memory = nn.LSTM(8, width, batch_first=True)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, ids):
        states, _ = self.memory(self.letters(ids))
        return self.head(states), states


def main(steps=400, batch=32, length=48, width=24):
    torch.manual_seed(0)
    written = brackets(20000)
    data = torch.tensor([LETTERS.index(letter) for letter in written])
    model = Reader(width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    ahead = torch.arange(length + 1)

    @torch.compile
    def step():
        rows = data[torch.randint(0, len(data) - length - 1, (batch, 1)) + ahead]
        logits, _ = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    ids = data[:length]
    depth = ((ids == 0).float() - (ids == 1).float()).cumsum(0)
    with torch.no_grad():
        cells = model(ids[None])[1][0].T  # (cells, places)
        off, by = cells - cells.mean(1, keepdim=True), depth - depth.mean()
        likeness = (off @ by) / (off.norm(dim=1) * by.norm()).clamp(min=1e-6)
        order = likeness.abs().argsort(descending=True)
        first = cells[order] * likeness[order].sign()[:, None]
    yield heat_map(first, "Its cells, those first that count", columns=written[:length], signed=True)
    yield lines(
        torch.stack([depth / depth.max(), first[0]]),
        "How deep the brackets are, and one cell",
        names=["depth", "cell"],
    )


if __name__ == "__main__":
    show(main)
