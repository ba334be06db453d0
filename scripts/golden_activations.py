"""Record what compressed-tensors and torchao make of activations: tests/golden/activations.npz.

    python -m venv /tmp/golden
    /tmp/golden/bin/pip install numpy torch==2.13.0 transformers compressed-tensors==0.20.0 torchao==0.18.0
    /tmp/golden/bin/python scripts/golden_activations.py

In an environment of its own: where torchao is installed, transformers imports it, which programs that run on
Pellucid as torch cannot.
"""
# pyright: reportMissingImports=false

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import fake_quantize
from compressed_tensors.quantization.utils.helpers import compute_dynamic_scales_and_zp
from torchao.core.config import config_to_dict
from torchao.quantization import (
    Float8DynamicActivationFloat8WeightConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    PerRow,
    PerTensor,
)
from torchao.quantization.quant_primitives import MappingType
from torchao.quantization.quantize_.workflows.float8.float8_tensor import Float8Tensor
from torchao.quantization.quantize_.workflows.int8.int8_tensor import Int8Tensor
from torchao.quantization.quantize_.workflows.intx import intx_unpacked_to_int8_tensor as intx

FILE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "activations.npz"
GIVEN = [
    {"num_bits": 8, "type": "int", "strategy": "token"},
    {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": False},
    {"num_bits": 8, "type": "int", "strategy": "tensor", "symmetric": False},
    {"num_bits": 4, "type": "int", "strategy": "token"},
    {"num_bits": 8, "type": "float", "strategy": "token"},
    {"num_bits": 8, "type": "float", "strategy": "tensor"},
    {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 64},
]


def activations() -> torch.Tensor:
    """Tokens, one of them small, some with a number far out."""
    x = np.random.default_rng(0).standard_normal((2, 7, 192)).astype(np.float32)
    x[0, 0] *= 1e-3
    x[1, 2, 5], x[0, 3, 9], x[0, 3, 10] = 20, -7, 8
    return torch.from_numpy(x)


def cases(x: torch.Tensor) -> list[tuple[str, dict[str, Any], torch.Tensor]]:
    """(method, settings of config.json, the rounded activations)"""
    found = []
    for given in GIVEN:
        given = {"symmetric": True, **given, "dynamic": True}
        args = QuantizationArgs(**given)
        scale, zero = compute_dynamic_scales_and_zp(x, args, None)
        found.append(
            ("compressed-tensors", {"input_activations": given}, fake_quantize(x, scale, zero, args))
        )
    rows = x.reshape(-1, x.shape[-1])
    for by in (PerRow(), PerTensor()):
        for kind in (MappingType.SYMMETRIC, MappingType.ASYMMETRIC):
            config = Int8DynamicActivationInt8WeightConfig(granularity=by, act_mapping_type=kind)
            found.append(("torchao", _settings(config), Int8Tensor.from_hp(rows, by, kind).dequantize()))
        config = Float8DynamicActivationFloat8WeightConfig(granularity=by)
        found.append(("torchao", _settings(config), Float8Tensor.from_hp(rows, granularity=by).dequantize()))
    config = Int8DynamicActivationIntxWeightConfig()
    found.append(("torchao", _settings(config), intx._apply_int8_act_asym_per_token_quant_dequant(x)))
    return [(method, settings, made.reshape(x.shape)) for method, settings, made in found]


def _settings(config: Any) -> dict[str, Any]:
    return {"quant_type": {"default": config_to_dict(config)}}


if __name__ == "__main__":
    x = activations()
    found = cases(x)
    settings = json.dumps([[method, settings] for method, settings, _ in found])
    arrays: dict[str, Any] = {f"case_{k}": made.numpy() for k, (_, _, made) in enumerate(found)}
    np.savez_compressed(FILE, activations=x.numpy(), settings=settings, **arrays)
    print(f"{FILE}: {len(found)} cases, {FILE.stat().st_size:,} bytes")
