"""Writes what the site of the docs is made of: pages of docs/, pages of the API from docstrings, mkdocs.yml.

Run by scripts/docs with the virtual environment's Python: docs_builder.py FOLDER.
"""

import inspect
import re
import shutil
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from paths import ROOT

DOCS = ROOT / "docs"
# Pages of docs/ by what one looks for; those that are not named here come under "More".
GUIDES = {
    "Tutorials": [
        "tutorials/lens_in_five_minutes", "tutorials/train_a_tiny_gpt", "tutorials/bring_your_model",
        "tutorials/write_a_kernel", "tutorials/coming_from",
    ],
    "Models": ["models", "weights", "text", "tasks", "export", "onnx", "tflite", "matching"],
    "How to": [
        "lens", "training", "examples", "compat", "jit", "profiling", "extending", "command_line",
        "site", "hosts",
    ],
    "Reference": ["reference", "coverage", "performance"],
    "Inside": ["design", "fusion", "glossary"],
}  # fmt: skip
# Modules whose public names have pages of their own.
API = [
    "pellucid", "pellucid.nn", "pellucid.nn.functional", "pellucid.nn.init", "pellucid.optim",
    "pellucid.autograd", "pellucid.func", "pellucid.lens", "pellucid.models", "pellucid.train",
    "pellucid.weights",
    "pellucid.quant", "pellucid.text", "pellucid.distributions", "pellucid.fft", "pellucid.linalg",
    "pellucid.special", "pellucid.profiler", "pellucid.utils.data", "pellucid.webgpu",
]  # fmt: skip
# Files beside docs/ that its pages point to, and what they are called among the pages.
BESIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "wgsl/README.md": "wgsl.md"}
SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes|Example|Examples|Note|Source):[ ]*(.*)$")

SETTINGS = """\
site_name: Pellucid
site_description: PyTorch that you can see through, in the browser
docs_dir: src
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, navigation.indexes, content.code.copy, search.suggest]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: {icon: material/weather-night, name: Dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: {icon: material/weather-sunny, name: Light}
extra_javascript: [run.js]
extra_css: [run.css]
plugins: [search]
markdown_extensions:
  - tables
  - admonition
  - attr_list
  - toc
  - pymdownx.highlight: {pygments_lang_class: true}
  - pymdownx.superfences
validation: {links: {anchors: ignore}}
nav:
"""
# A program of a page (python; signatures are py) opens in the Python page: docs/ lies in the site.
RUN = """\
const BASE = document.currentScript.src;
document$.subscribe(() => {
  const page = new URL("../web/repl/", new URL(".", BASE));
  for (const block of document.querySelectorAll(".language-python pre")) {
    const lines = block.textContent.split("\\n");
    const typed = lines.filter((line) => /^(>>>|\\.\\.\\.)( |$)/.test(line)).map((line) => line.slice(4));
    const program = (typed.length ? typed : lines).join("\\n").trim();
    const link = document.createElement("a");
    link.className = "run";
    link.textContent = "Run in the page";
    link.href = `${page.href}#code=${encodeURIComponent(program)}`;
    block.after(link);
  }
});
"""
STYLE = ".run { display: inline-block; margin: 0.2rem 0; font-size: 0.7rem }\n"


def build(folder: Path) -> None:
    """Write the pages and mkdocs.yml into a folder, anew."""
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "src"
    shutil.copytree(DOCS, source)
    for path in source.rglob("*.md"):
        path.write_text(_relinked(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, page in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text) if "/" not in name else text
        (source / page).write_text(_within(text), encoding="utf-8")
    (source / "index.md").write_text((source / "readme.md").read_text(encoding="utf-8"), encoding="utf-8")
    (source / "api").mkdir()
    for name in API:
        (source / "api" / f"{name}.md").write_text(api_page(name), encoding="utf-8")
    (source / "run.js").write_text(RUN, encoding="utf-8")
    (source / "run.css").write_text(STYLE, encoding="utf-8")
    (folder / "mkdocs.yml").write_text(SETTINGS + navigation(), encoding="utf-8")


def navigation() -> str:
    """The tree of pages, as YAML."""
    lines = ["  - index.md"]
    for title, pages in GUIDES.items():
        lines.append(f"  - {title}:")
        lines += [f"    - {page}.md" for page in pages]
    named = {page for pages in GUIDES.values() for page in pages}
    found = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    if more := sorted(found - named):
        lines += ["  - More:", *(f"    - {page}.md" for page in more)]
    lines.append("  - API:")
    lines += [f"    - {name}: api/{name}.md" for name in API]
    lines += ["  - Contributing: contributing.md", "  - Kernels: wgsl.md"]
    return "\n".join([*lines, "not_in_nav: readme.md", ""])


def api_page(name: str) -> str:
    """The public functions and classes of a module, with their signatures and docstrings."""
    first, *rest = name.split(".")
    module = reduce(getattr, rest, import_module(first))
    parts = [f"# {name}", markdown(inspect.getdoc(module) or "")]
    for public in public_names(module):
        value = getattr(module, public)
        doc = inspect.getdoc(value)
        if inspect.ismodule(value) or not callable(value) or not doc:
            continue
        parts.append(f"## {public}\n\n```py\n{signature(public, value)}\n```\n\n{markdown(doc)}")
        if inspect.isclass(value):
            parts += [
                f"### {public}.{method}\n\n{markdown(inspect.getdoc(member) or '')}"
                for method, member in vars(value).items()
                if not method.startswith("_") and callable(member) and member.__doc__
            ]
    return "\n\n".join(parts) + "\n"


def public_names(module: Any) -> list[str]:
    """What a module offers: its ``__all__``, or what `dir` says without underscores."""
    return sorted(getattr(module, "__all__", None) or (n for n in dir(module) if not n.startswith("_")))


def signature(name: str, value: Any) -> str:
    """A call as one would write it; only the name where Python does not know the arguments."""
    try:
        return name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return name


def markdown(docstring: str) -> str:
    """A docstring as Markdown: sections as bold words, arguments as lists, examples as programs."""
    out: list[str] = []
    section = ""
    for line in docstring.replace("``", "`").split("\n"):
        if found := SECTION.match(line):
            section = found[1]
            out += ["", f"**{section}** {found[2]}".rstrip(), ""]
            if section.startswith("Example"):
                out.append("```python")
        elif section.startswith("Example"):
            if line and not line.startswith(" "):
                out += ["```", "", line]
                section = ""
            else:
                out.append(line.removeprefix("    "))
        elif section in ("Args", "Raises", "Attributes") and re.match(r"    \S", line):
            out.append("- " + re.sub(r"^([\w.*, ]+):", r"`\1`:", line.strip(), count=1))
        else:
            out.append(line.strip() if section else line)
    if section.startswith("Example"):
        out.append("```")
    return "\n".join(out).strip()


def _relinked(text: str) -> str:
    """A page of docs/ whose links to files beside the folder point to their pages."""
    for name, page in BESIDE.items():
        text = text.replace(f"](../{name})", f"]({page})")
    return text


def _within(text: str) -> str:
    """A file from beside docs/, without links to what has no page."""
    text = text.replace("](../docs/", "](")
    known = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(BESIDE.values())

    def link(found: re.Match[str]) -> str:
        target = BESIDE.get(found[2], found[2])
        return f"[{found[1]}]({target})" if target.split("#")[0] in known or "://" in target else found[1]

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", link, text)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
