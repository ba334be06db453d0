"""Quantized weights of safetensors, as compressed-tensors, fbgemm, DeepSeek, AutoGPTQ and AutoAWQ do it."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import pellucid
from models.quantized_folders import (
    BYTES,
    CASES,
    COMPRESSED,
    GROUPS,
    WAYS,
    change,
    configure,
    gptq,
    int8,
    normal,
    quantized,
    tiles,
)
from models.tiny import close, loaded, made, ours, saved, some_ids
from pellucid.errors import DTypeError, FormatError, OutOfMemoryError, WeightError
from pellucid.nn.ao.quantization import float_inputs


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_has_its_values(way, tmp_path):
    quantize, settings, format = WAYS[way]
    theirs, folder = quantized(tmp_path, quantize, settings)
    mine = loaded(folder, "webgpu").model.layers[1]
    values = dict(theirs.named_parameters())
    for path in ("mlp.down_proj", "self_attn.k_proj"):
        weight = mine.get_submodule(path).weight
        assert weight.dtype.name == format
        expected = values[f"model.layers.1.{path}.weight"].detach().numpy()
        assert np.array_equal(weight.dequantize().numpy(), expected)


@pytest.mark.parametrize("case", CASES)
def test_a_folder_gives_the_logits_of_its_values(case, tmp_path, device):
    quantize, settings, format = CASES[case]
    theirs, folder = quantized(tmp_path, quantize, settings)
    mine = float_inputs(loaded(folder, device))
    layer = mine.model.layers[1]
    assert {layer.mlp.down_proj.weight.dtype.name, layer.self_attn.k_proj.weight.dtype.name} == {format}
    assert mine.lm_head.weight.dtype is pellucid.float32
    values = dict(theirs.named_parameters())["model.layers.1.mlp.down_proj.weight"].detach().numpy()
    assert np.array_equal(layer.mlp.down_proj.weight.dequantize().numpy(), values)
    assert not any(p.requires_grad for p in mine.parameters())
    ids = some_ids(2, 9)
    with torch.no_grad(), pellucid.no_grad():
        expected = theirs(torch.tensor(ids)).logits
        close(mine(ours(ids, device)).logits, expected, 2e-4)
        close(mine(ours(ids[:1, :1], device)).logits, expected[:1, :1], 2e-4)
        wide = loaded(folder, device, dtype=pellucid.float32)
        assert wide.model.layers[0].mlp.up_proj.weight.dtype is pellucid.float32
        close(wide(ours(ids, device)).logits, expected, 2e-4)


def test_scales_and_embeddings_of_half_precision(tmp_path, device):
    def halves(weight, settings):
        tensors, _ = int8(weight, settings)
        scale = tensors["weight_scale"].bfloat16()
        return {**tensors, "weight_scale": scale}, tensors["weight"].float() * scale.float()

    theirs, folder = quantized(tmp_path, halves, COMPRESSED, "qwen3", torch.bfloat16)
    mine = loaded(folder, device)
    assert mine.model.embed_tokens.weight.dtype.name == "bf16"
    ids = some_ids(1, 7)
    with torch.no_grad(), pellucid.no_grad():
        close(mine(ours(ids, device)).logits, theirs(torch.tensor(ids)).logits, 2e-4)


def refuse(folder, error, words):
    told = []
    with pytest.raises(error, match=words):
        loaded(folder, "webgpu", on_progress=told.append)
    assert not told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"quant_method": "hqq"},
            "'hqq' of quantization_config is not known. There are awq, bitnet, ",
        ),
        ({"bits": 5}, "bits 5 of quantization_config is not read for gptq; 4, 2, 3, 8 can be"),
        ({"bits": None}, "bits None of quantization_config is not read"),
        ({"bits": [4]}, "bits .* of quantization_config is not read"),
        (
            {"quant_method": "awq", "version": "gemv"},
            "version 'gemv' .* is not read for awq; None, gemm can be",
        ),
        ({"group_size": 24}, r"model\.layers\.0.*group_size 24 of 192 columns is not read"),
        ({"group_size": "x"}, "group_size x of"),
        ({"group_size": "x", "bits": 3}, "group_size x is not read; 32 and more can be"),
        ({"desc_act": True, "group_size": 16}, "group_size 16 is not read"),
        ({"bits": 3}, "do not belong together, or columns"),
        ({"group_size": 64}, "do not belong together"),
        ({"checkpoint_format": "marlin"}, "checkpoint_format 'marlin' of .* is not read"),
    ],
)
def test_other_settings_are_refused(tmp_path, settings, words):
    _, folder = quantized(tmp_path, gptq, GROUPS)
    configure(folder, **{**GROUPS, **settings})
    refuse(folder, FormatError, words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bits": 3}, "bits 3 of quantization_config is not read for metal; 2, 4, 8 can be"),
        ({"group_size": 48}, r"model\.layers\.0.*group_size 48 is not read; a multiple of 32 is"),
        ({"group_size": True}, "group_size True is not read"),
        ({"group_size": 32}, "do not belong together, with groups of 32 columns"),
        ({"bits": 8}, r"shapes \(\d+, \d+\), .* do not belong together"),
        ({"quant_method": "eetq"}, "'eetq' .* is not known.* Load another file of the model"),
    ],
)
def test_other_settings_of_metal_are_refused(tmp_path, settings, words):
    quantize, given, _ = CASES["metal"]
    _, folder = quantized(tmp_path, quantize, given)
    configure(folder, **{**given, **settings})
    refuse(folder, FormatError, words)


def test_groups_out_of_order_are_refused(tmp_path):
    _, folder = quantized(tmp_path, gptq, GROUPS)
    change(folder, g_idx=torch.randperm(128, dtype=torch.int32) // 32)
    refuse(folder, FormatError, r"q_proj\.g_idx: the groups of columns are not in order, though desc_act")
    configure(folder, **{**GROUPS, "desc_act": True})
    loaded(folder, "cpu")
    change(folder, g_idx=torch.full((128,), 4, dtype=torch.int32))
    refuse(folder, FormatError, "columns name groups that there are not")
    change(folder, g_idx=torch.full((128,), -1, dtype=torch.int32))
    refuse(folder, FormatError, "columns name groups that there are not")


def test_tensors_beside_a_weight_are_no_larger(tmp_path):
    _, folder = quantized(tmp_path, gptq, GROUPS)
    change(folder, g_idx=torch.zeros(128 * 128 + 1, dtype=torch.int32))
    refuse(folder, FormatError, "more elements than it")
    change(folder, g_idx=torch.zeros(127, dtype=torch.int8))
    refuse(folder, FormatError, "are not in order")


def test_a_bias_that_the_model_does_not_have_must_be_zero(tmp_path):
    _, folder = quantized(tmp_path, gptq, GROUPS)
    change(folder, bias=torch.zeros(128, dtype=torch.float16))
    loaded(folder, "cpu")
    change(folder, bias=torch.ones(128, dtype=torch.float16))
    refuse(folder, FormatError, "the model has no bias here")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (
            {"num_bits": 3},
            "num_bits 3 of quantization_config is not read for compressed-tensors; 4, 8 can be",
        ),
        ({"group_size": 64}, "do not belong together, or columns are not in units"),
        ({"group_size": []}, r"group_size \[\] is not read"),
        (None, "quantize weights in 2 ways"),
    ],
)
def test_other_groups_of_compressed_tensors_are_refused(tmp_path, weights, words):
    settings = WAYS["packed"][1]
    _, folder = quantized(tmp_path, WAYS["packed"][0], settings)
    group = settings["config_groups"]["group_0"]
    other = {**group, "weights": {**group["weights"], **(weights or {"num_bits": 8})}}
    groups = {"group_0": other} if weights else {"group_0": group, "group_1": other}
    configure(folder, **{**settings, "config_groups": groups})
    refuse(folder, FormatError, words)


def test_shapes_that_are_said_must_be_true(tmp_path):
    quantize, settings, _ = WAYS["packed"]
    _, folder = quantized(tmp_path, quantize, settings)
    change(folder, weight_shape=torch.tensor([128, 127]))
    refuse(folder, FormatError, r"weight_shape: the shape is another")


@pytest.mark.parametrize("tile", ["x", [128], [0, 128], [128, 64], [128, 1 << 40]])
def test_other_tiles_are_refused(tmp_path, tile):
    _, folder = quantized(tmp_path, tiles(128, 128), {"quant_method": "fp8", "weight_block_size": [128, 128]})
    configure(folder, quant_method="fp8", weight_block_size=tile)
    refuse(folder, FormatError, "tiles of|is not one scale for each")


def test_zero_points_and_scales_of_groups_are_refused(tmp_path):
    _, folder = quantized(tmp_path, int8, COMPRESSED)
    change(folder, weight_zero_point=torch.ones(128, 1, dtype=torch.int8))
    refuse(folder, FormatError, "zero points are not zero")
    change(folder, weight_scale=torch.ones(128, 4))
    refuse(folder, FormatError, r"weight_scale of shape \(128, 4\).*Scales of groups are not read")


def test_weights_that_were_turned_are_refused(tmp_path):
    _, folder = quantized(tmp_path, int8, {**COMPRESSED, "transform_config": {}})
    loaded(folder, "cpu")
    configure(folder, **COMPRESSED, transform_config={"config_groups": {"u": {"type": "hadamard"}}})
    refuse(folder, FormatError, "transform_config is set")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"shape": [128, 64]}, "are not those of a weight of shape"),
        ({"shape": [1 << 62, 32]}, "are not those of a weight of shape"),
        ({"shape": "x"}, "shape x of quant_state is not that of a matrix"),
        ({"blocksize": 48}, "blocksize 48 of 128 columns is not read"),
        ({"nested_offset": "x"}, "nested_blocksize 256 and nested_offset x"),
        ({"blocksize": [64] * 5000}, "of JSON are allowed"),
        (None, "JSON"),
    ],
)
def test_states_that_do_not_fit_are_refused(tmp_path, state, words):
    _, folder = quantized(tmp_path, normal(True, "nf4"), BYTES)
    name = "weight.quant_state.bitsandbytes__nf4"
    found = load_file(folder / "model.safetensors")[f"model.layers.0.self_attn.q_proj.{name}"]
    text = b"[1" if state is None else json.dumps({**json.loads(found.numpy().tobytes()), **state}).encode()
    change(folder, **{name: torch.from_numpy(np.frombuffer(text, np.uint8).copy())})
    refuse(folder, FormatError, words)


def test_what_does_not_fit_the_model_is_said(tmp_path):
    _, folder = quantized(tmp_path, int8, COMPRESSED)
    change(folder, weight=torch.zeros(64, 128, dtype=torch.int8), weight_scale=torch.ones(64, 1))
    change(folder, weight_zero_point=torch.zeros(64, 1, dtype=torch.int8))
    refuse(folder, WeightError, r"q_proj\.weight has shape \(64, 128\) in the file and \(128, 128\)")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": None}))
    refuse(folder, WeightError, "not in the model: ")


def test_floats_are_not_taken_for_quantized_weights(tmp_path):
    saved(made("llama"), tmp_path)
    configure(tmp_path, **GROUPS)
    refuse(tmp_path, FormatError, "says 'gptq', but no weight is stored so. Remove it from config.json")


def test_float8_without_settings_has_no_kernels(tmp_path):
    _, folder = quantized(tmp_path, lambda w, s: ({"weight": w.to(torch.float8_e4m3fn)}, w), {})
    refuse(folder, DTypeError, "no kernels for float8_e4m3fn")


def test_the_memory_limit_is_seen_before_anything_is_read(tmp_path):
    _, folder = quantized(tmp_path, int8, COMPRESSED)
    pellucid.webgpu.set_memory_limit(pellucid.webgpu.memory_allocated() + 50_000)
    try:
        refuse(folder, OutOfMemoryError, "do not fit beside")
    finally:
        pellucid.webgpu.set_memory_limit(None)


def test_experts_of_mxfp4(tmp_path, device):
    """As gpt-oss has them: transformers reads the same bytes as bfloat16, which holds them exactly."""
    model, folder = made("gpt_oss", intermediate_size=32), tmp_path / "tiny"
    saved(model, folder)
    tensors = load_file(folder / "model.safetensors")
    for path, p in model.named_parameters():
        if path.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, columns, rows = p.shape
            blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
            scales = torch.randint(122, 125, blocks.shape[:3], dtype=torch.uint8)
            p.data = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
            del tensors[path]
            tensors |= {f"{path}_blocks": blocks, f"{path}_scales": scales}
    save_file(tensors, folder / "model.safetensors")
    configure(folder, quant_method="mxfp4", modules_to_not_convert=["lm_head"])
    mine, ids = loaded(folder, device), some_ids(2, 9)
    weight = mine.model.layers[1].mlp.experts.gate_up_proj.weight
    assert weight.dtype.name == "mxfp4"
    values = model.model.layers[1].mlp.experts.gate_up_proj.detach().transpose(1, 2).flatten(0, 1)
    assert np.array_equal(weight.dequantize().numpy(), values.numpy())
    with torch.no_grad(), pellucid.no_grad():
        close(mine(ours(ids, device)).logits, model(torch.tensor(ids)).logits)
    tensors["model.layers.0.mlp.experts.down_proj_scales"] = scales[:, 1:]
    save_file({k: t.contiguous() for k, t in tensors.items()}, folder / "model.safetensors")
    refuse(folder, FormatError, "down_proj: blocks and scales of shapes")


@pytest.mark.parametrize(
    ("change_of", "words"),
    [
        ({"_weight_zero_point": torch.zeros(1, 32)}, "are not numbers of a matrix"),
        (
            {"_weight_scale": torch.ones(3, 128), "_weight_zero_point": torch.ones(3, 128)},
            "groups of whole 32",
        ),
        ({"_weight_act_pre_scale": torch.full((128,), 2.0)}, "inputs have factors"),
    ],
)
def test_parts_of_torchao_that_do_not_fit_are_refused(tmp_path, change_of, words):
    _, folder = quantized(tmp_path, *WAYS["int4, torchao"][:2])
    change(folder, **change_of)
    refuse(folder, FormatError, words)


@pytest.mark.parametrize(
    ("change_of", "words"),
    [
        (
            {"_weight_qdata": torch.zeros(16, 8, 31, 4, dtype=torch.int32)},
            "are not tiles of a matrix 128x128",
        ),
        ({"_weight_qdata": torch.zeros(17, 8, 32, 4, dtype=torch.int32)}, "are not tiles of a matrix"),
        ({"_weight_scale_and_zero": torch.ones(64, 128, 2)}, "groups of whole 32"),
        ({"_weight_act_pre_scale": torch.full((128,), 2.0)}, "inputs have factors"),
    ],
)
def test_tiles_of_torchao_that_do_not_fit_are_refused(tmp_path, change_of, words):
    _, folder = quantized(tmp_path, *WAYS["int4, tiles of torchao"][:2])
    change(folder, **change_of)
    refuse(folder, FormatError, words)
