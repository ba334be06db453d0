"""The documents name what is there: links lead to files, paths exist, and the walk quotes the code."""

import re

import pytest

from paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "wgsl" / "README.md"])
# Folders in which a path of a document may begin.
BASES = [ROOT, ROOT / "pkg" / "pellucid", ROOT / "wgsl", ROOT / "docs"]
ENDINGS = (".py", ".wgsl", ".js", ".md", ".json")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "name", ["design.md", "extending.md", "fusion.md", "glossary.md", "jit.md", "weights.md"]
)
def test_paths_exist(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    paths = [p for p in re.findall(r"`([\w./]+/[\w.]*)`", text) if p.endswith(("/", *ENDINGS))]
    assert len(paths) >= 4
    assert [p for p in paths if not any((base / p).exists() for base in BASES)] == []


def test_the_walk_quotes_the_code():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    steps = re.findall(r"^### \d\. `(.+?)`(.*?)(?=^##)", text, re.M | re.S)
    assert len(steps) == 6
    for path, step in steps:
        code = (ROOT / "pkg" / "pellucid" / path).read_text(encoding="utf-8")
        for quoted in re.findall(r"^```python\n(.*?)^```", step, re.M | re.S):
            assert [line for line in quoted.splitlines() if line.strip() not in code] == [], path


def test_the_diffs_of_contributing_are_true():
    """Each line that a diff adds is in its file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diffs = "".join(re.findall(r"^```diff\n(.*?)^```", text, re.M | re.S))
    files = re.split(r"^\+\+\+ ", diffs, flags=re.M)[1:]
    assert len(files) >= 8
    for part in files:
        path, *lines = part.splitlines()
        code = (ROOT / path).read_text(encoding="utf-8")
        added = [line[1:] for line in lines if line.startswith("+")]
        assert added, path
        assert [line for line in added if line.strip() not in code] == [], path
