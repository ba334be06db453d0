"""Derivatives at the points where formulas go wrong: corners, ties, zeros of both signs, infinity and NaN,
with incoming gradients that are 1, 0, infinity and NaN, beside PyTorch's; also derivatives of derivatives.

Every op that has a derivative is in a table here or in ``ELSEWHERE``.
"""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, plain
from pellucid.op.declaration import BY_INDEX
from samples import elementwise, loss, special
from samples.outcome import find
from samples.sample import arrays_of, map_arrays

POINTS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 0.3, -0.7, 1.5, 20.5, -20.5, 80.0, -80.0,
     np.inf, -np.inf, np.nan, 1e-8, -1e-8, 1e15, -1e15],
    np.float32
)  # fmt: skip
FEWER = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, np.inf, -np.inf, np.nan], np.float32)
INCOMING = np.array([1.0, 0.0, np.inf, np.nan, -2.0], np.float32)


def F(p):
    return p.nn.functional


def method(name, *arguments, **options):
    return lambda p, x: getattr(x, name)(*arguments, **options)


def functional(name, *arguments, **options):
    return lambda p, *x: getattr(F(p), name)(*x, *arguments, **options)


# What samples do not say by themselves: derivatives that meet at a corner, and other exponents.
UNARY = {
    **{f"pow {e}": method("pow", e) for e in (0.0, 2.5, -0.5)},
    **{f"{b} pow": lambda p, x, b=b: p.pow(b, x) for b in (0.0, 1.0, -1.0)},
    "mul 0": lambda p, x: x * 0,
    "div 0": lambda p, x: x / 0,
    "div of 1": lambda p, x: 1 / x,
    "masked_fill": lambda p, x: x.masked_fill(x > 0, 1.0),
    "where": lambda p, x: p.where(x > 0, x, 0.0),
    "relu sqrt": lambda p, x: p.relu(x).sqrt(),
    "clamp sqrt": lambda p, x: x.clamp(min=0).sqrt(),
    "round sqrt": lambda p, x: x.round().sqrt(),
    "to float16": lambda p, x: x.to(p.float16).to(p.float32),
    "dropout 1": functional("dropout", 1.0),
}
BINARY = {
    "clamp max": lambda p, x, y: x.clamp(max=y),
    "addcmul": lambda p, x, y: p.addcmul(x, x, y, value=2),
    "addcdiv": lambda p, x, y: p.addcdiv(x, x, y, value=2),
    "where": lambda p, x, y: p.where(x > y, x, y),
    "bce logits": functional("binary_cross_entropy_with_logits", reduction="none"),
}


def varies(array):
    """Whether the points take the place of an array."""
    return array.dtype.kind == "f" and array.ndim > 0


def call_of(key, sample):
    """The call of a sample on other numbers."""

    def call(p, *x):
        given, device = iter(x), {} if p is torch else {"device": x[0].device}

        def other(a):
            return next(given) if varies(a) else p.tensor(np.resize(a, len(x[0])) if a.ndim else a, **device)

        args, kwargs = map_arrays(other, (sample.args, sample.kwargs))
        return find(p, key)(*args, **kwargs)

    return call


def elementwise_calls():
    """Every elementwise call among the samples that has a derivative, by the numbers that it is given."""
    calls = {}
    rows = [
        (key, s) for table in (elementwise, special, loss) for key, of in table.SAMPLES.items() for s in of
    ]
    for key, s in rows:
        # Losses that are not reduced, but those of classes and of whole lines.
        # Complex results take no real gradient.
        others = ("cosine", "gaussian", "multi", "triplet", "pairwise", "complex", "polar")
        if any(word in key for word in others):
            continue
        if key in loss.SAMPLES and (s.kwargs.get("reduction") != "none" or s.args[1].dtype.kind != "f"):
            continue
        count = sum(map(varies, arrays_of(s.args, s.kwargs)))
        if s.call or s.refused is not None or s.maybe or not s.grad or not count or len(s.devices) < 2:
            continue
        args, kwargs = map_arrays(lambda a: "_", (s.args, s.kwargs))
        text = ", ".join([*map(str, args), *[f"{k}={v}" for k, v in kwargs.items()]])
        function = call_of(key, s)
        if getattr(function(torch, *[torch.ones(2, requires_grad=True)] * count), "requires_grad", False):
            calls.setdefault(f"{key}({text})", (function, count, s.second))
    return calls


