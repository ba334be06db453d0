"""docs/reference.md names every op; that it is current is tested with the scripts."""

import re

import pellucid.generate
import pellucid.lens
import pellucid.models
import pellucid.nn
import pellucid.optim  # noqa: F401 - importing a room declares its ops
from pellucid.op import OPS

from paths import ROOT


def rows() -> dict[str, list[str]]:
    """Cells of the page's rows by the name of the op."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row for row in cells}


def test_every_op_is_on_the_page():
    named = rows()
    # Other tests may have declared ops of their own.
    own = {name for name, o in OPS.items() if o.function.__module__.startswith("pellucid.")}
    assert len(own) > 130
    assert {name for name in own if not name.startswith("_")} <= set(named)


def test_every_row_is_whole():
    for name, row in rows().items():
        assert len(row) == 5, name
        assert all(cell.strip() for cell in row), name


def test_the_page_counts_what_it_lists():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    declared, composites = map(int, re.search(r"(\d+) declared ops, (\d+) composites", text).groups())
    hidden = sum(
        name.startswith("_") and o.function.__module__.startswith("pellucid.") for name, o in OPS.items()
    )
    assert declared - hidden + composites == len(rows())
