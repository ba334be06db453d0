"""``out_dtype``: products of halves in float32, for which PyTorch has no kernel on the cpu; and ``out``."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import normal
from pellucid.errors import DTypeError


@pytest.mark.parametrize("device", ["webgpu", "cpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_halves_in_float32(dtype, device):
    kind = getattr(pellucid, dtype)
    values = [normal(2, 5, 40), normal(2, 40, 3), normal(2, 5, 3)]
    a, b, c = (pellucid.tensor(v, device=device).to(kind) for v in values)
    x, y, z = (t.float().cpu().numpy().astype(np.float64) for t in (a, b, c))
    a.requires_grad_()
    found = pellucid.mm(a[0], b[0], out_dtype=pellucid.float32)
    assert found.dtype is pellucid.float32
    np.testing.assert_allclose(found.detach().numpy(), x[0] @ y[0], rtol=1e-5, atol=1e-5)
    found.sum().backward()
    assert a.grad is not None
    assert a.grad.dtype is kind
    a = a.detach()
    np.testing.assert_allclose(pellucid.bmm(a, b, pellucid.float32).numpy(), x @ y, rtol=1e-5, atol=1e-5)
    # What is added may be a half or not.
    for added in (c, c.float()):
        got = pellucid.baddbmm(added, a, b, out_dtype=pellucid.float32, beta=0.5, alpha=2)
        np.testing.assert_allclose(got.numpy(), 0.5 * z + 2 * (x @ y), rtol=1e-5, atol=1e-5)
        got = added[0].addmm(a[0], b[0], out_dtype=pellucid.float32)
        np.testing.assert_allclose(got.numpy(), z[0] + x[0] @ y[0], rtol=1e-5, atol=1e-5)
    assert pellucid.mm(a[0], b[0], out_dtype=kind).dtype is kind


def test_types_are_those_of_pytorch_and_others_are_refused():
    def result(library):
        a, b = (library.ones(s, device="meta", dtype=library.float16) for s in ((2, 3), (3, 4)))
        found = library.mm(a, b, out_dtype=library.float32)
        return tuple(found.shape), str(found.dtype).partition(".")[2]

    assert result(pellucid) == result(torch) == ((2, 4), "float32")
    x = pellucid.ones(2, 2, device="cpu")
    for operands, kind in (((x, x), pellucid.float16), ((x.half(), x.half()), pellucid.int32)):
        with pytest.raises(DTypeError, match="Convert the result"):
            pellucid.mm(*operands, out_dtype=kind)
    with pytest.raises(DTypeError, match="neither"):
        pellucid.addmm(x.double(), x.half(), x.half(), out_dtype=pellucid.float32)


def test_results_are_written_where_out_says():
    """By place and by name, as in PyTorch."""

    def written(library):
        x, out = library.arange(6.0).reshape(2, 3), library.zeros(2, 3)
        assert library.nn.functional.normalize(x, 2.0, 1, 1e-12, out) is out
        ends = [library.zeros(2, 2), library.zeros(2)]
        assert library.tensordot(x, x.T, 1, ends[0]) is ends[0]
        assert library.norm(x, 2, 1, out=ends[1]) is ends[1]
        return [t.numpy() for t in (out, *ends)]

    with torch.no_grad(), pellucid.device("cpu"):
        for got, wanted in zip(written(pellucid), written(torch), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
