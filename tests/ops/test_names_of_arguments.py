"""PyTorch's names of arguments, numpy's where PyTorch takes them, and its forms of a call, on both sides."""

import warnings

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, normal
from ops.values import equal
from pellucid.errors import ArgumentError

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
CASES = {
    "sum": lambda p, x: (x.sum(axis=1, keepdims=True), p.sum(x, axis=(0, 1)), p.sum(x, dim=0, keepdims=True)),
    "into out": lambda p, x: p.sum(x, axis=0, out=p.zeros(4)),
    "mean, std, var": lambda p, x: (x.mean(axis=0), x.std(axis=1), p.var(x, axis=0, keepdims=True)),
    "extremes": lambda p, x: (*x.max(axis=1), *p.min(x, axis=0), x.argmax(axis=1), p.amax(x, axis=0)),
    "joined": lambda p, x: (p.cat((x, x), axis=1), p.stack([x, x], axis=0), p.concatenate([x], axis=0)),
    "cumulative": lambda p, x: (x.cumsum(axis=0), p.cumprod(x, axis=1), p.diff(x, axis=0)),
    "softmax": lambda p, x: (p.softmax(x, axis=1), x.log_softmax(axis=0), p.logsumexp(x, axis=1)),
    "sorted": lambda p, x: (*x.sort(axis=0), p.argsort(x, axis=1), *x.median(axis=0), *x.topk(2, axis=1)),
    "looked up": lambda p, x: (
        x.gather(axis=1, index=p.tensor([[1], [0], [2]])),
        x.index_select(axis=0, index=p.tensor([2])),
        x.select(axis=1, index=2),
    ),
    "views": lambda p, x: (x.unsqueeze(axis=0), p.squeeze(x[None], axis=0), *x.chunk(2, axis=1)),
    "norms": lambda p, x: (
        p.linalg.vector_norm(x, dim=1),
        p.linalg.norm(x, axis=0),
        p.any(x > 0, axis=1),
        p.all(x > 0, axis=0),
    ),
    "an axis that nobody names": lambda p, x: (
        p.nn.functional.softmax(x),
        p.nn.functional.log_softmax(x[0]),
        p.nn.functional.softmin(x[None]),
        p.nn.Softmax()(x),
        p.nn.LogSoftmax()(x[None, None]),
    ),
    "the level of a warning": lambda p, x: p.nn.functional.softmax(x, 1, 3, p.float32),
    "where it holds": lambda p, x: (*p.where(x > 0), *p.where(p.tensor(True))),
    "bytes": lambda p, x: x.view(dtype=p.int32),
    "dropout": lambda p, x: (p.dropout(x, p=0.5, train=False), p.alpha_dropout(x, 0.0, train=True)),
    "feature_alpha_dropout": lambda p, x: p.feature_alpha_dropout(x, 0.5, False),
    "uniform_": lambda p, x: x.clone().uniform_(2, to=2),
    "sizes of new tensors": lambda p, x: (
        *(make(size=(2, 3)) * 0 for make in (p.zeros, p.ones, p.rand, p.randn)),
        p.empty(size=(2, 3)).fill_(1),
        p.randint(high=1, size=(2,)),
        *(make(size=(2, 3)) for make in (x.new_zeros, x.new_ones)),
        x.clone().resize_(size=(4, 3)),
    ),
    "sizes of views": lambda p, x: (
        x.view(size=(4, 3)),
        x.reshape(shape=(2, 6)),
        p.reshape(input=x, shape=(2, -1)),
        x.permute(dims=(1, 0)),
        p.permute(x, dims=(1, 0)),
        x.expand(size=(2, 3, 4)),
        x.repeat(repeats=(2, 1)),
        p.tile(x, dims=(2, 1)),
        *x.split(split_size=2, dim=1),
    ),
    "outside the graph": lambda p, x: p.detach(x),
    "clipped": lambda p, x: p.nn.utils.get_total_norm([x], foreach=True),
    "hardtanh": lambda p, x: p.nn.Hardtanh(min_value=-1, max_value=2)(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_pytorch(case, device):
    def run(p):
        found = CASES[case](p, p.tensor(X))
        return found if isinstance(found, tuple) else (found,)

    with pellucid.device(device):
        mine = run(pellucid)
    theirs = run(torch)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        equal(a, b, rtol=1e-5)


def test_an_argument_has_one_name_in_a_call():
    x = pellucid.tensor(X)
    for call in (
        lambda: x.sum(1, axis=1),
        lambda: pellucid.softmax(x, dim=1, axis=1),
        lambda: x.norm(dim=1, axis=1),
        lambda: x.mean(dim=0, keepdim=True, keepdims=True),
    ):
        with pytest.raises(ArgumentError, match="not both"):
            call()
    for call, name in (
        (lambda: x.softmax(), "softmax() missing 1 required positional argument: 'dim'"),
        (lambda: x.gather(axis=1), "gather() missing 1 required positional argument: 'index'"),
        (lambda: x.sum(axes=1), "sum() got an unexpected keyword argument 'axes'"),
        (lambda: pellucid.where(x > 0, x), "where() missing 1 required positional argument: 'other'"),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == name


def test_an_axis_that_nobody_names_is_warned_of():
    for call in (pellucid.nn.functional.softmax, pellucid.nn.LogSoftmax()):
        with pytest.warns(UserWarning, match="dim is not given") as seen:
            call(pellucid.tensor(X))
        assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pellucid.nn.functional.softmax(pellucid.tensor(X), -1)


def test_random_numbers_like_a_tensor_come_from_a_generator():
    x = pellucid.tensor(normal(3, 4))
    for like in (
        pellucid.rand_like,
        pellucid.randn_like,
        lambda x, **way: pellucid.randint_like(x, 9, **way),
    ):
        first, again, other = (
            like(x, generator=pellucid.Generator().manual_seed(seed)).tolist() for seed in (3, 3, 4)
        )
        assert first == again != other


def test_gradients_are_clipped_whatever_foreach_says():
    for foreach in (None, True, False):
        parameter = pellucid.nn.Parameter(pellucid.tensor(X))
        parameter.grad = pellucid.tensor(X)
        pellucid.nn.utils.clip_grad_norm_([parameter], 1.0, foreach=foreach)
        assert round(parameter.grad.norm().item(), 4) == 1
        pellucid.nn.utils.clip_grad_value_([parameter], 0.1, foreach=foreach)
        assert round(parameter.grad.max().item(), 4) == 0.1


def test_modules_that_are_there_twice():
    for p in (pellucid, torch):
        layer = p.nn.ReLU()
        model = p.nn.Sequential(layer, layer)
        assert len(list(model.modules())) == 2
        assert len(list(model.modules(remove_duplicate=False))) == 3


def test_settings_by_their_names():
    before = pellucid.get_default_device()
    try:
        pellucid.set_default_device(device="cpu")
        assert pellucid.zeros(1).device.type == "cpu"
        pellucid.set_default_device(None)
        assert pellucid.get_default_device().type == "webgpu"
    finally:
        pellucid.set_default_device(before)
    assert pellucid.promote_types(type1=pellucid.int8, type2=pellucid.float16) is pellucid.float16
    pellucid.set_float32_matmul_precision("high")
    assert pellucid.get_float32_matmul_precision() == "high"
    pellucid.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("kl_div", "torch.nn.functional.kl_div"),
        ("symeig", "torch.linalg.eigh"),
    ],
)
def test_what_is_missing_names_what_to_use(name, instead):
    with pytest.raises(AttributeError, match=instead.replace(".", r"\.")):
        getattr(pellucid, name)


def test_numbers_where_older_programs_have_them():
    """Beta and alpha before the tensors that they are factors of, as PyTorch takes them, with a warning."""
    calls = {
        "add": lambda t, a, b, c, v: (t.add(a, 2, b), a.add(2, b), a.clone().add_(2, b)),
        "sub": lambda t, a, b, c, v: (t.sub(a, 2, b), a.sub(2, b), a.clone().sub_(0.5, b)),
        "addcmul": lambda t, a, b, c, v: (t.addcmul(a, 2, b, c), a.clone().addcmul_(0.5, b, c)),
        "addcdiv": lambda t, a, b, c, v: (t.addcdiv(a, 2, b, c), a.clone().addcdiv_(-0.5, b, c)),
        "addmm": lambda t, a, b, c, v: (
            t.addmm(2, a, 3, b, c),
            t.addmm(2, a, b, c),
            a.addmm(2, 3, b, c),
            a.clone().addmm_(2, b, c),
        ),
        "addmv": lambda t, a, b, c, v: (t.addmv(2, v, 3, b, v), v.addmv(2, b, v)),
        "addr": lambda t, a, b, c, v: (t.addr(2, a, 3, v, v), a.clone().addr_(2, 3, v, v)),
        "baddbmm": lambda t, a, b, c, v: (t.baddbmm(2, a[None], 3, b[None], c[None]),),
        "addbmm": lambda t, a, b, c, v: (t.addbmm(2, a, 3, b[None], c[None]),),
    }
    for name, call in calls.items():
        found = []
        for lib in (torch, pellucid):
            tensors = [lib.full((2, 2), float(k), device="cpu") for k in (1, 2, 3)]
            vector = lib.ones(2, device="cpu")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                found.append([t.tolist() for t in call(lib, *tensors, vector)])
        assert found[0] == found[1], name
        assert all("deprecated" in str(w.message) for w in seen)
        assert len(seen) == len(found[1])
    x = pellucid.ones(2, requires_grad=True, device="cpu")
    with pytest.warns(UserWarning, match="deprecated"):
        (x.add(3, x)).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.add(x, x, 2),
        lambda t, x: t.sub(x, x, 2),
        lambda t, x: x.add(x, 2),
        lambda t, x: x.add_(x, 2),
        lambda t, x: t.add(x, 2, x, alpha=3),
        lambda t, x: t.add(x, 2, x, alpha=1),
        lambda t, x: x.clone().sub_(2, x, alpha=1),
        lambda t, x: t.addcmul(x, 2, x, x, value=1),
        lambda t, x: t.add(x, 2, x, x),
        lambda t, x: t.addcmul(x, x, x, 2),
        lambda t, x: x.addcdiv_(x, x, 2),
    ],
)
def test_numbers_have_no_place_behind_the_tensors(call):
    for lib in (torch, pellucid):
        x = lib.ones(2, device="cpu")
        for _ in range(2):  # also where the plan is known
            with pytest.raises(TypeError):
                call(lib, x)
        assert x.tolist() == [1.0, 1.0]


