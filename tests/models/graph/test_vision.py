"""Networks of timm and torchvision, unmodified, as `vision` recorded their exported programs."""

from pathlib import Path

import pytest

from models.graph.vision import NETWORKS, assembled, computed, differences, expected, in_a_page


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_compute_what_pytorch_does(name, tmp_path):
    got = computed(name, assembled(name, tmp_path / "model.pt2"), "cpu")
    assert max(differences(got, expected(name))) < 1e-4


@pytest.mark.parametrize("name", ["test_vit", "shufflenet_v2_x0_5"])
def test_networks_on_the_gpu(name, tmp_path):
    got = computed(name, assembled(name, tmp_path / "model.pt2"), "webgpu")
    assert max(differences(got, expected(name))) < 1e-4


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_page(tmp_path: Path):
    for name in NETWORKS:
        assembled(name, tmp_path / f"{name}.pt2")
    got = in_a_page(list(NETWORKS), tmp_path)
    assert set(got) == set(NETWORKS)
    wrong = {name: found for name in NETWORKS if max(found := differences(got[name], expected(name))) >= 1e-4}
    assert not wrong
