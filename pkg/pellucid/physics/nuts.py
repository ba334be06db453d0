"""The no-U-turn sampler: Hamiltonian Monte Carlo that goes on until a trajectory turns back.

All chains build their trees side by side. A tree doubles by leaves one after another, and what sub-trees
have to be looked at for a turn is known from the number of a leaf alone, so nothing recurs and chains need
no Python of their own. Whether any chain goes on is read once for each doubling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import RangeError
from ..op.jit import compile
from ..ops.elementwise.comparison import where
from ..ops.random.distributions import rand, randn_like
from ..ops.shape.joining import stack
from ..tensors.tensor import Tensor
from .hmc import DIVERGENT, LogDensity, Move, State, drift, growth, kinetic
from .integrators import check_steps

# Leaves between two looks whether a chain is still going on within a doubling.
_LOOK = 16


def _chosen(mask: Tensor, new: Any, old: Any) -> State:
    """Of each chain the new state or the old."""
    rows = mask.unsqueeze(-1)
    return State(where(rows, new[0], old[0]), where(mask, new[1], old[1]), where(rows, new[2], old[2]))


def _turns(first: Tensor, last: Tensor, total: Tensor, inverse: Tensor) -> Tensor:
    """Whether the ends of a trajectory move towards each other, by the sum of its momenta: (chains,)."""
    inner = (total - (first + last) * 0.5) * inverse
    return ((inner * first).sum(-1) <= 0) | ((inner * last).sum(-1) <= 0)


def sub_trees(leaf: int) -> tuple[int, int, int]:
    """What a leaf of a doubling closes: where its momentum is kept if it is even, and the places of the first
    leaves of the balanced sub-trees that it ends if it is odd, from the lowest to the highest.

    Source: Phan, Pradhan and Jankowiak 2019, "Composable effects for flexible and accelerated probabilistic
        programming in NumPyro", algorithm 2
    """
    place = (leaf >> 1).bit_count()
    ended = (~leaf & (leaf + 1)).bit_length() - 1  # ones at the low end of the number
    return place, place - ended + 1, place


class NUTS:
    """The no-U-turn sampler, with multinomial draws along the trajectory.

    Args:
        max_depth: a trajectory has at most ``2**max_depth - 1`` leapfrog steps.

    Raises:
        RangeError: the depth is not between 1 and 15.

    Source: Hoffman and Gelman 2014, "The no-U-turn sampler"; Betancourt 2017, "A conceptual introduction to
        Hamiltonian Monte Carlo", appendix A

    Example:
        >>> from pellucid import physics
        >>> physics.NUTS(max_depth=6)
        NUTS(max_depth=6)
    """

    target = 0.8

    def __init__(self, max_depth: int = 8):
        check_steps("NUTS", max_depth=max_depth)
        if max_depth > 15:
            raise RangeError(f"NUTS: max_depth must be at most 15, not {max_depth}.")
        self.max_depth = max_depth

    def __repr__(self) -> str:
        return f"NUTS(max_depth={self.max_depth})"

    def transition(self, log_density: LogDensity) -> Callable[[State, Tensor, Tensor], Move]:
        """The function of a state, a step (a Tensor of no axes) and inverse masses (dim,) to a `Move`."""

        def leaf(q, values, slope, p, chosen, weight, total, alive, seen, energy, step, inverse):
            """One leapfrog step of the chains that are alive, and a draw among the leaves of this
            doubling.
            """
            before = State(q, values, slope)
            at, moved = drift(log_density, before, p, step, inverse)
            grown = growth(at, moved, inverse, energy)
            together = weight.logaddexp(-grown)
            share = (-grown - together).exp()
            taken = alive & (rand(len(q), dtype=q.dtype, device=q.device) < share)
            chosen = _chosen(taken, at, chosen)
            acceptance = (-grown).exp().clamp(max=1.0)
            seen = seen + stack([acceptance, acceptance * 0 + 1]) * alive
            here = _chosen(alive, at, before)
            p = where(alive.unsqueeze(-1), moved, p)
            far = alive & (grown > DIVERGENT)
            return (*here, p, tuple(chosen), together, total + p, alive & ~far, seen, far)

        step_leaf, turns = compile(leaf), compile(_turns)

        def transition(state: State, step: Tensor, inverse: Tensor) -> Move:
            q = state.q
            momentum = randn_like(q) / inverse.sqrt()
            energy = kinetic(momentum, inverse) - state.log_density
            left = right = (state, momentum)
            draw, weight, total = state, energy * 0, momentum
            going, diverged = energy == energy, energy != energy
            seen = stack([energy * 0, energy * 0])
            for depth in range(self.max_depth):
                ahead = rand(len(q), dtype=q.dtype, device=q.device) < 0.5
                at = _chosen(ahead, right[0], left[0])
                p = where(ahead.unsqueeze(-1), right[1], left[1])
                signed = (ahead.to(q.dtype) * 2 - 1).unsqueeze(-1) * step
                alive, chosen = going, draw
                among, summed = weight * 0 + float("-inf"), p * 0
                firsts: dict[int, tuple[Tensor, Tensor]] = {}
                for number in range(2**depth):
                    q_, v_, s_, p, found, among, summed, alive, seen, far = step_leaf(
                        *at, p, tuple(chosen), among, summed, alive, seen, energy, signed, inverse
                    )
                    at, chosen, diverged = State(q_, v_, s_), State(*found), diverged | far
                    place, lowest, highest = sub_trees(number)
                    if number % 2 == 0:
                        firsts[place] = p, summed
                    else:
                        for k in range(lowest, highest + 1):
                            first, before = firsts[k]
                            alive = alive & ~turns(first, p, summed - before + first, inverse)
                    if number % _LOOK == _LOOK - 1 and not bool(alive.any()):
                        break
                # A doubling in which something turned or diverged counts for nothing.
                better = rand(len(q), dtype=q.dtype, device=q.device) < (among - weight).exp()
                draw = _chosen(alive & better, chosen, draw)
                weight = where(alive, weight.logaddexp(among), weight)
                total = where(alive.unsqueeze(-1), total + summed, total)
                forth, back = alive & ahead, alive & ~ahead
                right = _chosen(forth, at, right[0]), where(forth.unsqueeze(-1), p, right[1])
                left = _chosen(back, at, left[0]), where(back.unsqueeze(-1), p, left[1])
                going = alive & ~turns(left[1], right[1], total, inverse)
                if depth < self.max_depth - 1 and not bool(going.any()):
                    break
            return Move(draw, seen[0] / seen[1], diverged, seen[1])

        return transition
