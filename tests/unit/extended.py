"""Runs the examples of docs/extending.md in a folder with the files that they load, and looks closer."""

import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import save_file

import pellucid as torch

PAGE, FOLDER = map(Path, sys.argv[1:])
RANDOM = np.random.default_rng(0)
ROWS, COLUMNS = 70, 64


def weights() -> dict[str, np.ndarray]:
    shapes = {"model.embed_tokens": (ROWS, COLUMNS), "lm_head": (ROWS, COLUMNS), "model.norm": (COLUMNS,)}
    shapes |= {f"model.layers.{k}.up": (COLUMNS, COLUMNS) for k in range(2)}
    return {f"{n}.weight": RANDOM.standard_normal(s).astype(np.float32) / 4 for n, s in shapes.items()}


def write_folder(folder: Path, tensors: dict[str, np.ndarray], **keys) -> None:
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    config = {"model_type": "mixer", "vocab_size": ROWS, "hidden_size": COLUMNS, "num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps({**config, **keys}))


def write_gguf(path: Path, tensors: dict[str, np.ndarray]) -> None:
    writer = gguf.GGUFWriter(path, "mixer")
    writer.add_embedding_length(COLUMNS)
    writer.add_block_count(2)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, value in tensors.items():
        stem = name.removesuffix(".weight")
        inner = re.sub(r"model\.layers\.(\d)\.up", r"blk.\1.ffn_up", stem)
        writer.add_tensor(f"{names.get(stem, inner)}.weight", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ternary(value: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Codes of 2 bits, four a byte, with a scale for each row; and the values."""
    scale = np.abs(value).mean(1).astype(np.float32)
    codes = np.clip(np.rint(value / scale[:, None]), -1, 1)
    bits = (codes + 1).astype(np.uint8).reshape(len(value), -1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
    packed = np.bitwise_or.reduce(bits, axis=2)
    return {"codes": packed, "scale": scale}, scale[:, None] * codes.astype(np.float32)


def logits(tensors: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    x = tensors["model.embed_tokens.weight"][ids]
    for k in range(2):
        up = x @ tensors[f"model.layers.{k}.up.weight"].T
        x = x + up / (1 + np.abs(up))
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * tensors["model.norm.weight"]
    return x @ tensors["lm_head.weight"].T


plain = weights()
write_folder(FOLDER / "mixer", plain)
write_gguf(FOLDER / "mixer.gguf", plain)
stored, rounded = dict(plain), dict(plain)
for layer in ("model.layers.0.up", "model.layers.1.up"):
    parts, rounded[f"{layer}.weight"] = ternary(stored.pop(f"{layer}.weight"))
    stored |= {f"{layer}.{part}": value for part, value in parts.items()}
write_folder(FOLDER / "mixer-ternary", stored, quantization_config={"quant_method": "ternary"})

blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
assert len(blocks) == 5
names: dict = {"__name__": "examples"}
for block in blocks:
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(block, PAGE.name, "exec"), names)
    promised = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)
    assert said.getvalue().splitlines() == promised, said.getvalue()

squash, swap_pairs, model, same, packed = (
    names[n] for n in ("squash", "swap_pairs", "model", "same", "packed")
)
values = RANDOM.standard_normal((6, 8)).astype(np.float32)
for device in ("cpu", "webgpu"):
    x = torch.tensor(values, device=device, requires_grad=True)
    swap_pairs((x * 2).squash()).squash().sum().backward()
    once = 2 * values / (1 + np.abs(2 * values))
    slope = 1 / (1 + np.abs(once)) ** 2 * 2 / (1 + np.abs(2 * values)) ** 2
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-5)
    y = torch.tensor(values, device=device)
    assert y.squash_() is y
    np.testing.assert_allclose(y.numpy(), values / (1 + np.abs(values)), rtol=1e-6)
    assert squash(torch.tensor([3], device=device)).tolist() == [0.75]

# Fused: one dispatch for all of it, once the window is known.
given = torch.tensor(values, device="webgpu")
wanted = swap_pairs((given * 2).squash()).squash().numpy()


def chain():
    return swap_pairs((given * 2).squash()).squash()


with torch.webgpu.fusion(True):
    for _ in range(4):
        np.testing.assert_array_equal(chain().numpy(), wanted)
    with torch.debug.trace() as trace:
        kept = chain()
        kept.numpy()
assert len(list(trace)) == 1, trace

# Captured: replays run what was recorded.
captured = torch.compile(lambda x: swap_pairs((x * 2).squash()).squash())
for k in range(4):
    moved = torch.tensor(values + k, device="webgpu")
    expected = swap_pairs((moved * 2).squash()).squash()
    np.testing.assert_array_equal(captured(moved).numpy(), expected.numpy())

ids = RANDOM.integers(0, ROWS, (3, 5))
for device in ("cpu", "webgpu"):
    where = torch.tensor(ids, device=device)
    for source, tensors in (("mixer", plain), ("mixer.gguf", plain), ("mixer-ternary", rounded)):
        loaded = torch.AutoModelForCausalLM.from_pretrained(source, device=device)
        assert type(loaded) is type(model) is type(same) is type(packed)
        with torch.no_grad():
            np.testing.assert_allclose(loaded(where).logits.numpy(), logits(tensors, ids), atol=1e-4)
            one = loaded(where[:1, :1]).logits.numpy()
        np.testing.assert_allclose(one, logits(tensors, ids[:1, :1]), atol=1e-4)
        weight = loaded.model.layers[0].up.weight
        if source == "mixer-ternary":
            assert repr(weight.dtype) == "pellucid.ternary"
            weight = weight.dequantize()
        np.testing.assert_array_equal(weight.detach().numpy(), tensors["model.layers.0.up.weight"])

with pytest.raises(torch.errors.FormatError, match="ternary: there is such a dtype already"):
    names["QuantFormat"](name="ternary", planes=(), values=len)
with pytest.raises(torch.errors.FormatError, match="none: has 0 planes"):
    names["QuantFormat"](name="none", planes=(), values=len)
with pytest.raises(TypeError, match=r"model_types is 'mixer'\. Give a tuple"):
    type("Another", (names["CausalLM"],), {"model_types": "mixer"})
with pytest.raises(FileExistsError, match=r"swap_pairs\.wgsl already"):
    names["define"]("mine/swap_pairs", "")
print("passed")
