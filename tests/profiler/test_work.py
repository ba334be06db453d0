"""What a launch moves and computes, against the tensors' sizes and PyTorch's own count of operations."""

import numpy as np
import pytest
import torch as pytorch
from torch.utils.flop_counter import FlopCounterMode

import pellucid as torch
import pellucid.nn.functional as F

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def alone():
    """Every launch by itself."""
    with torch.webgpu.fusion(False):
        yield


def moved(run):
    """Bytes read and written by the dispatches of a run."""
    with torch.debug.trace() as t:
        run()
    return [(d.bytes_read, d.bytes_written) for d in t]


def test_elements_count_once_whatever_they_are_broadcast_to():
    x, row = torch.ones(30, 20), torch.ones(20)
    column = torch.ones(30, 1)
    assert moved(lambda: x + row) == [(2400 + 80, 2400)]
    assert moved(lambda: x * column) == [(2400 + 120, 2400)]
    assert moved(lambda: x + x) == [(2400, 2400)]
    assert moved(lambda: x[:, :5] + 1) == [(600, 600)]
    assert moved(lambda: row.expand(30, 20).contiguous()) == [(80, 2400)]


def test_packed_types_take_fewer_bytes():
    x = torch.ones(64, dtype=torch.float16)
    assert moved(lambda: x + x) == [(128, 128)]
    assert moved(lambda: x > 0) == [(128, 64)]
    assert moved(lambda: x.to(torch.int64)) == [(128, 512)]


def test_what_is_written_in_place_is_read_as_well():
    x, y = torch.ones(100), torch.ones(100)
    assert moved(lambda: x.add_(y)) == [(800, 400)]
    assert moved(lambda: x.copy_(y)) == [(400, 400)]
    assert moved(lambda: x.fill_(3)) == [(0, 400)]


def test_a_table_counts_as_far_as_it_is_reached():
    table = torch.ones(5000, 16)
    ids = torch.tensor([3, 4, 9])
    torch.webgpu.flush()
    assert moved(lambda: torch.embedding(table, ids)) == [(3 * 8 + 3 * 64, 3 * 64)]
    assert moved(lambda: table.index_select(0, ids)) == [(3 * 8 + 3 * 64, 3 * 64)]


def test_quantized_weights_count_as_they_are_stored():
    from pellucid.quant.weight import weight_from_blocks

    blocks = np.zeros(32 * 4 * 18, np.uint8)
    weight = weight_from_blocks(blocks.tobytes(), "q4_0", (32, 128))
    x = torch.ones(1, 128)
    torch.webgpu.flush()
    with torch.debug.trace() as t:
        F.linear(x, weight)
    assert len(t) == 1
    assert t[0].bytes_read == 4 * 128 + 32 * 4 * 18
    assert t[0].bytes_written == 4 * 32
    assert t[0].flops == 2 * 32 * 128


CASES = {
    "matrices": lambda t, f: t.rand(12, 7) @ t.rand(7, 5),
    "batches": lambda t, f: t.rand(3, 12, 7) @ t.rand(3, 7, 5),
    "one against many": lambda t, f: t.rand(3, 2, 12, 7) @ t.rand(7, 5),
    "many against one": lambda t, f: t.rand(12, 7) @ t.rand(3, 7, 5),
    "linear": lambda t, f: f.linear(t.rand(4, 6, 7), t.rand(5, 7), t.rand(5)),
    "added": lambda t, f: t.addmm(t.rand(5), t.rand(12, 7), t.rand(7, 5)),
    "transposed": lambda t, f: t.rand(7, 12).t() @ t.rand(5, 7).t(),
    "a row": lambda t, f: t.rand(1, 64) @ t.rand(64, 300),
    "deep": lambda t, f: t.rand(4, 8192) @ t.rand(8192, 4),
    "none": lambda t, f: t.rand(12, 7) + 1,
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_those_that_pytorch_counts(name):
    with FlopCounterMode(display=False) as expected:
        CASES[name](pytorch, pytorch.nn.functional)
    with torch.debug.trace() as t:
        CASES[name](torch, F)
    assert sum(d.flops for d in t) == expected.get_total_flops()


def test_operations_of_the_backward_pass():
    def run(t, f):
        x, w = t.rand(12, 7, requires_grad=True), t.rand(5, 7, requires_grad=True)
        f.linear(x, w).sum().backward()

    with FlopCounterMode(display=False) as expected:
        run(pytorch, pytorch.nn.functional)
    with torch.debug.trace() as t:
        run(torch, F)
    assert sum(d.flops for d in t) == expected.get_total_flops() == 3 * 2 * 12 * 7 * 5


def test_operations_of_fused_products_are_kept():
    a, b = torch.rand(12, 7), torch.rand(7, 5)
    torch.webgpu.flush()
    with torch.webgpu.fusion(True):
        for _ in range(2):
            c = (a @ b).relu() * 2
            torch.webgpu.flush()
            del c
        with torch.debug.trace() as t:
            c = (a @ b).relu() * 2
            torch.webgpu.flush()
    assert len(t) == 1
    assert t[0].flops == 2 * 12 * 7 * 5
    del c
