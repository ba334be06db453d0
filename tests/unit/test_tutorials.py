"""The examples of the tutorials, run as they stand, and the pages that the site of docs is made of."""

import doctest
import re

import pytest

import docs_builder

from paths import ROOT

DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_tutorial_is_true(page):
    text = page.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    assert result.attempted > 5
    assert result.failed == 0


def test_every_page_has_its_place_and_every_link_an_end():
    tree = docs_builder.navigation()
    for path in DOCS.rglob("*.md"):
        assert tree.count(f" {path.relative_to(DOCS).as_posix()}\n") == 1
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_docstrings_become_pages():
    page = docs_builder.api_page("pellucid.optim")
    assert "## Adam\n\n```py\nAdam(" in page
    assert page.count("```") % 2 == 0
    text = docs_builder.markdown(
        "Sum of ``x``.\n\nArgs:\n    x: a tensor\n        of floats.\n\nExample:\n    >>> f(1)\n    1\n"
    )
    assert text == (
        "Sum of `x`.\n\n\n**Args**\n\n- `x`: a tensor\nof floats.\n\n\n"
        "**Example**\n\n```python\n>>> f(1)\n1\n\n```"
    )
