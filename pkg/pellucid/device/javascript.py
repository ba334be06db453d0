"""The JavaScript modules of web/runtime in pages, made of the package's own text, so no server needs them."""

# pyright: reportMissingImports=false
# js and the pyodide modules exist inside Pyodide only.

from __future__ import annotations

import re
from typing import Any

import js
from pyodide.code import run_js
from pyodide.ffi import to_js

from . import resources

_FOLDER = "web/runtime/"
_IMPORT = re.compile(r'from "\./([\w.]+)"')
# A page keeps every module that it ever imported, so each is imported once, whatever asks for it how often.
_urls: dict[str, str] = {}
_modules: dict[str, Any] = {}


async def module(name: str) -> Any:
    """A module, such as ``"heap.js"``."""
    if name not in _modules:
        _modules[name] = await run_js("(url) => import(url)")(_url(name))
    return _modules[name]


def _url(name: str) -> str:
    if name not in _urls:
        text = _IMPORT.sub(lambda found: f'from "{_url(found[1])}"', resources.read_text(_FOLDER + name))
        _urls[name] = js.URL.createObjectURL(js.Blob.new(to_js([text]), type="text/javascript"))
    return _urls[name]