ELEMENTWISE = elementwise_calls()

# Lines along which ops reduce.
LINES = np.array(
    [
        [1.0, 2.0, 3.0, -1.0],
        [1.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, -0.0, 0.0, -0.0],
        [0.0, 2.0, 0.0, 5.0],
        [0.0, 2.0, 3.0, 5.0],
        [-1.0, 2.0, 2.0, -2.0],
        [np.inf, 1.0, 0.0, 2.0],
        [-np.inf, 1.0, 0.0, 2.0],
        [np.inf, np.inf, 1.0, 0.0],
        [-np.inf, -np.inf, -np.inf, -np.inf],
        [np.nan, 1.0, 2.0, 0.0],
        [1e-8, 2e-8, 0.0, -1e-8],
        [1e15, 1.0, -1e15, 3.0],
    ],
    np.float32,
)


def along(name, *arguments, **options):
    return lambda p, x: getattr(x, name)(*arguments, dim=1, **options)


ALONG = (
    "sum", "mean", "nanmean", "logsumexp", "var", "std", "softmax", "log_softmax", "cumsum", "cumprod",
    "amax", "amin",
)  # fmt: skip
REDUCTIONS = {
    **{name: along(name) for name in ALONG},
    "prod": lambda p, x: x.prod(1),
    "max": lambda p, x: x.max(1).values,
    "min": lambda p, x: x.min(1).values,
    "sort": lambda p, x: x.sort(1).values,
    "topk": lambda p, x: x.topk(2, 1).values,
    "std of all": along("std", correction=0),
    "var of all": along("var", correction=0),
    "std of one": lambda p, x: x[:, :1].std(1),
    "var of one": lambda p, x: x[:, :1].var(1),
    "std_mean": lambda p, x: sum(p.std_mean(x, 1)),
    "var_mean": lambda p, x: sum(p.var_mean(x, 1)),
    "softmin": functional("softmin", dim=1),
    "glu": functional("glu", 1),
    **{
        f"norm {n}": (lambda p, x, n=n: x.norm(n, 1))
        for n in (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, np.inf, -np.inf, -1)
    },
    "normalize": functional("normalize"),
    "normalize 1": functional("normalize", 1.0),
    "normalize 3": functional("normalize", 3.0),
    "layer_norm": functional("layer_norm", (4,)),
    "rms_norm": functional("rms_norm", (4,)),
}


def weighted_cross_entropy(p, x):
    device = {} if p is torch else {"device": x.device}
    target = p.arange(x.shape[0], **device) % 4
    target = p.where(target == 3, -100, target)
    weight = p.tensor([0.5, 0.0, 2.0, 1.0], **device)
    return F(p).cross_entropy(x, target, weight, reduction="none", label_smoothing=0.25)


def classes(p, x):
    device = {} if p is torch else {"device": x.device}
    return p.arange(x.shape[0], **device) % 4


REDUCTIONS |= {
    "cross_entropy": lambda p, x: F(p).cross_entropy(x, classes(p, x), reduction="none"),
    "cross_entropy weighted": weighted_cross_entropy,
    "nll_loss": lambda p, x: F(p).nll_loss(x, classes(p, x), ignore_index=1, reduction="none"),
    "cosine_similarity": lambda p, x: F(p).cosine_similarity(x, x[:2].flip(1).reshape(2, 1, 4), -1).sum(0),
    "cosine_similarity to zeros": lambda p, x: F(p).cosine_similarity(x, x * 0 + 0.0, 1),
}

