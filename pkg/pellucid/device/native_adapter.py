"""Which adapter the native host runs on: what it is asked for, and what it has."""

from __future__ import annotations

import os
import re

import wgpu

from ..errors import DeviceError
from .host import Info

_WANTED_FEATURES = ("immediates", "subgroup", "shader-f16", "timestamp-query")
# Of the language, which wgpu-py does not list: its compiler has them on every adapter.
_LANGUAGE_FEATURES = frozenset({"packed_4x8_integer_dot_product"})
# WebGPU's own (https://www.w3.org/TR/webgpu/#limits): wgpu-py takes an empty request for all there is.
_DEFAULT_LIMITS = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 268435456,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-storage-buffer-binding-size": 134217728,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 65536,
    "max-uniform-buffers-per-shader-stage": 12,
    "min-storage-buffer-offset-alignment": 256,
    "min-uniform-buffer-offset-alignment": 256,
}


def request(default_limits: bool) -> tuple[wgpu.GPUDevice, Info]:
    """The fastest adapter's device.

    Args:
        default_limits: ask for WebGPU's default limits and no optional feature, as the weakest device offers.

    Raises:
        DeviceError: there is no adapter.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # the Vulkan loader complains without one
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    if adapter is None:
        raise DeviceError(
            "device webgpu: no adapter found. Install a Vulkan, Metal or D3D12 driver, or use "
            "pellucid.set_default_device('cpu')."
        )
    features = [] if default_limits else [f for f in _WANTED_FEATURES if f in adapter.features]
    limits: dict[str, int | None] = dict(_DEFAULT_LIMITS if default_limits else adapter.limits)
    if not default_limits and "immediates" not in features:
        limits.pop("max-immediate-size", None)
    device = adapter.request_device_sync(required_features=features, required_limits=limits)
    got = {_camel(k): v for k, v in device.limits.items()}
    language = frozenset() if default_limits else _LANGUAGE_FEATURES
    return device, Info(
        host="native",
        vendor=adapter.info["vendor"],
        architecture=adapter.info["architecture"],
        description=f"{adapter.info['device']} {adapter.info['description']}".strip(),
        features=language | {"subgroups" if f == "subgroup" else f for f in features},
        limits=got,
        immediates=min(64, got.get("maxImmediateSize", 0)) if "immediates" in features else 0,
        version=f"wgpu {wgpu.__version__}",
    )


def _camel(name: str) -> str:
    return re.sub(r"-(\w)", lambda m: m.group(1).upper(), name)
