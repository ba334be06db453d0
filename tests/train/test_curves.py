"""Fifty steps of each family of models: captured losses beside PyTorch's, from the same weights and data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import pellucid
from models.tiny import loaded, made, saved
from pellucid import physics
from pellucid.op.jit.compiled import Compiled
from pellucid.train import LoraConfig, get_peft_model

STEPS, WORDS = 50, 12
LLAMA = Path(__file__).parents[1] / "golden" / "peft" / "llama"
Pair = tuple[Any, Callable, Any, Callable]  # a model and the loss of a batch: Pellucid's, PyTorch's


def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def sentences() -> list[list[np.ndarray]]:
    """Rows that count on from a word; a batch for each step."""
    starts = draw(0).integers(0, WORDS, (STEPS, 4, 1))
    return [[(start + np.arange(8)) % WORDS] for start in starts]


def spoken(model: Any) -> Callable:
    """The loss of a language model."""
    return lambda ids: model(ids, labels=ids).loss


def checkpoint(name: str, folder: Path) -> Pair:
    theirs = made(name)
    ours = loaded(saved(theirs, folder), "webgpu", dtype=pellucid.float32)
    return ours, spoken(ours), theirs, spoken(theirs)


def copied(make: Callable[[Any], tuple[Any, Callable]]) -> Pair:
    """The same program on both, PyTorch's with Pellucid's weights."""
    ours, theirs = make(pellucid), make(torch)
    theirs[0].load_state_dict({k: torch.tensor(v.cpu().numpy()) for k, v in ours[0].state_dict().items()})
    return *ours, *theirs


def convolutions(lib: Any) -> tuple[Any, Callable]:
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3),
        nn.GELU(), nn.Flatten(), nn.Linear(32, 3),
    )  # fmt: skip
    return model, lambda x, y: nn.functional.cross_entropy(model(x), y)


def images() -> list[list[np.ndarray]]:
    """Noise over a bright row, of which there are three."""
    labels = draw(1).integers(0, 3, (STEPS, 8))
    x = draw(2).normal(size=(STEPS, 8, 1, 8, 8)).astype(np.float32)
    for row in range(3):
        x[..., 2 * row + 1, :] += (labels == row)[..., None, None] * 2
    return [[*batch] for batch in zip(x, labels, strict=True)]


def recurrent(lib: Any) -> tuple[Any, Callable]:
    nn = lib.nn
    parts = nn.ModuleList([nn.Embedding(WORDS, 8), nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, WORDS)])

    def loss(ids: Any) -> Any:
        embedding, layers, head = parts
        logits = head(layers(embedding(ids[:, :-1]))[0])
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    return parts, loss


def pendulum() -> Pair:
    """The energy of a pendulum, learned from velocities and forces: derivatives of derivatives."""
    ours = physics.HamiltonianNetwork(1, hidden=16, layers=2)
    theirs = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(),
        torch.nn.Linear(16, 1),
    )  # fmt: skip
    theirs.load_state_dict({k: torch.tensor(v.cpu().numpy()) for k, v in ours.net.state_dict().items()})

    def gradients(q: torch.Tensor, p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.cat([q, p], -1).requires_grad_()
        (g,) = torch.autograd.grad(theirs(x).sum(), x, create_graph=True)
        return g[:, 1:], -g[:, :1]

    def loss(motion: Callable) -> Callable:
        def measure(q: Any, p: Any) -> Any:
            velocity, force = motion(q, p)
            return (velocity - p).square().mean() + (force + q.sin()).square().mean()

        return measure

    return ours, loss(ours), theirs, loss(gradients)


class Lora(torch.nn.Module):
    """``base(x) + x A^T B^T alpha / r``, of Hu et al. 2021."""

    def __init__(self, base: torch.nn.Module, A: Any, B: Any, scale: float):
        super().__init__()
        self.base, self.scale = base, scale
        self.A, self.B = (torch.nn.Parameter(torch.tensor(x.detach().cpu().numpy())) for x in (A, B))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + x @ self.A.T @ self.B.T * self.scale


def adapted() -> Pair:
    base = pellucid.AutoModelForCausalLM.from_pretrained(str(LLAMA), device="webgpu")
    ours = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(LLAMA).requires_grad_(False)
    for mine, other in zip(base.model.layers, theirs.model.layers, strict=True):
        for name in ("q_proj", "v_proj"):
            layer = getattr(mine.self_attn, name)
            matrices = layer.lora_A["default"].weight, layer.lora_B["default"].weight
            setattr(other.self_attn, name, Lora(getattr(other.self_attn, name), *matrices, 2.0))
    return ours, spoken(ours), theirs, spoken(theirs)


def swings() -> list[list[np.ndarray]]:
    """Angles and momenta, a batch for each step."""
    return [[*batch] for batch in draw(3).uniform(-1.5, 1.5, (STEPS, 2, 16, 1)).astype(np.float32)]


# What is trained, on which batches, at which rate.
FAMILIES: dict[str, tuple[Callable[[Path], Pair], Callable[[], list[list[np.ndarray]]], float]] = {
    "GPT": (lambda folder: checkpoint("gpt2", folder), sentences, 1e-2),
    "CNN": (lambda folder: copied(convolutions), images, 1e-2),
    "LSTM": (lambda folder: copied(recurrent), sentences, 1e-2),
    "Mamba": (lambda folder: checkpoint("mamba", folder), sentences, 1e-2),
    "LoRA": (lambda folder: adapted(), sentences, 3e-2),
    "physics": (lambda folder: pendulum(), swings, 1e-2),
}


def losses(
    lib: Any, model: Any, loss_of: Callable, batches: list[list[np.ndarray]], rate: float
) -> list[float]:
    optimizer = lib.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate)

    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    take = lib.compile(step) if lib is pellucid else step
    found = [take(*[lib.tensor(a) for a in batch]) for batch in batches]
    if isinstance(take, Compiled):
        assert take.explain().replays >= STEPS - 3
    return [loss.item() for loss in found]


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES)
def test_fifty_steps_of_a_family_equal_pytorch(family, tmp_path):
    make, data, rate = FAMILIES[family]
    pellucid.manual_seed(0)
    ours, our_loss, theirs, their_loss = make(tmp_path)
    with pellucid.webgpu.fusion(False):
        found = losses(pellucid, ours, our_loss, data(), rate)
    np.testing.assert_allclose(found, losses(torch, theirs, their_loss, data(), rate), rtol=0, atol=1e-3)
    assert np.mean(found[-5:]) < 0.5 * np.mean(found[:3]), found
