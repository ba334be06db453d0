"""The network of docs/grid.md learns what its last line says."""

import re

from paths import ROOT


def test_the_network_in_twenty_lines(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "grid.md").read_text(), re.DOTALL)[1]
    exec(code, {})
    assert float(capsys.readouterr().out) < 0.01
