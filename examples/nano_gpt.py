"""A small GPT learns to write plays

A transformer reads a text letter by letter and learns to say which letter comes next. The text is a play
that this program writes itself, by a grammar of a few rules: speakers, greetings, questions, answers.
Nobody tells the transformer of words or rules.

At first it learns how often each letter occurs, then which letters follow each other, then words, then
who speaks after whom. The pictures are what it writes before it has learned anything, and after.
"""

import random

from pictures import show, text

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

SPEAKERS = "ROMEO", "JULIET", "NURSE", "FRIAR", "TYBALT", "MERCUTIO"
LINES = (
    "O {adjective} {noun}, wherefore art thou {adjective}?",
    "My {noun} is as {adjective} as the {noun}.",
    "I {verb} thee, {adjective} {speaker}, by the {noun}!",
    "What {noun} is this, that I should {verb} it?",
    "Good {speaker}, {verb} me not.",
    "Then {verb} the {noun}, and let us part.",
)
WORDS = {
    "adjective": ("gentle", "fair", "bitter", "sweet", "pale", "noble"),
    "noun": ("moon", "rose", "sword", "night", "heart", "grave", "crown"),
    "verb": ("love", "seek", "forsake", "swear", "hold", "curse"),
    "speaker": [name.title() for name in SPEAKERS],
}


def play(lines):
    """A play by the grammar."""
    draw = random.Random(0)
    written = []
    for _ in range(lines):
        line = draw.choice(LINES)
        while "{" in line:
            kind = line[line.index("{") + 1 : line.index("}")]
            line = line.replace("{" + kind + "}", draw.choice(WORDS[kind]), 1)
        written.append(f"{draw.choice(SPEAKERS)}:\n{line}\n")
    return "\n".join(written)


class Block(nn.Module):
    """Look at earlier letters, then think about what was seen."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, time, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Letters and places as vectors, blocks, and a guess at the next letter."""

    def __init__(self, letters, context, width, heads, layers):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, ids):
        places = self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(self.letters(ids) + places)))


def main(steps=800, batch=32, context=64, width=64, layers=3):
    torch.manual_seed(0)
    written = play(2000)
    letters = sorted(set(written))
    data = torch.tensor([letters.index(letter) for letter in written])
    model = GPT(len(letters), context, width, heads=4, layers=layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    ahead = torch.arange(context + 1)

    @torch.compile
    def step():
        starts = torch.randint(0, len(data) - context - 1, (batch, 1))
        rows = data[starts + ahead]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.compile
    def next_letter(ids):
        """Drawn by the probabilities that the model gives."""
        with torch.no_grad():
            return torch.multinomial(model(ids)[:, -1].softmax(-1), 1)

    def writes(count):
        seen, new = data[None, :context], []
        for _ in range(count):
            new.append(next_letter(seen))
            seen = torch.cat([seen[:, 1:], new[-1]], 1)
        return torch.cat(new, 1)[0]

    yield text(writes(context), letters, "What it writes before it has learned")
    for _ in range(steps):
        yield step()
    yield text(writes(4 * context), letters, f"What it writes after {steps} steps")


if __name__ == "__main__":
    show(main)
