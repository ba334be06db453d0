"""Files of weights by their addresses, kept on disk: PyTorch's ``torch.hub``."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from ...errors import SourceError
from ...weights.place import find
from ...weights.saving import replacing
from ...weights.source import Source
from ..serialization import load

# A file's name may end in the first digits of its SHA-256.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PIECE = 1 << 22
_chosen: list[str] = []


class HashError(SourceError, RuntimeError):
    """A file is not the one that its name, or the program, says by its SHA-256."""


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return str(Path(os.getenv("TORCH_HOME", os.path.join(cache, "torch"))).expanduser())


def get_dir() -> str:
    """The folder of downloaded files: that of `set_dir`, else ``hub`` in ``$TORCH_HOME``."""
    return _chosen[-1] if _chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose the folder of downloaded files.

    Args:
        d: its path.
    """
    _chosen[:] = [os.path.expanduser(d)]


def download_url_to_file(url: str, dst: Any, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file. Nothing stays of one that is not whole.

    Args:
        url: its address; in a page its server must allow other origins.
        dst: path of the file to write.
        hash_prefix: with which its SHA-256 must begin.
        progress: accepted.

    Raises:
        SourceError: it cannot be fetched.
        HashError: it is another file.

    Source: https://pytorch.org/docs/stable/hub.html#torch.hub.download_url_to_file
    """
    source = find(url)
    if not isinstance(source, Source):
        raise SourceError(f"download_url_to_file: {url} is a folder. Give the address of a file.")
    digest, at = hashlib.sha256(), 0
    with replacing(dst) as file:
        while source.size is None or at < source.size:
            piece = source.read(at, at + _PIECE)
            if not piece:
                break
            digest.update(piece)
            file.write(piece)
            at += len(piece)
        found = digest.hexdigest()
        if hash_prefix and not found.startswith(hash_prefix):
            raise HashError(f'invalid hash value (expected "{hash_prefix}", got "{found}"): {url}')


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> dict[str, Any]:
    """What `torch.save` wrote to a file at an address; it is fetched once.

    Args:
        url: its address.
        model_dir: where it is kept; ``checkpoints`` in `get_dir` if None.
        map_location: as of `load`.
        progress: accepted.
        check_hash: the file's name ends in the first digits of its SHA-256, which are compared.
        file_name: its name on disk; that of the address if None.
        weights_only: as of `load`. PyTorch's default is False, by which the file may execute anything.

    Raises:
        SourceError: it cannot be fetched.
        HashError: it is another file.

    Source: https://pytorch.org/docs/stable/hub.html#torch.hub.load_state_dict_from_url
    """
    folder = Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = folder / name
    if not kept.exists():
        said = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, said[1] if said else None, progress)
    return load(kept, map_location, weights_only=weights_only)


load_url = load_state_dict_from_url
