"""Superposition: five features in two dimensions, found again by a sparse coder

A model has to carry five numbers through two. If all five mattered all the time it could keep only two of
them. But each is nothing most of the time, so it keeps all five in directions that overlap little: a
pentagon. Models of language do so with millions of features, which is why single neurons mean so many
things at once (Elhage et al., Toy models of superposition, 2022).

A sparse autoencoder sees only the two numbers, and must write them as few of eight directions of its own.
It finds the pentagon again: the second picture has the model's directions in blue and those of the coder
that are in use in red.
"""

from pictures import heat_map, points, show

import pellucid as torch
from pellucid import lens, nn
from pellucid.nn import functional as F

FEATURES, HIDDEN = 5, 2


def main(steps=2000, batch=512, rare=0.05, directions=8):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(FEATURES, HIDDEN) * 0.5)
    bias = nn.Parameter(torch.zeros(FEATURES))
    optimizer = torch.optim.Adam([weight, bias], lr=1e-2)

    def features(count):
        """Numbers from 0 to 1, of which most are nothing."""
        return torch.rand(count, FEATURES) * (torch.rand(count, FEATURES) < rare)

    @torch.compile
    def step():
        x = features(batch)
        again = torch.relu(x @ weight @ weight.T + bias)
        loss = ((again - x) ** 2).sum(1).mean() / rare
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def rays(of):
        """Lines from the middle to the ends of directions."""
        return torch.stack([torch.zeros_like(of), of], 1)

    names = [f"feature {k + 1}" for k in range(FEATURES)]
    for _ in range(steps):
        yield step()
    found = weight.detach()
    yield points(found, "The direction of each feature in the model", names=names, paths=rays(found), size=4)

    encoder = nn.Parameter(torch.randn(HIDDEN, directions) * 0.2)
    decoder = nn.Parameter(encoder.detach().T.clone())
    threshold = nn.Parameter(torch.zeros(directions))
    finder = torch.optim.Adam([encoder, decoder, threshold], lr=1e-2)

    @torch.compile
    def find():
        hidden = features(batch) @ found
        used = torch.relu(hidden @ encoder + threshold)
        written = F.normalize(decoder, dim=1)
        loss = (((used @ written - hidden) ** 2).sum(1) + 0.2 * used.sum(1)).mean() / rare
        finder.zero_grad()
        loss.backward()
        finder.step()
        return loss.detach()

    for _ in range(steps):
        yield find()
    with torch.no_grad():
        coder = lens.SparseCoder(encoder, F.normalize(decoder, dim=1), threshold)
        used = coder.encode(found)  # each feature by itself
        active = (used.max(0).values > 0.1).float()
        both = torch.cat([found, coder.decoder * active[:, None]])
        kinds = torch.tensor([0] * FEATURES + [1] * directions)
    yield points(
        both,
        "Blue: the model's directions. Red: what the coder found",
        kinds=kinds,
        names=names,
        paths=rays(both),
        size=4,
    )
    yield heat_map(used, "Which unit of the coder (column) answers to which feature", rows=names)


if __name__ == "__main__":
    show(main)
