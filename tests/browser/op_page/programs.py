"""Programs of several ops: writes through views, indexing, conversions, sampling, layers, training."""

import numpy as np

from samples.elementwise import FLOATS
from samples.outcome import flat
from samples.sample import DTYPES, S, Sample, below, normal, uniform

x, y, cube = normal(3, 4), uniform(0.1, 2, 3, 4), normal(5, 4, 3)
i, j, mask = below(5, 6), below(4, 6), below(2, 5, 4).astype(bool)


def _written(t, x):
    """Writes through views, steps and masks into one tensor."""
    y = x.clone()
    y[0] = 7
    y[:, 1] = y[:, 2] * 2
    y[1:, ::2] += 1
    y[::-1][0] = -1
    y[y > 1.5] = 0.25
    y[[0, 2], [1, 3]] = t.tensor([5.0, 6.0])
    return y


def _doubled(t, x):
    y = x.clone()
    y += y
    return y


def _overlapping(t, x):
    y = x.clone().reshape(-1)
    y[1:] = y[:-1]
    y[:4] += y[2:6]
    return y


def _packed(t, x):
    y = x.clone()
    y[:, 1] = 200
    y[1, 1:3] += 3
    return y


def _put(t, x):
    y = x.clone()
    y[t.tensor([2, 0])] = y[t.tensor([0, 1])] * 2
    y[:, t.tensor([1, 1, 3])] = 4.0
    return y


def _put_rows(t, i):
    made = t.zeros(5, 2, dtype=t.int64)
    made[i] = t.arange(40).reshape(20, 2)
    return made


IN_PLACE = [
    *[S(call, x) for call in (_written, _doubled, _put)], S(_overlapping, x).but(grad=False),
    S(lambda t, x, y: x.clone().add_(y).mul_(y).sub_(1).pow_(2).div_(y), x, y),
    S(lambda t, x: x.clone().mul_(x), x),
    S(lambda t, x: (x.clone().sin_().exp_(), x.clone().clamp_(-1, 0.5).neg_(), x.clone().relu_()), x),
    S(lambda t, x: (x.clone().fill_(2.5), x.clone()[1:].zero_()), x),
    S(lambda t, x, y: (x.clone().masked_fill_(y > 1, 9.0), t.zeros(3, 4).copy_(x), t.zeros(3, 4).copy_(y[0])),
        x, y),
    S(_packed, np.arange(12, dtype=np.uint8).reshape(3, 4)), S(_put_rows, below(5, 20))
]  # fmt: skip
INDEXING = [
    S(lambda t, x, i: (x[i], x[:, [0, 2]], x[[1, -1]], x[i[0]]), cube, i),
    S(lambda t, x, i, j: (x[i, j], x[i, :, [0] * 6], x[i.reshape(2, 3), j.reshape(2, 3)]), cube, i, j),
    S(lambda t, x, m: (x[m], t.nonzero(m)), cube, mask).but(grad=False),
    S(lambda t, x, i: x.repeat_interleave(i, 0), cube, below(4, 5)),
    S(lambda t, x: (x[1:], x[:, ::2], x[0, 1:3, 2], x[None, ..., 2:], x[::-1], x[:, ::-2, 1::3],
        x[2:0:-1] * 2), cube),
    S(lambda t, x, i: ((x > 0)[i], (x * 9).long()[i]), cube, i).but(grad=False),
    # Operators with numbers, more axes than four, new tensors of every kind of data.
    S(lambda t, x: ((2 - x) * 3 + 1) / 4 - x / 0.5 + (1 / (x + 5)) ** 2, x),
    S(lambda t: (t.tensor([1, 2]), t.tensor([[1.5], [2]]), t.tensor(True), t.tensor(2**40), t.tensor([]),
        t.zeros(2).new_ones(3)))
]  # fmt: skip


def _typed(t, name):
    return getattr(t, "bool_" if name == "bool" else name)


def _converted(source: str, target: str) -> Sample:
    values = np.array([0, 1, -1, 2.5, 100.7, -3.2, 0.333, 7], np.float32)
    values = np.abs(values) if "uint8" in (source, target) else values

    def call(t, x):
        return x.to(_typed(t, source)).to(_typed(t, target))

    return S(call, values).but(grad=False, layouts=("strided",))


