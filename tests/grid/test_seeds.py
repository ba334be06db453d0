"""P-036, P-047, P-048: two runs from one seed are equal in every bit on one device, by all that draws."""

import importlib.util

import pytest

import pellucid
from ops.oracle import DEVICES

from paths import ROOT

_spec = importlib.util.spec_from_file_location("seeds", ROOT / "tests/browser/grid_page/seeds.py")
seeds = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(seeds)


@pytest.mark.turns(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("family", seeds.FAMILIES)
def test_two_runs_from_one_seed_have_equal_bits(family, device):
    with pellucid.device(device):
        assert seeds.repeats(family)
