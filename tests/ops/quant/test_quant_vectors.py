"""Products of several quantized weights in one launch, with the norm before them, against the launches they
stand for."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import pellucid
from ops.adapters import H200
from ops.joints import Window, nodes
from ops.oracle import agree, normal
from pellucid.nn.functional import linear, rms_norm
from pellucid.op.kernel.source import load
from pellucid.op.launches import most_buffers
from pellucid.op.plan_cache import forget_plans
from pellucid.ops.quant.lanes import FEATURE, MOST_ROWS, Lanes, choose
from pellucid.ops.quant.vectors import vectors
from pellucid.quant import FORMATS
from pellucid.quant.weight import dequantize
from quant.samples import OWN_PRODUCTS, sampled, widths

pytestmark = pytest.mark.gpu
NORMS = load("matmul/quant/vector").header.norms
# Three weights of 3 bits with act-order take lavapipe a minute to compile; one alone and pairs are run.
THREE = [name for name in OWN_PRODUCTS if name != "int3_g_idx"]
# Kernels of several weights of the others take it up to half a minute each.
QUICK = [name for name in OWN_PRODUCTS if not name.endswith("_g_idx") and name not in ("codebook4", "iq2_s")]


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """Plans are made anew for kernels with workgroup memory, and forgotten again."""
    forget_plans()
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    yield
    forget_plans()


@pytest.fixture
def subgroups(shared, monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", "subgroups")


@pytest.fixture
def direct(shared, monkeypatch):
    monkeypatch.setenv("PELLUCID_KERNELS", "direct")


def weights(name, columns, *rows):
    rng = np.random.default_rng(columns)
    return [sampled(name, n, columns, rng, "webgpu")[0] for n in rows]


def middle(*shape):
    """Random numbers on webgpu, as a view that begins in the middle of its buffer."""
    return pellucid.tensor(normal(1 + int(np.prod(shape))), device="webgpu")[1:].reshape(shape)


def compare(x, given, norm_weight=None, eps=None, paired=False, bias=None):
    """Run the products one by one, then at once into the same buffers, and compare."""
    columns = x.shape[-1]

    def program():
        h = x if eps is None else rms_norm(x, (columns,), norm_weight, eps)
        return h, [linear(h, w, bias) for w in given]

    window = Window(program)
    h, outs = window.result
    expected = [out.numpy() for out in outs]
    for out in outs:
        out.fill_(np.nan)
    norms = [r for r in window.runs if r.node.source.name in NORMS]
    products = [r for r in window.runs if r.node.source.header.joint]
    joint = vectors(nodes(products), *nodes(norms), paired=paired)
    assert joint is not None
    assert len(joint.node.source.bindings) <= 8 <= most_buffers()
    window.run(joint, [*products, *norms])
    magnitudes = np.abs(h.numpy())
    for out, wanted, w in zip(outs, expected, given, strict=True):
        bound = magnitudes @ np.abs(dequantize(w).numpy()).T + (0 if bias is None else np.abs(bias.numpy()))
        assert (np.abs(out.numpy() - wanted) <= 1e-6 * bound).all()
    return joint.node


@pytest.mark.turns(15)
@pytest.mark.parametrize("name", THREE)
def test_three_weights_with_their_norm(name):
    for columns in widths(name) if name in QUICK else widths(name)[1:2]:
        compare(middle(1, columns), weights(name, columns, 133, 32, 7), middle(columns), 1e-5)


@pytest.mark.turns(7)
@pytest.mark.parametrize("name", OWN_PRODUCTS)
def test_a_pair_with_its_norm(name):
    columns = widths(name)[1]
    for rows in (1, 37, 130) if name in QUICK else (37,):
        compare(middle(1, columns), weights(name, columns, rows, rows), middle(columns), 1e-6, paired=True)


@pytest.mark.turns(3)
@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("paired", [False, True])
def test_weights_without_a_norm(batch, paired):
    for name in ("q4_1", "q6_k"):
        columns = widths(name)[0]
        compare(middle(batch, columns), weights(name, columns, 45, 45), paired=paired)


@pytest.mark.turns(7)
@pytest.mark.usefixtures("direct")
@pytest.mark.parametrize("name", THREE)
def test_weights_without_workgroup_memory(name):
    for columns in widths(name) if name in QUICK else widths(name)[1:2]:
        x = middle(1, columns)
        compare(x, weights(name, columns, 133, 32, 7))
        compare(x, weights(name, columns, 65, 3))
        compare(x, weights(name, columns, 35, 35), paired=True)


@pytest.mark.usefixtures("direct")
def test_a_norm_stays_a_launch_of_its_own_without_workgroup_memory():
    given = weights("q4_1", 96, 9, 9)

    def program():
        h = rms_norm(middle(1, 96), (96,), None, 1e-5)
        return [linear(h, w) for w in given], h

    norm, a, b = nodes(Window(program).runs)
    assert vectors([a, b]) is not None
    assert vectors([a, b], norm) is None
    assert vectors([a], norm) is None


def test_two_weights_bind_seven_buffers():
    node = compare(middle(1, 64), weights("q4_0", 64, 30, 10), middle(64), 1e-6)
    assert [b.name for b in node.source.bindings] == [
        "x", "norm_weight", "weight_0", "weight_1", "weight_2", "out_0", "out_1"
    ]  # fmt: skip


@pytest.mark.parametrize("biased", [False, True])
def test_one_weight_with_its_norm(biased):
    bias = middle(70) if biased else None
    compare(middle(1, 96), weights("q5_1", 96, 70), middle(96), 1e-5, bias=bias)


@pytest.mark.turns(7)
@pytest.mark.parametrize("batch", [8, 9])
@pytest.mark.parametrize("name", FORMATS)
def test_a_product_with_unit_vectors_shows_the_weight(name, batch):
    """Also where scales are subnormal, the largest or negative zero: nothing is rounded twice."""
    columns = widths(name)[0]
    weight, _, _ = sampled(name, 40, columns, np.random.default_rng(batch), "webgpu", odd=True)
    vectors = np.eye(columns, dtype=np.float32)[np.linspace(0, columns - 1, batch).astype(int)]
    out = linear(pellucid.tensor(vectors, device="webgpu"), weight)
    # As a product, for 0 times an infinite weight, which scales of MXFP4 may make, is NaN.
    with np.errstate(invalid="ignore"):
        shown = vectors.astype(np.float64) @ dequantize(weight).numpy().astype(np.float64).T
    agree(out, torch.clone, torch.tensor(shown.astype(np.float32)), device="webgpu")


@pytest.mark.usefixtures("subgroups")
def test_squares_are_added_by_subgroups():
    for columns, rows in ((576, 33), (96, 9000)):
        compare(middle(1, columns), weights("q4_1", columns, rows, rows), middle(columns), 1e-5, paired=True)


def test_a_norm_without_a_weight():
    compare(middle(1, 96), weights("q4_1", 96, 70, 9), None, 1e-5)


def test_the_sizes_of_a_small_model():
    """Several steps, idle lanes, narrow workgroups."""
    for columns, rows in ((576, (576, 192, 192)), (1536, (576, 1)), (4160, (9, 5))):
        compare(middle(1, columns) * 3, weights("q4_1", columns, *rows), middle(columns), 1e-5)


def test_lanes_follow_the_shape(monkeypatch):
    """Without integer dot products: few rows take more lanes each, long rows at least 16."""
    monkeypatch.delenv("PELLUCID_DOTS", raising=False)
    assert choose(1, 960, 18, "q4_1", H200) == Lanes(64, 32, 1, 32)
    assert choose(1, 3072, 18, "q4_1", H200).workgroup == 128
    assert choose(1, 49152, 18, "q4_1", H200) == Lanes(256, 8, 1, 8)
    assert choose(1, 65536, 128, "q8_0", H200) == Lanes(128, 16, 1, 16)
    assert choose(1, 8192, 256, "q8_0", H200) == Lanes(128, 32, 1, 32)
    assert choose(1, 8192, 256, "f16", H200) == Lanes(64, 32, 1, 32)
    assert choose(1, 4096, 896, "q8_0", H200) == Lanes(128, 64, 1, 64)


@pytest.mark.parametrize("chosen", ["integer", "float"])
def test_x_of_a_lane_fits_its_registers(chosen, monkeypatch):
    monkeypatch.setenv("PELLUCID_DOTS", chosen)
    room = H200.limits["maxComputeWorkgroupStorageSize"]
    infos = [replace(H200, features=frozenset({FEATURE}), limits=limits) for limits in (H200.limits, {})]
    for info, batch in product(infos, range(1, MOST_ROWS + 1)):
        for rows in (1, 500, 3000, 9000, 1 << 20):
            for units in (1, 18, 500):
                lanes = choose(batch, rows, units, "q4_0", info)
                assert lanes.dots == (chosen == "integer" and batch == 1)
                assert 8 * lanes.batch * lanes.step <= 4 * lanes.workgroup
                assert lanes.step % lanes.lanes == 0
                if lanes.dots:
                    assert 8 * lanes.step / lanes.workgroup in (1, 2, 4)
                    assert 8 * (lanes.step + 4) >= lanes.workgroup
                sums = 4 * (lanes.workgroup + 16) if batch == 1 else 0  # of the squares, for a norm
                assert lanes.nbytes + sums <= (room if info.limits else 16384)


def test_what_does_not_fit_is_left_apart():
    x, wide, bias = middle(1, 96), middle(1, 64), middle(9)
    q4, q5 = weights("q4_1", 96, 9, 9, 8), weights("q5_1", 96, 9)
    other = weights("q4_1", 64, 9)

    def program():
        h = rms_norm(middle(2, 96), (96,), None, 1e-5)
        return (
            [linear(x, w) for w in (*q4, *q5)], linear(wide, other[0]), linear(x, q4[0], bias),
            linear(h, q4[0]), h, rms_norm(x, (96,), None, 1e-5)
        )  # fmt: skip

    window = Window(program)
    a, b, c, fifths, narrow, biased, two = nodes(window.named("matmul/quant/vector"))
    two_rows, one_row = [n for n in nodes(window.runs) if n.source.name in NORMS]
    assert vectors([a, b, c]) is not None
    assert vectors([a, b], paired=True) is not None
    assert vectors([a, c], paired=True) is None
    assert vectors([a, b, c], paired=True) is None
    assert vectors([a, b, c, a]) is None
    assert vectors([a, fifths]) is None
    assert vectors([a, narrow]) is None
    assert vectors([a, biased]) is None
    assert vectors([a]) is None
    assert vectors([biased], one_row) is not None
    assert vectors([narrow], one_row) is None
    assert vectors([two], two_rows) is None
    assert vectors([two_rows, a]) is None
