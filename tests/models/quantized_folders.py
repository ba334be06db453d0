"""Folders of quantized weights as other programs pack them: by method, the tensors and their values."""

import json

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers.integrations import metal_quantization

from models.tile_packed import tiled
from models.tiny import made, saved

SIZES = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "head_dim": 32}
GROUPS = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # of eight numbers in a word, the lowest bits first
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}
BYTES = {"quant_method": "bitsandbytes", "load_in_4bit": True}
METAL = {"quant_method": "metal", "bits": 4, "group_size": 64}
COMPRESSED = {"quant_method": "compressed-tensors", "format": "int-quantized"}


def int8(weight, settings, per=1):
    """One scale for each row, or one for all."""
    top = weight.abs().amax(per, keepdim=True) if per == 1 else weight.abs().max().reshape(per)
    scale = top / 127
    quants = (weight / scale).round().clamp(-128, 127)
    zero = torch.zeros(scale.shape, dtype=torch.int8)
    tensors = {"weight": quants.to(torch.int8), "weight_scale": scale, "weight_zero_point": zero}
    return tensors, quants * scale


def fp8(weight, settings):
    scale = weight.abs().amax(1, keepdim=True) / 448
    quants = (weight / scale).to(torch.float8_e4m3fn)
    return {"weight": quants, "weight_scale": scale}, quants.float() * scale


