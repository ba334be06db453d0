"""Curvature against PyTorch's Hessians, closed-form posteriors and Newton's step; K-FAC; influence;
tangents.
"""

import numpy as np
import pytest
import torch as pytorch

import pellucid as torch
from checked import unchecked
from pellucid import lens
from pellucid.device.stream import stream
from pellucid.nn import functional as F
from pellucid.optim import curvature
from pellucid.optim.curvature.products import conjugate_gradients

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
LABELS = np.array([0, 1, 1, 2, 0, 2])


def networks():
    """A small classifier, ours and PyTorch's."""
    pytorch.manual_seed(0)
    theirs = pytorch.nn.Sequential(pytorch.nn.Linear(3, 4), pytorch.nn.Tanh(), pytorch.nn.Linear(4, 3))
    ours = torch.nn.Sequential(
        torch.nn.Linear(3, 4, device="cpu"), torch.nn.Tanh(), torch.nn.Linear(4, 3, device="cpu")
    )
    ours.load_state_dict({k: torch.tensor(v.numpy(), device="cpu") for k, v in theirs.state_dict().items()})
    return ours, theirs


def hessian_of(theirs, loss):
    """All second derivatives by all parameters, as one matrix."""
    params = list(theirs.parameters())
    slope = pytorch.autograd.grad(loss, params, create_graph=True)
    flat = pytorch.cat([g.reshape(-1) for g in slope])
    rows = [pytorch.autograd.grad(g, params, retain_graph=True) for g in flat]
    return pytorch.stack([pytorch.cat([h.reshape(-1) for h in row]) for row in rows]).numpy()


def jacobian_of(theirs):
    rows = []
    for x in pytorch.tensor(X):
        out = theirs(x)
        made = [pytorch.autograd.grad(o, list(theirs.parameters()), retain_graph=True) for o in out]
        rows.append(pytorch.stack([pytorch.cat([g.reshape(-1) for g in m]) for m in made]))
    return pytorch.stack(rows).numpy()


def split(vector, params):
    sizes = np.cumsum([p.numel() for p in params])[:-1]
    parts = np.split(vector.astype(np.float32), sizes)
    return [torch.tensor(v.reshape(tuple(p.shape)), device="cpu") for v, p in zip(parts, params, strict=True)]


def joined(vectors):
    return np.concatenate([v.numpy().reshape(-1) for v in vectors])


def test_hessian_vector_products_are_pytorchs_hessian():
    ours, theirs = networks()
    hessian = hessian_of(
        theirs, pytorch.nn.functional.cross_entropy(theirs(pytorch.tensor(X)), pytorch.tensor(LABELS))
    )
    params = list(ours.parameters())
    v = np.random.default_rng(1).standard_normal(len(hessian))
    loss = F.cross_entropy(ours(torch.tensor(X, device="cpu")), torch.tensor(LABELS, device="cpu"))
    found = curvature.hessian_vector_product(loss, params, split(v, params))
    np.testing.assert_allclose(joined(found), hessian @ v, atol=2e-5)
    linear = (params[0] * 2).sum()
    assert not joined(curvature.hessian_vector_product(linear, params, split(v, params))).any()


def test_gauss_newton_vector_products():
    """``J' (diag(p) - p p') J v / examples``."""
    ours, theirs = networks()
    jacobian = jacobian_of(theirs)
    share = pytorch.softmax(theirs(pytorch.tensor(X)), -1).detach().numpy()
    inner = np.stack([np.diag(p) - np.outer(p, p) for p in share]) / len(X)
    matrix = np.einsum("nop,noq,nqr->pr", jacobian, inner, jacobian)
    params = list(ours.parameters())
    v = np.random.default_rng(1).standard_normal(len(matrix))
    labels = torch.tensor(LABELS, device="cpu")
    found = curvature.gauss_newton_vector_product(
        lambda y: F.cross_entropy(y, labels), ours(torch.tensor(X, device="cpu")), params, split(v, params)
    )
    np.testing.assert_allclose(joined(found), matrix @ v, atol=2e-5)
    # The Fisher of the model's own classes is the same matrix.
    fisher = curvature.fisher(ours, torch.tensor(X, device="cpu"))
    np.testing.assert_allclose(fisher.numpy(), matrix, atol=2e-5)
    diagonal = curvature.fisher(ours, torch.tensor(X, device="cpu"), diagonal=True)
    np.testing.assert_allclose(diagonal.numpy(), np.diag(matrix), atol=2e-5)


