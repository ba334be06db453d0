"""P-020 to P-030, P-079, P-080, P-101: every layer on the GPU beside the CPU, forward and backward, and the
table of these in docs/grid.md."""

import importlib.util
import re

import pytest

from pellucid.grid import PRECISIONS
from pellucid.grid.layers import LAYERS
from pellucid.grid.softmax import KINDS

from paths import ROOT

_file = ROOT / "benchmarks" / "grid_parity.py"
_spec = importlib.util.spec_from_file_location("grid_parity", _file)
parity = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(parity)

NAMES = list(parity.rows())


def test_every_layer_and_kind_has_a_row():
    assert set(LAYERS) <= set(NAMES)
    assert {f"dense in {kind}" for kind in PRECISIONS} <= set(NAMES)
    assert {f"softmax, {kind}" for kind in KINDS} - set(NAMES) == {"softmax, standard"}  # that is "softmax"


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", NAMES)
def test_gpu_beside_cpu(name):
    """P-079, P-080: values and gradients within the tolerance; none is left out that there should be."""
    errors = parity.compared(name)[name]
    assert errors["output"] is not None
    assert (errors["input"] is None) == (name == "embedding")
    assert (errors["parameters"] is None) == name.startswith("softmax")
    assert all(e is None or e <= parity.TOLERANCE for e in errors.values()), errors


def test_an_error_would_show():
    """P-079: a gradient of another is far beyond the tolerance."""
    module, x = parity.rows()["dense"]
    gpu, cpu = parity.run(module, x, "webgpu"), parity.run(module, x * 1.001, "cpu")
    assert parity.error(gpu["output"], cpu["output"]) > 5 * parity.TOLERANCE


def test_the_table_of_the_docs_is_of_these_rows():
    """P-079, P-080: all green, and none is missing."""
    text = (ROOT / "docs" / "grid.md").read_text(encoding="utf-8")
    text = text.partition(parity.BEGIN)[2].partition(parity.END)[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*)\| ([^|]*)\| ([^|]*)\|$", text, re.MULTILINE)[1:]
    assert [row[0] for row in rows] == NAMES
    errors = [float(e) for row in rows for e in row[1:] if e.strip()]
    assert max(errors) <= parity.TOLERANCE
    assert len(errors) > 2 * len(rows)
