"""What was measured of kernels, by device: the table that comes with the package, and the user's own.

Both are JSON: ``{"devices": {DEVICE: {"version": HOST, "variants": {KEY: VARIANT}}}}``. The user's own counts
for the browser (or the native library) that it was measured with, and before the package's. It lies where the
device keeps it, natively in the user's cache folder and in a page in the origin's storage, or in the file
that the variable PELLUCID_TUNING names; nowhere if that is empty.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ....device.host import Info
from ....device.resources import path
from ....device.stream import stream
from ....device.table import Change, Table, TableFile
from .deterministic import are_deterministic_algorithms_enabled

_known: dict[tuple[str, str], dict[str, str]] = {}
_changes = 0
_NO_TABLE = "it is no table of measurements"


def device(info: Info) -> str:
    """What measurements are kept by: the host and the adapter, without the host's version."""
    parts = (info.host, f"{info.vendor} {info.architecture}".strip(), info.description)
    return ", ".join(part for part in parts if part)


def place() -> Table | None:
    """Where the user's own table lies; None where nothing is kept."""
    chosen = os.environ.get("PELLUCID_TUNING")
    if chosen is None:
        return stream().open().table
    return TableFile(Path(chosen)) if chosen else None


def _read(text: str | None) -> dict[str, Any]:
    """The devices of a table; none where there is no text.

    Raises:
        ValueError: the text is no table.
    """
    if text is None:
        return {}
    try:
        devices = json.loads(text)["devices"]
        return {
            name: {"version": str(entry["version"]), "variants": _texts(entry["variants"])}
            for name, entry in devices.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{_NO_TABLE} ({error!r})") from None


def _texts(variants: dict[str, Any]) -> dict[str, str]:
    for key, variant in variants.items():
        if not isinstance(variant, str):
            raise TypeError(f"{key!r} has {variant!r} instead of a text")
    return dict(variants)


def _own() -> dict[str, Any]:
    """The devices of the user's own table; none where that cannot be read, which is said."""
    where = place()
    try:
        return {} if where is None else _read(where.kept())
    except (OSError, ValueError) as error:
        warnings.warn(
            f"The measurements of kernels that {where} holds are not used: {error}. Call "
            "pellucid.webgpu.tune() for new ones, or pellucid.webgpu.forget_tuning(); or set "
            "PELLUCID_TUNING to another file, empty for none.",
            stacklevel=2,
        )
        return {}


def variants(info: Info) -> Mapping[str, str]:
    """The measured variants of a device, by what they were measured for."""
    known = _known.get((device(info), info.version))
    if known is None:
        shipped = _read(path("op/kernel/autotune/tuned.json").read_text(encoding="utf-8"))
        known = dict(shipped.get(device(info), {"variants": {}})["variants"])
        own = _own().get(device(info))
        if own is not None and own["version"] == info.version:
            known |= own["variants"]
        _known[device(info), info.version] = known
    return known


def measured(info: Info, key: str) -> str | None:
    """The variant that was measured as the fastest for a key; None where none was, or none is to be used."""
    return None if are_deterministic_algorithms_enabled() else variants(info).get(key)


def use(info: Info, found: Mapping[str, str]) -> None:
    """Use these variants of a device from here on, by what they were measured for."""
    global _changes
    _changes += 1
    _known[device(info), info.version] = {**variants(info), **found}


def changes() -> int:
    """How often what is used has changed: what was planned before may have other kernels."""
    return _changes


def keep(info: Info, found: Mapping[str, str]) -> str:
    """Write variants into the user's own table.

    Returns:
        where that lies; empty, with a warning, where it cannot be written.
    """
    where = place()
    if where is None:
        return ""
    try:
        where.keep(_with(info, found))
    except OSError as error:
        return _not_kept(where, error)
    return str(where)


async def keep_async(info: Info, found: Mapping[str, str]) -> str:
    """The awaitable twin of `keep`."""
    where = place()
    if where is None:
        return ""
    try:
        await where.keep_async(_with(info, found))
    except OSError as error:
        return _not_kept(where, error)
    return str(where)


def _not_kept(where: Table, error: OSError) -> str:
    warnings.warn(
        f"webgpu.tune: what was measured is used now and not kept: {where} cannot be written ({error}). Set "
        "PELLUCID_TUNING to a file that can, or pass keep=False.",
        stacklevel=2,
    )
    return ""


def _with(info: Info, found: Mapping[str, str]) -> Change:
    """The change of a table that adds variants, in the place of those of other versions of the host."""

    def change(devices: dict[str, Any]) -> None:
        own = devices.get(device(info), {"version": "", "variants": {}})
        kept = own["variants"] if own["version"] == info.version else {}
        devices[device(info)] = {"version": info.version, "variants": {**kept, **found}}

    return _changed(change)


def _changed(change: Callable[[dict[str, Any]], Any]) -> Change:
    """The change of a text that changes its devices; a text that is no table becomes one."""

    def changed(text: str | None) -> str:
        try:
            devices = _read(text)
        except ValueError:  # said where it was read
            devices = {}
        change(devices)
        return json.dumps({"devices": devices}, indent=1, sort_keys=True) + "\n"

    return changed


def forget(info: Info) -> None:
    """Take what was measured on a device out of the user's own table and of use; the package's stays.

    Raises:
        OSError: the table cannot be written.
    """
    where = place()
    try:
        if where is not None:
            where.keep(_without(info))
    finally:
        reread()


async def forget_async(info: Info) -> None:
    """The awaitable twin of `forget`."""
    where = place()
    try:
        if where is not None:
            await where.keep_async(_without(info))
    finally:
        reread()


def _without(info: Info) -> Change:
    """The change of a table that takes a device out; none is made where there is none."""
    change = _changed(lambda devices: devices.pop(device(info), None))
    return lambda text: None if text is None else change(text)


def reread() -> None:
    """Read the tables anew when they are needed."""
    global _changes
    _changes += 1
    _known.clear()
