"""One model as each kind of checkpoint that a folder may hold: the same weights, the same logits."""

import json
import shutil
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import pellucid
from models.tiny import close, loaded, ours, some_ids
from pellucid.errors import SourceError


def in_shards(state, folder):
    names = list(state)
    files = {
        "pytorch_model-00001-of-00002.bin": names[: len(names) // 2],
        "pytorch_model-00002-of-00002.bin": names[len(names) // 2 :],
    }
    for file, inner in files.items():
        torch.save({name: state[name] for name in inner}, folder / file)
    index = {
        "metadata": {"total_size": sum(t.nbytes for t in state.values())},
        "weight_map": {name: file for file, inner in files.items() for name in inner},
    }
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def turned(state, folder):
    """Matrices whose columns lie one after another, as a converter left them."""
    torch.save({k: t.mT.contiguous().mT if t.dim() > 1 else t for k, t in state.items()}, folder / "model.pt")


def in_npz(state, folder, packed=False):
    save: Any = np.savez_compressed if packed else np.savez
    save(folder / "weights.npz", **{k: np.asfortranarray(t.numpy()) for k, t in state.items()})


WAYS = {
    "bin": lambda state, folder: torch.save(state, folder / "pytorch_model.bin"),
    "bin before 1.6": lambda state, folder: torch.save(
        state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False
    ),
    "bin in shards": in_shards,
    "pt": turned,
    "npz": in_npz,
    "npz compressed": partial(in_npz, packed=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_checkpoint_is_the_same_model(twin, tmp_path, device, way):
    model, folder = twin("llama_tied")
    shutil.copy(folder / "config.json", tmp_path)
    WAYS[way](load_file(folder / "model.safetensors"), tmp_path)
    ids = some_ids(2)
    with torch.no_grad():
        wanted = model(torch.tensor(ids)).logits
    with pellucid.no_grad():
        close(loaded(tmp_path, device)(ours(ids, device)).logits, wanted)


def test_halves_of_a_pytorch_file_stay_halves(twin, tmp_path):
    model, folder = twin("llama_tied")
    shutil.copy(folder / "config.json", tmp_path)
    torch.save({k: t.half() for k, t in model.state_dict().items()}, tmp_path / "pytorch_model.bin")
    mine = loaded(tmp_path, "webgpu")
    assert mine.model.layers[0].self_attn.q_proj.weight.dtype.name == "f16"
    assert mine.model.norm.weight.dtype is pellucid.float32


def test_two_files_of_weights_must_be_chosen_from(twin, tmp_path):
    model, folder = twin("llama_tied")
    shutil.copy(folder / "config.json", tmp_path)
    for name in ("best.pt", "last.pt"):
        torch.save(model.state_dict(), tmp_path / name)
    with pytest.raises(SourceError, match=r"2 files of weights \(best.pt, last.pt\).*filename="):
        loaded(tmp_path, "cpu")
    assert loaded(tmp_path, "cpu", filename="best.pt").config.hidden_size == model.config.hidden_size
