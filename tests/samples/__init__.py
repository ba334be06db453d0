"""Samples of every public op, by its public name: the table that `tests/ops` and the page of ops run."""

from importlib import import_module

from samples.complex import MORE
from samples.sample import Sample

NAMES = (
    "attention conv elementwise fft image index linalg loss matmul norm quant random recurrence reduce "
    "shape special"
)
GROUPS: dict[str, dict[str, list[Sample]]] = {
    name: import_module(f"samples.{name}").SAMPLES for name in NAMES.split()
}
SAMPLES: dict[str, list[Sample]] = {name: rows for group in GROUPS.values() for name, rows in group.items()}
for name, rows in MORE.items():
    SAMPLES[name] += rows
