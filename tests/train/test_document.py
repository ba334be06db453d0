"""The examples of docs/training.md, run as they stand."""

import doctest

import pellucid as torch

from paths import ROOT


def test_the_page_about_training_is_true():
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(
        text.replace("```", ""), {}, "training.md", "training.md", 0
    )
    before = torch.get_default_device()
    try:
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    finally:
        torch.set_default_device(before)
    assert result.attempted > 25
    assert result.failed == 0
