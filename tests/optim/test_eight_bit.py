"""Adam with 8-bit state: the map, what a block loses, training beside Adam's."""

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.nn import functional as F
from pellucid.optim.eight_bit import dequantize_blockwise, dynamic_map, quantize_blockwise


@pytest.mark.parametrize("signed", [True, False])
def test_the_dynamic_map(signed):
    """Sorted, with 0 and 1; within each decade steps are even, and decades have twice the numbers of the
    last.
    """
    values = dynamic_map(signed)
    assert len(values) == 256
    assert values[-1] == 1
    assert 0 in values
    assert (np.diff(values) >= 0).all()
    assert values[0] == (pytest.approx(-0.99297, abs=1e-4) if signed else 0)
    decade = values[(values > 0.1) & (values < 1)]
    np.testing.assert_allclose(np.diff(decade), 0.9 / len(decade), rtol=1e-2)
    assert len(decade) == (64 if signed else 128)


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_a_block_keeps_numbers_over_seven_decades(device):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((30, 40)) * 10.0 ** rng.integers(-6, 1, (30, 40))).astype(np.float32)
    grid = dynamic_map(True)
    values, bounds = (
        torch.tensor(grid, device=device),
        torch.tensor((grid[:-1] + grid[1:]) / 2, device=device),
    )
    codes, sizes = quantize_blockwise(torch.tensor(x, device=device), bounds, 256)
    found = dequantize_blockwise(codes, sizes, values, (30, 40)).numpy()
    scale = np.abs(np.pad(x.reshape(-1), (0, -x.size % 256)).reshape(-1, 256)).max(1)
    size = np.repeat(scale, 256)[: x.size].reshape(x.shape)
    # The nearest number of the map.
    exact = grid[np.abs(x[..., None] / size[..., None] - grid).argmin(-1)] * size
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-7)
    assert (codes.dtype, codes.shape, sizes.shape) == (torch.uint8, (5, 256), (5, 1))


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_training_is_nearly_that_of_float_state(name):
    x = torch.tensor(np.random.default_rng(0).standard_normal((128, 16)).astype(np.float32), device="cpu")
    y = (x[:, :1] * x[:, 1:2]).tanh()
    ends = {}
    for kind in (name, f"{name}8bit"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(16, 64, device="cpu"), torch.nn.Tanh(), torch.nn.Linear(64, 1, device="cpu")
        )
        options = {"min_8bit_size": 64, "block_size": 64} if kind.endswith("8bit") else {}
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, weight_decay=0.01, **options)
        for _ in range(50):
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        ends[kind] = loss.item()
    assert ends[f"{name}8bit"] == pytest.approx(ends[name], rel=0.1)
    assert optimizer.state_bytes() < 0.3 * 8 * sum(p.numel() for p in model.parameters())


def test_small_parameters_keep_adams_bits():
    ends = []
    for made in (torch.optim.Adam, torch.optim.Adam8bit):
        w = torch.nn.Parameter(torch.tensor([1.0, -2.0], device="cpu"))
        optimizer = made([w], lr=0.1)
        for _ in range(3):
            w.grad = w.detach() * 2
            optimizer.step()
        ends.append(w.detach().numpy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)


def trained(steps, saved=None, compiled=True):
    """A network after some steps on the GPU: its losses, the optimizer, and submits of the last step."""
    torch.manual_seed(0)
    x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.AdamW8bit(model.parameters(), lr=0.01, min_8bit_size=100, block_size=64)
    if saved is not None:
        optimizer.load_state_dict(saved[0])
        model.load_state_dict(saved[1])

    def step():
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    take, losses, submits = torch.compile(step) if compiled else step, [], 0
    for _ in range(steps):
        before = stream().open().stats()["submits"]
        losses.append(take())
        submits = stream().open().stats()["submits"] - before
    return [loss.item() for loss in losses], optimizer, model, submits


def test_a_captured_step_is_one_submission_with_the_same_bits():
    eager, captured = trained(8, compiled=False), trained(8)
    assert captured[0] == eager[0]
    assert captured[3] == 1


def test_a_state_that_was_saved_goes_on_in_the_same_bits(tmp_path):
    whole = trained(8)[0]
    _, optimizer, model, _ = trained(4)
    torch.save([optimizer.state_dict(), model.state_dict()], tmp_path / "state.pt")
    saved = torch.load(tmp_path / "state.pt")
    assert saved[0]["state"][0]["state1"].dtype is torch.uint8
    assert trained(4, saved)[0] == whole[4:]


def test_what_is_refused():
    w = torch.nn.Parameter(torch.ones(2, device="cpu"))
    with pytest.raises(ValueError, match="block_size=0 must be at least 1"):
        torch.optim.Adam8bit([w], block_size=0)
