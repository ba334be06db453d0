"""Products of one row by integer dot products in a page, against float64; scripts/browser runs it.

    dots_in_page.py NAME...

Expects PELLUCID_KERNELS=shared and PELLUCID_DOTS=integer.
"""

import sys

import numpy as np

import pellucid
from pellucid.device.stream import stream
from pellucid.nn.functional import linear
from pellucid.ops.quant.lanes import FEATURE, choose
from pellucid.quant.weight import dequantize, weight_from_blocks
from samples import tame_blocks, widths

info = stream().open().info
if FEATURE not in info.features:
    print("the browser has no integer dot products")
    sys.exit(0)
rng = np.random.default_rng(0)
failed = 0
for k, name in enumerate(sys.argv[1:]):
    worst, is_kept = 0.0, True
    # Rows of one workgroup, and, of one of the formats in three, rows so long that several share them.
    for columns in (widths(name)[1], 12544)[: 2 if k % 3 == 0 else 1]:
        parts = choose(1, 133, columns // 32, name, info, alone=True).parts
        assert parts == (4 if columns == 12544 else 1), parts
        weight = weight_from_blocks(tame_blocks(name, 133, columns, rng), name, (133, columns))
        exact = dequantize(weight).numpy().astype(np.float64).T
        for x in (rng.standard_normal(columns), np.ldexp(1.7, rng.integers(-60, 60, columns))):
            x = x.astype(np.float32)
            largest = np.repeat(np.abs(x).reshape(-1, 32).max(1), 32)
            bound = (1.004 * 2.0**-23 * largest + 3e-7 * np.abs(x)) @ np.abs(exact)
            error = np.abs(linear(pellucid.tensor(x), weight).numpy() - x @ exact)
            worst = max(worst, float((error / bound).max()))
        x = np.zeros(columns, np.float32)
        x[9] = np.nan
        is_kept = is_kept and bool(np.isnan(linear(pellucid.tensor(x), weight).numpy()).all())
    failed += worst > 1 or not is_kept or not choose(1, 133, columns // 32, name, info).dots
    print(f"{name}: {worst:.2f} of the bound, NaN kept {is_kept}", flush=True)
print("failed" if failed else "passed")
sys.exit(failed)
