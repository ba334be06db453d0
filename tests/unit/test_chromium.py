"""What a browser compiled of Python and the next one begins with; files stand for those of a browser."""

import os
import sys

from chromium import Kept


def left(profile, size):
    """A profile as a browser leaves it."""
    for name in ("Cache", "Code Cache/wasm", "Local Storage"):
        (profile / "Default" / name).mkdir(parents=True)
        (profile / "Default" / name / "entry_0").write_bytes(bytes(size))
    return profile


def begun(kept, profile):
    """Which entries a new profile has, and their sizes."""
    kept.copy(profile)
    return {
        str(file.relative_to(profile / "Default")): file.stat().st_size for file in profile.rglob("entry_0")
    }


def test_the_next_browser_begins_with_what_was_compiled(tmp_path):
    part = tmp_path / "python.wasm"
    part.write_bytes(b"")
    kept = Kept(tmp_path / "kept", [part], sys.executable)
    assert begun(kept, tmp_path / "first") == {}
    kept.keep(left(tmp_path / "short", 999_999))  # of a page that only just began
    assert begun(kept, tmp_path / "second") == {}
    kept.keep(left(tmp_path / "whole", 2_000_000))
    found = {"Cache/entry_0": 2_000_000, "Code Cache/wasm/entry_0": 2_000_000}
    assert begun(kept, tmp_path / "third") == found
    kept.keep(left(tmp_path / "similar", 2_900_000))
    assert begun(kept, tmp_path / "fourth") == found
    kept.keep(left(tmp_path / "larger", 3_100_000))
    assert begun(kept, tmp_path / "fifth") == dict.fromkeys(found, 3_100_000)


def test_it_is_of_no_use_to_another_python(tmp_path):
    part = tmp_path / "python.wasm"
    part.write_bytes(b"")
    Kept(tmp_path / "kept", [part], sys.executable).keep(left(tmp_path / "old", 2_000_000))
    os.utime(part, ns=(0, 0))
    kept = Kept(tmp_path / "kept", [part], sys.executable)
    assert begun(kept, tmp_path / "new") == {}
    kept.keep(left(tmp_path / "next", 1_500_000))
    assert len(begun(kept, tmp_path / "later")) == 2
    assert len(list((tmp_path / "kept").iterdir())) == 1
