"""Methods of training compared on one task: backpropagation, target propagation, systolic ticks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ...autograd.grad_mode import no_grad
from ...device import webgpu
from ...errors import ArgumentError, RangeError
from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer
from ...optim.sgd import SGD
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..network import GridNetwork
from .systolic import Systolic
from .target_propagation import TargetPropagation, TargetPropagationConfig
from .training import step

Loss = Callable[[Tensor, Tensor], Tensor]


class HasLoss(Protocol):
    """What a step tells: at least the loss before it."""

    @property
    def loss(self) -> float: ...


class TrainingMethod(Protocol):
    """Something that trains a network step by step."""

    def step(self, input: Tensor, target: Tensor, loss: Loss) -> HasLoss: ...


class LossRecord(NamedTuple):
    """What a step did: the loss before it."""

    loss: float


class Backpropagation:
    """Trains a module by gradients of the whole: what other methods are compared with.

    Args:
        module: what learns.
        optimizer: of its parameters; SGD with `learning_rate` if None.
        learning_rate: of that SGD.

    Source: Rumelhart, Hinton and Williams 1986, "Learning representations by back-propagating errors"

    Example:
        >>> import pellucid
        >>> train = pellucid.grid.Backpropagation(pellucid.nn.Linear(1, 1, device="cpu"))
        >>> x = pellucid.ones(1, 1, device="cpu")
        >>> first, second = (train.step(x, 3 * x, pellucid.nn.functional.mse_loss) for _ in range(2))
        >>> second.loss < first.loss
        True
    """

    def __init__(self, module: Module, optimizer: Optimizer | None = None, learning_rate: float = 0.1):
        self.module = module
        self.optimizer = optimizer or SGD(module.parameters(), learning_rate)

    def step(self, input: Tensor, target: Tensor, loss: Loss) -> LossRecord:
        """One step on a batch.

        Args:
            input, target: of the batch.
            loss: from the output and the target to a number.
        """
        return LossRecord(step(self.module, input, target, loss, self.optimizer).item())

    async def step_async(self, input: Tensor, target: Tensor, loss: Loss) -> LossRecord:
        """`step` for places where Python cannot wait.

        Args:
            input, target, loss: as in `step`.
        """
        return LossRecord(await step(self.module, input, target, loss, self.optimizer).item_async())


class SystolicTraining:
    """Trains a network tick by tick: the input stands for as many ticks as there are layers.

    Then gradients go back through the ticks. For a chain this is backpropagation, exactly; links bring what
    is one tick old.

    Args:
        network: what learns.
        optimizer: of its parameters; SGD with `learning_rate` if None.
        learning_rate: of that SGD.
        window: ticks between cuts of the graph, as in `Systolic`.

    Source: Werbos 1990, "Backpropagation through time: what it does and how to do it"

    Example:
        >>> import pellucid
        >>> layers = {(0, 0, k, 0): pellucid.nn.Linear(1, 1, device="cpu") for k in range(2)}
        >>> train = pellucid.grid.SystolicTraining(pellucid.grid.GridNetwork(1, 1, 2, 1, layers))
        >>> x = pellucid.ones(1, 1, device="cpu")
        >>> first, second = (train.step(x, 3 * x, pellucid.nn.functional.mse_loss) for _ in range(2))
        >>> second.loss < first.loss
        True
    """

    def __init__(
        self,
        network: GridNetwork,
        optimizer: Optimizer | None = None,
        learning_rate: float = 0.1,
        window: int | None = None,
    ):
        self.engine = Systolic(network, window)
        self.optimizer = optimizer or SGD(network.parameters(), learning_rate)
        self.ticks = sum(1 for _ in network.layers())

    def step(self, input: Tensor, target: Tensor, loss: Loss) -> LossRecord:
        """One step on a batch, after as many ticks as there are layers.

        Args:
            input, target: of the batch.
            loss: from the output and the target to a number.
        """
        self.engine.reset()
        self.optimizer.zero_grad()
        output = None
        for _ in range(self.ticks):
            output = self.engine.tick(input)
        assert output is not None
        found = loss(output, target)
        found.backward()
        self.optimizer.step()
        return LossRecord(found.item())


@dataclass
class MethodRecord:
    """What one method did on a task.

    Attributes:
        steps: how many there were; those after the goal are not taken.
        accuracy, loss: at the end.
        seconds: of all steps, without looks at the accuracy.
        seconds_to_goal: until the accuracy reached the goal, or None.
        peak_bytes: most memory of the GPU during the steps; 0 on other devices.
        milestones: by accuracy, the steps after which it was first reached.
        losses: before each step.
    """

    steps: int = 0
    accuracy: float = 0.0
    loss: float = float("nan")
    seconds: float = 0.0
    seconds_to_goal: float | None = None
    peak_bytes: int = 0
    milestones: dict[float, int] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class MethodComparison:
    """Methods on one task.

    Args:
        name: of the task.
        layers: of the network.
        methods: what each did.
    """

    name: str
    layers: int
    methods: dict[str, MethodRecord]

    def best(self) -> str:
        """The method with the highest accuracy; of equal ones that with fewer steps, then the lower loss."""

        def rank(name: str) -> tuple:
            record = self.methods[name]
            loss = record.loss if record.loss == record.loss else float("inf")
            return -record.accuracy, record.steps, loss

        return min(self.methods, key=rank)

    def __str__(self) -> str:
        rows = [f"{'method':20} {'steps':>6} {'accuracy':>9} {'loss':>10} {'seconds':>8} {'to goal':>8}"]
        for name, r in self.methods.items():
            goal = "-" if r.seconds_to_goal is None else f"{r.seconds_to_goal:.3f}"
            rows.append(f"{name:20} {r.steps:6} {r.accuracy:9.3f} {r.loss:10.3g} {r.seconds:8.3f} {goal:>8}")
        return f"{self.name}, {self.layers} layers; best: {self.best()}\n" + "\n".join(rows)


METHODS: dict[str, Callable[[GridNetwork], TrainingMethod]] = {
    "backpropagation": Backpropagation,
    "target propagation": lambda net: TargetPropagation(
        net, TargetPropagationConfig(0.1, momentum=0.9, budget=-1, max_step=0.5)
    ),
    "systolic": SystolicTraining,
}


def hits(output: Tensor, target: Tensor) -> Tensor:
    """Which examples are right: the largest class, or every number within 0.5 of its target."""
    if not target.dtype.is_floating_point:
        return output.argmax(-1) == target
    return ((output - target).abs() < 0.5).reshape(target.shape[0], -1).all(-1)


def compare_methods(
    build: Callable[[], GridNetwork],
    input: Tensor,
    target: Tensor,
    loss: Loss,
    methods: Mapping[str, Callable[[GridNetwork], TrainingMethod]] | None = None,
    steps: int = 200,
    goal: float = 0.95,
    milestones: Sequence[float] = (0.5, 0.75, 0.9),
    every: int = 5,
    name: str = "task",
) -> MethodComparison:
    """Train equal networks by several methods on one task, and tell what each reached, and when.

    Args:
        build: gives a network; each method begins with the parameters of the first one.
        input, target: the examples of the task, all of which are a batch.
        loss: from the output and the target to a number.
        methods: from a network to what trains it; `METHODS` if None.
        steps: the most that a method takes; it ends where the goal is reached.
        goal: accuracy from 0 to 1, by `hits`.
        milestones: accuracies whose steps are written down, besides the goal.
        every: steps between looks at the accuracy.
        name: of the task.

    Raises:
        RangeError: steps or every is not positive, or an accuracy not from 0 to 1.
        ArgumentError: there are no methods, or `build` gives networks of other shapes.

    Example:
        >>> import pellucid
        >>> net = lambda: pellucid.grid.GridNetwork(
        ...     1, 1, 1, 1, {(0, 0, 0, 0): pellucid.nn.Linear(1, 1, device="cpu")})
        >>> x = pellucid.linspace(0, 2, 8, device="cpu").unsqueeze(1)
        >>> found = pellucid.grid.compare_methods(net, x, x, pellucid.nn.functional.mse_loss)
        >>> sorted(found.methods), found.methods["systolic"].accuracy
        (['backpropagation', 'systolic', 'target propagation'], 1.0)
    """
    if min(index(steps, "compare_methods: steps"), index(every, "compare_methods: every")) < 1:
        raise RangeError(f"compare_methods: steps and every must be positive, not {steps} and {every}.")
    if not all(0 <= a <= 1 for a in (goal, *milestones)):
        raise RangeError(f"compare_methods: {goal} or {tuple(milestones)} is not from 0 to 1.")
    methods = METHODS if methods is None else methods
    if not methods:
        raise ArgumentError("compare_methods: there are no methods to compare.")
    begin, layers, found = None, 0, {}
    for title, method in methods.items():
        net = build()
        begin = net.state_dict() if begin is None else begin
        begin = {k: v.detach().clone() for k, v in begin.items()}
        net.load_state_dict(begin)
        layers = sum(1 for _ in net.layers())
        train, record = method(net), MethodRecord()
        if input.is_webgpu:
            webgpu.reset_peak_memory_stats()
        while record.seconds_to_goal is None and record.steps < steps:
            began = time.perf_counter()
            for _ in range(min(every, steps - record.steps)):
                record.losses.append(train.step(input, target, loss).loss)
                record.steps += 1
            record.seconds += time.perf_counter() - began
            with no_grad():
                output = net(input)
                record.accuracy = hits(output, target).float().mean().item()
                record.loss = loss(output, target).item()
            for mark in (*milestones, goal):
                if record.accuracy >= mark:
                    record.milestones.setdefault(mark, record.steps)
            if record.accuracy >= goal:
                record.seconds_to_goal = record.seconds
        if input.is_webgpu:
            record.peak_bytes = webgpu.max_memory_allocated()
        found[title] = record
    return MethodComparison(name, layers, found)