CONVERSION = [
    *[_converted(source, target) for source in DTYPES for target in DTYPES],
    *[S(lambda t, x: x * 1, FLOATS).but(dtype=d, grad=False) for d in ("float16", "bfloat16")],
    *[S(lambda t, x: ((x * 3 + 1) / 7, x.exp(), x.sum(), x.sqrt()), normal(3, 5)).but(dtype=d, rtol=1e-2,
        atol=1e-2)
      for d in ("float16", "bfloat16")]
]  # fmt: skip
CHANCES = np.array([0.01, 0.2, 0.4, 0.6, 0.8, 0.97], np.float32)


def _sampled(logits, chances, ids, **options) -> Sample:
    def call(t, x, u, i):
        from pellucid.ops.random.token_sampling import repetition_penalty, sample

        return sample(x, u, seen=i if "penalty" in options else None, **options), repetition_penalty(
            x, i, 1.5
        )

    return S(call, logits, chances, ids).but(grad=False, variants=("shared",))


LOGITS, SEEN = 2 * normal(6, 50), below(50, 6, 9)
SAMPLING = [
    _sampled(2 * normal(2, 5000), CHANCES[:2], below(5000, 2, 9)),
    _sampled(LOGITS, CHANCES, SEEN), _sampled(LOGITS, CHANCES, SEEN, temperature=0.7),
    _sampled(LOGITS, CHANCES, SEEN, top_p=0.8),
    _sampled(LOGITS, CHANCES, SEEN, top_k=5, temperature=1.3),
    _sampled(LOGITS, CHANCES, SEEN, top_k=12, top_p=0.9, temperature=0.8, penalty=1.3),
    S(lambda t, y: t.distributions.VonMises(y, 9 * y).sample((20,)), y).but(random=True, grad=False),
]  # fmt: skip


def _through_writes(t, x):
    y = x * 2
    y[1:, ::2] = y[:-1, ::2] * 3
    y[0] += 1
    return y.t()[1:].sum(0)


def _loop(t, x):
    for k in range(5):
        x = (x * (1 + k / 10)).tanh() + x.mean(0)
    return x


GRAPHS = [S(call, normal(4, 5)) for call in (lambda t, x: (x.exp() * x + x).tanh(), _through_writes, _loop)]


def _layer(make, *arrays) -> Sample:
    def call(t, *tensors):
        module = make(t.nn)
        out = module(*tensors)
        return *[o for o in flat(out) if o is not None], *module.state_dict().values()

    return S(call, *arrays).but(atol=5e-5, second=False)


features = normal(3, 4, 8)
LAYERS = [
    *[_layer(make, features) for make in (
        lambda nn: nn.Linear(8, 5), lambda nn: nn.LayerNorm(8), lambda nn: nn.RMSNorm(8),
        lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(32, 6), nn.ReLU(), nn.Dropout(0.3)),
        lambda nn: nn.Sequential(nn.GELU(), nn.SiLU(), nn.Tanh(), nn.Softplus(), nn.Mish(), nn.Hardswish(),
            nn.ELU())
    )],
    _layer(lambda nn: nn.Embedding(7, 3), below(7, 4)),
    *[_layer(lambda nn, name=name: getattr(nn, name)(4, 3), normal(5, 2, 4)) for name in ("RNN", "LSTM",
        "GRU")],
    _layer(lambda nn: nn.MultiheadAttention(8, 2, batch_first=True), features, features, features)
]  # fmt: skip


def _trained(make) -> Sample:
    """The losses and parameters of a small network in four steps."""

    def call(t, x, y):
        model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.Tanh(), t.nn.Linear(8, 2))
        optimizer = make(t.optim, model.parameters())
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = t.nn.functional.mse_loss(model(x), y)
            loss.backward()
            t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        return *losses, *[p.detach() for p in model.parameters()]

    return S(call, normal(9, 4), normal(9, 2)).but(grad=False, atol=1e-4)


TRAINING = [_trained(make) for make in (
    lambda o, p: o.SGD(p, 0.1), lambda o, p: o.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    lambda o, p: o.SGD(p, 0.1, momentum=0.9, nesterov=True), lambda o, p: o.Adam(p, 0.01),
    lambda o, p: o.Adam(p, 0.01, amsgrad=True), lambda o, p: o.AdamW(p, 0.01),
    *[lambda o, p, name=name: getattr(o, name)(p) for name in (
        "Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"
    )]
)]  # fmt: skip
GROUPS = {
    "in place": IN_PLACE, "indexing": INDEXING, "conversion": CONVERSION, "sampling": SAMPLING,
    "graphs": GRAPHS,
    "layers": LAYERS, "training": TRAINING
}  # fmt: skip
