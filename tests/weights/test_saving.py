"""Safetensors files that are written: the format's own library reads them."""

import numpy as np
import pytest
import torch
from safetensors.torch import safe_open

import pellucid
from pellucid import weights
from pellucid.errors import ArgumentError

VALUES = np.array([[0, 1, 2], [3, 4, 5]])
NAMES = [
    "float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool",
    "complex64",
]  # fmt: skip


def test_every_dtype_is_read_by_the_formats_library(tmp_path):
    """P-099: every type of safetensors is written."""
    path = tmp_path / "model.safetensors"
    mine = {name: pellucid.tensor(VALUES, dtype=getattr(pellucid, name), device="cpu") for name in NAMES}
    mine |= {
        "on the device": pellucid.ones(2, 3).mT,
        "empty": pellucid.zeros(0, 4),
        "\u00fc": pellucid.tensor(1.5),
    }
    weights.save_file(mine, path, {"format": "pt"})
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert set(file.keys()) == set(mine)
        for name, t in mine.items():
            read = file.get_tensor(name)
            assert str(read.dtype) == f"torch.{t.dtype.name}"
            assert tuple(read.shape) == tuple(t.shape)
            assert read.tolist() == t.tolist()
    assert set(weights.open(str(path))) == set(mine)


def test_a_module_goes_there_and_back(tmp_path):
    model, twin = pellucid.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    weights.save_file(model.state_dict(), tmp_path / "linear.safetensors")
    with safe_open(tmp_path / "linear.safetensors", "pt") as file:
        twin.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    assert twin.weight.tolist() == model.weight.tolist()


@pytest.mark.parametrize("given", [{"x": 1}, {1: pellucid.ones(1)}, {"x": np.ones(1)}], ids=str)
def test_what_is_no_tensor_by_name_is_refused(given, tmp_path):
    with pytest.raises(ArgumentError, match="Give tensors by name"):
        weights.save_file(given, tmp_path / "x")
    with pytest.raises(ArgumentError, match="must be texts"):
        weights.save_file({}, tmp_path / "x", {"a": 1})
    assert not (tmp_path / "x").exists()