def tiles(height, width, dtype=torch.float8_e4m3fn, scale_dtype=torch.float32, name="weight_scale_inv"):
    """One scale for each tile."""

    def quantize(weight, settings):
        rows, columns = weight.shape
        scale = (2.0 ** torch.randint(-11, -8, (-(-rows // height), -(-columns // width)))).to(scale_dtype)
        each = scale.float().repeat_interleave(height, 0)[:rows].repeat_interleave(width, 1)[:, :columns]
        quants = (weight / each).clamp(-448, 448).to(dtype)
        return {"weight": quants, name: scale}, quants.float() * each

    return quantize


def compressed(packed, asymmetric=False, index=False, scale_dtype=torch.bfloat16):
    """Signed numbers with a scale for each group; packed, they and their zero points are more by half."""

    def quantize(weight, settings):
        args = settings["config_groups"]["group_0"]["weights"]
        rows, columns = weight.shape
        bits, group = args["num_bits"], args.get("group_size") or columns
        half, names = 2 ** (bits - 1), torch.arange(columns) // group
        names = names[torch.randperm(columns)] if index else names
        scale = (torch.rand(rows, columns // group) / half / 10 + 1e-3).to(scale_dtype)
        zero = torch.randint(-half, half, scale.shape) if asymmetric else torch.zeros(scale.shape).long()
        each, point = scale.float()[:, names], zero[:, names]
        quants = (weight / each + point).round().clamp(-half, half - 1)
        tensors = {"weight_scale": scale}
        if packed:
            tensors["weight_packed"] = bit_words(quants + half, bits)
            tensors["weight_shape"] = torch.tensor([rows, columns])
            if asymmetric:
                tensors["weight_zero_point"] = bit_words((zero + half).T, bits).T
        else:
            tensors["weight"] = quants.to(torch.int8)
            if asymmetric:
                tensors["weight_zero_point"] = zero.to(torch.int8)
        if index:
            tensors["weight_g_idx"] = names.int()
        return tensors, each * (quants - point)

    return quantize


def torchao(quantize):
    """The tensors of another way, by the names of torchao."""

    def named(weight, settings):
        tensors, values = quantize(weight, settings)
        if quantize is int8:
            del tensors["weight_zero_point"]
        tensors = {f"_{name}": t for name, t in tensors.items()}
        return {"_weight_qdata": tensors.pop("_weight"), **tensors}, values

    return named


def int4_torchao(weight, settings):
    """What torchao's Int4Tensor.from_hp makes: a zero point is the weight in the middle of the numbers."""
    rows, columns = weight.shape
    parts = weight.reshape(rows, -1, settings["group_size"])
    low, high = parts.amin(2), parts.amax(2)
    scale = (high - low).clamp(min=1e-6) / 15
    zero = low + 8 * scale
    quants = ((parts - low[..., None]) / scale[..., None]).round().clamp(0, 15) - 8
    scale, zero = scale.bfloat16(), zero.bfloat16()
    signed = quants.reshape(rows, columns).to(torch.int8)
    tensors = {
        "_weight_qdata": signed[:, ::2] & 15 | signed[:, 1::2] << 4,
        "_weight_scale": scale.T.contiguous(),
        "_weight_zero_point": zero.T.contiguous(),
    }
    return tensors, (quants * scale.float()[..., None] + zero.float()[..., None]).reshape(rows, columns)


def of_weights(format, **args):
    """A config of compressed-tensors with one group."""
    return {
        **COMPRESSED,
        "format": format,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": args}},
    }


def gptq(weight, settings):
    """Zero points of any number, or in the middle where it is symmetric; columns in any order by desc_act."""
    rows, columns = weight.shape
    group = columns if settings["group_size"] == -1 else settings["group_size"]
    most, index = 2 ** settings["bits"] - 1, torch.arange(columns) // group
    order = torch.randperm(columns) if settings["desc_act"] else torch.arange(columns)
    parts = weight[:, order].reshape(rows, -1, group)
    index = index[torch.argsort(order)]
    if settings["sym"]:
        scale, zero = parts.abs().amax(2) / (most // 2), torch.full(parts.shape[:2], (most + 1) / 2)
    else:
        low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
        scale = (high - low) / (most - 1)
        zero = (-low / scale).round() + 1
    scale = scale.half()
    each, point = scale.float()[:, index], zero[:, index]
    quants = (weight / each + point).round().clamp(0, most)
    stored = zero - int(settings.get("checkpoint_format") != "gptq_v2")
    tensors = {
        "qweight": bit_words(quants, settings["bits"]).T.contiguous(),
        "qzeros": bit_words(stored.T, settings["bits"]),
        "scales": scale.T.contiguous(),
        "g_idx": index.int(),
    }
    return tensors, each * (quants - point)


def bit_words(numbers, bits):
    """Numbers (n, m) as words (n, m * bits / 32), the first in the lowest bits."""
    places = numbers.numpy().astype(np.int64)[..., None] >> np.arange(bits) & 1
    octets = np.packbits(places.astype(np.uint8).reshape(len(numbers), -1), axis=1, bitorder="little")
    return torch.from_numpy(octets.view(np.int32))


def awq(weight, settings):
    """Values from the words: number i of a word is row 8w + (0, 2, 4, 6, 1, 3, 5, 7)[i] of the weight."""
    rows, columns = weight.shape
    parts = weight.reshape(rows, -1, settings["group_size"])
    low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
    scale = ((high - low) / 15).half()
    zero = (-low / scale.float()).round().clamp(0, 15)
    quants = (parts / scale.float()[..., None] + zero[..., None]).round().clamp(0, 15).reshape(rows, columns)

    def words(numbers):
        numbers = numbers.T.numpy().astype(np.int64)
        return bit_words(torch.from_numpy(numbers.reshape(len(numbers), -1, 8)[..., AWQ_ORDER]).flatten(1), 4)

    tensors = {"qweight": words(quants), "qzeros": words(zero), "scales": scale.T.contiguous()}
    return tensors, torch.from_numpy(awq_values(*(t.numpy() for t in tensors.values()), **settings))


def awq_values(qweight, qzeros, scales, group_size, **settings):
    """One row after another, as the format is described."""
    columns, rows = qweight.shape[0], 8 * qweight.shape[1]
    values = np.empty((rows, columns), np.float32)
    for at in range(rows):
        word, shift = at // 8, 4 * AWQ_ORDER.index(at % 8)
        quants = qweight[:, word].view(np.uint32) >> np.uint32(shift) & np.uint32(15)
        zeros = qzeros[:, word].view(np.uint32) >> np.uint32(shift) & np.uint32(15)
        group = np.arange(columns) // group_size
        values[at] = scales[group, at].astype(np.float32) * (quants.astype(np.int64) - zeros[group])
    return values


def vectors(weight, settings):
    """LLM.int8(): the largest magnitude of each row stands for 127."""
    top = weight.abs().amax(1)
    quants = (weight * 127 / top[:, None]).round().to(torch.int8)
    tensors = {"weight": quants, "SCB": top, "weight_format": torch.zeros((), dtype=torch.uint8)}
    return tensors, quants * (top * (1 / 127))[:, None]


def normal(nested, kind):
    """4 bits of a codebook, the high half of a byte first, and what bitsandbytes writes of their state."""

    def quantize(weight, settings):
        rows, columns = weight.shape
        book, block = torch.linspace(-1, 1, 16) ** 3, 64
        parts = weight.reshape(-1, block)
        scale = parts.abs().amax(1)
        state = {"quant_type": kind, "blocksize": block, "dtype": "float32", "shape": [rows, columns]}
        tensors = {"weight.quant_map": book, "weight.absmax": scale}
        if nested:
            codes, each = torch.rand(256), 256
            tops = torch.rand(-(-len(scale) // each)) / 10
            bytes_ = torch.randint(0, 256, (len(scale),), dtype=torch.uint8)
            scale = codes[bytes_.long()] * tops.repeat_interleave(each)[: len(bytes_)] + torch.tensor(0.0625)
            state |= {"nested_blocksize": each, "nested_dtype": "float32", "nested_offset": 0.0625}
            tensors |= {
                "weight.absmax": bytes_,
                "weight.nested_absmax": tops,
                "weight.nested_quant_map": codes,
            }
        quants = ((parts / scale[:, None])[..., None] - book).abs().argmin(-1)
        pairs = quants.reshape(-1, 2).to(torch.uint8)
        tensors["weight"] = (pairs[:, :1] << 4) | pairs[:, 1:]
        text = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
        tensors[f"weight.quant_state.bitsandbytes__{kind}"] = torch.from_numpy(text)
        return tensors, (book[quants] * scale[:, None]).reshape(rows, columns)

    return quantize


def ternary(weight, settings):
    """BitNet: a byte has one number of each quarter of the rows, the first in its lowest bits."""
    quants, scale = (weight / weight.abs().mean()).round().clamp(-1, 1), torch.tensor([0.02]).bfloat16()
    packed = sum((part + 1).to(torch.uint8) << 2 * i for i, part in enumerate(quants.chunk(4)))
    auto = settings.get("linear_class") == "autobitlinear"
    return {"weight": packed, "weight_scale": scale}, quants * (scale.float() if auto else 1 / scale.float())


def mxfp4(weight, settings):
    """Two numbers of E2M1 in a byte, the first in its low half; a power of two for 32 columns."""
    rows, columns = weight.shape
    book = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    book = torch.cat([book, -book])
    parts = weight.reshape(rows, -1, 32)
    exponents = torch.ceil(torch.log2(parts.abs().amax(2) / 6)).int()
    each = torch.exp2(exponents.float())[..., None]
    quants = ((parts / each)[..., None] - book).abs().argmin(-1)
    values, quants = (book[quants] * each).reshape(rows, columns), quants.reshape(rows, columns)
    pairs = (quants[:, ::2] | quants[:, 1::2] << 4).to(torch.uint8)
    return {"weight_packed": pairs, "weight_scale": (exponents + 127).to(torch.uint8)}, values


def nvfp4(packed, factor_name, factor):
    """4 bits of E2M1, a scale of E4M3 for 16 columns, a factor that divides or multiplies these."""

    def quantize(weight, settings):
        numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        parts = weight.reshape(len(weight), -1, 16)
        whole = 1 / factor if packed == "weight_packed" else torch.tensor(factor)
        scale = (parts.abs().amax(2) / 6 / whole).to(torch.float8_e4m3fn)
        each = (scale.float() * whole)[..., None]
        ranks = ((parts / each).abs()[..., None] - numbers).abs().argmin(-1)
        quants = (ranks + 8 * (parts < 0)).reshape(weight.shape)
        values = (each * numbers[ranks] * torch.where(parts < 0, -1, 1)).reshape(weight.shape)
        pairs = (quants[:, ::2] | quants[:, 1::2] << 4).to(torch.uint8)
        return {packed: pairs, "weight_scale": scale, factor_name: torch.tensor(factor)}, values

    return quantize


def metal(weight, settings, dtype=torch.bfloat16):
    """What transformers' MetalQuantize writes, and the values of its words."""
    sizes = settings["group_size"], settings["bits"]
    words, *groups = metal_quantization._affine_quantize_tensor(weight, *sizes)
    scales, offsets = (t.to(dtype) for t in groups)
    values = metal_quantization._affine_dequantize_tensor(words, scales, offsets, *sizes)
    return {"weight": words, "scales": scales, "qbiases": offsets}, values


def quantized(folder, quantize, settings, name="llama", dtype=torch.float32):
    """(the model of transformers with the values, the folder with the quantized weights)."""
    model = made(name, **SIZES)
    saved(made(name, dtype, **SIZES), folder)
    tensors = load_file(folder / "model.safetensors")
    for path, p in model.named_parameters():
        p.data.copy_(p.data.to(dtype))
        if path.endswith("proj.weight"):
            parts, values = quantize(tensors.pop(path).float(), settings)
            layer = path.removesuffix(".weight")
            tensors |= {f"{layer}.{part}": t.contiguous() for part, t in parts.items()}
            p.data.copy_(values)
    save_file(tensors, folder / "model.safetensors")
    configure(folder, **settings)
    return model, folder


def configure(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": settings}))


CASES = {
    "int8": (int8, COMPRESSED, "int8_rows"),
    "int8, one scale": (lambda w, s: int8(w, s, per=(1,)), COMPRESSED, "int8_rows"),
    "fp8": (fp8, {**COMPRESSED, "format": "float-quantized"}, "fp8_e4m3"),
    "fp8, fbgemm": (fp8, {"quant_method": "fbgemm_fp8"}, "fp8_e4m3"),
    "fp8, tiles": (tiles(128, 128), {"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_e4m3"),
    "gptq": (gptq, GROUPS, "int4_groups"),
    "gptq, any zero": (gptq, {**GROUPS, "sym": False, "group_size": 64}, "int4_groups"),
    "gptq, rows": (gptq, {**GROUPS, "sym": False, "group_size": -1}, "int4_groups"),
    "gptq, version 2": (gptq, {**GROUPS, "checkpoint_format": "gptq_v2"}, "int4_groups"),
    "gptq, act-order": (gptq, {**GROUPS, "sym": False, "desc_act": True}, "int4_g_idx"),
    "awq": (awq, AWQ, "int4_groups"),
    "nf4": (normal(False, "nf4"), BYTES, "codebook4"),
    "nvfp4": (
        nvfp4("weight_packed", "weight_global_scale", 512.0),
        of_weights("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16),
        "fp4_groups",
    ),
    "bitnet": (ternary, {"quant_method": "bitnet", "linear_class": "autobitlinear"}, "int2_rows"),
    "metal": (metal, METAL, "int4_affine"),
}
# Ways whose formats have no kernels that those above have not: their values are enough.
WAYS = {
    "gptq, 2 bits, act-order": (gptq, {**GROUPS, "bits": 2, "desc_act": True}, "int2_g_idx"),
    "gptq, 3 bits": (gptq, {**GROUPS, "bits": 3, "sym": False, "group_size": 64}, "int3_g_idx"),
    "gptq, 8 bits": (gptq, {**GROUPS, "bits": 8, "sym": False, "checkpoint_format": "gptq_v2"}, "int8_g_idx"),
    "fp4, double": (normal(True, "fp4"), BYTES, "codebook4"),
    "fp8, one scale": (tiles(1 << 9, 1 << 9), {"quant_method": "fp8"}, "fp8_e4m3"),
    "fp8, E5M2, powers of two": (
        tiles(64, 128, torch.float8_e5m2, torch.float8_e8m0fnu),
        {"quant_method": "fp8", "weight_block_size": [64, 128]},
        "fp8_e5m2",
    ),
    "fp8, groups": (
        tiles(1, 128, name="weight_scale"),
        of_weights("float-quantized", num_bits=8, type="float", strategy="group", group_size=128),
        "fp8_e4m3",
    ),
    "packed": (
        compressed(True),
        of_weights("pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=True),
        "int4_g_idx",
    ),
    "packed, asymmetric, act-order": (
        compressed(True, asymmetric=True, index=True),
        of_weights("pack-quantized", num_bits=4, group_size=64, symmetric=False, actorder="group"),
        "int4_g_idx",
    ),
    "packed, 8 bits": (
        compressed(True, scale_dtype=torch.float32),
        of_weights("pack-quantized", num_bits=8, strategy="channel", symmetric=True),
        "int8_g_idx",
    ),
    "int8, groups": (
        compressed(False),
        of_weights("int-quantized", num_bits=8, strategy="group", group_size=32, symmetric=True),
        "int8_g_idx",
    ),
    "int8, asymmetric": (
        compressed(False, asymmetric=True),
        of_weights("int-quantized", num_bits=8, strategy="channel", symmetric=False),
        "int8_g_idx",
    ),
    "mxfp4": (
        mxfp4,
        of_weights("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32),
        "mxfp4",
    ),
    "fp8, modelopt": (
        tiles(1 << 9, 1 << 9, name="weight_scale"),
        {"quant_method": "modelopt", "quant_algo": "FP8"},
        "fp8_e4m3",
    ),
    "fp8, torchao": (torchao(fp8), {"quant_method": "torchao"}, "fp8_e4m3"),
    "int8, torchao": (torchao(int8), {"quant_method": "torchao"}, "int8_rows"),
    "int8, groups of torchao": (
        torchao(compressed(False, asymmetric=True)),
        {**of_weights("", num_bits=8, group_size=32), "quant_method": "torchao"},
        "int8_g_idx",
    ),
    "int4, torchao": (int4_torchao, {"quant_method": "torchao", "group_size": 32}, "int4_offsets"),
    "int4, wide groups of torchao": (
        int4_torchao,
        {"quant_method": "torchao", "group_size": 64},
        "int4_offsets",
    ),
    "int4, tiles of torchao": (tiled, {"quant_method": "torchao", "group_size": 32}, "int4_offsets"),
    "int4, wide tiles of torchao": (tiled, {"quant_method": "torchao", "group_size": 64}, "int4_offsets"),
    "int8, bitsandbytes": (vectors, BYTES, "int8_rows"),
    "nvfp4, modelopt": (
        nvfp4("weight", "weight_scale_2", 0.0037),
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        "fp4_groups",
    ),
    "metal, 2 bits": (lambda w, s: metal(w, s, torch.float16), {**METAL, "bits": 2}, "int2_affine"),
    "metal, 8 bits": (metal, {**METAL, "bits": 8, "group_size": 32}, "int8_affine"),
    "bitnet, divided": (ternary, {"quant_method": "bitnet"}, "int2_rows"),
}


def change(folder, **tensors):
    """Replace tensors of the first layer's q_proj."""
    path = folder / "model.safetensors"
    found = load_file(path)
    found |= {f"model.layers.0.self_attn.q_proj.{name}": t for name, t in tensors.items()}
    save_file(found, path)
