"""Checksum of a model's weights: what tells them from others at the same address."""

import hashlib
from typing import Any

from pellucid.utils import copies


async def sum_of(model: Any) -> str:
    """The beginning of the SHA-256 of its files' copies; empty where not all of them are kept."""
    kept = {one.url: one.sha256 for one in await copies.list_async()}
    sums = [kept.get(file, "") for file in model.origin.files]
    if not all(sums):
        return ""
    return (sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest())[:16]
