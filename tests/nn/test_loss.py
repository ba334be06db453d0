"""Losses against PyTorch's: values and gradients, every reduction."""

import math
import warnings

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, same_call, state_of

REDUCTIONS = ["mean", "sum", "none"]
rng = np.random.default_rng(3)
CLASSES = rng.integers(0, 5, (4,))
IGNORED = np.where(np.arange(4) == 2, -100, CLASSES)
PIXELS = rng.integers(0, 5, (2, 3, 4))
POSITIVE = rng.uniform(0.2, 2.0, 5).astype(np.float32)
SHARES = rng.dirichlet(np.ones(5), 4).astype(np.float32)
CHANCES = rng.uniform(0, 1, (4, 5)).astype(np.float32)


def pair(name, device, weights=None, **kwargs):
    """The loss in both libraries."""
    weights = weights or {}
    ours = getattr(pellucid.nn, name)(
        **kwargs, **{k: pellucid.tensor(v, device=device) for k, v in weights.items()}
    )
    theirs = getattr(torch.nn, name)(**kwargs, **{k: torch.tensor(v) for k, v in weights.items()})
    return ours, theirs


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("L1Loss", {}),
        ("MSELoss", {}),
        ("HuberLoss", {"delta": 0.7}),
        ("SmoothL1Loss", {"beta": 0.6}),
        ("SmoothL1Loss", {"beta": 0.0}),
    ],
)
def test_distances(name, kwargs, reduction, device):
    same_call(*pair(name, device, reduction=reduction, **kwargs), device, floats(4, 5), floats(4, 5, seed=1))


SIGNS = np.where(floats(4, 5, seed=2) > 0, 1, -1).astype(np.float32)
LISTS = np.array([[0, 3, -1, 1, 2], [4, -1, 0, 0, 0], [1, 2, 3, 4, 0], [-1, 0, 1, 2, 3]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "kwargs", "rest"),
    [
        ("SoftMarginLoss", {}, (SIGNS.astype(np.int64),)),
        ("HingeEmbeddingLoss", {"margin": 0.5}, (SIGNS,)),
        ("MarginRankingLoss", {"margin": 0.2}, (floats(4, 5, seed=1), SIGNS)),
        ("CosineEmbeddingLoss", {"margin": 0.1}, (floats(4, 5, seed=1), SIGNS[:, 0])),
        ("GaussianNLLLoss", {"full": True}, (floats(4, 5, seed=1), CHANCES + 0.1)),
        ("PoissonNLLLoss", {"full": True}, (3 * CHANCES,)),
        ("MultiMarginLoss", {"p": 2}, (CLASSES,)),
        ("MultiLabelMarginLoss", {}, (LISTS,)),
        ("MultiLabelSoftMarginLoss", {}, ((SIGNS + 1) / 2,)),
        ("TripletMarginLoss", {"swap": True}, (floats(4, 5, seed=1), floats(4, 5, seed=2))),
        ("TripletMarginWithDistanceLoss", {"margin": 2.0}, (floats(4, 5, seed=1), floats(4, 5, seed=2))),
    ],
)
def test_margins_and_likelihoods(name, kwargs, rest, reduction, device):
    same_call(*pair(name, device, reduction=reduction, **kwargs), device, floats(4, 5), *rest)


def test_pairwise_distance(device):
    losses = pair("PairwiseDistance", device, p=1.0, keepdim=True)
    same_call(*losses, device, floats(4, 5), floats(4, 5, seed=1))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", [{}, {"weight": POSITIVE}], ids=["plain", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("target", [CLASSES, IGNORED], ids=["all", "ignored"])
def test_cross_entropy_of_classes(target, smoothing, weights, reduction, device):
    losses = pair("CrossEntropyLoss", device, weights, reduction=reduction, label_smoothing=smoothing)
    same_call(*losses, device, 3 * floats(4, 5), target)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", [{}, {"weight": POSITIVE}], ids=["plain", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_of_probabilities(smoothing, weights, reduction, device):
    losses = pair("CrossEntropyLoss", device, weights, reduction=reduction, label_smoothing=smoothing)
    same_call(*losses, device, 3 * floats(4, 5), SHARES)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_one_sample_and_of_pixels(reduction, device):
    same_call(*pair("CrossEntropyLoss", device, reduction=reduction), device, floats(5), np.array(3))
    losses = pair("CrossEntropyLoss", device, {"weight": POSITIVE}, reduction=reduction)
    same_call(*losses, device, floats(2, 5, 3, 4), PIXELS)