def test_gradients_of_examples_and_the_empirical_fisher():
    ours, theirs = networks()
    rows = []
    for x, label in zip(pytorch.tensor(X), pytorch.tensor(LABELS), strict=True):
        loss = pytorch.nn.functional.cross_entropy(theirs(x[None]), label[None])
        rows.append(
            np.concatenate(
                [g.numpy().reshape(-1) for g in pytorch.autograd.grad(loss, list(theirs.parameters()))]
            )
        )
    x, labels = torch.tensor(X, device="cpu"), torch.tensor(LABELS, device="cpu")
    found = curvature.per_example_gradients(ours, F.cross_entropy, x, labels)
    np.testing.assert_allclose(found.numpy(), rows, atol=1e-5)
    fisher = curvature.fisher(ours, x, labels)
    np.testing.assert_allclose(fisher.numpy(), np.einsum("np,nq->pq", rows, rows) / len(X), atol=1e-5)


def test_a_neural_tangent_kernel_is_the_product_of_jacobians():
    ours, theirs = networks()
    jacobian = jacobian_of(theirs)
    found = lens.neural_tangent_kernel(ours, torch.tensor(X, device="cpu"), torch.tensor(X[:2], device="cpu"))
    np.testing.assert_allclose(found.numpy(), np.einsum("aop,bqp->aboq", jacobian, jacobian[:2]), atol=1e-4)


def test_a_laplace_posterior_of_linear_regression_is_exact():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 2))
    y = x @ [[1.0], [-2.0]] + 0.3 * rng.standard_normal((12, 1))
    covariance = np.linalg.inv(x.T @ x / 0.09 + 2.0 * np.eye(2))
    mean = covariance @ x.T @ y / 0.09
    model = torch.nn.Linear(2, 1, bias=False, device="cpu", dtype=torch.float64)
    model.weight.data = torch.tensor(mean.T, device="cpu")
    inputs, targets = torch.tensor(x, device="cpu"), torch.tensor(y, device="cpu")
    posterior = curvature.LaplacePosterior(model, inputs, "regression", precision=2.0, noise=0.3)
    np.testing.assert_allclose(posterior.covariance.numpy(), covariance, rtol=1e-6)
    value, variance = posterior.predict(inputs[:3])
    np.testing.assert_allclose(value.numpy(), x[:3] @ mean)
    exact = np.einsum("np,pq,nq->n", x[:3], covariance, x[:3]) + 0.09
    np.testing.assert_allclose(variance.squeeze(1).numpy(), exact, rtol=1e-6)
    # The evidence of a linear model: targets are normal about 0.
    spread = 0.09 * np.eye(12) + x @ x.T / 2
    evidence = -(y.T @ np.linalg.solve(spread, y)).item() / 2 - np.linalg.slogdet(2 * np.pi * spread)[1] / 2
    assert posterior.log_marginal_likelihood(inputs, targets).item() == pytest.approx(evidence, rel=1e-6)


def test_a_laplace_posterior_of_a_classifier_doubts_far_away():
    ours, _ = networks()
    posterior = curvature.LaplacePosterior(ours, torch.tensor(X, device="cpu"), "classification")
    near, _ = posterior.predict(torch.tensor(X, device="cpu"))
    np.testing.assert_allclose(near.sum(-1).numpy(), 1, rtol=1e-5)
    plain = F.softmax(ours(torch.tensor(X, device="cpu")), -1)
    assert (near.max(-1).values <= plain.max(-1).values + 1e-6).all().item()
    with pytest.raises(ValueError, match="neither 'regression' nor"):
        curvature.LaplacePosterior(ours, torch.tensor(X, device="cpu"), "ranking")


def test_influence_is_what_leaving_an_example_out_does():
    """Ridge regression: the derivative of the closed-form solution by an example's weight."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 2))
    y = x @ [[1.0], [-1.0]] + 0.5 * rng.standard_normal((10, 1))
    hessian = 2 * x.T @ x / 10
    w = np.linalg.solve(hessian, 2 * x.T @ y / 10)
    model = torch.nn.Linear(2, 1, bias=False, device="cpu", dtype=torch.float64)
    model.weight.data = torch.tensor(w.T, device="cpu")
    inputs, targets = torch.tensor(x, device="cpu"), torch.tensor(y, device="cpu")
    found = lens.influence(
        model, F.mse_loss, (inputs, targets), (inputs[:3], targets[:3]), damping=0.01
    ).numpy()
    test = 2 * x[:3].T @ (x[:3] @ w - y[:3]) / 3
    gradients = 2 * x * (x @ w - y)
    np.testing.assert_allclose(
        found, -gradients @ np.linalg.solve(hessian + 0.01 * np.eye(2), test)[:, 0], rtol=1e-4
    )
    # Leaving one out, by the solution itself.
    changes = []
    for k in range(10):
        left = np.delete(np.arange(10), k)
        without = np.linalg.lstsq(x[left], y[left], rcond=None)[0]
        changes.append(((x[:3] @ without - y[:3]) ** 2).mean() - ((x[:3] @ w - y[:3]) ** 2).mean())
    assert np.corrcoef(-found, changes)[0, 1] > 0.9


def test_conjugate_gradients_refuse_negative_curvature():
    with pytest.raises(ValueError, match="Give more damping"):
        conjugate_gradients(lambda v: [-v[0]], [torch.ones(2, device="cpu")])


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_a_kfac_step_of_one_layer_is_newtons(device):
    """P-096: of squared errors, with G near 1: the least squares solution in one step of rate 1/2."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4000, 3)) * [1, 5, 0.2]).astype(np.float32)
    y = x @ np.array([[1], [-2], [3]], np.float32) + 0.5
    model = torch.nn.Linear(3, 1, device=device)
    optimizer = torch.optim.KFAC(model, lr=0.5, momentum=0.0, damping=1e-8, kl_clip=None)
    out = model(torch.tensor(x, device=device))
    optimizer.observe(out, "squared_error")
    F.mse_loss(out, torch.tensor(y, device=device)).backward()
    optimizer.step()
    np.testing.assert_allclose(model.weight.detach().numpy(), [[1, -2, 3]], atol=0.25)
    np.testing.assert_allclose(model.bias.detach().numpy(), [0.5], atol=0.1)


