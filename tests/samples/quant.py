"""Samples of quantized weights; `tests/quant` compares their formats with the `gguf` package."""

import numpy as np

from samples.sample import RANDOM, S, Sample, bad, normal

# Blocks of 32 numbers of 8 bits, each behind the binary16 of its scale.
blocks = RANDOM.integers(0, 256, (37 * 3, 34)).astype(np.uint8)
blocks[:, :2] = RANDOM.uniform(-0.01, 0.01, (37 * 3, 1)).astype(np.float16).view(np.uint8)
values = blocks[:, :2].copy().view(np.float16).astype(np.float32) * blocks[:, 2:].view(np.int8)


def _dequantized(t, raw):
    from pellucid.quant.weight import weight_from_blocks

    return weight_from_blocks(raw.numpy().reshape(-1), "q8_0", (37, 96)).dequantize()


SAMPLES: dict[str, list[Sample]] = {
    "Tensor.dequantize": [
        S(_dequantized, blocks).but(theirs=lambda t, raw: t.tensor(values.reshape(37, 96)),
            layouts=("contiguous",)),
        bad("has no gradient", normal(3)).but(error=RuntimeError)
    ]
}  # fmt: skip
