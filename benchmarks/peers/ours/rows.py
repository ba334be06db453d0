"""The rows of the comparison as a user of PyTorch writes them."""

from collections.abc import Callable

import numpy as np

import pellucid as torch
from pellucid.nn import functional as F

from .data import integers, series, uniform
from .forms import DEVICE, Form, Row, Unavailable
from .language_model import decode, prefill
from .models import GPT, MLP, Block, block_shapes, fill


def tensor(shape: tuple[int, ...], seed: int, scale: float = 1.0, offset: float = 0.0) -> torch.Tensor:
    return torch.from_numpy(uniform(shape, seed, scale, offset)).to(DEVICE)


def several(
    row: Row, shape: tuple[int, ...], seed: int, scale: float = 1.0, offset: float = 0.0
) -> list[torch.Tensor]:
    """An input for each unit, all different."""
    made = series(row["inputs"], shape, seed, scale, offset)
    return [torch.from_numpy(values).to(DEVICE) for values in made]


def forms(
    f: Callable[..., torch.Tensor], inputs: list[tuple[torch.Tensor, ...]], unfused: bool = True, **more
):
    """A function of a unit's own tensors: as it is written, without fusion, and compiled.

    Args:
        f: the work of one unit.
        inputs: its arguments for each unit.
        unfused: whether fusion makes a difference that is worth a line.
        more: for each `Form`.
    """
    made = {"eager": Form(lambda i: f(*inputs[i]), **more)}
    if unfused:
        made["unfused"] = Form(lambda i: f(*inputs[i]), fusion=False, **more)
    compiled = torch.compile(f)  # pyright: ignore[reportCallIssue] - it comes at its first use
    made["captured"] = Form(
        lambda i: compiled(*inputs[i]),
        note="torch.compile",
        replays=lambda: compiled.explain().replays,
        **more,
    )
    return made


def matmul(row: Row) -> dict[str, Form]:
    n = row["n"]
    a, b = several(row, (n, n), 1), tensor((n, n), 2)
    return {"eager": Form(lambda i: a[i] @ b)}


def chain(row: Row) -> dict[str, Form]:
    x, m, c = several(row, (row["n"],), 3), tensor((row["n"],), 4, 0.9), tensor((row["n"],), 5)

    def f(y: torch.Tensor) -> torch.Tensor:
        for _ in range(row["ops"] // 2):
            y = y * m
            y = y + c
        return y

    return forms(f, [(each,) for each in x])


def softmax(row: Row) -> dict[str, Form]:
    x = several(row, (row["rows"], row["columns"]), 6, 4.0)
    return forms(lambda y: F.softmax(y, -1), [(each,) for each in x], unfused=False)


def layer_norm(row: Row) -> dict[str, Form]:
    columns = row["columns"]
    x = several(row, (row["rows"], columns), 6, 4.0)
    gain, shift = tensor((columns,), 7), tensor((columns,), 8)
    return forms(lambda y: F.layer_norm(y, (columns,), gain, shift), [(each,) for each in x], unfused=False)


def total(row: Row) -> dict[str, Form]:
    x = several(row, (row["n"],), 9, 1.0, 1.0)
    return {"eager": Form(lambda i: x[i].sum())}


def conv2d(row: Row) -> dict[str, Form]:
    if not hasattr(F, "conv2d"):
        raise Unavailable("this version has no conv2d")
    channels, size, kernel = row["channels"], row["size"], row["kernel"]
    x = several(row, (1, channels, size, size), 10)
    w = tensor((row["out"], channels, kernel, kernel), 21, 0.1)
    return {"eager": Form(lambda i: F.conv2d(x[i], w, padding=kernel // 2))}


def block(row: Row) -> dict[str, Form]:
    layer = Block(row, causal=False)
    layer.fill(fill(block_shapes("", row)))
    layer.requires_grad_(False)
    x = several(row, (1, row["tokens"], row["d"]), 22)
    return forms(layer, [(each,) for each in x])


def scan(row: Row) -> dict[str, Form]:
    if not hasattr(F, "selective_scan"):
        raise Unavailable("there is no selective scan")
    tokens, channels, states = row["tokens"], row["channels"], row["states"]
    u = several(row, (1, tokens, channels), 40)
    delta, a = tensor((1, tokens, channels), 41, 0.05, 0.1), tensor((channels, states), 42, 0.5, -1.0)
    b, c = tensor((1, tokens, states), 43), tensor((1, tokens, states), 44)
    return {"eager": Form(lambda i: F.selective_scan(u[i], delta, a, b, c)[0])}


def upload(row: Row) -> dict[str, Form]:
    data = list(series(row["inputs"], (row["n"],), 23))
    return {"eager": Form(lambda i: torch.from_numpy(data[i]).to(DEVICE))}


def readback(row: Row) -> dict[str, Form]:
    x = several(row, (row["n"],), 24, 1.0, 1.0)
    sums: list[torch.Tensor] = []

    def before(k: int) -> None:
        sums[:] = [x[i].sum() for i in range(k)]

    return {"eager": Form(lambda i: [sums[i].item()], before)}


def training(row: Row, model: MLP | GPT, batches: list[tuple[torch.Tensor, ...]]) -> dict[str, Form]:
    """Steps of AdamW; each repetition begins with the first parameters and moments."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=row["lr"], weight_decay=row["decay"])

    def before(_: int) -> None:
        model.fill()
        # In place: what was captured holds these tensors.
        for state in optimizer.state.values():
            for name, value in state.items():
                state[name] = value.zero_() if isinstance(value, torch.Tensor) else 0

    def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, -2), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def left() -> list[np.ndarray]:
        return [model.matrix(name).weight.detach().numpy().T for name in row["watched"]]

    return forms(step, batches, before=before, left=left)


def train_mlp(row: Row) -> dict[str, Form]:
    inputs, classes = row["widths"][0], row["widths"][-1]
    batches = [
        (
            tensor((row["batch"], inputs), 30 + 100 * i),
            torch.tensor(integers((row["batch"],), 31 + 100 * i, classes), device=DEVICE),
        )
        for i in range(row["inputs"])
    ]
    return training(row, MLP(row), batches)


def train_gpt(row: Row) -> dict[str, Form]:
    batch, tokens, vocabulary = row["batch"], row["tokens"], row["vocabulary"]
    batches = [
        (
            torch.tensor(integers((batch, tokens), 32 + 100 * i, vocabulary), device=DEVICE),
            torch.tensor(integers((batch * tokens,), 33 + 100 * i, vocabulary), device=DEVICE),
        )
        for i in range(row["inputs"])
    ]
    return training(row, GPT(row), batches)


ROWS: dict[str, Callable[[Row], dict[str, Form]]] = {
    "matmul": matmul,
    "chain": chain,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "sum": total,
    "conv2d": conv2d,
    "block": block,
    "scan": scan,
    "upload": upload,
    "readback": readback,
    "train_mlp": train_mlp,
    "train_gpt": train_gpt,
    "prefill": prefill,
    "decode": decode,
}
