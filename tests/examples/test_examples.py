"""Each example at reduced size: it learns, as the same file does with PyTorch, with one submission a step.

PyTorch draws Pellucid's random numbers here, so both begin with the same weights and see the same examples.
"""

import itertools
import json
import os
import re
import sys
import types
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import pellucid
from pellucid.device.stream import stream

from paths import ROOT

FOLDER = ROOT / "examples"
COMPARED = 6  # steps beside PyTorch's
TITLE = 62  # letters of a picture's title that are seen
# Arguments of the reduced size, and a bound on the mean of the last five losses that no untrained
# model reaches.
SMALL = {
    "nano_gpt": ({"steps": 25, "batch": 8, "context": 6, "width": 32, "layers": 1}, 3.6),
    "induction_heads": ({"steps": 45, "batch": 32, "letters": 4, "length": 8, "width": 32}, 1.3),
    "digits": ({"steps": 30, "batch": 32, "width": 8}, 2.1),
    "diffusion": ({"steps": 40, "batch": 64, "width": 32}, 0.8),
    "diffusion_digits": ({"steps": 90, "batch": 64, "width": 64, "depth": 1}, 0.85),
    "vae": ({"steps": 60, "batch": 32, "width": 32}, 38),
    "superposition": ({"steps": 100, "batch": 512}, 0.8),
    "reinforce": ({"steps": 12, "carts": 16, "moments": 40}, 0.35),
    "pinn": ({"steps": 20, "batch": 64, "width": 16}, 5.0),
    "adversarial": ({"steps": 50, "batch": 32, "width": 32}, 4.3),
    "grad_cam": ({"steps": 30, "batch": 16, "width": 4, "scraps": 0}, 2.35),
    "lstm": ({"steps": 30, "batch": 16, "length": 12, "width": 8}, 1.0),
    "word_vectors": ({"steps": 30, "batch": 64, "width": 8}, 7.0),
    "gan": ({"steps": 60, "batch": 32, "width": 16}, 1.3),
    "graph": ({"steps": 30, "width": 8}, 0.8),
    "neural_ode": ({"steps": 30, "batch": 32, "length": 3, "width": 16}, 0.14),
}


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """Examples import `pictures`, which lies beside them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    with pellucid.webgpu.fusion(False):  # kernels of single ops serve all examples
        yield
    sys.modules.pop("pictures", None)


def loaded(name: str, change: Callable[[str], str] = str) -> types.ModuleType:
    path = FOLDER / f"{name}.py"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(compile(change(path.read_text(encoding="utf-8")), str(path), "exec"), vars(module))
    return module


def with_pytorch(source: str) -> str:
    """The same program on PyTorch, as far as it trains: a lens comes after that."""
    assert "import pellucid as torch\n" in source
    source = source.replace("import pellucid as torch", "import torch").replace(
        "import lens, nn", "import nn"
    )
    return re.sub(r"^from pellucid\b", "from torch", source, flags=re.MULTILINE)


@pytest.fixture
def pytorch_draws_pellucids_numbers(monkeypatch):
    def taken(value: pellucid.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(value.numpy()))

    def drawing(name: str) -> Callable:
        return lambda *given, **options: taken(getattr(pellucid, name)(*given, **options))

    def filling(name: str) -> Callable:
        def fill(self, *given, generator=None):
            with torch.no_grad():
                return self.copy_(taken(getattr(pellucid.empty(*self.shape), name)(*given)))

        return fill

    for name in ("rand", "randn", "randint"):
        monkeypatch.setattr(torch, name, drawing(name))
    for name in ("uniform_", "normal_"):
        monkeypatch.setattr(torch.Tensor, name, filling(name))
    monkeypatch.setattr(torch, "randn_like", lambda x: torch.randn(*x.shape))
    monkeypatch.setattr(
        torch, "multinomial", lambda p, n: taken(pellucid.multinomial(pellucid.tensor(p.numpy()), n))
    )
    monkeypatch.setattr(torch, "manual_seed", pellucid.manual_seed)
    monkeypatch.setattr(torch, "compile", lambda function: function)


def test_every_example_is_listed_and_has_a_reduced_size():
    listed = json.loads((FOLDER / "list.json").read_text(encoding="utf-8"))
    found = {path.stem for path in FOLDER.glob("*.py")} - {"pictures"}
    assert set(listed) == found == set(SMALL)


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", SMALL)
def test_an_example_learns_as_with_pytorch(name, pytorch_draws_pellucids_numbers):
    given, bound = SMALL[name]
    ours = loaded(name)
    pictures = sys.modules["pictures"]
    losses, shown, submits = [], [], [[]]
    for found in ours.main(**given):
        counted = stream().open().stats()["submits"]
        if isinstance(found, pictures.Picture):
            shown.append(found)
            submits.append([])  # what comes now may be another step, which has to be captured first
        else:
            losses.append(found)
            submits[-1].append(counted)
    losses = torch.stack([torch.tensor(loss.item()) for loss in losses]).tolist()
    assert losses[0] > bound > np.mean(losses[-5:]), [round(loss, 4) for loss in losses]
    replayed = {after - before for phase in submits for before, after in itertools.pairwise(phase[3:])}
    # Checked steps read what every op makes.
    assert replayed == {1} or os.environ.get("PELLUCID_CHECK") == "1"

    assert shown
    for picture in shown:
        arrays = {k: v.detach().numpy() if hasattr(v, "detach") else v for k, v in picture.tensors.items()}
        svg = picture.svg(arrays)
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub('base64,[^"]*', "", svg)
        assert len(picture.title) <= TITLE

    theirs = loaded(name, with_pytorch)
    steps = (float(x) for x in theirs.main(**given) if not isinstance(x, pictures.Picture))
    np.testing.assert_allclose(
        losses[:COMPARED], list(itertools.islice(steps, COMPARED)), rtol=1e-3, atol=1e-3
    )
