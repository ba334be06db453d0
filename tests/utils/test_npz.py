"""npz files, whatever their arrays are called."""

import numpy as np

from pellucid.utils.npz import save_npz


def test_any_name_is_kept(tmp_path):
    arrays = {name: np.arange(k + 1.0) for k, name in enumerate(["file", "allow_pickle", "a.weight", "é/0"])}
    save_npz(tmp_path / "found.npz", arrays.items())
    with np.load(tmp_path / "found.npz") as found:
        assert list(found) == list(arrays)
        assert all(np.array_equal(found[name], x) for name, x in arrays.items())