def test_kfac_learns_faster_than_descent_where_scales_differ():
    x = np.random.default_rng(0).standard_normal((64, 6)).astype(np.float32) * [10, 3, 1, 0.3, 0.1, 0.03]
    labels = torch.tensor((x[:, 0] / 10 + x[:, 4] / 0.1 > 0).astype(np.int64), device="cpu")
    inputs = torch.tensor(x.astype(np.float32), device="cpu")
    ends = {}
    for name in ("KFAC", "SGD"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 8, device="cpu"), torch.nn.Tanh(), torch.nn.Linear(8, 2, device="cpu")
        )
        optimizer = (
            torch.optim.KFAC(model, lr=0.3, damping=1e-3, kl_clip=1e-1)
            if name == "KFAC"
            else torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
        )
        for _ in range(25):
            optimizer.zero_grad()
            out = model(inputs)
            if name == "KFAC":
                optimizer.observe(out, "cross_entropy")
            loss = F.cross_entropy(out, labels)
            loss.backward()
            optimizer.step()
        ends[name] = loss.item()
    assert ends["KFAC"] < 0.5 * ends["SGD"]


def trained(compiled):
    """Eight steps, inverting at every second one: losses, weights, and submissions of the last step."""
    torch.manual_seed(0)
    x, y = torch.randn(32, 6, device="webgpu"), torch.randint(0, 3, (32,), device="webgpu")
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.KFAC(model, lr=0.1, inverse_every=2, weight_decay=1e-3)

    def step():
        optimizer.zero_grad()
        out = model(x)
        optimizer.observe(out, "cross_entropy")
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    take, losses, submits = torch.compile(step) if compiled else step, [], 0
    for k in range(8):
        if k == 6:
            optimizer.param_groups[0]["lr"] = 0.05
        before = stream().open().stats()["submits"]
        losses.append(take())
        submits = stream().open().stats()["submits"] - before
    return [loss.item() for loss in losses], [p.tolist() for p in model.parameters()], submits


@unchecked("windows are counted")
def test_a_captured_kfac_step_is_one_submission_with_the_same_bits():
    with torch.webgpu.fusion(False):
        *eager, _ = trained(compiled=False)
        *captured, submits = trained(compiled=True)
    assert captured == eager
    assert eager[0][-1] < 0.6 * eager[0][0]
    assert submits == 1


def test_a_state_from_before_steps_were_counted_goes_on():
    ends = []
    for is_old in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2, device="cpu")
        x, optimizer = torch.randn(16, 3, device="cpu"), torch.optim.KFAC(model, lr=0.1)
        for k in range(4):
            if is_old and k == 2:
                state = optimizer.state_dict()
                del state["param_groups"][0]["step"]
                optimizer = torch.optim.KFAC(model, lr=0.5)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            (model(x) - x[:, :2]).square().mean().backward()
            optimizer.step()
        ends.append(model.weight.tolist())
    assert ends[0] == ends[1]


def test_what_kfac_refuses():
    model = torch.nn.Linear(2, 2, device="cpu")
    with pytest.raises(TypeError, match="takes the model"):
        torch.optim.KFAC(model.parameters())
    with pytest.raises(ValueError, match="must be above 0"):
        torch.optim.KFAC(model, damping=0.0)
    with pytest.raises(ValueError, match="neither 'cross_entropy' nor"):
        torch.optim.KFAC(model).observe(model(torch.ones(1, 2, device="cpu")), "l1")
