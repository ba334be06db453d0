"""What was measured of kernels, by device: the table that comes with the package, and the user's own.

Both are JSON: ``{"devices": {DEVICE: {"version": HOST, "variants": {KEY: VARIANT}}}}``. The user's own counts
for the browser (or the native library) that it was measured with, and before the package's. It lies in the
user's cache folder, or where the variable PELLUCID_TUNING says; nowhere if that is empty. In a page that
folder lives as long as the page, unless it is mounted on something that stays.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .device.host import Info
from .resources import path

_known: dict[tuple[str, str], dict[str, str]] = {}


def device(info: Info) -> str:
    """What measurements are kept by: the host and the adapter, without the host's version."""
    parts = (info.host, f"{info.vendor} {info.architecture}".strip(), info.description)
    return ", ".join(part for part in parts if part)


def file() -> Path | None:
    """Where the user's own table lies."""
    chosen = os.environ.get("PELLUCID_TUNING")
    if chosen is not None:
        return Path(chosen) if chosen else None
    folder = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.path.expanduser(folder or usual), "pellucid", "tuned.json")


def _read(where: Path | None) -> dict[str, Any]:
    """The devices of a table; none where there is no file."""
    if where is None:
        return {}
    try:
        devices = json.loads(where.read_text(encoding="utf-8"))["devices"]
        return {
            name: {"version": str(entry["version"]), "variants": dict(entry["variants"])}
            for name, entry in devices.items()
        }
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        warnings.warn(
            f"{where} is no table of measurements ({error!r}) and is not used. Delete it, or call "
            "pellucid.webgpu.tune().",
            stacklevel=2,
        )
        return {}


def variants(info: Info) -> Mapping[str, str]:
    """The measured variants of a device, by what they were measured for."""
    known = _known.get((device(info), info.version))
    if known is None:
        known = dict(_read(path("tuned.json")).get(device(info), {"variants": {}})["variants"])
        own = _read(file()).get(device(info))
        if own is not None and own["version"] == info.version:
            known |= own["variants"]
        _known[device(info), info.version] = known
    return known


def record(info: Info, measured: Mapping[str, str], keep: bool) -> None:
    """Use these variants from here on.

    Args:
        info: the device that they were measured on.
        measured: by what they were measured for.
        keep: write them into the user's own table too.

    Raises:
        OSError: the table cannot be written.
    """
    _known[device(info), info.version] = {**variants(info), **measured}
    where = file() if keep else None
    if where is None:
        return
    devices = _read(where)
    own = devices.get(device(info), {"version": info.version, "variants": {}})
    kept = own["variants"] if own["version"] == info.version else {}
    devices[device(info)] = {"version": info.version, "variants": {**kept, **measured}}
    text = json.dumps({"devices": devices}, indent=1, sort_keys=True)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        beside = where.with_name(f"{where.name}.{os.getpid()}")
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(where)
    except OSError as error:
        raise OSError(
            f"webgpu.tune: {where} cannot be written ({error}). Set PELLUCID_TUNING to a file that can, or "
            "pass keep=False."
        ) from None


def forget() -> None:
    """Read the tables anew when they are needed."""
    _known.clear()
