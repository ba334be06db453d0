"""docs/reference.md names every op; that it is current is tested with the scripts. Stubs know arguments."""

import ast
import re
from importlib import import_module

from pellucid.op.schema import OPS

import house
from paths import ROOT

# Rooms that are opened at first use, some of which declare ops.
for room in ("lens", "models", "nn", "optim", "quant"):
    import_module(f"pellucid.{room}")


def rows() -> list[list[str]]:
    """Cells of the page's rows, of which the first is the name; several namespaces may have the same."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]


def test_every_op_is_on_the_page():
    named = {row[0].strip("`") for row in rows()}
    # Other tests may have declared ops of their own.
    own = {name for name, o in OPS.items() if o.function.__module__.startswith("pellucid.")}
    assert len(own) > 130
    assert {name for name in own if not name.startswith("_")} <= named


def test_every_public_op_is_on_the_page():
    named = {row[0].strip("`") for row in rows()}
    public = [path.rpartition(".")[2] for path in house.public_ops()]
    assert len(public) > 550
    assert set(public) <= named


def test_every_row_is_whole():
    for row in rows():
        assert len(row) == 5, row
        assert all(cell.strip() for cell in row), row


def test_the_page_counts_what_it_lists():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    declared, composites = map(int, re.search(r"(\d+) declared ops, (\d+) composites", text).groups())
    hidden = sum(
        name.startswith("_") and o.function.__module__.startswith("pellucid.") for name, o in OPS.items()
    )
    assert declared - hidden + composites == len(rows())


def test_stubs_have_the_words_about_memory_that_functions_take():
    text = (ROOT / "pkg" / "pellucid" / "__init__.pyi").read_text(encoding="utf-8")
    stubs = {n.name: n.args for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    words = {"layout", "memory_format", "pin_memory"}
    for name in ("zeros", "empty_strided", "randint", "full_like", "eye", "normal"):
        assert words <= {a.arg for a in stubs[name].kwonlyargs}, name
    assert not words & {a.arg for a in [*stubs["relu"].args, *stubs["relu"].kwonlyargs]}
