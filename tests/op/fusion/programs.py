"""Programs of a few ops each, as lists of names and arguments, and how they run."""

import pellucid as torch

UNARY = {
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "scaled": lambda x: x * 0.5 + 1.0,
    "halved": lambda x: x.half().float(),
    "is_large": lambda x: (x > 0.3137).float(),
    "rounded": lambda x: (x * 4 + 0.1234).int() / 4,
    "softmax": lambda x: torch.softmax(x, -1),
    "centred": lambda x: x - x.mean(-1, keepdim=True),
    "normed": lambda x: torch.nn.functional.layer_norm(x, (x.shape[-1],)),
    "root_mean": lambda x: x * (x * x).mean(-1, keepdim=True).add(1e-3).rsqrt(),
    "columns": lambda x: x + x.sum(0),
    "turned": lambda x: x.t().contiguous().t(),
    "shifted": lambda x: torch.cat([x[:, 1:], x[:, :1]], 1),
}
BINARY = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "less": lambda x, y: torch.where(x < y, x, y * 0.5),
    "rows": lambda x, y: x + y[0],
    "one": lambda x, y: x * y[0, 0],
    "product": lambda x, y: x @ y.t() @ y * 0.1,
    "in_place": lambda x, y: x.clone().add_(y),
    "in_part": lambda x, y: _in_part(x, y),
    "view": lambda x, y: _through_view(x, y),
}


def _in_part(x, y):
    z = x * 1.5
    z[1:] = y[1:]
    return z * 2


def _through_view(x, y):
    z = x + 0.5
    before = z * 2
    z[:, 0].mul_(3)
    z.view(-1).add_(y.reshape(-1))
    return before + z


def run(program, inputs, held):
    """Values of the last step and of the held ones; others are dropped as soon as they can be."""
    values = [torch.tensor(a) for a in inputs]
    kept = []
    for k, (name, *arguments) in enumerate(program):
        chosen = [values[a % len(values)] for a in arguments]
        values.append(UNARY[name](*chosen) if name in UNARY else BINARY[name](*chosen))
        if k in held:
            kept.append(values[-1])
        if len(values) > 6:
            del values[2]
        del chosen
    kept.append(values[-1])
    del values
    torch.webgpu.flush()
    return [t.numpy() for t in kept]
