"""What computes the operators, by groups; importing a file puts its rows into the table."""

from . import (
    attention,
    contributed,
    contributed_quantized,
    elementwise,
    images,
    indices,
    norms,
    products,
    quantized,
    recurrent,
    reductions,
    shapes,
    signal,
    windows,
)
