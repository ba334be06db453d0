"""What a model will take, known from its headers before it is loaded, and what the device offers."""

from typing import Any

import pellucid as torch

TOKENS = 1000  # of which the keys and values are told


async def estimate(source: Any) -> dict[str, Any]:
    """Sizes of a model and limits of the device, in bytes.

    Args:
        source: a URL, a path on this site, a hub id or a File.

    Returns:
        ``weights`` on the device, ``download``, ``cache`` of the keys and values of ``tokens`` tokens (0
        where the model has none), the ``largest`` tensor; ``buffer`` is the largest that the
        device makes, ``used`` what this page has on it now.
    """
    found = await torch.inspect_async(source)
    await torch.webgpu.open_async()
    limits = torch.webgpu.get_device_properties().limits
    position = found.memory.get("keys and values of a position", 0)
    return {
        "architecture": found.architecture,
        "loads_with": found.loads_with,
        "parameters": found.parameters,
        "formats": found.dtypes,
        "download": found.nbytes,
        "weights": found.memory["weights"],
        "cache": position * TOKENS,
        "tokens": TOKENS,
        "largest": max((t["bytes"] for t in found.tensors), default=0),
        "buffer": int(limits["maxBufferSize"]),
        "used": torch.webgpu.memory_stats()["allocated_bytes"],
        "device": torch.webgpu.get_device_name(),
        "licence": found.licence,
    }
