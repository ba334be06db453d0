"""`torch.func`: transforms that nest, and `vmap` with its rules and its loop, as in PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES

RNG = np.random.default_rng(3)
X, Y, W = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 3, 5), (4, 5), (2, 5)))
I = RNG.integers(0, 5, (4, 3))  # noqa: E741
CONV = RNG.standard_normal((2, 3, 2)).astype(np.float32)


def given(t, a):
    return torch.tensor(a) if t is torch else pellucid.tensor(a)


def flat(value):
    if isinstance(value, dict):
        value = tuple(value.values())
    return (
        [a for v in value for a in flat(v)] if isinstance(value, (tuple, list)) else [value.detach().numpy()]
    )


def compare(mine, theirs):
    mine, theirs = flat(mine), flat(theirs)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6)


def assign(x, y):
    x[0] = y
    return x


def of_square(t, x):
    return x @ x.T + t.eye(x.shape[0], device=x.device)


# Functions of an example: by rule, and behind "loop" one after the other.
EXAMPLES = {
    "elementwise": (lambda t, x, y: t.where(x > 0, x + y * 2, x.exp()), (X, Y)),
    "all and some axes": (lambda t, x: (x.sum(), x.mean(-1, keepdim=True), x.amax((0, 1), True)), (X,)),
    "positions": (lambda t, x: (x.argmax(), x.max(0)[1], x.sort(-1)[0], x.topk(2)[1]), (X,)),
    "scans": (lambda t, x: (x.cumsum(0), x.softmax(-1), x.logsumexp(-1)), (X,)),
    "composed": (lambda t, x: (x.std(), x.norm(), x.var(0), t.nn.functional.mse_loss(x, x * 2)), (X,)),
    "no axes": (lambda t, y: (y[0].sum(), y[0].cumsum(0), y[0] + y, y.sum().max()), (Y,)),
    "products": (lambda t, x, y: (x @ y, x @ x.T, y @ y, t.outer(y, y)), (X, Y)),
    "linear": (lambda t, x: t.nn.functional.linear(x, given(t, W)), (X,)),
    "views": (lambda t, x: (x.T.reshape(-1), x[1:, ::2], x[None, ..., 0], x[:1].squeeze(), x.unfold(1, 2, 2),
        x[:, :3].diagonal(), x.unbind(0)[1], x.expand(2, 3, 5)), (X,)),
    "joined": (lambda t, x, y: (t.cat([x, y[None]]), t.stack([y, y * 2], 1), x.roll(1, 0)), (X, Y)),
    "gathers": (lambda t, y, i: (y.gather(0, i), y.scatter_add(0, i, y[:3]), y[i]), (Y, I)),
    "embedding": (lambda t, i: t.nn.functional.embedding(i, given(t, W.T.copy())), (I,)),
    "norms": (lambda t, x: t.nn.functional.layer_norm(x, (5,)), (X,)),
    "convolutions": (lambda t, x: (t.nn.functional.conv1d(x, given(t, CONV)),
        t.nn.functional.conv1d(x[None], given(t, CONV))), (X,)),
    "in place": (lambda t, x, y: (x.clone().add_(1).mul_(x), assign(x.clone(), y)), (X, Y)),
    "loop": (lambda t, x, i: (x.index_select(1, i), x.median(), x[[0, 2]], x.flip(0)), (X, I)),
    "places": (lambda t, x, i: (x[i[0]], x[:, i[1]], x[i[0], i[1]], x[..., i[0], 1:]), (X, I % 3)),
    "solvers": (lambda t, x: (t.linalg.inv(of_square(t, x)), t.linalg.cholesky(of_square(t, x)),
        t.linalg.solve(of_square(t, x), x), t.linalg.lu_factor(of_square(t, x))[0]), (X,)),
    "losses": (lambda t, x, i: t.nn.functional.cross_entropy(x, i), (X, I)),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_vmap_is_a_loop(name, device):
    function, arrays = EXAMPLES[name]
    with pellucid.device(device):
        rows = [flat(function(torch, *[torch.tensor(a[k]) for a in arrays])) for k in range(4)]
        theirs = [torch.tensor(np.stack(parts)) for parts in zip(*rows, strict=True)]
        compare(
            pellucid.vmap(lambda *a: function(pellucid, *a))(*[pellucid.tensor(a) for a in arrays]), theirs
        )


def transforms(t):
    f = t.func
    x, y, w = given(t, X[0]), given(t, Y[0]), given(t, W)
    cube = lambda a: (a**3).sum() * a[0]  # noqa: E731
    pair = lambda a, b: {"u": a * b.sin(), "v": (a.sum() * b).sum()}  # noqa: E731
    loss = lambda w, x: (x @ w.T).tanh().square().mean()  # noqa: E731
    layer = t.nn.Linear(5, 2)
    made = {"weight": w, "bias": w[:, 0]}
    model = lambda p, x: f.functional_call(layer, p, (x,)).sum().sin()  # noqa: E731
    out, pull = f.vjp(pair, y, y * 2)
    whole = given(t, X)
    return [
        f.grad(cube)(y), f.grad(f.grad(lambda a: a.sin() * a))(y[0]), f.grad_and_value(cube)(y),
        f.grad(lambda a, b: ((a * b).sum(), b * 2), argnums=(0, 1), has_aux=True)(y, y + 1),
        out, pull({"u": y, "v": t.ones_like(out["v"])}),
        f.jvp(pair, (y, y * 2), (y * 3, y)), f.linearize(cube, y)[1](y),
        f.jacrev(pair, argnums=(0, 1))(y, y * 2), f.jacfwd(pair, argnums=1)(y, y * 2), f.jacrev(cube)(y),
        f.hessian(cube)(y), f.jacrev(f.jacrev(cube))(y), f.jacfwd(f.jacfwd(cube))(y),
        # gradients of examples, also by what is the same for all
        *[t.vmap(f.grad(loss), in_dims=(None, 0))(w, a) for a in (whole, given(t, Y))],
        t.vmap(f.jacrev(lambda a: (a * a.sum()).sin()))(given(t, Y)), t.vmap(f.hessian(cube))(given(t, Y)),
        t.vmap(lambda a: f.jvp(t.sin, (a,), (a,)))(given(t, Y)),
        f.grad(lambda a: t.vmap(lambda r: (r * y).sum().exp())(a).sum())(x),
        t.vmap(t.vmap(lambda a, b: a * b, (0, None)), (0, 0))(whole, given(t, Y)),
        t.vmap(lambda a: t.vmap(lambda b: (a * b).sum())(w))(x),
        f.grad(model)(made, y), t.vmap(f.grad(model), (None, 0))(made, whole),
        f.grad(lambda a: t.vmap(lambda r: assign(r * 2, r.sum() * r[1]).sin().sum())(a).sum())(x),
        t.vmap(f.grad(lambda a: t.nn.functional.cross_entropy(a, given(t, I)[0, 0]) + a.std()))(given(t, Y)),
        # outside of every transform the graph goes on
        t.autograd.grad(f.grad(lambda a: (a * v[0]).sin().sum())(y).sum(), v)
        if (v := [given(t, Y[1]).requires_grad_()]) else (),
    ]  # fmt: skip


# PyTorch's forward mode warns of itself.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("device", DEVICES)
def test_transforms(device):
    with pellucid.device(device):
        for k, (mine, theirs) in enumerate(zip(transforms(pellucid), transforms(torch), strict=True)):
            try:
                compare(mine, theirs)
            except AssertionError as error:
                raise AssertionError(f"row {k}: {error}") from None
        assert not pellucid.func.grad(lambda a: a.sin().sum())(pellucid.ones(3)).requires_grad


def test_dims_and_chunks():
    for t in (torch, pellucid):
        with pellucid.device("cpu"):
            x = given(t, X)
            f = lambda a, b, k: (a["x"] * b, a["x"].sum() + k)  # noqa: E731
            mine = t.vmap(f, in_dims=({"x": 1}, None, None), out_dims=(1, 0))({"x": x}, given(t, Y[0]), 2)
            chunked = t.vmap(lambda a: a.sum(), in_dims=-1, chunk_size=2)(x)
            if t is torch:
                theirs = [*mine, chunked]
            else:
                compare([*mine, chunked], theirs)


def test_random_numbers_of_examples():
    with pellucid.device("cpu"):
        x = pellucid.zeros(3, 4)
        drop = lambda a: pellucid.nn.functional.dropout(a + 1, 0.5)  # noqa: E731
        with pytest.raises(RuntimeError, match="randomness error mode"):
            pellucid.vmap(drop)(x)
        same = pellucid.vmap(drop, randomness="same")(pellucid.zeros(3, 64))
        assert (same == same[0]).all()
        other = pellucid.vmap(drop, randomness="different")(pellucid.zeros(3, 64))
        assert not (other == other[0]).all()
        assert pellucid.vmap(lambda a: a + pellucid.rand(4), randomness="same")(x).std(0).sum() < 1e-6
        assert pellucid.vmap(lambda a: a + pellucid.rand(4), randomness="different")(x).std(0).sum() > 0
        with pytest.raises(RuntimeError, match="not there with randomness='different'"):
            pellucid.vmap(lambda a: a + pellucid.randperm(4), randomness="different")(x)


def test_refusals():
    p = pellucid
    x = p.ones(3, 4, device="cpu")
    for call, text in (
        (lambda: p.vmap(lambda a: a.sum().item())(x), "^vmap: the values of one example"),
        (lambda: p.vmap(lambda a: a if a.sum() > 0 else -a)(x), "vmap: the values"),
        (lambda: p.vmap(lambda a: p.zeros(4, device="cpu").add_(a))(x), "values of a batch do not fit"),
        (
            lambda: p.vmap(lambda a: a.T.view(6).add_(1))(p.ones(2, 3, 2, device="cpu")),
            "is a copy within vmap",
        ),
        (lambda: p.vmap(lambda a: 3)(x), "must only return Tensors"),
        (lambda: p.vmap(lambda a, b: a)(x, x[:2]), "same size in the mapped dimension"),
        (lambda: p.vmap(lambda a: a, in_dims=None)(x), "None for all"),
        (lambda: p.vmap(lambda a: a, in_dims=2)(x), "in_dim=2"),
        (lambda: p.vmap(lambda a: a, out_dims=None)(x), "differs between examples"),
        (lambda: p.vmap(lambda a: a)(3), "no Tensor"),
        (lambda: p.vmap(lambda a: a.as_strided((2,), (1,)))(x.T), "in one piece"),
        (lambda: p.vmap(lambda a: a.as_strided((5,), (1,)))(x), "reaches elements"),
        (lambda: p.func.grad(p.sin)(x), "scalar tensor"),
        (lambda: p.func.grad(lambda a: a)(3), "floating-point Tensors"),
        (lambda: p.func.vjp(p.sin, x)[1](x[0]), "cotangents have shape"),
        (lambda: p.func.functional_call(3, {}, x), "must be a Module"),
        (lambda: p.func.functional_call(p.nn.Linear(4, 1), {"w": x}, x, strict=True), "unexpected"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_stacked_models():
    with pellucid.device("cpu"):
        models = [pellucid.nn.Linear(5, 2) for _ in range(3)]
        params, buffers = pellucid.func.stack_module_state(models)
        assert params["weight"].requires_grad
        assert buffers == {}
        y = pellucid.tensor(Y)
        call = lambda p: pellucid.func.functional_call(models[0], p, y)  # noqa: E731
        out = pellucid.vmap(call)(params)
        np.testing.assert_allclose(
            out.detach().numpy(), np.stack([m(y).detach().numpy() for m in models]), rtol=1e-4
        )
        out.sum().backward()
        assert params["weight"].grad.shape == (3, 2, 5)
