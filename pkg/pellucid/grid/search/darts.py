"""DARTS: a cell of mixed operations whose architecture is learned by gradients, then made discrete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...errors import ArgumentError, RangeError, ShapeError
from ...nn.modules.activation import ReLU, Tanh
from ...nn.modules.batchnorm import BatchNorm2d
from ...nn.modules.container import ModuleList, Sequential
from ...nn.modules.conv import Conv2d
from ...nn.modules.linear import Identity, Linear
from ...nn.modules.module import Module
from ...nn.modules.pool import AvgPool2d, MaxPool2d
from ...nn.parameter import Parameter
from ...ops.random.distributions import randn
from ...ops.shape.joining import cat, stack
from ...optim.optimizer import Optimizer
from ...tensors.shape import index
from ...tensors.tensor import Tensor

Operations = Mapping[str, Callable[[], Module]]
NONE = "none"


class Zero(Module):
    """No connection: zeros of the input's shape."""

    def forward(self, input: Tensor) -> Tensor:
        return input.new_zeros(input.shape)


def vector_operations(width: int, device=None) -> dict[str, Callable[[], Module]]:
    """Operations between vectors of one length: none, skip, dense layers with tanh, ReLU and without.

    Args:
        width: length of the last axis.
        device: of the parameters; the default if None.

    Example:
        >>> import pellucid
        >>> sorted(pellucid.grid.vector_operations(4))
        ['linear', 'none', 'relu', 'skip', 'tanh']
    """
    return {
        NONE: Zero,
        "skip": Identity,
        "linear": lambda: Linear(width, width, device=device),
        "tanh": lambda: Sequential(Linear(width, width, device=device), Tanh()),
        "relu": lambda: Sequential(Linear(width, width, device=device), ReLU()),
    }


