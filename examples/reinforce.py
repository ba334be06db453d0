"""Policy gradient: balancing a pole

A cart on a rail carries a pole, which falls unless the cart moves below it. A network sees the cart's
place and speed, the pole's angle and how fast it turns, and pushes the cart to the left or to the right.
Nobody tells it which push was good. It tries both by chance; pushes after which the pole stood for long
become likelier (REINFORCE: Williams, 1992).

Many carts try at once, each step of all of them on the device. The loss is the share of time in which the
pole did not stand. The pictures are angles of poles over time, before learning and after.
"""

from pictures import lines, show

import pellucid as torch
from pellucid import nn

GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
"""The system of Barto, Sutton and Anderson (1983)."""
WIDEST, FARTHEST = 0.21, 2.4  # angle and place at which a try has ended


def moved(state, push):
    """The state a moment later."""
    _, speed, angle, turn = state.unbind(-1)
    sine, cosine = angle.sin(), angle.cos()
    total, share = CART + POLE, POLE / (CART + POLE)
    pull = torch.addcmul(push * (FORCE / total), turn**2, sine, value=share * HALF)
    bend = torch.addcmul(GRAVITY * sine, cosine, pull, value=-1) / (HALF * 4 / 3 - HALF * share * cosine**2)
    rush = torch.addcmul(pull, bend, cosine, value=-share * HALF)
    return torch.add(state, torch.stack((speed, rush, turn, bend), -1), alpha=SECONDS)


def main(steps=150, carts=64, moments=120, width=32):
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    def tries():
        """What each cart saw and did at each moment, and whether its pole still stood then."""
        state = torch.rand(carts, 4) * 0.1 - 0.05
        seen, done = [], []
        with torch.no_grad():
            # A push to the right where a number by chance is below the sigmoid of what the policy says.
            for chance in torch.rand(moments, carts).logit():
                push = torch.where(chance < policy(state)[:, 0], 1.0, -1.0)
                seen.append(state)
                done.append(push)
                state = moved(state, push)
            seen, done = torch.stack(seen), torch.stack(done)
            inside = (seen[..., 2].abs() < WIDEST) & (seen[..., 0].abs() < FARTHEST)
        return seen, (done > 0).float(), inside.float().cumprod(0)

    @torch.compile
    def step():
        seen, done, standing = tries()
        still = standing.flip(0).cumsum(0).flip(0)  # how long each pole will stand from here on
        better = still - (still * standing).sum(1, keepdim=True) / standing.sum(1, keepdim=True).clamp(min=1)
        better = better / moments
        logits = policy(seen)[..., 0]
        likely = -nn.functional.binary_cross_entropy_with_logits(logits, done, reduction="none")
        loss = -(likely * better * standing).sum() / standing.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return 1 - standing.mean()

    def angles(title):
        seen, _, standing = tries()
        shown = seen[:, :6, 2].T
        return lines(torch.where(standing[:, :6].T > 0, shown, torch.full_like(shown, torch.nan)), title)

    yield angles("Angles of six poles over time, before it has learned")
    for _ in range(steps):
        yield step()
    yield angles("After it has learned")


if __name__ == "__main__":
    show(main)
