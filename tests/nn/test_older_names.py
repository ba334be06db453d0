"""Names that programs of older PyTorch use, and weights that stay orthogonal, beside PyTorch's own."""

import warnings
from inspect import signature as sig
from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError, DeviceError, GradientError, ShapeError

MAPS = [
    (shape, kind) for shape in ((4, 4), (5, 3), (3, 5)) for kind in ("matrix_exp", "cayley", "householder")
]


def filled(t, array, device) -> Any:
    return torch.tensor(array) if t is torch else pellucid.tensor(array, device=device)


@pytest.mark.parametrize(("shape", "kind"), MAPS)
def test_orthogonal(shape, kind):
    """Weight and gradient of the same parameters and base as PyTorch's; a given orthogonal weight stays."""
    rows, columns = shape
    start = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    ours: Any = pellucid.nn.Linear(columns, rows, bias=False)
    theirs: Any = torch.nn.Linear(columns, rows, bias=False)
    pellucid.nn.utils.parametrizations.orthogonal(ours, orthogonal_map=kind)
    torch.nn.utils.parametrizations.orthogonal(theirs, orthogonal_map=kind)
    small, large = min(shape), max(shape)
    weight = ours.weight if rows >= columns else ours.weight.mT
    np.testing.assert_allclose((weight.mT @ weight).detach().numpy(), np.eye(small), atol=1e-5)
    theirs.parametrizations.weight.original.data = torch.tensor(start)
    base = theirs.parametrizations.weight[0].base
    ours.load_state_dict({k: pellucid.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    assert tuple(base.shape) == (large, large)
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=1e-5)
    (ours.weight * pellucid.tensor(start)).sum().backward()
    (theirs.weight * torch.tensor(start)).sum().backward()
    np.testing.assert_allclose(
        ours.parametrizations.weight.original.grad.numpy(),
        theirs.parametrizations.weight.original.grad.numpy(),
        rtol=1e-4,
        atol=1e-5,
    )
    kept = np.linalg.qr(start if rows >= columns else start.T)[0].astype(np.float32)
    kept = kept if rows >= columns else kept.T
    with pellucid.no_grad():
        ours.weight = pellucid.tensor(kept)
    np.testing.assert_allclose(ours.weight.detach().numpy(), kept, atol=1e-5)


def test_orthogonal_without_a_base_and_what_is_refused():
    orthogonal = pellucid.nn.utils.parametrizations.orthogonal
    ours: Any = pellucid.nn.Linear(3, 5)
    theirs: Any = torch.nn.Linear(3, 5)
    ours.weight.data = pellucid.tensor(theirs.weight.detach().numpy())
    orthogonal(ours, use_trivialization=False)
    torch.nn.utils.parametrizations.orthogonal(theirs, use_trivialization=False)
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=1e-5)
    with pytest.raises(ShapeError, match="orthogonal: the weight has shape"):
        ours.weight = pellucid.ones(3, 5)
    with pytest.raises(ArgumentError, match="two axes"):
        orthogonal(pellucid.nn.Linear(3, 5), "bias")
    with pytest.raises(ArgumentError, match="matrix_exp, cayley, householder"):
        orthogonal(pellucid.nn.Linear(3, 5), orthogonal_map="other")
    square: Any = orthogonal(pellucid.nn.Linear(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization=False"):
        square.weight = pellucid.eye(3)


def test_older_forms_do_what_the_newer_ones_do():
    w, older = pellucid.empty(3, 3), vars(pellucid.nn.init)
    with pytest.warns(FutureWarning, match=r"nn\.init\.constant_"):
        assert older["constant"](w, 2.0) is w
    assert w.sum().item() == 18
    v = pellucid.autograd.Variable(w, requires_grad=True)
    assert v.requires_grad
    assert isinstance(w, pellucid.autograd.Variable)
    (v * 2).sum().backward()
    assert pellucid.nn.utils.clip_grad_norm([v], 1.0).item() == pytest.approx(6)
    x, target = pellucid.randn(2, 4, 5, 5), pellucid.ones(2, 5, 5, dtype=pellucid.int64)
    lost = [kind()(x.log_softmax(1), target).item() for kind in (pellucid.nn.NLLLoss, pellucid.nn.NLLLoss2d)]
    assert lost[0] == lost[1]
    with pytest.raises(ShapeError, match=r"CrossMapLRN2d: takes \(batch"):
        pellucid.nn.CrossMapLRN2d(3)(x[0])
    number: Any = 3
    with pytest.raises(TypeError, match="int is not a Module"):
        pellucid.nn.DataParallel(number)
    norms = [kind(3)(x) for kind in (pellucid.nn.LocalResponseNorm, pellucid.nn.CrossMapLRN2d)]
    assert pellucid.equal(*norms)
    seen = []
    layer = pellucid.nn.DataParallel(pellucid.nn.Linear(3, 2))
    assert list(layer.state_dict()) == ["module.weight", "module.bias"]
    layer.module.register_backward_hook(lambda m, given, made: seen.append((len(given), len(made))))
    layer(v).sum().backward()
    assert seen == [(1, 1)]


def test_words_for_how_tensors_lie_in_memory():
    for t in (torch, pellucid):
        x = t.ones(2, 3, 4, 5)
        kept: dict[str, Any] = {"layout": t.strided, "pin_memory": False}
        made = [t.zeros(2, **kept), t.full((2,), 1.0, **kept), t.randn(2, **kept), t.arange(2, **kept)]
        made += [
            t.zeros_like(x[0, 0, 0, :2], memory_format=t.preserve_format),
            t.tensor([1, 2], pin_memory=False),
        ]
        made += [x.new_zeros(2, **kept, requires_grad=True), x.new_tensor([1, 2], requires_grad=False)]
        made += [t.normal(0.0, 1.0, (2,), **kept, requires_grad=True)]
        assert [tuple(y.shape) for y in made] == [(2,)] * len(made)
        assert t.empty_like(x, memory_format=t.channels_last).stride() == (60, 1, 15, 3)
        assert t.zeros(2, 3, 4, 5).stride() == (60, 20, 5, 1)
    with pytest.raises(NotImplementedError, match=r"zeros: layout torch\.sparse_coo is not here"):
        pellucid.zeros(2, **dict[str, Any](layout=torch.sparse_coo))
    with pytest.raises(ArgumentError, match="'pin_memory' must be True or False"):
        pellucid.zeros(2, **dict[str, Any](pin_memory=1))
    with pytest.raises(TypeError, match="unexpected keyword"):
        pellucid.ones(2).new_zeros(2, other=1)


def test_a_device_has_a_number():
    assert pellucid.device("webgpu", 0) is pellucid.device(pellucid.device("webgpu"), 0)
    with pytest.raises(DeviceError, match="'cpu:1' does not exist"):
        pellucid.device("cpu", 1)


def test_functions_of_elements_on_the_cpu():
    for t in (torch, pellucid):
        x = filled(t, np.array([1, 2], np.float32), "cpu").apply_(lambda a: 3 * a)
        assert x.tolist() == [3, 6]
        assert x.map_(filled(t, np.array([10], np.float32), "cpu"), lambda a, b: a + b).tolist() == [13, 16]
    with pytest.raises(DeviceError, match="cpu device"):
        pellucid.ones(2).apply_(abs)
    with pytest.raises(GradientError, match="no derivative"):
        pellucid.ones(2, device="cpu", requires_grad=True).apply_(abs)
    assert pellucid.ones(2).to_dense(pellucid.int32).dtype is pellucid.int32


def test_questions_and_modes():
    for t in (torch, pellucid):
        with t.inference_mode():
            assert not t.is_grad_enabled()
            assert t.is_inference_mode_enabled()
            with t.no_grad():
                assert t.is_inference_mode_enabled()
            with t.set_grad_enabled(False):
                assert t.is_inference_mode_enabled()
            assert t.no_grad()(t.is_inference_mode_enabled)()
            with t.inference_mode(False):
                assert not t.is_inference_mode_enabled()
            assert t.is_inference_mode_enabled()
        with t.no_grad():
            assert not t.is_inference_mode_enabled()
            with t.inference_mode(False):
                assert t.is_grad_enabled()
        assert t.inference_mode(t.is_inference_mode_enabled)() is True
        assert not t.is_inference_mode_enabled()
        assert t.inference_mode(t.is_grad_enabled)() is False
        assert t.typename(t.nn.Linear(1, 1)).endswith("linear.Linear")
        assert (t.sym_max(1, 2), t.sym_min(1, 2.0), t.sym_int(2.7), t.sym_float(2)) == (2, 1.0, 2, 2.0)
        assert (t.sym_not(True), t.sym_ite(True, 1, 2)) == (False, 1)
        t.set_anomaly_enabled(True)
        assert t.is_anomaly_enabled()
        t.set_anomaly_enabled(False)
        assert not t.is_anomaly_enabled()
        norm = t.nn.BatchNorm1d(2)
        assert t.func.replace_all_batch_norm_modules_(norm) is norm
        assert norm.running_mean is None
        assert t.func.functionalize(abs)(-1) == 1
    with pytest.raises(ArgumentError, match="neither mutations"):
        pellucid.func.functionalize(abs, remove="all")
    with pellucid.utils.checkpoint.set_checkpoint_early_stop(False):
        x = pellucid.ones(2, requires_grad=True)
        pellucid.utils.checkpoint.checkpoint(pellucid.exp, x, use_reentrant=False).sum().backward()
    assert x.grad is not None


# Arguments of losses that take size_average and reduce, as PyTorch's signatures say.
_MARKS = {
    "input": np.random.default_rng(4).uniform(0.1, 0.9, (3, 4)).astype(np.float32),
    "target": np.random.default_rng(5).uniform(0.1, 0.9, (3, 4)).astype(np.float32),
    "classes": np.array([1, 0, 3]),
    "signs": np.array([1.0, -1.0, 1.0], np.float32),
    "lists": np.array([[1, 2, -1, 0], [3, -1, 0, 0], [0, 1, 2, 3]]),
}
_GIVEN = {
    "cosine_embedding_loss": ("input", "target", "signs"),
    "cross_entropy": ("input", "classes"),
    "margin_ranking_loss": ("input", "target", "input"),
    "multi_margin_loss": ("input", "classes"),
    "multilabel_margin_loss": ("input", "lists"),
    "nll_loss": ("input", "classes"),
    "triplet_margin_loss": ("input", "target", "input"),
}
_OLDER = [
    name
    for name, f in vars(torch.nn.functional).items()
    if callable(f)
    and name.endswith(("loss", "kl_div", "entropy", "logits"))
    and "size_average" in str(sig(f))
]
_LOSSES = [
    name for name, f in vars(torch.nn).items() if name.endswith("Loss") and "size_average" in str(sig(f))
]


def told(call, *args, **kwargs) -> tuple[Any, list[str]]:
    """What a call gives, and what it warns of older arguments."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(*args, **kwargs)
    own = [w for w in caught if "size_average" in str(w.message)]
    assert call.__module__.startswith("torch") or {w.filename for w in own} <= {__file__}
    return found, [f"{w.category.__name__}: {w.message}" for w in own]


@pytest.mark.parametrize("name", _OLDER)
def test_older_reductions(name):
    """Values, warnings and the places of arguments are PyTorch's, whichever of the two is given."""
    ours, theirs = getattr(pellucid.nn.functional, name), getattr(torch.nn.functional, name)
    assert list(sig(ours).parameters) == list(sig(theirs).parameters)
    arrays = [_MARKS[one] for one in _GIVEN.get(name, ("input", "target"))]
    for older in ((False, None), (None, False), (True, True), (False, False), (None, True)):
        given = {k: v for k, v in zip(("size_average", "reduce"), older, strict=True) if v is not None}
        got, warned = told(
            ours, *(pellucid.tensor(a, device="cpu") for a in arrays), **given, reduction="sum"
        )
        wanted, theirs_warned = told(theirs, *map(torch.tensor, arrays), **given, reduction="sum")
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
        assert warned == theirs_warned != []
    # By place, where PyTorch has them.
    first = list(sig(theirs).parameters).index("size_average")
    between = [p.default for p in list(sig(theirs).parameters.values())[len(arrays) : first]]
    got, warned = told(ours, *(pellucid.tensor(a, device="cpu") for a in arrays), *between, False)
    wanted, theirs_warned = told(theirs, *map(torch.tensor, arrays), *between, False)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
    assert warned == theirs_warned != []


def test_older_reductions_are_in_place():
    assert len(_OLDER) >= 16
    one = pellucid.ones(2, device="cpu")
    with pytest.raises(ArgumentError, match="size_average"):
        pellucid.nn.functional.mse_loss(one, one, "sum")  # in PyTorch that is a mean, for "sum" is true


@pytest.mark.parametrize("name", _LOSSES)
def test_older_reductions_of_modules(name):
    ours, theirs = getattr(pellucid.nn, name), getattr(torch.nn, name)
    assert list(sig(ours).parameters) == list(sig(theirs).parameters)
    for given in ({"size_average": False}, {"reduce": False}, {"reduce": True}, {}):
        got, warned = told(ours, **given)
        wanted, theirs_warned = told(theirs, **given)
        assert got.reduction == wanted.reduction
        assert warned == theirs_warned