def test_names_of_linear_algebra():
    """PyTorch's functions call ``input`` what its pages call A, B, L, b or x."""
    eye = pellucid.eye(3, device="cpu")
    whole = pellucid.eye(4, device="cpu").reshape(2, 2, 2, 2)
    linalg = pellucid.linalg
    assert linalg.cond(input=eye).item() == 1
    assert linalg.vector_norm(input=eye).item() == pytest.approx(3**0.5)
    assert linalg.matrix_rank(input=eye).item() == 3
    assert linalg.pinv(input=eye).tolist() == eye.tolist()
    assert linalg.tensorinv(input=whole).shape == (2, 2, 2, 2)
    assert linalg.tensorsolve(input=eye, other=eye[0]).tolist() == [1.0, 0.0, 0.0]
    assert pellucid.cholesky_inverse(input=eye).tolist() == eye.tolist()
    assert pellucid.cholesky_solve(input=eye, input2=eye).tolist() == eye.tolist()
    assert pellucid.triangular_solve(input=eye, A=eye)[0].tolist() == eye.tolist()
    assert eye.norm(None).item() == pytest.approx(3**0.5)
    with pytest.raises(TypeError, match="A= or input="):
        linalg.cond(A=eye, input=eye)


def test_names_that_pytorchs_pages_have_otherwise():
    """What torch's functions call their arguments, where their pages and this package's signatures differ."""
    for lib in (torch, pellucid):
        with lib.device("cpu"):
            eye, x = lib.eye(3), lib.tensor([0.5, 1.0])
            assert lib.linalg.lstsq(eye, b=eye).solution.shape == (3, 3)
            assert lib.nn.functional.one_hot(input=lib.tensor([1])).tolist() == [[0, 1]]
            assert lib.ormqr(eye, input2=lib.zeros(3), input3=eye).tolist() == eye.tolist()
            assert [len(part) for part in lib.unsafe_split(input=eye, split_size=2)] == [2, 1]
            assert lib.isin(element=1, test_elements=lib.tensor([1])).item()
            assert lib.isin(lib.tensor([1]), test_element=2).tolist() == [False]
            assert lib.special.airy_ai(x=x).tolist() == lib.special.airy_ai(x).tolist()
            assert lib.special.spherical_bessel_j0(x=x).shape == (2,)
            assert lib.special.scaled_modified_bessel_k1(x=x).shape == (2,)
            assert lib.special.chebyshev_polynomial_t(x=x, n=2).tolist() == [-0.5, 1.0]
            assert lib.special.legendre_polynomial_p(x, n=1).tolist() == x.tolist()
            assert lib.randperm(3, requires_grad=False).shape == (3,)
            with pytest.raises(RuntimeError):
                lib.randperm(3, requires_grad=True)
