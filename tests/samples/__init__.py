"""Samples of every public op, by its public name: the table that `tests/ops` and the page of ops run."""

from samples import attention, conv, elementwise, index, loss, matmul, norm, quant, random, reduce, shape
from samples.sample import Sample

GROUPS: dict[str, dict[str, list[Sample]]] = {
    module.__name__.rpartition(".")[2]: module.SAMPLES
    for module in (attention, conv, elementwise, index, loss, matmul, norm, quant, random, reduce, shape)
}
SAMPLES: dict[str, list[Sample]] = {name: rows for group in GROUPS.values() for name, rows in group.items()}
