"""The grid laboratory: a network in a volume, and what can be done with it.

This is the whole idea; the page only draws. It runs in a worker, asks for every value with `await`, so that
the browser needs no way to suspend Python, and sends small messages while something runs:

    look    what `Laboratory.look` gives, or part of it    colours of cells, loss and accuracy
    curve   {name: number, ...}                            one more point of each curve
"""

import asyncio
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pellucid_page import send
from tasks import NETWORKS, SIDE, TASKS, examples, plane

import pellucid as torch
from pellucid.grid import (
    PRECISIONS,
    Backpropagation,
    GridNetwork,
    GridPopulation,
    MutationConfig,
    PackedTensor,
    Position,
    TargetPropagation,
    TargetPropagationConfig,
    blueprint,
    network_from_json,
    network_to_json_async,
    stored,
)
from pellucid.nn.functional import cross_entropy

SHOWN = 32  # rows and columns of a tensor that are drawn
RIDGE = 1e-3  # of a readout, for each example
EVERY = 4  # steps between two looks
STRUCTURE = "activation_rate", "type_rate", "toggle_rate", "link_rate"
METHODS = "backpropagation", "target propagation"


class Laboratory:
    """One network and one task at a time."""

    def __init__(self) -> None:
        self.network = GridNetwork(1, 1, 1, 1)
        self.passes = 1
        self.stopped = False
        self.compared: dict[str, GridNetwork] = {}
        self.budgets: dict[Position, float] = {}

    def choices(self) -> dict[str, Any]:
        """What the page's fields offer."""
        kinds = {name: kind.bits for name, kind in PRECISIONS.items()}
        return {"tasks": list(TASKS), "networks": NETWORKS, "dtypes": kinds, "side": SIDE}

    async def build(self, spec: Any, task: str, seed: int, passes: int) -> dict[str, Any]:
        """Make a network of a specification, and the examples of a task; what the page shows of them.

        Args:
            spec: JSON, or what it says.
            task: a key of `TASKS`.
            seed: of parameters and examples.
            passes: how often the volume runs: above 1, links may bring values back.
        """
        await torch.webgpu.open_async()
        torch.manual_seed(seed)
        network, before = network_from_json(spec), (self.network, self.passes)
        points, classes = examples(task, seed)
        self.x, self.y = torch.tensor(points), torch.tensor(classes)
        self.points, self.classes = points, classes
        self.network, self.passes = network, passes
        self.budgets, self.compared = {}, {}
        try:
            return await self.told()
        except torch.errors.PellucidError:  # the layers do not fit each other: what was there stays
            self.network, self.passes = before
            raise

    async def told(self) -> dict[str, Any]:
        """The network as it is, with a look at it."""
        look = await self.look()  # first: it tells what does not fit
        plan = blueprint(self.network, example=self.x)
        return {**plan, "size": list(self.network.size), "look": look}

    def run(self, input: torch.Tensor) -> torch.Tensor:
        """The network's logits."""
        return self.network(input, passes=self.passes)

    @contextmanager
    def watched(
        self, change: Any = None, place: Position | None = None
    ) -> Iterator[dict[Position, torch.Tensor]]:
        """What each cell gives while the block runs; `change` may replace that of one."""
        found: dict[Position, torch.Tensor] = {}

        def keep(at: Position):
            def hook(module, inputs, output):
                found[at] = change(output) if at == place else output
                return found[at]

            return hook

        hooks = [layer.register_forward_hook(keep(at)) for at, layer in self.network.layers()]
        try:
            yield found
        finally:
            for hook in hooks:
                hook.remove()

    async def look(self) -> dict[str, Any]:
        """Loss, accuracy and bytes; mean sizes of what each cell gives and of its gradient; link budgets."""
        with self.watched() as seen:
            # Cells have gradients even where no weight lies before them.
            logits = self.run(self.x.detach().requires_grad_())
        loss = cross_entropy(logits, self.y)
        slopes = torch.autograd.grad(loss, list(seen.values()), allow_unused=True) if seen else ()
        numbers = [loss, (logits.argmax(-1) == self.y).float().mean()]
        numbers += [value.abs().mean() for value in seen.values()]
        numbers += [torch.zeros(()) if slope is None else slope.abs().mean() for slope in slopes]
        read = await torch.stack([n.detach().float() for n in numbers]).tolist_async()
        sizes, gradients = read[2 : 2 + len(seen)], read[2 + len(seen) :]
        cells = {
            str(at): {"activation": size, "gradient": gradient, "budget": self.budgets.get(at)}
            for at, size, gradient in zip(seen, sizes, gradients, strict=True)
        }
        return {"loss": read[0], "accuracy": read[1], "bytes": self.network.num_bytes(), "cells": cells}

    async def cell(self, place: list[int]) -> dict[str, Any]:
        """The tensors of a cell: what it gives, the gradient of that, and its parameters as stored."""
        at = Position(*place)
        layer = self.network.layer(at)
        with self.watched() as seen:
            loss = cross_entropy(self.run(self.x.detach().requires_grad_()), self.y)
        tensors = []
        if at in seen:
            (slope,) = torch.autograd.grad(loss, [seen[at]], allow_unused=True)
            tensors.append(await shown("output", seen[at]))
            slope = torch.zeros_like(seen[at]) if slope is None else slope
            tensors.append(await shown("gradient of the output", slope))
        tensors += [await shown(name, value) for name, value in stored(layer).items()]
        return {"tensors": tensors}

    async def readout(self, place: list[int]) -> dict[str, Any]:
        """What a cell would say, had it the word: a linear readout of its output, over the whole plane.

        Args:
            place: of the cell; empty for what the network itself says.

        Returns:
            Values of the plane (above 0: class 1), the points, accuracy, and the loss if the cell gave its
            mean for every example.
        """
        both = torch.cat([self.x, torch.tensor(plane())])
        count = len(self.x)
        with torch.no_grad():
            with self.watched() as seen:
                logits = self.run(both)
            numbers = []
            if not place:
                said = logits[:, 1] - logits[:, 0]
            else:
                at = Position(*place)
                given = seen[at].flatten(1)
                given = torch.cat([given, torch.ones_like(given[:, :1])], -1)
                known, wanted = given[:count], self.y.float() * 2 - 1
                square = known.T @ known + RIDGE * count * torch.eye(given.shape[1])
                said = given @ torch.linalg.solve_ex(square, known.T @ wanted).result
                with self.watched(lambda value: value.mean(0, keepdim=True).expand_as(value), at):
                    numbers.append(cross_entropy(self.run(self.x), self.y))
            numbers.append(((said[:count] > 0) == (self.y > 0)).float().mean())
            values = await torch.cat([torch.stack(numbers), said[count:]]).numpy_async()
        *silent, accuracy = values[: len(numbers)].tolist()
        return {
            "plane": values[len(numbers) :],
            "points": self.points.ravel(),
            "classes": self.classes.tolist(),
            "accuracy": accuracy,
            "silent": silent[0] if silent else None,
        }

    async def train(self, steps: int, rate: float) -> dict[str, Any]:
        """Steps of Adam on all examples."""
        self.begin()
        optimizer = torch.optim.Adam(self.network.parameters(), lr=rate)
        for step in range(steps):
            optimizer.zero_grad()
            loss = cross_entropy(self.run(self.x), self.y)
            loss.backward()
            optimizer.step()
            if step % EVERY == EVERY - 1 or step == steps - 1:
                send("curve", {"loss": await loss.item_async()})
                send("look", await self.look())
            if await self.heard():
                break
        return await self.told()

    async def morph(self, dtype: str, place: list[int]) -> dict[str, Any]:
        """Let a cell, or all where `place` is empty, compute in another kind of number."""
        self.network.morph(dtype, Position(*place) if place else None)
        return await self.told()

    async def enable(self, place: list[int], on: bool) -> dict[str, Any]:
        """Switch a cell on or off."""
        self.network.enable(Position(*place), on)
        try:
            return await self.told()
        except torch.errors.PellucidError:  # its neighbours do not fit each other
            self.network.enable(Position(*place), not on)
            raise

    async def compare(self, steps: int, rate: float) -> dict[str, Any]:
        """Train two copies, one by backpropagation and one by targets; the volume shows the latter.

        Returns:
            Loss and accuracy of both; the network is as before.
        """
        self.begin()
        before = self.network
        copies = {name: copy.deepcopy(before) for name in METHODS}
        descent = torch.optim.SGD(copies[METHODS[0]].parameters(), rate, momentum=0.9)
        by_gradient = Backpropagation(copies[METHODS[0]], descent)
        config = TargetPropagationConfig(rate, momentum=0.9, budget=-1, max_step=0.5)
        by_target = TargetPropagation(copies[METHODS[1]], config)
        try:
            for step in range(steps):
                one = await by_gradient.step_async(self.x, self.y, cross_entropy)
                two = await by_target.step_async(self.x, self.y, cross_entropy)
                send("curve", dict(zip(METHODS, (one.loss, two.loss), strict=True)))
                if step % EVERY == EVERY - 1 or step == steps - 1:
                    self.network = copies[METHODS[1]]
                    places = [at for at, _ in self.network.layers() if at not in self.network.disabled]
                    self.budgets = dict(zip(places, two.budgets, strict=True))
                    send("look", await self.look())
                if await self.heard():
                    break
            looks = {}
            for name in METHODS:
                self.network = copies[name]
                looks[name] = await self.look()
        finally:
            self.network = before
        self.compared = copies
        return {n: {"loss": look["loss"], "accuracy": look["accuracy"]} for n, look in looks.items()}

    async def keep(self, name: str) -> dict[str, Any]:
        """Go on with the copy that learned by a method."""
        self.network = self.compared[name]
        return await self.told()

    async def evolve(self, size: int, generations: int, structure: bool, seed: int) -> dict[str, Any]:
        """Let a population of the network's mutations evolve, and go on with its champion.

        Args:
            size: networks in a generation.
            generations: how many.
            structure: layers change their types, switches and links, too.
            seed: of all draws.
        """
        self.begin()
        config = MutationConfig(weight_scale=0.1, **({} if structure else dict.fromkeys(STRUCTURE, 0.0)))
        population = GridPopulation(self.network, self.x, size, config, seed=seed)
        for _ in range(generations):
            await population.evolve_async(self.fitness)
            mean = float(np.mean([f for f in population.fitnesses if np.isfinite(f)]))
            send("curve", {"best": -population.fitnesses[0], "mean": -mean})
            self.network = population.best()
            plan = blueprint(self.network, example=self.x)
            send("look", {**await self.look(), "plan": {**plan, "size": list(self.network.size)}})
            if await self.heard():
                break
        return {**await self.told(), "summary": population.summary()}

    def fitness(self, population: GridPopulation) -> torch.Tensor:
        """The negative loss of each network."""
        if self.passes == 1:
            logits = population(self.x)  # as few batches as there are structures
        else:
            with torch.no_grad():
                logits = [network(self.x, passes=self.passes) for network in population.networks]
        return torch.stack([-cross_entropy(own, self.y) for own in logits])

    async def save(self) -> str:
        """The network with its weights as JSON."""
        return await network_to_json_async(self.network)

    def begin(self) -> None:
        """Before something that can be stopped."""
        self.stopped = False
        self.budgets = {}

    def stop(self) -> None:
        """End what runs after the step that is under way."""
        self.stopped = True

    async def heard(self) -> bool:
        """Whether to stop; lets a message of the page in."""
        await asyncio.sleep(0)
        return self.stopped


async def shown(name: str, value: Any) -> dict[str, Any]:
    """A tensor as the page draws it: the first rows and columns, and numbers of all of it."""
    packed = isinstance(value, PackedTensor)
    kind = value.precision.name if packed else str(value.dtype).removeprefix("pellucid.")
    size = value.nbytes if packed else value.numel() * value.element_size()
    values = value.unpack() if packed else value.detach()
    table = values.reshape(-1, values.shape[-1]) if values.dim() > 1 else values.reshape(1, -1)
    array = await table.float().numpy_async()
    part = array[:SHOWN, :SHOWN]
    return {
        "name": name,
        "shape": list(values.shape),
        "dtype": kind,
        "bytes": size,
        "rows": part.shape[0],
        "columns": part.shape[1],
        "values": np.ascontiguousarray(part, np.float32).ravel(),
        "mean": float(array.mean()),
        "deviation": float(array.std()),
        "least": float(array.min()),
        "most": float(array.max()),
    }


laboratory = Laboratory()
