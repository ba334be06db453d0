"""Indexes of shards: ``model.safetensors.index.json``, ``pytorch_model.bin.index.json``."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import FormatError
from ..checkpoint import Checkpoint, TensorInfo, check_name
from ..document import parse_object
from ..fields import shown
from ..header import Header
from ..kind import LONGEST_HEADER
from ..source import MissingFile, Source
from .safetensors import LONGEST_NAME

_DEEPEST = 4  # levels of brackets in an index


def read_index(content: Header, open_file: Callable):
    """Steps that open the files that an index names.

    Args:
        content: the index.
        open_file: steps that open one of them.

    Returns:
        A `Checkpoint` over all shards.

    Raises:
        FormatError: the index, or a shard's header, is malformed; a shard or a tensor is missing; the sizes
        do not add up.
    """
    index = content.source
    content.longest = LONGEST_HEADER
    yield from content.need(1, "the index")
    assert index.size is not None
    yield from content.need(index.size, "the index")
    document = parse_object(index.name, bytes(content.bytes), deepest=_DEEPEST, unique=True)
    names, total = _weight_map(index.name, document)
    by_file: dict[str, set[str]] = {}
    for name, file in names.items():
        by_file.setdefault(file, set()).add(name)
    opened = yield [_read_shard(index.name, open_file, index.sibling(file)) for file in by_file]
    tensors: list[TensorInfo] = []
    shards: list[Source] = []
    for (file, expected), found in zip(by_file.items(), opened, strict=True):
        for name in expected.difference(found):
            raise FormatError(
                f"{index.name}: says that {file} holds {shown(name)}, but it does not. Index and shards "
                "belong to "
                "different models."
            )
        tensors += [t._replace(shard=t.shard + len(shards)) for t in found.values() if t.name in expected]
        shards += found.shards
    # Tensors that share memory are counted once or, by some versions of transformers, each.
    once = sum({(t.shard, t.start, t.stop): t.nbytes for t in tensors}.values())
    nbytes = sum(t.nbytes for t in tensors)
    if total not in (None, once, nbytes):
        raise FormatError(
            f"{index.name}: says total_size {total:,} but its tensors have {nbytes:,} bytes. Index and "
            "shards belong to different models."
        )
    kind = opened[0].format if opened else "safetensors"
    return Checkpoint(index.name, kind, tensors, document.get("metadata", {}), shards)


def _read_shard(where: str, open_file: Callable, source: Source):
    try:
        return (yield from open_file(source))
    except MissingFile as error:
        raise FormatError(
            f"{where}: names a shard that is not beside it ({source.name}). Download all shards."
        ) from error


def _weight_map(where: str, document: dict) -> tuple[dict[str, str], int | None]:
    names, metadata = document.get("weight_map"), document.get("metadata", {})
    suffix = ".bin" if where.endswith(".bin.index.json") else ".safetensors"
    if not isinstance(names, dict) or not isinstance(metadata, dict):
        raise FormatError(
            f"{where}: has no weight_map from tensor names to files. This is not an index of {suffix[1:]} "
            "shards."
        )
    for name, file in names.items():
        check_name(where, name, LONGEST_NAME)
        if not isinstance(file, str) or not re.fullmatch(rf"[\w.+-]+\{suffix}", file, re.ASCII):
            raise FormatError(
                f"{where}: tensor {shown(name)} is said to be in {shown(file)}; the plain name of a "
                f"{suffix} file was expected. The index is damaged."
            )
    total = metadata.get("total_size")
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if total is not None and (type(total) is not int or total < 0):
        raise FormatError(
            f"{where}: total_size is {shown(total)}; a number of bytes was expected. The index is damaged."
        )
    return names, total
