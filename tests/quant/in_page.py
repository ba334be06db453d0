"""Every format through the kernels, against the numpy twins; scripts/browser runs it in a page too.

    in_page.py NAME...

Values of every format are compared and a product of those that have kernels of their own; of the named ones
rows, and products of few rows or tiles with their gradient.
"""

import sys

import numpy as np

import pellucid
from pellucid.nn.functional import embedding, linear
from pellucid.quant import FORMATS, dequantize_planes
from pellucid.quant.rows import moved
from pellucid.quant.weight import dequantize
from samples import ALIKE, OCTETS, sampled, widths

rng = np.random.default_rng(0)
failed = 0
for k, (name, f) in enumerate(FORMATS.items()):
    rows, columns = 37, widths(name)[1]
    weight, numbers, _ = sampled(name, rows, columns, rng, odd=True)
    expected = numbers.view(np.uint32)
    unpacked = dequantize_planes(moved(weight, "cpu")._storage.data.view(np.uint32), f, rows, columns)
    planes = np.array_equal(unpacked.view(np.uint32), expected)
    values = np.array_equal(dequantize(weight).numpy().view(np.uint32), expected)
    picked, is_named = True, name in sys.argv[1:]
    if is_named:
        ids = pellucid.tensor([36, 0, 7])
        picked = np.array_equal(embedding(ids, weight).numpy().view(np.uint32), expected[[36, 0, 7]])

    weight, numbers, _ = sampled(name, rows, columns, rng)
    exact = numbers.astype(np.float64)
    worst = 0.0
    batches = () if name in ALIKE else (9,) if name in OCTETS else (1, (9, 40)[k % 2])
    for batch in batches if is_named else batches[:-1]:
        x = rng.standard_normal((batch, columns)).astype(np.float32)
        g = rng.standard_normal((batch, rows)).astype(np.float32)
        given = pellucid.tensor(x, requires_grad=True)
        out = linear(given, weight)
        pairs = [(out.detach(), x, exact.T)]
        if batch > 1:  # one gradient of each format
            out.backward(pellucid.tensor(g))
            pairs.append((given.grad, g, exact))
        for ours, a, b in pairs:
            bound = np.abs(a) @ np.abs(b) + 1e-30
            worst = max(worst, float((np.abs(ours.numpy() - a @ b) / bound).max()))
    good = planes and values and picked and worst < 1e-6
    failed += not good
    print(f"{name}: planes {planes}, values {values}, rows {picked}, products within {worst:.1e}", flush=True)
print("failed" if failed else "passed")
sys.exit(failed)
