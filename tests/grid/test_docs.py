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