def test_cross_entropy_stays_finite(device):
    logits = pellucid.tensor([[1000.0, -1000.0], [-1000.0, 1000.0]], device=device)
    loss = pellucid.nn.functional.cross_entropy(logits, pellucid.tensor([1, 1], device=device))
    assert loss.item() == 1000.0


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", [{}, {"weight": POSITIVE}], ids=["plain", "weighted"])
def test_nll(weights, reduction, device):
    losses = pair("NLLLoss", device, weights, reduction=reduction, ignore_index=1)
    same_call(*losses, device, floats(4, 5), CLASSES)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", [{}, {"weight": POSITIVE}], ids=["plain", "weighted"])
def test_binary(weights, reduction, device):
    probabilities = rng.uniform(0.01, 0.99, (4, 5)).astype(np.float32)
    same_call(*pair("BCELoss", device, weights, reduction=reduction), device, probabilities, CHANCES)
    logits = pair("BCEWithLogitsLoss", device, {**weights, "pos_weight": POSITIVE}, reduction=reduction)
    same_call(*logits, device, 5 * floats(4, 5), CHANCES)
    same_call(*pair("BCEWithLogitsLoss", device, reduction=reduction), device, 50 * floats(4, 5), CHANCES)


def test_binary_cross_entropy_clamps_its_logarithm(device):
    x, t = np.array([0.0, 1.0], np.float32), np.array([1.0, 0.0], np.float32)
    ours = pellucid.nn.functional.binary_cross_entropy(
        pellucid.tensor(x, device=device), pellucid.tensor(t, device=device)
    )
    same(ours, torch.nn.functional.binary_cross_entropy(torch.tensor(x), torch.tensor(t)))


@pytest.mark.parametrize("values", [([1.5], [1.0]), ([-0.1], [0.0]), ([math.nan], [1.0]), ([0.5], [2.0])])
def test_binary_cross_entropy_of_what_is_no_probability(device, values):
    for lib in (torch, pellucid):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            lib.nn.BCELoss()(*[lib.tensor(v, device="cpu") for v in values])
    if values[1][0] <= 1 and device != "cpu":  # nothing waits for values of the device
        assert pellucid.nn.BCELoss()(*[pellucid.tensor(v, device=device) for v in values]).isnan().item()


@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl(log_target, reduction, device):
    logs = np.log(rng.dirichlet(np.ones(5), 4)).astype(np.float32)
    target = np.log(SHARES) if log_target else SHARES * (SHARES > 0.1)
    losses = pair("KLDivLoss", device, reduction=reduction, log_target=log_target)

    def detached(loss):
        # PyTorch's gradient of a zero target is NaN in one release and 0 in another.
        return lambda x, t: loss(x, t.detach())

    ours, theirs = (detached(loss) for loss in losses)
    ours.named_parameters = theirs.named_parameters = lambda: iter(())
    same_call(ours, theirs, device, logs, target)


EDGES = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5], np.float32)


@pytest.mark.parametrize("log_target", [False, True])
def test_divergence_of_special_values(log_target, device):
    """Infinity times 0 is NaN, but for 0 log 0."""

    def made(p, x, t):
        return p.nn.functional.kl_div(x, t, reduction="none", log_target=log_target)

    pairs = np.repeat(EDGES, len(EDGES)), np.tile(EDGES, len(EDGES))
    theirs = made(torch, *map(torch.tensor, pairs))
    ours = made(pellucid, *(pellucid.tensor(a, device=device) for a in pairs))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, x, t: f.mse_loss(x, x, reduction="avg"), "'avg' is not a reduction"),
        (lambda f, x, t: f.cross_entropy(x, t[:2]), r"must have shape \(4,\)"),
        (lambda f, x, t: f.cross_entropy(x, x[:, :2]), r"\(4, 2\). They must be equal"),
        (lambda f, x, t: f.cross_entropy(x, t, label_smoothing=2.0), "between 0 and 1, not 2.0"),
        (lambda f, x, t: f.binary_cross_entropy(x, x[:2]), "They must be equal"),
        (lambda f, x, t: f.huber_loss(x, x, delta=0), "delta must be positive"),
        (lambda f, x, t: f.smooth_l1_loss(x, x, beta=-1), "beta must not be negative"),
    ],
)
def test_says_what_is_wrong(call, message):
    x, t = pellucid.tensor(floats(4, 5), device="cpu"), pellucid.tensor(CLASSES, device="cpu")
    with pytest.raises(ValueError, match=message):
        call(pellucid.nn.functional, x, t)


