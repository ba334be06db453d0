"""The programs of docs/grid.md do what they say."""

import re

import pellucid

from paths import ROOT


def test_programs(capsys):
    names = {}
    with pellucid.device("cpu"):
        for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "grid.md").read_text(), re.DOTALL):
            exec(code, names)
    loss, sizes, summary = capsys.readouterr().out.splitlines()
    assert float(loss) < 0.01
    assert sizes.replace(" ", ", ") in (ROOT / "docs" / "grid.md").read_text()
    assert re.match(r"generation \d+: best 3\.9", summary)


def test_names_of_the_table():
    """What stands for a name of the other library is there."""
    text = (ROOT / "docs" / "grid.md").read_text().partition("## Names elsewhere")[2]
    names = [
        n
        for row in re.findall(r"^\| .* \| (.*) \|$", text, re.MULTILINE)
        for n in re.findall(r"`(\w+)`", row)
    ]
    assert len(names) > 50
    others = "tick best hints use_tiling tile_size links disabled gate"  # methods, arguments, and fields
    assert [n for n in names if not hasattr(pellucid.grid, n) and n not in others.split()] == []
