"""Word vectors: meaning from company

Each word gets a vector, at random at first. Then the vectors learn one thing: words that stand near each
other in a text shall go together, others shall not (skip-gram with negative samples: Mikolov et al.,
2013). Nobody says what a word means, but words that keep the same company end up in the same place.

The text is written by a few rules about animals, food, people and places. The picture has the words in
the two directions in which their vectors differ most; the map below says which words are alike.
"""

import random

from pictures import heat_map, points, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

KINDS = {
    "animal": ["cat", "dog", "horse", "cow", "sheep", "goat"],
    "food": ["bread", "cheese", "apple", "soup", "cake", "rice"],
    "person": ["king", "queen", "baker", "nurse", "farmer", "sailor"],
    "place": ["castle", "village", "harbour", "forest", "market", "river"],
}
SENTENCES = (
    "animal runs over the place", "animal sleeps near the place", "person feeds the animal",
    "person rides the animal",
    "person cooks food", "person eats food", "person buys food at the place", "person lives by the place",
)  # fmt: skip


def sentences(count):
    """Sentences by the rules, as lists of words."""
    draw = random.Random(0)
    return [
        [draw.choice(KINDS.get(word, [word])) for word in draw.choice(SENTENCES).split()]
        for _ in range(count)
    ]


def main(steps=1000, batch=512, width=16, negative=5):
    torch.manual_seed(0)
    text = sentences(4000)
    words = sorted({word for sentence in text for word in sentence})
    number = {word: k for k, word in enumerate(words)}
    pairs = torch.tensor(
        [
            (number[a], number[b])
            for sentence in text
            for i, a in enumerate(sentence)
            for j, b in enumerate(sentence)
            if i != j
        ]
    )
    vectors, company = nn.Embedding(len(words), width), nn.Embedding(len(words), width)
    optimizer = torch.optim.Adam([*vectors.parameters(), *company.parameters()], lr=1e-2)

    @torch.compile
    def step():
        word, near = pairs[torch.randint(0, len(pairs), (batch,))].unbind(1)
        far = pairs[torch.randint(0, len(pairs), (batch, negative)), 1]  # words by how often they occur
        of = vectors(word)
        together = (of * company(near)).sum(-1)
        apart = (of[:, None] * company(far)).sum(-1)
        loss = -(F.logsigmoid(together).mean() + F.logsigmoid(-apart).sum(1).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    shown = [word for kind in KINDS.values() for word in kind]
    kinds = torch.tensor([k for k, kind in enumerate(KINDS.values()) for _ in kind])
    with torch.no_grad():
        chosen = F.normalize(vectors(torch.tensor([number[word] for word in shown])), dim=1)
        spread = chosen - chosen.mean(0)
        flat = spread @ torch.linalg.svd(spread, full_matrices=False)[2][:2].T
    yield points(flat, "Words by their vectors: a colour for each kind", kinds=kinds, names=shown, size=4)
    yield heat_map(chosen @ chosen.T, "How alike words are", rows=shown, signed=True)


if __name__ == "__main__":
    show(main)
