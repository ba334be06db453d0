"""``torch.compile(backend="pellucid")``: the values, gradients and buffers that PyTorch computes."""

import pytest
import torch
from torch import nn


class Net(nn.Module):
    """A norm with running values, and a transposed result."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.norm, self.down = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.norm(self.up(x)).relu()
        return self.down(x).T


def test_forward_backward_and_buffers():
    torch._dynamo.reset()
    wanted, model = Net(), Net()
    fast = torch.compile(model, backend="pellucid")
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (wanted, model)]
    x = torch.randn(5, 4)
    for _ in range(2):  # the second time with weights that were changed
        for call, optimizer in zip((wanted, fast), optimizers, strict=True):
            optimizer.zero_grad()
            call(x).square().sum().backward()
        for a, b in zip(model.parameters(), wanted.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
        for optimizer in optimizers:
            optimizer.step()
    for a, b in zip(model.buffers(), wanted.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        got, result = fast(x), wanted(x)
    torch.testing.assert_close(got, result, rtol=1e-4, atol=1e-4)
    assert got.stride() == result.stride()


def test_what_is_not_known_is_said():
    torch._dynamo.reset()
    fast = torch.compile(lambda x: torch._int_mm(x, x), backend="pellucid", options={"device": "cpu"})
    with pytest.raises(Exception, match=r"operators are not known here: torch\.ops\.aten\._int_mm"):
        fast(torch.zeros(32, 32, dtype=torch.int8))
