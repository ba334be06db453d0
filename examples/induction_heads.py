"""Induction heads: how a transformer learns to repeat

Random letters, and then the same letters again. The second time they can be known, but only by one who
looks back: where did this letter stand before, and what came after it? A transformer of two layers with
nothing but attention learns this trick, all at once: the loss stands for a while, then it drops.

The trick takes two heads in a row. One in the first layer tells each place which letter stands before it.
One in the second looks for the place whose letter before is the present one. Its picture is a line beside
the diagonal: from the second half each place looks at the one after its own letter's first place. Such
heads are why language models can learn from what stands in their prompt.
"""

from pictures import heat_map, show

import pellucid as torch
from pellucid import lens, nn
from pellucid.nn import functional as F


class Attention(nn.Module):
    """Heads that look at earlier places; `pattern` is where the lens sees how much at which."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.pattern = nn.Softmax(-1)

    def forward(self, x):
        batch, time, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        later = torch.ones(time, time, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(later, -1e9)
        return x + self.out((self.pattern(scores) @ v).transpose(1, 2).reshape(batch, time, width))


class Transformer(nn.Module):
    """Two layers of attention, and no other layer."""

    def __init__(self, letters, length, width, heads):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(Attention(width, heads), Attention(width, heads))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, ids):
        x = self.letters(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.layers(x)))


def main(steps=1200, batch=64, letters=16, length=16, width=64):
    torch.manual_seed(0)
    model = Transformer(letters, 2 * length, width, heads=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    places = torch.arange(2 * length)

    def repeated(count):
        """Letters that begin again after a number of places which differs from text to text."""
        period = torch.randint(length // 2, length + 1, (count, 1))
        return torch.randint(0, letters, (count, length)).gather(1, places % period), places >= period

    @torch.compile
    def step():
        ids, known = repeated(batch)
        guesses = model(ids)[:, :-1].flatten(0, 1)
        losses = F.cross_entropy(guesses, ids[:, 1:].flatten(), reduction="none")
        known = known[:, 1:].flatten()
        loss = (losses * known).sum() / known.sum()  # of what can be known
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    shown, _ = repeated(1)

    def looks():
        with torch.no_grad(), lens.capture(model, "layers.*.pattern") as seen:
            model(shown)
        maps = torch.cat([pattern[0] for pattern in seen.values()])
        names = [f"layer {layer}, head {head}" for layer in (1, 2) for head in range(1, 5)]
        return heat_map(maps, "Which place (row) looks at which (column)", names=names)

    for done in range(1, steps + 1):
        yield step()
        if done % (steps // 6) == 0 or done == steps:
            yield looks()


if __name__ == "__main__":
    show(main)
