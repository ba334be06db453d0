"""Which library tokenizes and renders here, and where a page finds the JavaScript ones."""

import os
import sys
from collections.abc import Iterable

from pellucid.text.backend import AddedToken, Backend, Template

IN_PAGE = sys.platform == "emscripten"

URLS = {
    "tokenizers": "https://cdn.jsdelivr.net/npm/@huggingface/tokenizers@0.2.0/dist/tokenizers.min.mjs",
    "jinja": "https://cdn.jsdelivr.net/npm/@huggingface/jinja@0.5.11/dist/index.js",
}
"""Where a page takes the two modules from, unless it is part of a site that carries them."""

_SITE_PATHS = {"tokenizers": "npm/tokenizers.mjs", "jinja": "npm/jinja.mjs"}


def url(name: str) -> str:
    """Address of a JavaScript module: in the site named by ``PELLUCID_SITE``, else in ``URLS``."""
    site = os.environ.get("PELLUCID_SITE")
    return f"{site.rstrip('/')}/{_SITE_PATHS[name]}" if site else URLS[name]


async def load() -> None:
    """Make the libraries ready: imports the JavaScript modules in a page, does nothing elsewhere."""
    if IN_PAGE:
        from pellucid.text.page import load_libraries

        await load_libraries()


def backend(document: bytes, extra: Iterable[AddedToken] = ()) -> Backend:
    """Load a ``tokenizer.json`` into the library of this place."""
    if IN_PAGE:
        from pellucid.text.page import PageBackend

        return PageBackend(document, extra)
    from pellucid.text.native import NativeBackend

    return NativeBackend(document, extra)


def template(source: str) -> Template:
    """Compile a chat template with the library of this place."""
    if IN_PAGE:
        from pellucid.text.page import PageTemplate

        return PageTemplate(source)
    from pellucid.text.native import NativeTemplate

    return NativeTemplate(source)
