"""Tangents of dual tensors beside PyTorch's forward mode: families of ops, graphs outside, vmap, refusals."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.autograd import forward_ad
from pellucid.errors import GradientError

# PyTorch's forward mode warns of itself.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
DEVICES = ["cpu", "webgpu"]
X, V = (np.random.default_rng(5).uniform(-1, 1, (2, 3, 4, 4)).astype(np.float32) for _ in range(2))
OPS = {
    "elementwise": lambda p, x: p.atan2(x.sin() * x.exp(), x + 2).sigmoid() ** 2 / (x.abs() + 1),
    "activations": lambda p, x: (
        p.nn.functional.gelu(x) + p.nn.functional.softplus(x).tanh() + p.special.erfcx(x)
    ),
    "reductions": lambda p, x: x.var(0) + x.logsumexp(1).sum() + x.amax() + x.prod(1).mean() + x.norm(dim=0),
    "scans": lambda p, x: x.cumsum(1) + x.cumprod(2) + x.cummax(3)[0] + p.logcumsumexp(x, 3),
    "what cancels": lambda p, x: (y := p.logcumsumexp(x, 3)) - y.flip(3),
    "orders": lambda p, x: x.sort(-1)[0] + x.topk(4)[0] + x.median(-1, True)[0] + x.quantile(0.3),
    "indexing": lambda p, x: x[:, [0, 2, 2]].roll(1, 0).flip(1)[..., 1:] * p.where(x > 0, x, 2 * x)[..., 1:],
    "scatter": lambda p, x: x.flatten().scatter_add(0, (x.flatten() > 0).long(), x.flatten().exp()),
    "in place": lambda p, x: x.clone().mul_(x).add_(1).clamp_(0, 1.5),
    "products": lambda p, x: x @ x.mT + p.einsum("abij,abkj->abik", x, x.cos()),
    "convolution": lambda p, x: p.nn.functional.conv2d(x, x.reshape(2, 3, 4, 4)[..., :2, :2]),
    "pooling": lambda p, x: p.nn.functional.max_pool2d(p.nn.functional.avg_pool2d(x, 2, 1), 2),
    "norms": lambda p, x: p.nn.functional.layer_norm(x, (4,)) + p.nn.functional.group_norm(x, 3),
    "batch norm": lambda p, x: p.nn.functional.batch_norm(x, x.new_zeros(3), x.new_ones(3), training=True),
    "attention": lambda p, x: (
        p.nn.functional.scaled_dot_product_attention(x, x.tanh(), x * 2)
        if p is pellucid
        else (x @ x.tanh().mT / 2).softmax(-1) @ (x * 2)
    ),
    "losses": lambda p, x: (
        p.nn.functional.cross_entropy(x[:, :, 0], (x[:, 0, 1] > 0).long()) + x.softmax(1).log()
    ),
    "linalg": lambda p, x: p.linalg.inv(x + 4 * p.eye(4, device=x.device)) + p.linalg.matrix_exp(x),
    "fft": lambda p, x: p.fft.rfft(x).abs() + p.fft.irfft2(p.fft.fft2(x))[..., :3],
}


def tensors(p, *arrays):
    return [p.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]


@pytest.mark.turns(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPS)
def test_tangents_of_ops(name, device):
    def run(p):
        ad = p.autograd.forward_ad
        with ad.dual_level():
            y = OPS[name](p, ad.make_dual(*tensors(p, X, V)))
            return [np.array(t.detach().tolist()) for t in ad.unpack_dual(y)]

    with pellucid.device(device):
        mine = run(pellucid)
    for a, b in zip(mine, run(torch), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def programs(p):
    ad, (x, v, w) = (
        p.autograd.forward_ad,
        tensors(p, *(np.array(a, np.float32) for a in ([1, 2], [0.5, -1], [2, 3]))),
    )
    w.requires_grad_()
    with ad.dual_level():
        d = ad.make_dual(x, v)
        y = d * w * w
        primal, tangent = ad.unpack_dual(y)
        yield [
            t if t is None else t.tolist() for t in (*ad.unpack_dual(d), ad.unpack_dual(d.detach()).tangent)
        ]
        # neither what took no part nor an unpacked primal has a tangent, but derivatives go on from both
        yield [ad.unpack_dual(t).tangent for t in (x, primal * 2, d > 1)]
        yield p.autograd.grad(tangent.sum() + primal.sum(), w, retain_graph=True)[0].tolist()
        yield ad.unpack_dual(ad.make_dual(primal, tangent) ** 2).tangent.tolist()
    yield [ad.unpack_dual(d).tangent, p.is_grad_enabled()]
    with p.no_grad():
        with ad.dual_level():
            tangent = ad.unpack_dual(ad.make_dual(w, v) ** 2).tangent
        yield tangent.tolist(), tangent.requires_grad, p.is_grad_enabled()
    with ad.dual_level():
        tangent = ad.unpack_dual((ad.make_dual(w, v) ** 2).sum()).tangent
    yield p.autograd.grad(tangent, w)[0].tolist()
    direction = v.clone().requires_grad_()
    with ad.dual_level():
        tangent = ad.unpack_dual(ad.make_dual(x, direction) ** 2).tangent
    yield p.autograd.grad(tangent.sum(), direction)[0].tolist()

    @ad.dual_level()
    def column(u):
        return ad.unpack_dual((ad.make_dual(x, u) ** 2).cumsum(0)).tangent

    yield (p.vmap if p is pellucid else torch._vmap_internals._vmap)(column)(p.eye(2)).tolist()
    model = p.nn.Linear(2, 1)
    with ad.dual_level():
        for name, t in list(model.named_parameters()):
            delattr(model, name)
            setattr(model, name, ad.make_dual(t, p.ones_like(t)))
        yield ad.unpack_dual(model(x)).tangent.tolist()
        z = p.complex(x, v)
        square = ad.unpack_dual(ad.make_dual(z, z * 1j) ** 2).tangent
        yield [part.tolist() for part in (square.real, square.imag)]


def test_programs():
    with pellucid.device("cpu"):
        for k, (mine, theirs) in enumerate(zip(programs(pellucid), programs(torch), strict=True)):
            assert mine == theirs, f"program {k}"


def misuses(p):
    ad, (x, v) = p.autograd.forward_ad, tensors(p, X, V)

    def inside(call):
        with ad.dual_level():
            call()

    yield lambda: ad.make_dual(x, v)
    yield ad.exit_dual_level
    yield lambda: inside(ad.enter_dual_level)
    yield lambda: inside(lambda: ad.make_dual(x.long(), v))
    yield lambda: inside(lambda: ad.make_dual(x, v[0]))
    yield lambda: inside(lambda: ad.make_dual(ad.make_dual(x, v), v))


def test_misuse_is_an_error_as_in_pytorch():
    with pellucid.device("cpu"):
        for mine, theirs in zip(misuses(pellucid), misuses(torch), strict=True):
            for call in (theirs, mine):
                with pytest.raises((RuntimeError, ValueError)):
                    call()
    assert pellucid.autograd.forward_ad.unpack_dual(pellucid.ones(1)).tangent is None


@pytest.mark.parametrize("mode", [pellucid.no_grad, lambda: pellucid.set_grad_enabled(False)])
def test_what_would_lose_a_tangent_is_refused(mode):
    ad, x = pellucid.autograd.forward_ad, pellucid.ones(2, device="cpu")

    @pellucid.no_grad
    def decorated(t):
        return t * 2

    with ad.dual_level():
        d = ad.make_dual(x, x)
        with pytest.raises(GradientError, match="lose its tangent"), mode():
            pass
        with pytest.raises(GradientError, match="lose its tangent"):
            decorated(d)
        with pytest.raises(GradientError, match="within the vmap"):
            pellucid.vmap(lambda t: ad.unpack_dual(t * 2).tangent)(d)
        with pytest.raises(GradientError, match="no derivative"):
            ad.unpack_dual(pellucid.heaviside(d, d))
        assert ad.unpack_dual(d * 2).tangent.tolist() == [2, 2]
    assert pellucid.is_grad_enabled()
    assert decorated(x).tolist() == [2, 2]


def test_a_layer_is_made_within_a_level():
    """What fills its parameters has no tangent to lose."""
    with forward_ad.dual_level():
        layer = pellucid.nn.Linear(3, 2, device="cpu")
        x = forward_ad.make_dual(pellucid.zeros(3, device="cpu"), pellucid.ones(3, device="cpu"))
        tangent = forward_ad.unpack_dual(layer(x)).tangent
    assert tangent.allclose(layer.weight.sum(1))
