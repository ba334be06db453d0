"""The rows of the comparison as a user of PyTorch writes them."""

from collections.abc import Callable

import pellucid as torch

from .data import uniform
from .measure import Form, Row


def upload(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(uniform(shape, seed, scale)).to("webgpu")


def several(row: Row, shape: tuple[int, ...], seed: int, scale: float = 1.0) -> list[torch.Tensor]:
    """An input for each unit, all different."""
    return [upload(shape, seed + 100 * i, scale) for i in range(row["inputs"])]


def matmul(row: Row) -> dict[str, Form]:
    n = row["n"]
    a, b = several(row, (n, n), 1), upload((n, n), 2)
    return {"eager": Form(lambda i: a[i] @ b)}


def chain(row: Row) -> dict[str, Form]:
    x, m, c = several(row, (row["n"],), 3), upload((row["n"],), 4, 0.9), upload((row["n"],), 5)

    def unit(i: int) -> torch.Tensor:
        y = x[i]
        for _ in range(row["ops"] // 2):
            y = y * m
            y = y + c
        return y

    return {"eager": Form(unit)}


ROWS: dict[str, Callable[[Row], dict[str, Form]]] = {"matmul": matmul, "chain": chain}
