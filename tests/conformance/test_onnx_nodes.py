"""A part of the node tests of the ONNX standard: of each operator one case, in turn on a device.

`scripts/conformance onnx` runs them all.
"""

import pytest

pytest.importorskip("onnx")
from conformance.onnx_nodes import DEVICES, cases, failure, left_out

# Cases that are computed as PyTorch and onnxruntime do; see docs/onnx.md.
DIFFERENT = {f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(DEVICES)), ids=DEVICES)
def test_every_operator(number):
    device = DEVICES[number]
    by_operator = {}
    for case in cases():
        if not left_out(case, device) and case.name not in DIFFERENT:
            by_operator.setdefault(case.operator, []).append(case)
    # Other cases on the other device, and not the first ones, which tend to be the simplest.
    chosen = [found[len(found) * (number + 1) // (len(DEVICES) + 1)] for found in by_operator.values()]
    assert len(chosen) > 150
    wrong = {case.name: text for case in chosen if (text := failure(case, device))}
    assert not wrong
