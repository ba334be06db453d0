"""Makes the npm package of the site: what a page of another origin needs of web/, with types.

    package/package.json, LICENSE, README.md
    package/web/     pellucid.js, elements.js, what they import, and their types
    package/npm/     d3.js and plot.js, for plots

Pyodide and the wheels stay on the site, whose address the page gives.
"""

import gzip
import io
import json
import tarfile
import tomllib
from pathlib import Path

from paths import ROOT

FILES = (
    "web/boot.js",
    "web/component.py",
    "web/elements.d.ts",
    "web/elements.js",
    "web/outlet.js",
    "web/pellucid.d.ts",
    "web/pellucid.js",
    "web/python_worker.js",
    "web/shared.js",
    "web/style.css",
    "web/views",
    "web/webgpu_advice.js",
    "npm/d3.js",
    "npm/d3.LICENSE",
    "npm/plot.js",
    "npm/plot.LICENSE",
    "LICENSE",
)
README = """# pellucid

Language models in a page, with what is inside them: the logit lens, attention, any state of any layer, as
typed arrays; and Python with the PyTorch API on WebGPU. Pyodide and the wheels come from a built site of
Pellucid, whose address the page gives.

    import { start, load } from "pellucid";
    await start({ site: "https://SITE/" });
    const model = await load("OWNER/NAME");
    const prompt = "The capital of France is";
    for await (const { text } of model.stream(prompt, { max_new_tokens: 8 })) document.body.append(text);

Components: `import "pellucid/elements"`, and `<meta name="pellucid-site" content="https://SITE/">` in the
page. The headers of `web/pellucid.js` and `web/elements.js` are the reference, with the policy
(Content-Security-Policy) under which all works.
"""


def description() -> dict:
    """What package.json says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entry = {"types": "./web/pellucid.d.ts", "default": "./web/pellucid.js"}
    elements = {"types": "./web/elements.d.ts", "default": "./web/elements.js"}
    return {
        "name": "pellucid",
        "version": project["version"],
        "description": project["description"],
        "license": project["license"],
        "type": "module",
        "exports": {".": entry, "./elements": elements, "./web/*": "./web/*"},
        "types": "./web/pellucid.d.ts",
        "sideEffects": ["./web/elements.js"],
    }


def write(site: Path) -> Path:
    """Write `pellucid-VERSION.tgz` into a built site, of its files; the same files make the same bytes."""
    about = description()
    texts = {"package.json": json.dumps(about, indent=2) + "\n", "README.md": README}
    contents = {name: text.encode() for name, text in texts.items()}
    for name in FILES:
        top = site / name
        for file in sorted(top.iterdir()) if top.is_dir() else [top]:
            contents[str(file.relative_to(site))] = file.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o644, 499162500
            archive.addfile(entry, io.BytesIO(content))
    target = site / f"{about['name']}-{about['version']}.tgz"
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return target