# What is taken together: a line as one tensor.
WHOLE = {
    **{name: method(name) for name in ["max", "min", "sum", "mean", "prod", "std", "var", "norm"]},
    **{
        f"{name} past the count, {c}": method(name, correction=c)
        for name in ("std", "var")
        for c in (4, 4.5, 5)
    },
    **{
        f"{name} along past the count, {c}": method(name, 0, correction=c)
        for name in ("std", "var")
        for c in (4, 4.5, 5)
    },
    "amax": lambda p, x: p.amax(x, ()),
    "mse_loss": lambda p, x: F(p).mse_loss(x, x.detach().flip(0)),
    "huber_loss mean": lambda p, x: F(p).huber_loss(x, x.detach().flip(0)),
    "kl_div": lambda p, x: F(p).kl_div(x, x.flip(0), reduction="sum"),
}

# Probabilities and targets.
SHARES = np.array([0.0, 1.0, 0.5, 1e-7, 0.99999994, 0.25], np.float32)
ENTROPIES = {
    "binary_cross_entropy": functional("binary_cross_entropy", reduction="none"),
    "kl_div": lambda p, x, y: F(p).kl_div(x.log(), y, reduction="none"),
    "saturated": lambda p, x, y: F(p).binary_cross_entropy(((x - 0.5) * 300).sigmoid(), y, reduction="none"),
    "binary_cross_entropy weighted": lambda p, x, y: F(p).binary_cross_entropy(x, y.detach(), x.detach() * 2),
    "positive weight": lambda p, x, y: F(p).binary_cross_entropy_with_logits(
        (x - 0.5) * 100, y, pos_weight=y.detach() * 3, reduction="none"
    ),
}

# Of which PyTorch has no second derivative, or a raw error.
ONCE = {
    *[name for name, (_, _, second) in ELEMENTWISE.items() if not second],
    "binary_cross_entropy",
    "saturated",
    "binary_cross_entropy weighted",
    "positive weight",
}


def finite(*values):
    return all(np.isfinite(v).all() for v in values)


def moderate(line, *rest):
    """Neither infinite nor so small or large that roundings are all that is left."""
    size = np.abs(line)
    return finite(line) and size.max() < 1e6 and (size.max() == 0 or size.max() > 1e-6)


def distinct(line, *rest):
    return len(np.unique(line)) == len(line) and not np.isnan(line).any()


def near(*point):
    return finite(*point) and max(map(abs, point)) < 7


def no_pole(*point):
    """Where PyTorch's formulas of the gamma function hold."""
    return near(*point) and (point[0] > 0 or point[0] != np.floor(point[0]))


# Where points of an op are not compared: what is left is what this says.
ONLY = {
    **{n: no_pole if "gamma" in n else near for n in ELEMENTWISE if n.split("(")[0] in special.SAMPLES},
    # PyTorch takes the square root, whose sign at -0.0 and value at -inf are others.
    "pow(_, 0.5)": lambda x, g: not np.signbit(x),
    "clamp sqrt": lambda x, g: x != 0 or not np.signbit(x),
    # Which of equal elements are the largest is not said.
    "topk": distinct,
    **dict.fromkeys(("var", "var of all", "std", "std of all", "std_mean", "var_mean"), moderate),
    **{name: moderate for name in WHOLE if "past" in name},
    "glu": finite,
    # PyTorch's vectors and the rest of a tensor differ; `test_a_single_nan` takes the rest.
    **{
        f"nn.functional.{n}": lambda x, g: not np.isnan(x)
        for n in ("elu(_)", "elu(_, 1.5)", "hardswish(_)", "relu6(_)", "hardtanh(_)", "hardtanh(_, 0.0, 2.0)")
    },
    **{
        n: lambda x, g: not np.isnan(x)
        for n in ("celu(_)", "celu(_, 1.5)", "selu(_)", *(f"logit(_, {eps})" for eps in (0.0, 0.1, 0.6)))
    },
}
ONLY_AGAIN = {
    "logit(_)": lambda x, g: 0 <= x <= 1,
    "nn.functional.mish(_)": lambda x, g: not x > 1e9,
    "rms_norm": moderate,
    "prod": finite,
    "cumprod": lambda line, g: finite(line),
    # There are poles at halves, too, and beside them.
    **{f"mvlgamma(_, {p})": lambda x, g: x > 2 for p in (3, 5)},
    # What is left there is rounding.
    "sinc(_)": lambda x, g: x == 0 or abs(x) > 1e-6,
    # Of NaN the slope of a bound is 1 in some of PyTorch's kernels and 0 in others.
    **{
        f"nn.functional.{name}(_, _, reduction=none{more})": lambda x, y, g: not np.isnan(x - y)
        for name, more in (
            ("huber_loss", ""), ("huber_loss", ", delta=0.7"), ("smooth_l1_loss", ""),
            ("smooth_l1_loss", ", beta=0.6"), ("smooth_l1_loss", ", beta=2.0"),
        )
    },
    "huber_loss mean": lambda line, g: np.isfinite(line).all(),
}  # fmt: skip


