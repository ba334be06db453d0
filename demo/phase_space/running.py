"""Moves a cloud of systems through phase space and sends where they are, picture by picture.

    begin   {x, y, names, energies}    the plane: ends and names of its axes; the energy of each system
    cloud   {t, x, y, drift}           where each system is by now; the largest change of an energy so far

Every value is awaited, so the browser needs no way to suspend Python.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pellucid_page import send

import pellucid as torch
from pellucid import Tensor, physics

PICTURE = 1 / 60  # seconds from one to the next, at least
_runs = 0  # how many were begun or stopped: a run whose number is another's ends


class Scene(NamedTuple):
    """A system, how its cloud begins, and in which plane it is seen."""

    title: str
    about: str
    system: Callable[[], physics.Hamiltonian]
    cloud: Callable[[int], tuple[Tensor, Tensor]]  # of so many systems
    view: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    names: tuple[str, str]
    x: tuple[float, float]
    y: tuple[float, float]
    dt: float


def _spread(count: int, *ends: tuple[float, float]) -> Tensor:
    """Numbers by chance between ends: (count, len(ends))."""
    low, high = (torch.tensor([pair[k] for pair in ends]) for k in (0, 1))
    return low + torch.rand(count, len(ends)) * (high - low)


def _pendulums(count: int) -> tuple[Tensor, Tensor]:
    return _spread(count, (-1.6, 1.6)), _spread(count, (0.0, 1.6))


def _springs(count: int) -> tuple[Tensor, Tensor]:
    return _spread(count, (0.7, 1.3)), _spread(count, (-0.3, 0.3))


def _planets(count: int) -> tuple[Tensor, Tensor]:
    """On circles and ellipses, all beginning to the right of the sun."""
    start = _spread(count, (0.7, 1.5), (0.75, 1.05))
    radius, share = start[:, :1], start[:, 1:]
    nothing = radius * 0
    return torch.cat([radius, nothing], 1), torch.cat([nothing, radius.rsqrt() * share], 1)


def _stars(count: int) -> tuple[Tensor, Tensor]:
    """Of energy 1/8, where some paths are regular and others are chaotic."""
    start = _spread(count, (-0.3, 0.5), (-0.25, 0.25))
    y, py = start[:, :1], start[:, 1:]
    px = (0.25 - py * py - y * y + y * y * y * (2 / 3)).clamp(min=0).sqrt()
    return torch.cat([y * 0, y], 1), torch.cat([px, py], 1)


def _turned(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """An angle between -pi and pi, and its momentum."""
    return q[:, 0] - (q[:, 0] / (2 * math.pi)).round() * (2 * math.pi), p[:, 0]


def _phase(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    return q[:, 0], p[:, 0]


def _place(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    return q[:, 0], q[:, 1]


SCENES = {
    "pendulum": Scene(
        "Pendulums", "Small swings turn together; those near the top fall behind, so the cloud winds up.",
        physics.pendulum, _pendulums, _turned, ("angle q", "momentum p"), (-3.2, 3.2), (-2.4, 2.4), 0.05,
    ),
    "harmonic_oscillator": Scene(
        "Springs", "All turn at one speed, so the cloud keeps its form.",
        physics.harmonic_oscillator, _springs, _phase, ("position q", "momentum p"), (-1.6, 1.6),
        (-1.6, 1.6), 0.05,
    ),
    "kepler": Scene(
        "Planets", "Inner planets are faster than outer ones: a line becomes a spiral about the sun.",
        physics.kepler, _planets, _place, ("x", "y"), (-1.8, 1.8), (-1.8, 1.8), 0.02,
    ),
    "henon_heiles": Scene(
        "Stars in a galaxy", "At this energy some paths stay on curves, and others come almost everywhere.",
        physics.henon_heiles, _stars, lambda q, p: (q[:, 1], p[:, 1]), ("position y", "momentum of y"),
        (-0.7, 1.0), (-0.6, 0.6), 0.05,
    ),
}  # fmt: skip
METHODS = ("symplectic_euler", "leapfrog", "implicit_midpoint", "yoshida4", "yoshida6")


def choices() -> dict[str, Any]:
    """What the page's form offers."""
    scenes = [{"name": n, "title": s.title, "about": s.about, "dt": s.dt} for n, s in SCENES.items()]
    return {"systems": scenes, "methods": list(METHODS)}


def stop() -> None:
    """End what runs after its picture."""
    global _runs
    _runs += 1


async def run(system: str, method: str, dt: float, count: int, steps: int, pictures: int) -> bool:
    """Move a cloud and send pictures of it.

    Args:
        system, method: names of `SCENES` and `METHODS`.
        dt: the step.
        count: systems of the cloud.
        steps: from one picture to the next.
        pictures: how many.

    Returns:
        Whether it ran to its end.
    """
    global _runs
    _runs += 1
    mine = _runs
    await torch.webgpu.open_async()
    torch.manual_seed(0)
    scene = SCENES[system]
    moving = scene.system()
    q, p = scene.cloud(count)
    first = moving.energy(q, p)
    energies = await first.numpy_async()
    send("begin", {"x": scene.x, "y": scene.y, "names": scene.names, "energies": energies.astype(np.float32)})
    largest, t = 0.0, 0.0
    for k in range(pictures + 1):
        begun = time.monotonic()
        seen = torch.stack([*scene.view(q, p), (moving.energy(q, p) - first).abs()])
        if k < pictures:  # the device goes on while the picture is read
            path = physics.integrate(moving, q, p, dt, steps, method=method, every=steps)
            q, p = path.q[-1], path.p[-1]
        x, y, change = await seen.numpy_async()
        if mine != _runs:
            return False
        largest = max(largest, float(change.max()))
        send("cloud", {"t": t, "x": x.copy(), "y": y.copy(), "drift": largest})
        t += steps * dt
        await asyncio.sleep(max(0.0, PICTURE - (time.monotonic() - begun)))
    return True