def image_operations(channels: int, device=None) -> dict[str, Callable[[], Module]]:
    """The eight operations of the paper between images, stride 1: none, pooling, skip, separable and dilated.

    Args:
        channels: of the images, (batch, channels, height, width).
        device: of the parameters; the default if None.

    Source: Liu, Simonyan and Yang 2019, "DARTS: Differentiable Architecture Search", section 3.1.1

    Example:
        >>> import pellucid
        >>> len(pellucid.grid.image_operations(4))
        8
    """

    def norm() -> Module:
        return BatchNorm2d(channels, affine=False, device=device)

    def convolved(size: int, dilation: int, times: int) -> Callable[[], Module]:
        def make() -> Module:
            layers: list[Module] = []
            for _ in range(times):
                apart = Conv2d(
                    channels, channels, size, padding=dilation * (size // 2), dilation=dilation,
                    groups=channels, bias=False, device=device,
                )  # fmt: skip
                joined = Conv2d(channels, channels, 1, bias=False, device=device)
                layers += [ReLU(), apart, joined, norm()]
            return Sequential(*layers)

        return make

    return {
        NONE: Zero,
        "max_pool_3x3": lambda: Sequential(MaxPool2d(3, 1, 1), norm()),
        "avg_pool_3x3": lambda: Sequential(AvgPool2d(3, 1, 1, count_include_pad=False), norm()),
        "skip": Identity,
        "sep_conv_3x3": convolved(3, 1, 2),
        "sep_conv_5x5": convolved(5, 1, 2),
        "dil_conv_3x3": convolved(3, 2, 1),
        "dil_conv_5x5": convolved(5, 2, 1),
    }


class MixedOperation(Module):
    """``sum_k softmax(alpha)_k op_k(x)``: all operations at once, weighted.

    Args:
        operations: by name, functions that make a module; all keep the shape, or agree on another.

    Source: Liu, Simonyan and Yang 2019, "DARTS: Differentiable Architecture Search", equation 2

    Example:
        >>> import pellucid
        >>> mixed = pellucid.grid.MixedOperation({"skip": pellucid.nn.Identity, "none": pellucid.nn.Identity})
        >>> mixed(pellucid.ones(1, device="cpu"), pellucid.zeros(2, device="cpu")).item()
        1.0
    """

    def __init__(self, operations: Operations):
        super().__init__()
        if not operations:
            raise ArgumentError("MixedOperation: there are no operations to mix.")
        self.names = list(operations)
        self.operations = ModuleList([make() for make in operations.values()])

    def forward(self, input: Tensor, alphas: Tensor) -> Tensor:
        """Args: input, and (operations,) numbers before the softmax."""
        outputs = [operation(input) for operation in self.operations]
        if any(out.shape != outputs[0].shape for out in outputs):
            told = ", ".join(f"{n} {tuple(o.shape)}" for n, o in zip(self.names, outputs, strict=True))
            raise ShapeError(f"MixedOperation: operations give different shapes: {told}.")
        weights = alphas.softmax(0)
        return _total([out * weights[k] for k, out in enumerate(outputs)])


class Edge(NamedTuple):
    """An edge of a cell: to a node, from an input or node before it, by an operation."""

    target: int
    source: int
    operation: str


class DARTSCell(Module):
    """A cell whose nodes are sums of mixed operations on all that is before them.

    Sources 0 and 1 are the two inputs, source 2 + n is node n. The result is all nodes along `dim`, or their
    mean. `alphas`, one row an edge, is learned beside the weights; `genotype` reads the architecture from it.

    Args:
        operations: as for `MixedOperation`, such as `vector_operations(16)`; made anew for each edge.
        nodes: how many there are.
        dim: along which nodes are joined; their mean if None.
        device: of the alphas; the default if None.

    Raises:
        RangeError: there is no node.

    Source: Liu, Simonyan and Yang 2019, "DARTS: Differentiable Architecture Search"

    Example:
        >>> import pellucid
        >>> cell = pellucid.grid.DARTSCell(pellucid.grid.vector_operations(4, "cpu"), nodes=2, device="cpu")
        >>> x = pellucid.ones(1, 4, device="cpu")
        >>> cell(x, x).shape, cell.alphas.shape
        (Size([1, 4]), Size([5, 5]))
    """

    def __init__(self, operations: Operations, nodes: int = 4, dim: int | None = None, device=None):
        super().__init__()
        if index(nodes, "DARTSCell: nodes") < 1:
            raise RangeError(f"DARTSCell: nodes must be at least 1, not {nodes}.")
        self.nodes, self.dim = nodes, dim
        self.places = [(target, source) for target in range(nodes) for source in range(target + 2)]
        self.edges = ModuleList([MixedOperation(operations) for _ in self.places])
        # The paper begins with nearly equal weights.
        self.alphas = Parameter(randn(len(self.places), len(operations), device=device) * 1e-3)

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        """Args: the results of the two cells before; the first one twice if the second is None."""
        values = [first, first if second is None else second]
        for target in range(self.nodes):
            parts = [
                edge(values[source], self.alphas[k])
                for k, ((node, source), edge) in enumerate(zip(self.places, self.edges, strict=True))
                if node == target
            ]
            values.append(_total(parts))
        return _joined(values[2:], self.dim)

    def genotype(self, inputs: int = 2) -> list[Edge]:
        """The architecture: for each node its strongest edges, each with its strongest operation but `none`.

        Args:
            inputs: how many edges a node keeps.

        Raises:
            RangeError: inputs is not positive.
        """
        if index(inputs, "genotype: inputs") < 1:
            raise RangeError(f"genotype: a node has at least 1 input, not {inputs}.")
        weights = self.alphas.detach().softmax(-1).tolist()
        found = []
        for target in range(self.nodes):
            strengths = []
            for k, (node, source) in enumerate(self.places):
                if node == target:
                    usable = [
                        (w, n) for w, n in zip(weights[k], self.edges[k].names, strict=True) if n != NONE
                    ]
                    weight, name = max(usable, key=lambda pair: pair[0])
                    strengths.append((weight, Edge(target, source, name)))
            strengths.sort(key=lambda pair: -pair[0])
            found += sorted(edge for _, edge in strengths[:inputs])
        return found

    def discrete(self, inputs: int = 2) -> DiscreteCell:
        """The cell of the genotype alone, with the modules that were trained.

        Args:
            inputs: how many edges a node keeps.
        """
        genotype = self.genotype(inputs)
        chosen = []
        for edge in genotype:
            mixed = self.edges[self.places.index((edge.target, edge.source))]
            chosen.append(mixed.operations[mixed.names.index(edge.operation)])
        return DiscreteCell(genotype, chosen, self.nodes, self.dim)


class DiscreteCell(Module):
    """A cell with one operation an edge, as `DARTSCell.discrete` gives it.

    Args:
        genotype: its edges.
        operations: a module for each of them.
        nodes, dim: as in `DARTSCell`.
    """

    def __init__(self, genotype: list[Edge], operations: list[Module], nodes: int, dim: int | None = None):
        super().__init__()
        self.genotype, self.nodes, self.dim = genotype, nodes, dim
        self.operations = ModuleList(operations)

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        """Args: the results of the two cells before; the first one twice if the second is None."""
        values = [first, first if second is None else second]
        for target in range(self.nodes):
            parts = [
                operation(values[edge.source])
                for edge, operation in zip(self.genotype, self.operations, strict=True)
                if edge.target == target
            ]
            values.append(_total(parts))
        return _joined(values[2:], self.dim)


def architecture_parameters(module: Module) -> list[Parameter]:
    """The alphas of all cells inside of a module; what remains of its parameters are weights.

    Args:
        module: with `DARTSCell`s.

    Example:
        >>> import pellucid
        >>> pellucid.grid.architecture_parameters(pellucid.nn.Linear(1, 1))
        []
    """
    return [cell.alphas for cell in module.modules() if isinstance(cell, DARTSCell)]


def search_step(
    module: Module,
    training: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    weights: Optimizer,
    architecture: Optimizer,
) -> tuple[Tensor, Tensor]:
    """One step of a search, first order: alphas learn from a batch of validation, then weights from training.

    Args:
        module: with `DARTSCell`s.
        training, validation: pairs of input and target.
        loss: from output and target to a number.
        weights: the optimizer of all parameters but the alphas.
        architecture: that of `architecture_parameters`.

    Returns:
        The losses of training and validation before the step, still on the device.

    Source: Liu, Simonyan and Yang 2019, "DARTS: Differentiable Architecture Search", algorithm 1 with xi = 0

    Example:
        >>> import pellucid
        >>> cell = pellucid.grid.DARTSCell(pellucid.grid.vector_operations(2, "cpu"), 1, device="cpu")
        >>> alphas = pellucid.grid.architecture_parameters(cell)
        >>> others = [p for p in cell.parameters() if p is not alphas[0]]
        >>> x = pellucid.ones(1, 2, device="cpu")
        >>> optimizers = pellucid.optim.SGD(others, 0.1), pellucid.optim.Adam(alphas, 0.1)
        >>> mse = pellucid.nn.functional.mse_loss
        >>> steps = [pellucid.grid.search_step(cell, (x, x), (x, x), mse, *optimizers) for _ in range(9)]
        >>> steps[-1][0].item() < steps[0][0].item()
        True
    """
    found = []
    for optimizer, (input, target) in ((architecture, validation), (weights, training)):
        # Gradients of the other half of the parameters must not stay until its turn.
        module.zero_grad()
        value = loss(module(input), target)
        value.backward()
        optimizer.step()
        found.append(value.detach())
    return found[1], found[0]


def _total(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _joined(nodes: list[Tensor], dim: int | None) -> Tensor:
    return stack(nodes).mean(0) if dim is None else cat(nodes, dim)
