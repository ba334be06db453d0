"""Limits of the structure: children of folders, lengths of files, names of classes, parsers of commands."""

from pathlib import Path

import house

LONGEST = 400
# Files that are longer, and how long they may be. A file that shrinks below takes its row with it.
LONGER = {
    "device/native.py": 443,
    "device/stream.py": 701,
    "op/plan_text/forms.py": 520,  # written by scripts/reference
    "op/symbols.py": 547,
}
# One reader in each language, and a loop of the hot path beside it, which a test holds to it.
PARSERS = {
    "pkg/pellucid/device/commands.py",
    "pkg/pellucid/op/fusion/commands.py",
    "web/runtime/commands.js",
    "web/runtime/encoder.js",
}


def test_few_children():
    assert house.children() <= 20
    assert not house.crowded()


def test_files_are_short():
    sizes = {str(path): size for path, size in house.lines().items()}
    assert not {path: size for path, size in sizes.items() if size > LONGER.get(path, LONGEST)}
    assert not [path for path in LONGER if sizes.get(path, 0) <= LONGEST], "take these out of LONGER"


def test_no_class_name_twice():
    assert not {name: where for name, where in house.classes().items() if len(where) > 1}


def test_who_reads_command_words():
    assert set(house.parsers()) == PARSERS


def test_figures_are_printed(capsys):
    house.main()
    shown = capsys.readouterr().out
    assert f"children of pkg/pellucid             {house.children()}\n" in shown
    assert "internal twins" in shown
    assert all(Path(path).suffix for path in house.parsers())