def compared(name, function, arrays, incoming, device, *, second, points):
    """What differs from PyTorch: which derivative, the arguments and the incoming gradient, ours, theirs."""
    found = []
    for p in (torch, pellucid):
        options = {} if p is torch else {"device": device}
        x = [p.tensor(a, requires_grad=True, **options) for a in arrays]
        g = p.tensor(incoming, requires_grad=second, **options)
        y = function(p, *x)
        first = p.autograd.grad(y, x, g, create_graph=second, allow_unused=True)
        results = {f"argument {k}": t for k, t in enumerate(first) if t is not None}
        if second:
            for k, t in enumerate(first):
                if t is not None and t.requires_grad:
                    more = p.autograd.grad(t, [*x, g], p.ones_like(t), allow_unused=True, retain_graph=True)
                    results |= {f"argument {k}, again {j}": u for j, u in enumerate(more) if u is not None}
        found.append({label: values(t) for label, t in results.items()})
    theirs, ours = found
    wrong = []
    only = [table[name] for table in (ONLY, ONLY_AGAIN if second else {}) if name in table]
    for label, expected in theirs.items():
        mine = ours.get(label, np.zeros_like(expected))  # one that is 0 need not be there
        close = np.isclose(mine, expected, rtol=1e-4, atol=1e-6, equal_nan=True)
        for at in map(tuple, np.argwhere(~close)):
            point = points(at)
            if all(keep(*point) for keep in only):
                wrong.append((label, point, mine[at], expected[at]))
    assert set(ours) >= {label for label in theirs if "again" not in label}
    return wrong


def values(t):
    if isinstance(t, torch.Tensor) and t._is_zerotensor():
        return np.zeros(tuple(t.shape), np.float32)
    return plain(t)


def elementwise_at(name, function, points, count, device, second):
    mesh = np.meshgrid(*[points] * count, INCOMING[[0, 4]] if second else INCOMING, indexing="ij")
    *arrays, incoming = [np.ascontiguousarray(m.reshape(-1)) for m in mesh]
    if function(torch, *[torch.tensor(a) for a in arrays]).ndim == 0:
        incoming = np.float32(1)
        mesh = [*arrays, np.broadcast_to(incoming, arrays[0].shape)]
    else:
        mesh = [*arrays, incoming]
    return compared(
        name,
        function,
        arrays,
        incoming,
        device,
        second=second,
        points=lambda at: [float(m[at]) for m in mesh],
    )


def lines(name, function, device, second):
    weights = INCOMING[:2] if second else INCOMING
    x = np.repeat(LINES, len(weights), 0)
    shape = tuple(function(torch, torch.tensor(x)).shape)
    g = np.tile(weights, len(LINES))
    g = np.ascontiguousarray(np.broadcast_to(g.reshape(-1, *[1] * (len(shape) - 1)), shape))
    return compared(name, function, [x], g, device, second=second, points=lambda at: (x[at[0]], g[at[0]]))


def whole(name, function, device, second):
    wrong = []
    for line in LINES[::2] if second else LINES:
        for g in INCOMING[:1] if second else INCOMING[:3]:
            wrong += compared(
                name, function, [line], g, device, second=second, points=lambda at, line=line, g=g: (line, g)
            )
    return wrong


