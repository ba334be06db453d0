"""What editors accept: the arguments that PyTorch's functions take, also by numpy's names."""

import subprocess
import sys

from paths import ROOT

PROGRAM = """
import pellucid as torch

F = torch.nn.functional
x = torch.rand(size=(2, 3))
x.sum(axis=1, keepdims=True).backward()
x.sum(dim=1, keepdim=True)
torch.softmax(x, axis=0)
torch.cat([x, x], axis=1)
torch.zeros(2, 3, device="cpu").reshape(6).as_subclass(torch.Tensor)
F.interpolate(x[None, None], scale_factor=2, mode="bilinear")
torch.range(1, 4)
"""


def complaints(program, folder):
    file = folder / "program.py"
    file.write_text(program)
    words = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(file)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if " error: " in line]


def test_programs_that_are_right(tmp_path):
    assert not complaints(PROGRAM, tmp_path)


def test_programs_that_are_wrong(tmp_path):
    wrong = "import pellucid as torch\ntorch.ones(2).sum(dims=1)\n"
    assert len(complaints(wrong, tmp_path)) == 1
