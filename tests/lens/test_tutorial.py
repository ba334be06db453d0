"""The examples of the tutorial, run as they stand."""

import doctest

from paths import ROOT


def test_the_tutorial_is_true():
    text = (ROOT / "docs" / "lens.md").read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "lens.md", "lens.md", 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    assert result.attempted > 25
    assert result.failed == 0