CASES = {
    **{
        n: (elementwise_at, n, f, (POINTS, FEWER, FEWER[::2])[c - 1], c)
        for n, (f, c, _) in ELEMENTWISE.items()
    },
    **{f"of one, {n}": (elementwise_at, n, f, POINTS, 1) for n, f in UNARY.items()},
    **{f"of two, {n}": (elementwise_at, n, f, FEWER, 2) for n, f in BINARY.items()},
    **{f"of shares, {n}": (elementwise_at, n, f, SHARES, 2) for n, f in ENTROPIES.items()},
    **{f"of lines, {n}": (lines, n, f) for n, f in REDUCTIONS.items()},
    **{f"of all, {n}": (whole, n, f) for n, f in WHOLE.items()},
}


def differences(case, device, second):
    compare, name, *rest = CASES[case]
    return compare(name, *rest, device, second)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_derivatives(case, device):
    """P-059, P-061, P-087: every derivative, on both devices, beside PyTorch's."""
    wrong = differences(case, device, False)
    assert not wrong, f"{len(wrong)} differ, such as (what, where, ours, PyTorch's): {wrong[:5]}"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][1] not in ONCE])
def test_derivatives_of_derivatives(case):
    wrong = differences(case, "cpu", True)
    assert not wrong, f"{len(wrong)} differ, such as (what, where, ours, PyTorch's): {wrong[:5]}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "relu6"])
def test_a_single_nan(name, device):
    wrong = elementwise_at(f"one {name}", functional(name), np.array([np.nan], np.float32), 1, device, False)
    assert not wrong


# Views, copies, products, joints and lookups treat gradients alike at any value, and the tests of their
# groups compare them; of overwritten values test_overwritten.py does.
ELSEWHERE = {
    "_prelu_kernel", "cholesky_factor", "eig", "eigh", "eliminate", "qr", "solve_triangular", "svd",
    "add_rows", "average_windows", "average_windows_gradient", "cat", "chosen_rows", "complex", "conv1d",
    "conv2d", "conv_transpose1d", "conv_transpose2d", "convolution", "convolution_input",
    "convolution_weight", "copy", "diagonal", "embedding",
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    "fill", "floor_divide", "frexp_mantissa", "scaled_dot_product_attention",
    "hermite_polynomial_h", "hermite_polynomial_he", "igamma", "igammac", "index_select",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log_gamma_block", "log_gamma_slope",
    "half_transform", "heaviside", "kept_block", "linear", "logical_not", "matmul", "max_windows",
    "max_windows_gradient", "norm_gradient", "unfold", "fold_windows", "unfold_windows", "resample",
    "resample_gradient", "resample_planes", "order_statistic", "permute_dims", "pad_planes",
    "put_rows", "quant_linear", "quant_product", "rotary_embedding", "rows_at", "scatter_add",
    "log_scan", "scan_states", "scatter_combined", "scatter_lines", "select", "spread_rows", "transform",
    "transpose", "tril", "triu", "unsqueeze", "view_as_complex", "view_as_real",
}  # fmt: skip


def below(t):
    """The names of all ops in the graph of a tensor."""
    seen, names, nodes = set(), set(), [t._node]
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not hasattr(node, "edges"):
            continue
        seen.add(id(node))
        names.add(node.op.name)
        for target, _ in node.edges.values():
            nodes.append(target[0] if isinstance(target, tuple) else None)
    return names


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_derivative_is_compared():
    seen = set()
    for _, _, function, *how in CASES.values():
        arrays = [how[0]] * how[1] if how else [LINES]
        x = [pellucid.tensor(a[:4], device="cpu", requires_grad=True) for a in arrays]
        seen |= below(function(pellucid, *x))
    # Other tests may have declared ops of their own.
    own = [o for o in BY_INDEX if o.function.__module__.startswith("pellucid.")]
    have = {o.name for o in own if o.grad is not None}
    assert have - seen == ELSEWHERE
