"""Random programs give the same with fusion and without, and leave nothing behind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pellucid as torch
from op.fusion.programs import BINARY, UNARY, run

pytestmark = pytest.mark.gpu

step = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 7)),
    st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 7), st.integers(0, 7)),
)
programs = st.lists(step, min_size=1, max_size=14)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    programs, st.sets(st.integers(0, 13), max_size=3), st.sampled_from([(3, 5), (4, 64), (1, 7), (33, 130)])
)
def test_same_with_and_without(program, held, shape):
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    with torch.webgpu.fusion(False):
        plain = run(program, inputs, held)
    with torch.webgpu.fusion(True):
        fused = [run(program, inputs, held) for _ in range(3)]
    for result in fused:
        for a, b in zip(result, plain, strict=True):
            # The compiler behind this device contracts products and sums where it sees both.
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=str(program))


@pytest.mark.parametrize("held", [(), (0,), (1, 2), (0, 1, 2, 3)])
def test_gradients(held):
    """Backward passes fuse too, and give the gradients that they give alone."""
    rng = np.random.default_rng(1)
    x0, w0 = rng.standard_normal((6, 20)).astype(np.float32), rng.standard_normal((20, 20)).astype(np.float32)

    def gradients():
        x, w = torch.tensor(x0, requires_grad=True), torch.tensor(w0, requires_grad=True)
        steps = [x * 2, x.sin() + 1, (x @ w).relu(), torch.softmax(x, -1)]
        kept = [steps[k] for k in held]
        loss = torch.nn.functional.cross_entropy(steps[2] * steps[1] + steps[0] * steps[3], torch.arange(6))
        del steps
        loss.backward()
        return [loss.item(), x.grad.numpy(), w.grad.numpy(), *[t.detach().numpy() for t in kept]]

    with torch.webgpu.fusion(False):
        plain = gradients()
    for _ in range(3):
        for a, b in zip(gradients(), plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
