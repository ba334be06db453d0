"""A variational autoencoder: all digits on a map

One network squeezes each digit into two numbers, a place on a map; another draws a digit for each place.
So that neighbours look alike, a digit's place is blurred while they learn, and all places together are
pulled into one cloud around the middle. What the loss weighs is how well digits are drawn again, and how
far the cloud is from a normal one.

One picture shows where the digits went, a colour for each of the ten. The other is what the second
network draws for places all over the map: between a 4 and a 9 lies something of both.
"""

from pathlib import Path

import numpy as np
from pictures import images, points, show

import pellucid as torch
from pellucid import nn
from pellucid.nn import functional as F

DATA = Path(__file__).with_name("digits.npz")


def main(steps=2000, batch=128, width=128):
    torch.manual_seed(0)
    data = np.load(DATA)
    pixels = torch.tensor(data["images"].reshape(-1, 64).astype(np.float32) / 16)
    encoder = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    )
    decoder = nn.Sequential(
        nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64)
    )
    optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=2e-3)

    @torch.compile
    def step():
        x = pixels[torch.randint(0, len(pixels), (batch,))]
        mean, log_var = encoder(x).chunk(2, -1)
        place = mean + (log_var / 2).exp() * torch.randn(batch, 2)
        drawn = F.binary_cross_entropy_with_logits(decoder(place), x, reduction="sum")
        far = (
            mean**2 + log_var.exp() - 1 - log_var
        ).sum() / 2  # Kullback-Leibler divergence from the normal one
        loss = (drawn + far) / batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(steps):
        yield step()

    with torch.no_grad():
        places = encoder(pixels)[:, :2]
        side = torch.linspace(-2, 2, 16)
        over = torch.cartesian_prod(-side, side).flip(1)
        drawn = decoder(over).sigmoid().view(-1, 8, 8)
    yield points(
        places,
        "Where the digits lie: a colour for each of the ten",
        kinds=torch.tensor(data["labels"].astype(np.int64)),
    )
    yield images(drawn, "What is drawn for places all over the map", columns=16)


if __name__ == "__main__":
    show(main)