def test_targets_must_be_classes(device):
    x = pellucid.tensor(floats(4, 5), device=device)
    with pytest.raises(IndexError, match="index 5"):
        pellucid.nn.functional.cross_entropy(x, pellucid.tensor([0, 5, 1, 2], device=device)).item()
    with pytest.raises(TypeError, match="class indices must be integers"):
        pellucid.nn.functional.nll_loss(x, pellucid.tensor([0.0, 1.0, 1.0, 2.0], device=device))


def test_warns_when_shapes_only_broadcast():
    x = pellucid.zeros(3, 1, device="cpu")
    with pytest.warns(UserWarning, match=r"mse_loss: input has shape \(3, 1\), target \(3,\)"):
        assert pellucid.nn.functional.mse_loss(x, x[:, 0]).item() == 0


def test_adaptive_softmax(device):
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 7], div_value=2.0, head_bias=True)
    ours = pellucid.nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 7], 2.0, head_bias=True, device=device)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(state_of(theirs))
    x, target = floats(5, 6), np.array([0, 9, 4, 2, 7])
    for rows, wanted in ((x, target), (x[0], target[1])):
        mine = ours(pellucid.tensor(rows, device=device), pellucid.tensor(wanted, device=device))
        other = theirs(torch.tensor(rows), torch.tensor(wanted))
        same(mine.output, other.output)
        same(mine.loss, other.loss)
    mine.loss.backward()
    other.loss.backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.grad, torch.zeros_like(b) if b.grad is None else b.grad)
    same(ours.log_prob(pellucid.tensor(x, device=device)), theirs.log_prob(torch.tensor(x)))
    best = theirs.predict(torch.tensor(x)).tolist()
    assert ours.predict(pellucid.tensor(x, device=device)).tolist() == best
    with pytest.raises(IndexError):
        ours(pellucid.tensor(x, device=device), pellucid.tensor([0, 1, 2, 3, 10], device=device)).loss.item()
    with pytest.raises(ValueError, match="increasing integers"):
        pellucid.nn.AdaptiveLogSoftmaxWithLoss(6, 10, [7, 3])


def test_losses_with_layers_and_sequences(device):
    theirs = torch.nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True)
    ours = pellucid.nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True, device=device)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, floats(5, 4), np.arange(10).reshape(5, 2) % 3)
    logs = floats(6, 2, 4)
    given = logs, np.array([[1, 2], [3, 3]]), np.array([6, 5]), np.array([2, 1])
    same_call(pellucid.nn.CTCLoss(), torch.nn.CTCLoss(), device, *given)


def test_types_of_losses():
    """Results are of the input's type, or the target's; integers are refused where PyTorch has no kernel."""
    losses = "huber_loss", "soft_margin_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy_with_logits"
    types = "float32", "float16", "bfloat16", "float64", "int64", "bool"

    def told(lib, name, first, second):
        x = lib.tensor([[0.2, 0.7], [0.9, 0.4]], device="cpu").to(getattr(lib, first))
        y = lib.tensor([[1.0, 0.0], [1.0, 1.0]], device="cpu").to(getattr(lib, second))
        try:
            return str(getattr(lib.nn.functional, name)(x, y, reduction="none").dtype).split(".")[1]
        except RuntimeError:
            return "refused"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in losses:
            for first in types:
                for second in types:
                    case = name, first, second
                    assert told(pellucid, *case) == told(torch, *case), case


def test_keywords_of_losses():
    nn, x = pellucid.nn, pellucid.tensor([[0.5, -1.0]], device="cpu")
    assert nn.TripletMarginLoss()(anchor=x, positive=x, negative=x + 3).item() == 0
    assert nn.SoftMarginLoss()(input=x, target=x.sign()).item() == nn.SoftMarginLoss()(x, x.sign()).item()
    assert nn.PoissonNLLLoss()(log_input=x, target=x).item() == nn.PoissonNLLLoss()(x, x).item()
    assert nn.GaussianNLLLoss()(input=x, target=x, var=x * 0 + 1).item() == 0
